"""`evaluate`: rank the answers of a split's facts by any scorer; and two simple baselines."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats, Ints, Mask, ranges_to_indices, read_only
from tilp._utils.random import keyed_sample
from tilp.errors import TilpError
from tilp.evaluation.filtered_ranks import Ranker, rank_columns
from tilp.evaluation.result import QUERY_SCHEMA, SUBSETS, Evaluation, FactSample
from tilp.graph import QueryTable, TemporalGraph, Vocabulary
from tilp.learning import PopularityPrior
from tilp.parallel import Workers, use_workers
from tilp.scoring import Scores
from tilp.scoring.scores import ScoreFunction
from tilp.time import UNKNOWN, gap_lengths
from tilp.types import Protocol, choose

# End of a fact that a query asks for: the objects of all facts, then the subjects of all.
DIRECTIONS = ("object", "subject")


def evaluate(
    scorer: ScoreFunction | Scores, graph: TemporalGraph, split: str = "test", *,
    protocols: Iterable[Protocol | str] | None = None, sample: int | None = None, seed: int = 0,
    batch: int = 512, max_candidates: int = 4_000_000, threads: int = 1,
    workers: Workers | None = None, progress: Callable[[float], None] | None = None,
    note: str = "",
) -> Evaluation:  # fmt: skip
    """Rank the answers of a split's facts, queried in both directions, among all entities.

    Args:
        scorer: A function from queries to scores, such as `model.scorer()`; or the scores of all
            queries of the split, in the order of `QueryTable.of_facts`.
        graph: The facts. Protocols remove other answers by the facts of all splits.
        split: Split whose facts are queried, `test` by default.
        protocols: Protocols to rank by; all by default.
        sample: Number of facts to draw from the split at random, for large splits; all by default.
            Ranks are those that the facts have among all. Lower it to save time and memory.
        seed: Seed of the sample, 0 by default.
        batch: Number of queries scored at a time, 512 by default. Lower it to save memory; it does
            not change the result.
        max_candidates: Number of candidates scored at a time, 4 million by default: batches have
            fewer queries if there are very many entities.
        threads: Number of threads that score batches, 1 by default; does not change the result.
        workers: Workers in place of threads.
        progress: Called with the share of queries that is done.
        note: Text saved with the evaluation, such as where the scores came from.

    >>> from tilp import datasets
    >>> from tilp.evaluation import popularity
    >>> graph = datasets.world(0, 1000).graph
    >>> evaluation = evaluate(popularity(graph), graph, "valid")
    >>> len(evaluation) == 2 * len(graph.rows("valid"))
    True
    """
    every = Protocol if protocols is None else protocols
    wanted = {choose(Protocol, name, "protocol") for name in every}
    chosen = tuple(protocol for protocol in Protocol if protocol in wanted)
    if not chosen:
        raise TilpError("choose at least one protocol")
    rows = split_facts(graph, split)
    if sample is not None and sample < 1:
        raise TilpError(f"the sample has {sample} facts; choose 1 or more")
    if batch < 1:
        raise TilpError("a batch has at least one query")
    batch = min(batch, max(1, max_candidates // max(len(graph.entities), 1)))
    drawn = None
    if sample is not None and sample < len(rows):
        drawn = FactSample(sample, len(rows), seed)
        fact = (graph.subject, graph.relation, graph.object, graph.start, graph.end)
        index = keyed_sample(sample, seed, *(column[graph.span(split)] for column in fact))
        if isinstance(scorer, Scores):
            scorer.check(2 * len(rows), len(graph.entities))
            scorer = scorer.take(np.concatenate([index, index + len(rows)]))
        rows = rows[index]
    ranker = Ranker(graph, rows, walked=split == "train")
    queries = ranker.queries
    if isinstance(scorer, Scores):
        scorer.check(len(queries), len(graph.entities))
        # Other processes share arrays that are read-only.
        names = ("offsets", "candidate", "score")
        scorer = replace(scorer, **{name: read_only(getattr(scorer, name)) for name in names})

    # Queries of one subject are in one batch: a scorer may share work between them.
    order = np.argsort(queries.subject, kind="stable")
    parts = [order[begin : begin + batch] for begin in range(0, len(order), batch)]
    columns = {name: np.empty(len(queries)) for name in rank_columns(chosen)}
    reached, done = np.empty(len(queries), np.bool_), 0
    rank = partial(_rank, scorer, ranker, chosen)
    with use_workers(workers, threads) as workers:
        for part, (ranks, reached_now) in zip(parts, workers.map(rank, parts), strict=True):
            for name, column in ranks.items():
                columns[name][part] = column
            reached[part] = reached_now
            done += len(part)
            if progress is not None:
                progress(done / len(queries))
    table = _query_table(graph, rows, reached).hstack(pl.DataFrame(columns))
    order = graph.canonical_order(rows)  # not that of the data, so that any two can be compared
    table = table[np.concatenate([order, order + len(rows)])]
    return Evaluation(table, split, graph.canonical().fingerprint(), chosen, note, drawn)


def split_facts(graph: TemporalGraph, split: str) -> Ints:
    """Return the ids of a split's facts; raise an error if there are none."""
    rows = np.asarray(graph.rows(split), dtype=np.int64)
    if not len(rows):
        how = "tilp split DATA --out FOLDER --kind random"
        raise TilpError(f"the {split} split has no facts to query; to make one: {how}")
    return rows


def _rank(
    scorer: ScoreFunction | Scores, ranker: Ranker, protocols: Sequence[Protocol], part: Ints
) -> tuple[dict[str, Floats], Mask]:
    scores = scorer.take(part) if isinstance(scorer, Scores) else scorer(ranker.queries[part])
    ranks, listed = ranker.rank(part, scores, protocols)
    return ranks, listed if scores.reached is None else scores.reached


def _query_table(graph: TemporalGraph, rows: Ints, reached: Mask) -> pl.DataFrame:
    """Return a row for each query: its fact as written, and the subsets it belongs to."""
    seen = np.zeros(len(graph.entities), dtype=np.bool_)
    for column in (graph.subject, graph.object):
        seen[column[graph.span("train")]] = True
    entities, texts = graph.entities.labels, graph.texts
    facts = pl.DataFrame(
        {
            "fact": rows,
            "subject": entities.gather(graph.subject[rows]),
            "relation": unique_labels(graph.relations).gather(graph.relation[rows]),
            "object": entities.gather(graph.object[rows]),
            "start": texts.gather(graph.start_text[rows]),
            "end": texts.gather(graph.end_text[rows]),
            "repeated": _repeated(graph, rows),
            "dated": (graph.start[rows] != UNKNOWN) & (graph.end[rows] != UNKNOWN),
            "unseen": ~(seen[graph.subject[rows]] & seen[graph.object[rows]]),
        }
    )
    both = pl.concat(facts.with_columns(direction=pl.lit(end)) for end in DIRECTIONS)
    return both.with_columns(pl.Series("unreached", ~reached)).select(*QUERY_SCHEMA, *SUBSETS)


def unique_labels(names: Vocabulary) -> pl.Series:
    """Return labels, with the id where several are the same."""
    with_id = pl.format("{} ({})", "label", "id")
    label = pl.when(pl.col("label").is_duplicated()).then(with_id).otherwise("label")
    return names.frame().select(label.alias("label")).to_series()


def _repeated(graph: TemporalGraph, rows: Ints) -> Mask:
    """Mask the facts whose triple train has with another interval."""
    triple, times = ["subject", "relation", "object"], ["start", "end"]
    facts = pl.DataFrame({name: getattr(graph, name) for name in (*triple, *times)})
    train = facts[graph.span("train")].join(facts[rows], on=triple, how="semi").unique()
    intervals = train.group_by(triple).agg(intervals=pl.len().cast(pl.Int64))
    joined = facts[rows].join(intervals, on=triple, how="left", maintain_order="left")
    own = train.with_columns(own=pl.lit(1, pl.Int64))
    joined = joined.join(own, on=[*triple, *times], how="left", maintain_order="left")
    another = joined["intervals"].fill_null(0) - joined["own"].fill_null(0)
    return (another > 0).to_numpy()


def popularity(graph: TemporalGraph) -> ScoreFunction:
    """Return a baseline that scores candidates by how often train has them as answers.

    Counts are by directed relation; the query's subject and dates do not matter.

    Args:
        graph: The facts, whose train split is counted.

    >>> from tilp import datasets, evaluation
    >>> graph = datasets.world(0, 1000).graph
    >>> evaluation.evaluate(popularity(graph), graph, "valid").metrics().mrr > 0
    True
    """
    prior = PopularityPrior.from_graph(graph)

    def score(queries: QueryTable) -> Scores:
        relation = queries.directed_relation
        offsets, rows = ranges_to_indices(prior.offsets[relation], prior.offsets[relation + 1])
        return Scores(offsets, prior.entity[rows], prior.count[rows].astype(np.float64))

    return score


def recurrence(graph: TemporalGraph) -> ScoreFunction:
    """Return a baseline that scores candidates by the train facts that answer the query.

    A fact counts 1 / (1 + the time between its interval and the query's): 1 if they touch, and
    less the farther it is. A missing date counts as the known one, and an interval without any
    date touches every other.

    Args:
        graph: The facts, whose train split has the answers.

    >>> from tilp import datasets, evaluation
    >>> graph = datasets.world(0, 1000).graph
    >>> evaluation.evaluate(recurrence(graph), graph, "valid").metrics().mrr > 0
    True
    """
    n_directed = 2 * len(graph.relations)
    facts = QueryTable.of_facts(graph, np.asarray(graph.rows("train"), np.int64), walked=True)
    key = facts.subject.astype(np.int64) * n_directed + facts.directed_relation
    order = np.lexsort((facts.answer, key))
    key, facts = key[order], facts[order]

    def score(queries: QueryTable) -> Scores:
        wanted = queries.subject.astype(np.int64) * n_directed + queries.directed_relation
        ends = (np.searchsorted(key, wanted, side) for side in ("left", "right"))
        offsets, rows = ranges_to_indices(*ends)
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        times = facts.start[rows], facts.end[rows]
        gap = gap_lengths(*times, queries.start[query], queries.end[query])
        candidate = facts.answer[rows]
        changes = (np.diff(query, prepend=-1) != 0) | (np.diff(candidate, prepend=-1) != 0)
        first = np.flatnonzero(changes)
        offsets = np.searchsorted(query[first], np.arange(len(queries) + 1))
        sums = np.add.reduceat(1.0 / (1.0 + gap), first) if len(first) else gap
        return Scores(offsets, candidate[first], sums)

    return score

"""`evaluate`: ask a scorer every fact of a split, and rank the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import read_only
from tilp.errors import TilpError
from tilp.evaluation.filtered_ranks import Ranker, rank_column, ties_of
from tilp.evaluation.result import APART, QUERY_SCHEMA, Evaluation
from tilp.graph import TemporalGraph, Vocabulary
from tilp.parallel import Workers, use_workers
from tilp.scoring import Scores
from tilp.scoring.scores import ScoreFunction
from tilp.time import UNKNOWN
from tilp.types import Protocol

_MOST_LISTED = 20_000_000  # candidates of a batch, if all entities are

DIRECTIONS = ("object", "subject")
"""Which end of a fact is asked for: first of all facts the object, then of all the subject."""


def evaluate(
    scorer: ScoreFunction | Scores,
    graph: TemporalGraph,
    split: str = "test",
    *,
    protocols: Iterable[Protocol | str] | None = None,
    batch: int = 512,
    threads: int = 1,
    workers: Workers | None = None,
    progress: Callable[[float], None] | None = None,
    note: str = "",
) -> Evaluation:
    """Rank the answers of a split's facts, each asked in both directions, among all entities.

    Args:
        scorer: a function from queries to scores; or the scores of all queries of the split, in
            the order of `QueryTable.of_facts`.
        graph: its facts of all splits are what protocols remove other answers by.
        split: whose facts are asked.
        protocols: those to rank under; all by default.
        batch: how many queries the scorer is given at a time, or fewer where there are very many
            entities; does not change the result.
        threads: of several the scorer is called at once; they do not change the result either.
        workers: in place of threads.
        progress: called with the share that is done.
        note: kept with the evaluation, such as where the scores came from.

    Raises:
        TilpError: the split is empty, or scores are not of these queries and entities.
    """
    chosen = _chosen(protocols)
    rows = facts_to_ask(graph, split)
    if batch < 1:
        raise TilpError("a batch has at least one query")
    batch = min(batch, max(1, _MOST_LISTED // max(len(graph.entities), 1)))
    ranker = Ranker(graph, rows, walked=split == "train")
    queries = ranker.queries
    if isinstance(scorer, Scores):
        scorer.check(len(queries), len(graph.entities))
        # Other processes share what is not written to.
        columns_of = ("offsets", "candidate", "score")
        scorer = replace(scorer, **{name: read_only(getattr(scorer, name)) for name in columns_of})

    # Queries of one subject are asked together: a scorer may find much in common to them.
    order = np.argsort(queries.subject, kind="stable")
    parts = [order[begin : begin + batch] for begin in range(0, len(order), batch)]
    columns = {
        rank_column(protocol, ties): np.empty(len(queries))
        for protocol in chosen
        for ties in ties_of(protocol)
    }
    reached = np.empty(len(queries), np.bool_)
    done = 0
    rank = partial(_rank, scorer, ranker, chosen)
    with use_workers(workers, threads) as workers:
        for part, (ranks, reached_now) in zip(parts, workers.map(rank, parts), strict=True):
            for name, column in ranks.items():
                columns[name][part] = column
            reached[part] = reached_now
            done += len(part)
            if progress is not None:
                progress(done / len(queries))
    table = _query_table(graph, split, rows, reached).with_columns(
        pl.Series(name, column) for name, column in columns.items()
    )
    return Evaluation(table, split, graph.fingerprint(), chosen, note)


def facts_to_ask(graph: TemporalGraph, split: str) -> NDArray[np.int64]:
    """The numbers of a split's facts.

    Raises:
        TilpError: it has none.
    """
    rows = np.asarray(graph.rows(split), dtype=np.int64)
    if not len(rows):
        raise TilpError(f"the {split} split has no facts to ask; tilp split makes one")
    return rows


def _rank(
    scorer: ScoreFunction | Scores,
    ranker: Ranker,
    protocols: Sequence[Protocol],
    part: NDArray[np.int64],
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.bool_]]:
    """The ranks of some queries' answers by column, and whether each answer is reached."""
    scores = scorer.take(part) if isinstance(scorer, Scores) else scorer(ranker.queries[part])
    ranks, listed = ranker.rank(part, scores, protocols)
    return ranks, listed if scores.reached is None else scores.reached


def _chosen(protocols: Iterable[Protocol | str] | None) -> tuple[Protocol, ...]:
    """The protocols in their own order, each once."""
    names = [str(one) for one in (Protocol if protocols is None else protocols)]
    strange = [name for name in names if name not in list(Protocol)]
    if strange or not names:
        raise TilpError(
            f"no protocol is named {strange[0]!r}; there are {', '.join(Protocol)}"
            if strange
            else "choose at least one protocol"
        )
    return tuple(protocol for protocol in Protocol if protocol in names)


def _query_table(
    graph: TemporalGraph, split: str, rows: NDArray[np.int64], reached: NDArray[np.bool_]
) -> pl.DataFrame:
    """The queries with their facts as written, and the rows to be looked at apart."""
    facts = graph.frame(split).with_columns(
        shown_names(graph.relations).gather(graph.relation[rows]).alias("relation"),
        pl.Series("fact", rows),
        pl.Series("repeated", _repeated(graph, rows)),
        pl.Series("dated", (graph.start[rows] != UNKNOWN) & (graph.end[rows] != UNKNOWN)),
        pl.Series("unseen", _unseen(graph, rows)),
    )
    asked = pl.concat(facts.with_columns(direction=pl.lit(one)) for one in DIRECTIONS)
    return asked.with_columns(pl.Series("unreached", ~reached)).select(*QUERY_SCHEMA, *APART)


def shown_names(names: Vocabulary) -> pl.Series:
    """Labels, with the id where several are the same: figures of two relations never mix."""
    table = names.frame()
    both = pl.format("{} ({})", "label", "id")
    shown = pl.when(pl.col("label").is_duplicated()).then(both).otherwise("label")
    return table.select(shown.alias("label")).to_series()


def _repeated(graph: TemporalGraph, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether train has each fact's triple with another interval."""
    everything = pl.DataFrame(
        {name: getattr(graph, name) for name in ("subject", "relation", "object", "start", "end")}
    )
    triple = ["subject", "relation", "object"]
    train = everything[graph.span("train")].group_by(triple).agg(times=pl.struct("start", "end"))
    found = everything[rows].join(train, on=triple, how="left", maintain_order="left")
    own = pl.struct("start", "end")
    another = pl.col("times").list.unique().list.len() - pl.col("times").list.contains(own)
    return found.select((another > 0).fill_null(False)).to_series().to_numpy()


def _unseen(graph: TemporalGraph, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether train lacks an end of each fact."""
    seen = np.zeros(len(graph.entities), dtype=np.bool_)
    seen[graph.subject[graph.span("train")]] = True
    seen[graph.object[graph.span("train")]] = True
    return ~(seen[graph.subject[rows]] & seen[graph.object[rows]])

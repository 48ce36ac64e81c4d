"""Mining: finding the rules that reach the answers of facts, and counting how they do.

`MiningCheckpoint` mines into a file, relation by relation, and can be stopped and resumed.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats, Ints, Mask
from tilp._utils.files import write_text
from tilp._utils.random import sample_share
from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.parallel import Workers, use_workers
from tilp.rules import MinedRule, Rule, RuleSet
from tilp.time import gap_classes, gap_lengths, known_ends
from tilp.time.bins import make_edges
from tilp.types import MAX_RULES, Grain
from tilp.walks.walker import DEFAULT_LIMIT, Walker, chunks_by

_MAX_RULES = 300_000  # in memory for one relation at a time
_SEARCH_COST = 0.3  # share of the work, for progress; the rest is counting
_CANDIDATES = 5  # times as many rules are counted as are returned
_GAP_PAIRS = 100_000  # pairs of facts to draw gaps from
_MAX_GAP, _MAX_SHARE = 2**52, 0.5  # of one class in all gaps
_HASH = np.uint64(0x9E3779B97F4A7C15)
_KEY = ["form", "length", "relation", "relations", "digits", "code"]


@dataclass(frozen=True)
class MiningSettings:
    """Settings that decide which rules are found; the same settings find the same rules.

    Attributes:
        grains: the temporal forms of rules. More forms find more rules, and take longer.
        max_length: of rules. Each step more takes many times as long.
        min_support: Drop rules that reach the answers of fewer facts. Raise it for noisy data.
        top: how many rules are returned for each relation and direction, best first.
        share: of the training facts that are queried; a smaller share is part of a larger one.
        sample: query at most this many facts of a relation; None for all.
        limit: steps of one length from one entity, past which walks are sampled.
        seed: for sampling.
        distinct: whether the entities of a walk all differ; see `Walker`.
        only_earlier: whether only facts that start before a query are evidence; see `Walker`.
        gap_edges: the least gap of each gap class in the unit of the data, ascending from 1; None
            to choose them by the gaps in train, () for the classes of 0.1.
    """

    grains: tuple[Grain, ...] = (Grain.PAIRS, Grain.GAP)
    max_length: int = 3
    min_support: int = 2
    top: int = MAX_RULES
    share: float = 1.0
    sample: int | None = None
    limit: int = DEFAULT_LIMIT
    seed: int = 0
    distinct: bool = True
    only_earlier: bool = False
    gap_edges: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise TilpError(f"share is {self.share:g}; it is above 0 and at most 1")
        edges = self.gap_edges or (1,)
        if edges[0] != 1 or list(edges) != sorted(set(edges)):
            raise TilpError(f"gap_edges are {edges}; they ascend from 1")


def mine(
    graph: TemporalGraph,
    relations: Sequence[str] | None = None,
    settings: MiningSettings | None = None,
    *,
    threads: int = 1,
    workers: Workers | None = None,
    progress: Callable[[float], None] | None = None,
) -> RuleSet:
    """Find rules for relations, in both directions, in the training facts.

    Args:
        graph: its training facts are walked on and queried.
        relations: names of the relations; all by default.
        settings: decide which rules are found; defaults to `MiningSettings()`.
        threads: number of threads; does not change the result.
        workers: used instead of threads; they do not change the result either.
        progress: called with the share of the work that is done.

    Returns:
        The best rules of each relation and direction, by `MinedRule.measure`.

    >>> import tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> rules = mine(graph, ["livesIn"], MiningSettings(max_length=1, top=3))
    >>> len(rules) <= 6
    True
    """
    settings = settings or MiningSettings()
    graph = graph.canonical()
    walker = mining_walker(graph, settings)
    names = list(graph.relations) if relations is None else relations
    with use_workers(workers, threads) as workers:
        mined = dict(mine_relations(walker, names, settings, workers, progress=progress))
    return RuleSet(rule for name in names for rule in mined[name])


def mine_relations(
    walker: Walker, relations: Sequence[str], settings: MiningSettings, workers: Workers, *,
    progress: Callable[[float], None] | None = None,
) -> Iterator[tuple[str, list[MinedRule]]]:  # fmt: skip
    """Find the rules for relations, in both directions, several at once, the costliest first."""
    costs = {
        name: float(walker.cost(mining_queries(walker, name, settings).subject)[1].sum())
        for name in relations
    }
    total = max(sum(costs.values()), 1.0)
    done = dict.fromkeys(relations, 0.0)

    def mine_relation(relation: str) -> tuple[str, list[MinedRule]]:
        def advance(share: float) -> None:
            done[relation] = share * costs[relation]
            if progress is not None:
                progress(sum(done.values()) / total)

        return relation, _mine_relation(walker, relation, settings, workers, advance)

    walker.prepare_search()
    by_cost = sorted(costs, key=costs.__getitem__, reverse=True)
    yield from workers.map_tasks(mine_relation, by_cost)


def _mine_relation(
    walker: Walker, relation: str, settings: MiningSettings, workers: Workers,
    advance: Callable[[float], None],
) -> list[MinedRule]:  # fmt: skip
    queries = mining_queries(walker, relation, settings)
    found = [pl.DataFrame(schema=dict.fromkeys([*_KEY, "support"], pl.Int64))]
    searched = cheaper_queries(walker, queries)
    chunks = chunks_by(walker, searched, searched.answer)
    for index, part in enumerate(workers.map(partial(_find, walker), chunks)):
        found.append(part)
        if sum(map(len, found)) > 4 * _MAX_RULES:  # in bounded memory
            found = [_merged(found)]
        advance(_SEARCH_COST * (index + 1) / len(chunks))
    candidates = _most_supported(_merged(found), settings)
    if not len(candidates):
        advance(1.0)
        return []
    statistics, sampled = _count(
        walker, queries, candidates, workers,
        lambda share: advance(_SEARCH_COST + (1 - _SEARCH_COST) * share),
    )  # fmt: skip
    return [
        _with_statistics(MinedRule(rule), statistics[row], sampled, len(queries) // 2)
        for row, rule in _best_rules(walker, candidates, statistics, settings.top)
    ]


def _count(
    walker: Walker, queries: QueryTable, rows: Ints, workers: Workers,
    advance: Callable[[float], None],
) -> tuple[Floats, Mask]:  # fmt: skip
    """Return the statistics of each rule, and if walks were sampled by direction and length."""
    compiled = walker.encoding.compiled(rows)
    statistics = np.zeros((len(rows), 3))
    sampled = np.zeros((2, walker.max_length + 1), dtype=np.bool_)
    chunks = chunks_by(walker, queries, queries.subject)
    tally_chunk = partial(walker.tally, rules=compiled, block_bytes=workers.block_bytes)
    tallies = workers.map(tally_chunk, chunks)
    for index, (chunk, (tally, weights)) in enumerate(zip(chunks, tallies, strict=True)):
        statistics += tally
        inverse = chunk.directed_relation >= len(walker.graph.relations)
        for direction in (False, True):
            sampled[int(direction)] |= (weights[inverse == direction] > 1).any(axis=0)
        advance((index + 1) / len(chunks))
    return statistics, sampled


def count_rules(
    walker: Walker, rules: RuleSet, settings: MiningSettings, workers: Workers
) -> RuleSet:
    """Return rules with their statistics over the facts that are queried."""
    counted: dict[Rule, MinedRule] = {}
    for relation in dict.fromkeys(mined.rule.head.relation for mined in rules):
        of_relation = [mined for mined in rules if mined.rule.head.relation == relation]
        rows = walker.encoding.encode([mined.rule for mined in of_relation])
        queries = mining_queries(walker, relation, settings)
        statistics, sampled = _count(walker, queries, rows, workers, lambda _: None)
        for mined, row in zip(of_relation, statistics, strict=True):
            counted[mined.rule] = _with_statistics(mined, row, sampled, len(queries) // 2)
    return RuleSet(counted[mined.rule] for mined in rules)


def _with_statistics(mined: MinedRule, statistics: Floats, sampled: Mask, facts: int) -> MinedRule:
    support, body_support, rate = statistics.tolist()
    return replace(
        mined,
        support=int(support),
        body_support=int(body_support),
        confidence=rate / body_support if body_support else 0.0,
        facts=facts,
        sampled=bool(sampled[int(mined.rule.head.inverse), mined.rule.length]),
    )


def cheaper_queries(walker: Walker, queries: QueryTable) -> QueryTable:
    """Return, of the two queries of each fact, the one whose answer costs less to search from."""
    answers, index, count = np.unique(queries.answer, return_inverse=True, return_counts=True)
    cost = (walker.steps_from[answers] / count)[index]
    n_facts = len(queries) // 2  # first all facts in one direction, then in the other
    other = cost[n_facts:] < cost[:n_facts]
    return queries[np.where(other, np.arange(n_facts) + n_facts, np.arange(n_facts))]


def mining_walker(graph: TemporalGraph, settings: MiningSettings) -> Walker:
    """Return the walker of these settings."""
    return Walker(
        graph, grains=settings.grains, max_length=settings.max_length, limit=settings.limit,
        seed=settings.seed,
        distinct=settings.distinct,
        only_earlier=settings.only_earlier,
        gap_edges=gap_edges(graph) if settings.gap_edges is None else settings.gap_edges,
    )  # fmt: skip


def gap_edges(graph: TemporalGraph) -> tuple[int, ...]:
    """Return the least gaps of classes, by the gaps between training facts of an entity.

    They double from one class to the next, unless one class then has most of the gaps: then they
    are quantiles, rounded to what people say.
    """
    index = graph.index(("train",))
    degrees = np.diff(index.offsets)
    rng = np.random.default_rng(0)
    edge = rng.integers(0, max(len(index.fact), 1), _GAP_PAIRS * (len(index.fact) > 0))
    source = np.searchsorted(index.offsets, edge, side="right") - 1
    other = index.offsets[source] + (rng.random(len(edge)) * degrees[source]).astype(np.int64)
    first, second = (
        known_ends(graph.start[rows], graph.end[rows])
        for rows in (index.fact[edge], index.fact[other])
    )
    gaps = gap_lengths(*first, *second)
    # Those of open dates tell nothing.
    known = gaps[(gaps > 0) & (gaps < _MAX_GAP)].astype(np.int64)
    edges, _ = gap_classes((), graph.unit)
    counts = np.bincount(np.searchsorted(edges, known, side="right"))
    if counts.max(initial=0) > _MAX_SHARE * len(known):
        edges = make_edges(known, graph.unit, len(edges))
    return tuple(edges.tolist())


def target_facts(graph: TemporalGraph, settings: MiningSettings) -> Ints:
    """Return the training facts that are queried, ascending: a share, a sample of each relation."""
    targets = graph.targets
    if settings.share < 1.0:
        targets = targets[sample_share(len(targets), settings.share, settings.seed)]
    if settings.sample is None:
        return targets
    relation = graph.relation[targets]
    order = np.argsort(relation, kind="stable")
    parts = np.split(targets[order], np.flatnonzero(np.diff(relation[order])) + 1)
    return np.sort(np.concatenate([_sample(graph, rows, settings) for rows in parts]))


def _sample(graph: TemporalGraph, rows: Ints, settings: MiningSettings) -> Ints:
    """Return the facts of one relation that are queried, ascending."""
    if settings.sample is None or len(rows) <= settings.sample:
        return rows
    rng = np.random.default_rng([settings.seed, int(graph.relation[rows[0]])])
    return np.sort(rng.choice(rows, settings.sample, replace=False))


def mining_queries(walker: Walker, relation: str, settings: MiningSettings) -> QueryTable:
    """Return the queries that mine a relation: its facts or a sample of them, both directions."""
    graph = walker.graph
    relation_id = graph.relations.find(relation)
    if settings.share >= 1.0:  # without a list of all training facts
        rows = np.flatnonzero(graph.relation[graph.span("train")] == relation_id)
        rows = _sample(graph, rows[~graph.walked_only[rows]], settings)
    else:
        rows = target_facts(graph, settings)
        rows = rows[graph.relation[rows] == relation_id]
    return walker.with_evidence(QueryTable.of_facts(graph, rows, walked=True))


def _find(walker: Walker, queries: QueryTable) -> pl.DataFrame:
    """Find the rules that reach answers, and the number of queries whose answer each reaches."""
    rows, support = walker.find_both_directions(queries)
    return _prune(pl.DataFrame(rows, schema=_KEY).with_columns(support=pl.Series(support)))


def _merged(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return _prune(pl.concat(parts).group_by(_KEY).agg(pl.sum("support")))


def _most_supported(table: pl.DataFrame, settings: MiningSettings) -> Ints:
    """Return the rules of each direction with the highest support, as many as are counted."""
    candidates = (
        table.filter(pl.col("support") >= settings.min_support)
        .sort("relation", "support", *_KEY, descending=[False, True, *[False] * len(_KEY)])
        .group_by("relation", maintain_order=True)
        .head(_CANDIDATES * settings.top)
    )
    return candidates.select(_KEY).to_numpy().astype(np.int64)


def _prune(table: pl.DataFrame) -> pl.DataFrame:
    """Drop the rules of least support where there are very many.

    Of equal support the same ones are dropped every time, by a hash, so that a rule that stays
    mostly stays with its whole support.
    """
    if len(table) <= _MAX_RULES:
        return table
    relations, digits, code = (table[name].to_numpy() for name in ("relations", "digits", "code"))
    mixed = ((relations * 31 + digits) * 257 + code).astype(np.uint64) * _HASH
    hashed = table.with_columns(hash=pl.Series(mixed >> np.uint64(20)))
    ordered = hashed.sort("support", "hash", *_KEY, descending=[True, *[False] * (1 + len(_KEY))])
    return ordered.head(_MAX_RULES).drop("hash")


def _best_rules(
    walker: Walker, candidates: Ints, statistics: Floats, top: int
) -> Iterator[tuple[int, Rule]]:
    """Yield row and rule of the best of each direction; of rules in several forms the first."""
    _, body_support, rate = statistics.T
    applies = body_support > 0
    measure = np.divide(rate * rate, body_support, out=np.zeros(len(rate)), where=applies)
    for inverse in (False, True):
        rows = np.flatnonzero((candidates[:, 2] >= len(walker.graph.relations)) == inverse)
        rules: dict[Rule, int] = {}
        for row in rows[np.argsort(-measure[rows], kind="stable")]:
            rules.setdefault(walker.encoding.lift(candidates[row]), row)
            if len(rules) == top:
                break
        yield from ((row, rule) for rule, row in rules.items())


class MiningCheckpoint:
    """Rules for relations, written to a file that appears when all of them are finished.

    Before, a note of data, settings and finished relations lies beside it, and the rules of these;
    a run with the same data and settings goes on after them.
    """

    def __init__(
        self, graph: TemporalGraph, relations: Sequence[str], settings: MiningSettings, out: Path
    ) -> None:
        names = graph.relations
        # By the labels that rules are written with, however they were given.
        self.relations = list(dict.fromkeys(names.label(names.find(name)) for name in relations))
        self.notes = out.with_name(f"{out.name}.unfinished")
        self.done: list[str] = []
        self._out, self.partial = out, out.with_name(f"{out.name}.unfinished-rules")
        self._walker = mining_walker(graph, settings)
        self._settings = settings
        self._origin = {
            "graph": graph.fingerprint(),
            "settings": json.loads(json.dumps(asdict(settings))),
            "relations": self.relations,
        }
        self._mined: dict[str, tuple[RuleSet, str]] = {}  # rules and their lines, by relation
        self._resume()

    def finish(
        self, *, threads: int = 1, workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> RuleSet:  # fmt: skip
        """Mine the relations that are not finished."""
        if not self.notes.exists():
            self._write_note()  # first: rules without a note are not looked at
        left = [relation for relation in self.relations if relation not in self.done]
        with use_workers(workers, threads) as workers:
            mined = mine_relations(self._walker, left, self._settings, workers, progress=progress)
            for relation, rules in mined:
                self._add(relation, rules)
                self.done.append(relation)
                self._write()
        self._write()
        self.partial.replace(self._out)
        self.notes.unlink(missing_ok=True)
        return RuleSet(rule for rules, _ in self._in_order() for rule in rules)

    def _add(self, relation: str, rules: Iterable[MinedRule]) -> None:
        rule_set = RuleSet(rules)
        self._mined[relation] = rule_set, rule_set.to_jsonl()

    def _in_order(self) -> list[tuple[RuleSet, str]]:
        return [self._mined[name] for name in self.relations if name in self._mined]

    def _write(self) -> None:
        # First the rules, then the note: a note never lists relations whose rules are not there.
        write_text(self.partial, "".join(lines for _, lines in self._in_order()))
        self._write_note()

    def _write_note(self) -> None:
        write_text(self.notes, json.dumps({**self._origin, "done": self.done}))

    def _resume(self) -> None:
        if not self.notes.is_file():
            if self._out.exists():
                raise TilpError(f"{self._out} exists: choose another file or remove it")
            return
        try:
            note = json.loads(self.notes.read_text(encoding="utf-8"))
            done = list(note.pop("done"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TilpError(f"{self.notes} cannot be read; remove it to begin anew") from None
        if note != self._origin:
            raise TilpError(
                f"{self._out} was begun with other data or settings; remove {self.notes} to begin "
                "anew, or choose another file"
            )
        self.done = done
        # Without it all were finished, and only the note was left to remove.
        path = self.partial if self.partial.exists() else self._out
        rules = RuleSet.read_jsonl(path) if done else RuleSet()
        for relation in done:
            self._add(relation, (rule for rule in rules if rule.rule.head.relation == relation))

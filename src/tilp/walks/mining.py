"""Mining: finding the rules that reach the answers of facts, and counting how they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.random import sample_share
from tilp.errors import TilpError
from tilp.graph import QueryTable, TemporalGraph
from tilp.parallel import Workers, use_workers
from tilp.rules import MinedRule, Rule, RuleSet
from tilp.types import MAX_RULES, Grain
from tilp.walks.constraints import PairConstraint, StepConstraint
from tilp.walks.encoding import CompiledRules
from tilp.walks.walker import DEFAULT_LIMIT, Walker, chunks_by

_MAX_RULES = 300_000  # in memory for one relation at a time
_SEARCH_COST = 0.3  # share of the work, for progress; the rest is counting
_CANDIDATES = 5  # times as many rules are counted as are returned
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
        every_reading: whether facts with a missing date are walked with every possible interval.
    """

    grains: tuple[Grain, ...] = (Grain.PAIRS, Grain.GAP)
    max_length: int = 3
    min_support: int = 2
    top: int = MAX_RULES
    share: float = 1.0
    sample: int | None = None
    limit: int = DEFAULT_LIMIT
    seed: int = 0
    every_reading: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise TilpError(f"share is {self.share:g}; it is above 0 and at most 1")


def mine(
    graph: TemporalGraph,
    relations: Sequence[str] | None = None,
    settings: MiningSettings | None = None,
    *,
    threads: int = 1,
    workers: Workers | None = None,
    progress: Callable[[float], None] | None = None,
    constraints: Sequence[StepConstraint] = (),
    classes: PairConstraint | None = None,
) -> RuleSet:
    """Find rules for relations, in both directions, in the training facts.

    Args:
        graph: its training facts are walked on and queried.
        relations: names of the relations; all by default.
        settings: decide which rules are found; defaults to `MiningSettings()`.
        threads: number of threads; does not change the result.
        workers: used instead of threads; they do not change the result either.
        progress: called with the share of the work that is done.
        constraints: user-defined constraints on the steps of walks.
        classes: user-defined classes of pairs of intervals, in place of before, touching and after.

    Returns:
        The best rules of each relation and direction, by `MinedRule.measure`.

    >>> import tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> rules = mine(graph, ["livesIn"], MiningSettings(max_length=1, top=3))
    >>> len(rules) <= 6
    True
    """
    settings = settings or MiningSettings()
    walker = mining_walker(graph, settings, constraints, classes)
    names = list(graph.relations) if relations is None else relations
    with use_workers(workers, threads) as workers:
        mined = dict(mine_relations(walker, names, settings, workers, progress=progress))
    return RuleSet(rule for name in names for rule in mined[name])


def mine_relations(
    walker: Walker,
    relations: Sequence[str],
    settings: MiningSettings,
    workers: Workers,
    *,
    progress: Callable[[float], None] | None = None,
) -> Iterator[tuple[str, list[MinedRule]]]:
    """Find the rules for each of some relations, in both directions, the costliest first.

    Several are mined at once, so that workers walk for one while the rules of another are merged.
    """
    costs = {name: _cost(walker, name, settings) for name in relations}
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
    walker: Walker,
    relation: str,
    settings: MiningSettings,
    workers: Workers,
    advance: Callable[[float], None],
) -> list[MinedRule]:
    """Find the rules for one relation, in both directions."""
    queries = mining_queries(walker, relation, settings)
    merge = _Merge()
    searched = cheaper_queries(walker, queries) if walker.can_mirror else queries
    chunks = chunks_by(walker, searched, searched.answer)
    for index, part in enumerate(workers.map(partial(_find, walker), chunks)):
        merge.add(part)
        advance(_SEARCH_COST * (index + 1) / len(chunks))
    candidates = merge.candidates(settings)
    if not len(candidates):
        advance(1.0)
        return []

    def advance_counting(share: float) -> None:
        advance(_SEARCH_COST + (1 - _SEARCH_COST) * share)

    counts = _count(walker, queries, candidates, workers, advance_counting)
    return _best(walker, candidates, counts, settings)


@dataclass(frozen=True)
class _Counts:
    """Counts of rules.

    Attributes:
        statistics: support, body support and sum of arriving rates of each rule.
        sampled: for each direction and length, whether walks were sampled.
        n_facts: that were queried.
    """

    statistics: NDArray[np.float64]
    sampled: NDArray[np.bool_]
    n_facts: int

    def mined_rule(self, index: int, rule: Rule) -> MinedRule:
        """Return a rule with its counts, which are at an index."""
        support, body_support, rate = self.statistics[index]
        return MinedRule(
            rule,
            support=int(support),
            body_support=int(body_support),
            confidence=float(rate / body_support) if body_support else 0.0,
            facts=self.n_facts,
            sampled=bool(self.sampled[int(rule.head.inverse), rule.length]),
        )


def _count(
    walker: Walker,
    queries: QueryTable,
    rows: NDArray[np.int64],
    workers: Workers,
    advance: Callable[[float], None],
) -> _Counts:
    """Count rules on queries of facts, first all in one direction, then in the other."""
    compiled = walker.encoding.compiled(rows)
    statistics = np.zeros((len(rows), 3))
    sampled = np.zeros((2, walker.max_length + 1), dtype=np.bool_)
    chunks = chunks_by(walker, queries, queries.subject)
    tallies = workers.map(partial(_tally, walker, compiled), chunks)
    for index, (chunk, (tally, weights)) in enumerate(zip(chunks, tallies, strict=True)):
        statistics += tally
        inverse = chunk.directed_relation >= len(walker.graph.relations)
        for direction in (False, True):
            sampled[int(direction)] |= (weights[inverse == direction] > 1).any(axis=0)
        advance((index + 1) / len(chunks))
    return _Counts(statistics, sampled, len(queries) // 2)


def cheaper_queries(walker: Walker, queries: QueryTable) -> QueryTable:
    """Return, of the two queries of each fact, the one whose answer costs less to search from.

    A search from an answer serves all queries that share it.
    """
    answers, index, count = np.unique(queries.answer, return_inverse=True, return_counts=True)
    cost = (walker.steps_from[answers] / count)[index]
    n_facts = len(queries) // 2  # first all facts in one direction, then in the other
    other = cost[n_facts:] < cost[:n_facts]
    return queries[np.where(other, np.arange(n_facts) + n_facts, np.arange(n_facts))]


def mining_walker(
    graph: TemporalGraph,
    settings: MiningSettings,
    constraints: Sequence[StepConstraint] = (),
    classes: PairConstraint | None = None,
) -> Walker:
    """Return the walker of these settings."""
    return Walker(
        graph,
        grains=settings.grains,
        max_length=settings.max_length,
        limit=settings.limit,
        seed=settings.seed,
        constraints=constraints,
        classes=classes,
        every_reading=settings.every_reading,
    )


def target_facts(graph: TemporalGraph, settings: MiningSettings) -> NDArray[np.int64]:
    """Return the training facts that are queried, ascending: a share of the graph's targets."""
    targets = graph.targets
    if settings.share >= 1.0:
        return targets
    return targets[sample_share(len(targets), settings.share, settings.seed)]


def _cost(walker: Walker, relation: str, settings: MiningSettings) -> float:
    """Return about how many steps it takes to mine a relation."""
    return float(walker.cost(mining_queries(walker, relation, settings).subject)[1].sum())


def mining_queries(walker: Walker, relation: str, settings: MiningSettings) -> QueryTable:
    """Return the queries that mine a relation: its facts or a sample of them, both directions."""
    graph = walker.graph
    relation_id = graph.relations.find(relation)
    if settings.share >= 1.0:  # without a list of all training facts
        rows = np.flatnonzero(graph.relation[graph.span("train")] == relation_id)
        rows = rows[~graph.walked_only[rows]]
    else:
        rows = target_facts(graph, settings)
        rows = rows[graph.relation[rows] == relation_id]
    if settings.sample is not None and len(rows) > settings.sample:
        rng = np.random.default_rng([settings.seed, relation_id])
        rows = np.sort(rng.choice(rows, settings.sample, replace=False))
    return QueryTable.of_facts(graph, rows, walked=True)


def _find(walker: Walker, queries: QueryTable) -> pl.DataFrame:
    """Find the rules that reach answers, and the number of queries whose answer each reaches."""
    find = walker.find_both_directions if walker.can_mirror else walker.find
    rows, support = find(queries)
    return _prune(pl.DataFrame(rows, schema=_KEY).with_columns(support=pl.Series(support)))


def _tally(
    walker: Walker, rules: CompiledRules, queries: QueryTable
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return walker.tally(queries, rules)


class _Merge:
    """Merges the rules of chunks, one chunk after the other, in bounded memory."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []

    def add(self, part: pl.DataFrame) -> None:
        """Add the rules of the next chunk."""
        self._parts.append(part)
        if sum(map(len, self._parts)) > 4 * _MAX_RULES:
            self._parts = [self._merged()]

    def candidates(self, settings: MiningSettings) -> NDArray[np.int64]:
        """Return the rules of each direction with the highest support, as many as are counted."""
        if not self._parts:
            return np.empty((0, len(_KEY)), np.int64)
        table = (
            self._merged()
            .filter(pl.col("support") >= settings.min_support)
            .sort("relation", "support", *_KEY, descending=[False, True, *[False] * len(_KEY)])
            .group_by("relation", maintain_order=True)
            .head(_CANDIDATES * settings.top)
        )
        return table.select(_KEY).to_numpy().astype(np.int64)

    def _merged(self) -> pl.DataFrame:
        return _prune(pl.concat(self._parts).group_by(_KEY).agg(pl.sum("support")))


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


def _best(
    walker: Walker, candidates: NDArray[np.int64], counts: _Counts, settings: MiningSettings
) -> list[MinedRule]:
    """Return the best rules of each direction; of equal rules in several forms the first."""
    _, body_support, rate = counts.statistics.T
    applies = body_support > 0
    measure = np.divide(rate * rate, body_support, out=np.zeros(len(rate)), where=applies)
    best: list[MinedRule] = []
    for inverse in (False, True):
        rows = np.flatnonzero((candidates[:, 2] >= len(walker.graph.relations)) == inverse)
        rules: dict[Rule, MinedRule] = {}
        for row in rows[np.argsort(-measure[rows], kind="stable")]:
            rule = walker.encoding.lift(candidates[row])
            if rule not in rules:
                rules[rule] = counts.mined_rule(row, rule)
            if len(rules) == settings.top:
                break
        best += rules.values()
    return best

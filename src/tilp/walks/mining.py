"""Mining: the rules that reach the answers of facts, and what was counted of them."""

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
from tilp.parallel import Workers, opened
from tilp.rules import MinedRule, Rule, RuleSet
from tilp.types import MAX_RULES, Grain
from tilp.walks.constraints import PairConstraint, StepConstraint
from tilp.walks.encoding import CompiledRules
from tilp.walks.walker import DEFAULT_LIMIT, Walker, chunks_by

__all__ = [
    "MiningSettings",
    "cheaper_queries",
    "mine",
    "mine_relations",
    "mining_queries",
    "mining_walker",
    "target_facts",
]

_MOST_RULES = 300_000  # held of one relation at a time
_SHARE_OF_FINDING = 0.3  # of the work, for progress; the rest is counting
_CANDIDATES = 5  # times as many rules as are kept are counted
_MIX = np.uint64(0x9E3779B97F4A7C15)
_KEY = ["form", "length", "head", "relations", "digits", "code"]


@dataclass(frozen=True)
class MiningSettings:
    """What decides which rules are found; the same settings find the same rules.

    Attributes:
        grains: the temporal forms of rules.
        max_length: of rules.
        min_support: the least number of facts whose answer a rule reaches.
        top: how many rules are kept for each relation and direction, best first.
        share: of the training facts that are asked; a smaller share is part of a greater one.
        sample: how many facts of a relation are asked at the most; None for all.
        limit: steps that one level of walks may take from one entity before it is sampled.
        seed: for sampling.
        every_reading: whether facts with an unknown end are walked in each of their readings.
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
    """Find rules for relations, in both directions, over the training facts.

    Rules are ordered, and the best kept, by `MinedRule.measure`.

    Args:
        graph: its train split is walked on, and its facts are asked.
        relations: names of the relations; all by default.
        settings: what decides which rules are found.
        threads: does not change the result.
        workers: in place of threads; they do not change it either.
        progress: called with the share that is done.
        constraints: of one's own on the steps of walks.
        classes: of one's own on pairs of intervals, in place of before, touching and after.
    """
    settings = settings or MiningSettings()
    walker = mining_walker(graph, settings, constraints, classes)
    names = list(graph.relations) if relations is None else relations
    with opened(workers, threads) as workers:
        found = dict(mine_relations(walker, names, settings, workers, progress=progress))
    return RuleSet(rule for name in names for rule in found[name])


def mine_relations(
    walker: Walker,
    relations: Sequence[str],
    settings: MiningSettings,
    workers: Workers,
    *,
    progress: Callable[[float], None] | None = None,
) -> Iterator[tuple[str, list[MinedRule]]]:
    """Find the rules for each of some relations, in both directions; the costliest comes first.

    Several are under way at once, so that workers walk for one while the rules of another are
    put together.
    """
    costs = {name: _cost(walker, name, settings) for name in relations}
    total = max(sum(costs.values()), 1.0)
    done = dict.fromkeys(relations, 0.0)

    def mine_one(relation: str) -> tuple[str, list[MinedRule]]:
        def advance(share: float) -> None:
            done[relation] = share * costs[relation]
            if progress is not None:
                progress(sum(done.values()) / total)

        return relation, _mine_relation(walker, relation, settings, workers, advance)

    walker.prepare_search()
    yield from workers.side_by_side(mine_one, sorted(costs, key=costs.__getitem__, reverse=True))


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
    wanted = cheaper_queries(walker, queries) if walker.can_mirror else queries
    chunks = chunks_by(walker, wanted, wanted.answer)
    for number, part in enumerate(workers.map(partial(_find, walker), chunks)):
        merge.add(part)
        advance(_SHARE_OF_FINDING * (number + 1) / len(chunks))
    candidates = merge.candidates(settings)
    if not len(candidates):
        advance(1.0)
        return []
    begin = _SHARE_OF_FINDING
    counts = _count(
        walker, queries, candidates, workers, lambda s: advance(begin + (1 - begin) * s)
    )
    return _best(walker, candidates, counts, settings)


@dataclass(frozen=True)
class _Counts:
    """What was counted of rules.

    Attributes:
        statistics: for each, facts whose answer it reaches, facts where it applies, sum of α.
        sampled: for each direction and length, whether walks were sampled.
        facts: how many were asked.
    """

    statistics: NDArray[np.float64]
    sampled: NDArray[np.bool_]
    facts: int

    def of(self, place: int, rule: Rule) -> MinedRule:
        """A rule with what was counted at a place."""
        support, fired, rate = self.statistics[place]
        return MinedRule(
            rule,
            support=int(support),
            body_support=int(fired),
            confidence=float(rate / fired) if fired else 0.0,
            facts=self.facts,
            sampled=bool(self.sampled[int(rule.head.inverse), rule.length]),
        )


def _count(
    walker: Walker,
    queries: QueryTable,
    rows: NDArray[np.int64],
    workers: Workers,
    advance: Callable[[float], None],
) -> _Counts:
    """Count how rules do on queries, all facts first asked one way, then the other."""
    compiled = walker.encoding.compiled(rows)
    statistics = np.zeros((len(rows), 3))
    sampled = np.zeros((2, walker.max_length + 1), dtype=np.bool_)
    chunks = chunks_by(walker, queries, queries.subject)
    tallies = workers.map(partial(_tally, walker, compiled), chunks)
    for number, (chunk, (tally, weights)) in enumerate(zip(chunks, tallies, strict=True)):
        statistics += tally
        inverse = chunk.directed_relation >= len(walker.graph.relations)
        for direction in (False, True):
            sampled[int(direction)] |= (weights[inverse == direction] > 1).any(axis=0)
        advance((number + 1) / len(chunks))
    return _Counts(statistics, sampled, len(queries) // 2)


def cheaper_queries(walker: Walker, queries: QueryTable) -> QueryTable:
    """Of the two queries of each fact the one whose answer it takes less to search from.

    What is searched from an answer serves all queries that share it.
    """
    answers, number, count = np.unique(queries.answer, return_inverse=True, return_counts=True)
    cost = (walker.steps_from[answers] / count)[number]
    facts = len(queries) // 2  # first all facts asked one way, then the other
    other = cost[facts:] < cost[:facts]
    return queries[np.where(other, np.arange(facts) + facts, np.arange(facts))]


def mining_walker(
    graph: TemporalGraph,
    settings: MiningSettings,
    constraints: Sequence[StepConstraint] = (),
    classes: PairConstraint | None = None,
) -> Walker:
    """The walker that these settings ask for."""
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
    """The training facts that are asked, ascending; of the graph's targets a share."""
    targets = graph.targets
    if settings.share >= 1.0:
        return targets
    return targets[sample_share(len(targets), settings.share, settings.seed)]


def _cost(walker: Walker, relation: str, settings: MiningSettings) -> float:
    """About how many steps it takes to mine a relation."""
    return float(walker.cost(mining_queries(walker, relation, settings).subject)[1].sum())


def mining_queries(walker: Walker, relation: str, settings: MiningSettings) -> QueryTable:
    """What is asked to mine a relation: its facts, or a sample of them, in both directions."""
    graph = walker.graph
    number = graph.relations.find(relation)
    if settings.share >= 1.0:  # without a list of all training facts
        rows = np.flatnonzero(graph.relation[graph.span("train")] == number)
        rows = rows[~graph.walked_only[rows]]
    else:
        rows = target_facts(graph, settings)
        rows = rows[graph.relation[rows] == number]
    if settings.sample is not None and len(rows) > settings.sample:
        chance = np.random.default_rng([settings.seed, number])
        rows = np.sort(chance.choice(rows, settings.sample, replace=False))
    return QueryTable.of_facts(graph, rows, walked=True)


def _find(walker: Walker, queries: QueryTable) -> pl.DataFrame:
    """The rules that reach answers, each with the number of queries whose answer it reaches."""
    rows, support = (
        walker.find_both_directions(queries) if walker.can_mirror else walker.find(queries)
    )
    return _prune(pl.DataFrame(rows, schema=_KEY).with_columns(support=pl.Series(support)))


def _tally(
    walker: Walker, rules: CompiledRules, queries: QueryTable
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return walker.tally(queries, rules)


class _Merge:
    """The rules found in chunks, taken in one by one, in bounded memory."""

    def __init__(self) -> None:
        self._parts: list[pl.DataFrame] = []

    def add(self, part: pl.DataFrame) -> None:
        """Take in the rules of the next chunk."""
        self._parts.append(part)
        if sum(map(len, self._parts)) > 4 * _MOST_RULES:
            self._parts = [self._joined()]

    def candidates(self, settings: MiningSettings) -> NDArray[np.int64]:
        """The rules with the highest support, for each direction as many as are worth a count."""
        if not self._parts:
            return np.empty((0, len(_KEY)), np.int64)
        table = (
            self._joined()
            .filter(pl.col("support") >= settings.min_support)
            .sort("head", "support", *_KEY, descending=[False, True, *[False] * len(_KEY)])
            .group_by("head", maintain_order=True)
            .head(_CANDIDATES * settings.top)
        )
        return table.select(_KEY).to_numpy().astype(np.int64)

    def _joined(self) -> pl.DataFrame:
        return _prune(pl.concat(self._parts).group_by(_KEY).agg(pl.sum("support")))


def _prune(table: pl.DataFrame) -> pl.DataFrame:
    """Where there are very many rules, leave out those of least support.

    Of equal support it is the same ones every time, drawn by lot, so that a rule that is kept is
    most often kept with its whole support.
    """
    if len(table) <= _MOST_RULES:
        return table
    relations, digits, code = (table[name].to_numpy() for name in ("relations", "digits", "code"))
    mixed = ((relations * 31 + digits) * 257 + code).astype(np.uint64) * _MIX
    lots = table.with_columns(lot=pl.Series(mixed >> np.uint64(20)))
    ordered = lots.sort("support", "lot", *_KEY, descending=[True, *[False] * (1 + len(_KEY))])
    return ordered.head(_MOST_RULES).drop("lot")


def _best(
    walker: Walker, candidates: NDArray[np.int64], counts: _Counts, settings: MiningSettings
) -> list[MinedRule]:
    """The best rules of each direction; the first of those that are of several forms at once."""
    _, fired, rate = counts.statistics.T
    measure = np.divide(rate * rate, fired, out=np.zeros(len(fired)), where=fired > 0)
    best: list[MinedRule] = []
    for inverse in (False, True):
        mine_too = np.flatnonzero((candidates[:, 2] >= len(walker.graph.relations)) == inverse)
        rules: dict[Rule, MinedRule] = {}
        for place in mine_too[np.argsort(-measure[mine_too], kind="stable")]:
            rule = walker.encoding.lift(candidates[place])
            if rule not in rules:
                rules[rule] = counts.of(place, rule)
            if len(rules) == settings.top:
                break
        best += rules.values()
    return best

"""Phase two with all features: what rules, facts and soft walks add to the rules as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tilp._kernels.likelihood import LogLinearTable
from tilp._kernels.score import list_rule_evidence
from tilp._utils.files import load_or_compute
from tilp._utils.random import keyed_sample, keyed_uniform
from tilp.features.candidate_history import (
    CandidateHistory,
    distance_bounds,
    fact_edges,
    listed_candidates,
)
from tilp.features.log_linear import (
    COLUMNS,
    LogLinearWeights,
    RelationWeights,
    fit_relation,
    nothing_learned,
)
from tilp.features.negative_sampling import SampledCandidates
from tilp.features.random_walks import RandomWalks, time_scale
from tilp.graph import QueryTable
from tilp.parallel import Workers
from tilp.scoring import RuleScorer, RuleWeights
from tilp.types import Part

FOLDS = 2
_BATCH = 512


@dataclass(frozen=True)
class LogLinearSettings:
    """What decides the joint weights.

    Attributes:
        soft_length: steps of soft walks at the most.
        without: parts that are left out.
        queries: of each head that are learned from at the most.
        best: candidates of each that rules rank first, which are learned from.
        drawn: of the other entities.
        seed: for everything that is drawn.
    """

    walk_length: int = 5
    without: tuple[Part, ...] = ()
    queries: int = 12_000
    best: int = 60
    drawn: int = 60
    seed: int = 0


def fold_of(fact: NDArray[np.int32], seed: int) -> NDArray[np.int64]:
    """The fold that each fact belongs to; both its directions belong to the same."""
    chance = keyed_uniform(seed, fact)
    return (chance * FOLDS).astype(np.int64)


def fit_log_linear(
    scorer: RuleScorer,
    out_of_fold: tuple[RuleWeights, ...],
    queries: QueryTable,
    settings: LogLinearSettings,
    workers: Workers,
    *,
    folder: Path,
    progress: Callable[[float], None],
    gathered: dict[int, CandidateTable] | None = None,
) -> LogLinearWeights:
    """Learn the joint weights of every head.

    Args:
        scorer: the rules.
        out_of_fold: for each fold, weights of rules that were learned without it.
        queries: of training facts.
        settings: what decides.
        workers: do not change the result.
        folder: to work in; heads that a run which was killed left there are not learned again.
        progress: called with the share that is done.
        gathered: what is known of the candidates of each head's queries, where it was gathered
            before with other parts left out; what is missing is gathered and put there.
    """
    graph = scorer.walker.graph
    n_heads = 2 * len(graph.relations)
    learner = RelationLearner.of(scorer, out_of_fold, settings)
    bounds, scale = learner.facts.bounds, learner.walks.scale
    asked = [_some(queries[queries.directed_relation == head], settings) for head in range(n_heads)]
    # The largest first: workers then end at about the same time.
    order = sorted(range(n_heads), key=lambda head: -len(asked[head]))
    files = [folder / f"head-{head}.npz" for head in range(n_heads)]
    new = [head for head in order if not files[head].exists()]
    known = gathered or {}
    one = partial(_learned, learner, gathered is not None)
    learned = workers.map(one, ((asked[head], known.get(head)) for head in new))
    of_head: dict[int, RelationWeights] = {}

    def of_next(head: int) -> RelationWeights:
        found, weights = next(learned)
        if gathered is not None and found is not None:
            gathered[head] = found
        return weights

    sizes = np.array([len(asked[head]) for head in order]) + 1.0
    done = np.cumsum(sizes) / sizes.sum()
    # Sums of linear algebra depend on its threads, and these would wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        for number, head in enumerate(order):
            of_head[head] = load_or_compute(
                files[head], partial(of_next, head), _head_arrays, _head_of
            )
            progress(float(done[number]))
    return _joined([of_head[head] for head in range(n_heads)], learner.facts, bounds, scale,
                   n_rules=len(out_of_fold[0].rule))  # fmt: skip


def _some(queries: QueryTable, settings: LogLinearSettings) -> QueryTable:
    """At most so many queries, drawn; those of one subject together, as walks like it."""
    queries = queries[
        keyed_sample(settings.queries, settings.seed, queries.fact, queries.directed_relation)
    ]
    return queries[np.argsort(queries.subject, kind="stable")]


@dataclass(frozen=True)
class CandidateTable:
    """What is known of the candidates of one head's queries; None where it has none.

    Attributes:
        table: it.
        fold: of each query.
    """

    table: LogLinearTable | None
    fold: NDArray[np.int64]


@dataclass(frozen=True)
class RelationLearner:
    """Learns the weights of one head.

    Attributes:
        scorers: the rules, with the weights that were learned without each fold.
        facts: what candidates' facts say.
        walks: how likely soft walks reach them.
        settings: what decides.
    """

    scorers: tuple[RuleScorer, ...]
    facts: CandidateHistory
    walks: RandomWalks
    settings: LogLinearSettings

    @classmethod
    def of(
        cls,
        scorer: RuleScorer,
        out_of_fold: tuple[RuleWeights, ...],
        settings: LogLinearSettings,
    ) -> RelationLearner:
        """On the graph that the rules walk on."""
        graph = scorer.walker.graph
        edges = fact_edges(graph)
        return cls(
            tuple(scorer.with_weights(weights) for weights in out_of_fold),
            CandidateHistory(edges, 2 * len(graph.relations), distance_bounds(graph)),
            RandomWalks.of(scorer.walker, edges, time_scale(graph), settings.walk_length),
            settings,
        )

    def gather(self, queries: QueryTable) -> CandidateTable:
        """All that is known of the candidates of a head's queries, nothing left out."""
        fold = fold_of(queries.fact, self.settings.seed)
        tables, folds = [], []
        for number in range(FOLDS):
            scorer = self.scorers[number % len(self.scorers)]
            mine = np.flatnonzero(fold == number)
            for begin in range(0, len(mine), _BATCH):
                part = queries[mine[begin : begin + _BATCH]]
                tables.append(self._table(scorer, part))
                folds.append(np.full(len(part), number))
        if not tables:
            return CandidateTable(None, np.empty(0, np.int64))
        return CandidateTable(_one_table(tables), np.concatenate(folds))

    def learn(self, found: CandidateTable) -> RelationWeights:
        """The weights of a head, from what is known without the parts that are left out."""
        if found.table is None:
            return nothing_learned()
        mix = Part.MIXING not in self.settings.without
        table = _left_out(found.table, self.settings.without)
        return fit_relation(table, found.fold, mix=mix)

    def _table(self, scorer: RuleScorer, queries: QueryTable) -> LogLinearTable:
        """What is known of the candidates of some queries."""
        settings, graph = self.settings, scorer.walker.graph
        queries = scorer.fill_dates(queries)
        applied = scorer.apply_rules(queries)
        scores = scorer.score(queries, applied)
        pool = SampledCandidates.draw(
            graph, queries, scores, best=settings.best, drawn=settings.drawn, seed=settings.seed
        )
        asked = listed_candidates(queries, pool.begin, pool.candidate)
        columns = np.zeros((len(pool.candidate), len(COLUMNS)))
        columns[:, 0] = np.log(pool.score / pool.default[pool.query])
        columns[:, 1] = self.walks.listed(asked)
        rule_begin, rule, root = list_rule_evidence(
            *applied.by_query(len(queries)), pool.begin, pool.candidate, len(graph.entities)
        )
        word_begin, word = self.facts.listed(asked)
        return LogLinearTable(
            pool.begin, pool.answer, pool.stands_for, columns, rule_begin, rule, root, word_begin,
            word,
        )  # fmt: skip


def _learned(
    learner: RelationLearner,
    give_back: bool,
    asked: tuple[QueryTable, CandidateTable | None],
) -> tuple[CandidateTable | None, RelationWeights]:
    """The weights of a head; and what was gathered for them, where that is asked for."""
    queries, known = asked
    found = known or learner.gather(queries)
    return found if give_back and known is None else None, learner.learn(found)


def _left_out(table: LogLinearTable, without: tuple[Part, ...]) -> LogLinearTable:
    """A table without some parts."""
    if Part.SOFT_WALKS in without:
        columns = table.columns.copy()
        columns[:, 1] = 0.0
        table = table._replace(columns=columns)
    if Part.RULE_EVIDENCE in without:
        nothing = np.zeros_like(table.rule_offsets)
        table = table._replace(
            rule_offsets=nothing, rule=table.rule[:0], root_rate=table.root_rate[:0]
        )
    if Part.OWN_FACTS in without:
        table = table._replace(
            history_offsets=np.zeros_like(table.history_offsets),
            history_feature=table.history_feature[:0],
        )
    return table


def _one_table(tables: list[LogLinearTable]) -> LogLinearTable:
    """Tables one after the other."""

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(table, name) for table in tables])

    def shifted(name: str, by: str) -> NDArray[np.int64]:
        """Places in the column `by`, which now stands after those of the tables before."""
        sizes = np.cumsum([0, *(len(getattr(table, by)) for table in tables)])
        moved = [getattr(one, name) + size for one, size in zip(tables, sizes, strict=False)]
        if name == "answer":
            return np.concatenate(moved)
        return np.concatenate([*(one[:-1] for one in moved), moved[-1][-1:]])

    return LogLinearTable(
        offsets=shifted("offsets", "log_count"),
        answer=shifted("answer", "log_count"),
        log_count=joined("log_count"),
        columns=joined("columns"),
        rule_offsets=shifted("rule_offsets", "rule"),
        rule=joined("rule"),
        root_rate=joined("root_rate"),
        history_offsets=shifted("history_offsets", "history_feature"),
        history_feature=joined("history_feature"),
    )


def _joined(
    of_head: list[RelationWeights],
    facts: CandidateHistory,
    bounds: NDArray[np.int64],
    scale: float,
    n_rules: int,
) -> LogLinearWeights:
    """The weights of all heads in one."""
    rule = np.zeros(n_rules)
    row_of = np.full((len(of_head), facts.groups), -1, np.int32)
    rows: list[NDArray[np.float64]] = []
    for head, found in enumerate(of_head):
        rule[found.rule] = found.of_rule
        group, word = np.divmod(found.word, facts.width)
        for one in np.unique(group):
            row = np.zeros(facts.width)
            row[word[group == one]] = found.of_word[group == one]
            row_of[head, one] = len(rows)
            rows.append(row)
    return LogLinearWeights(
        columns=np.array([found.columns for found in of_head]),
        rule=rule,
        row_of=row_of,
        words=np.array(rows).reshape(-1, facts.width),
        mixing=np.array([found.mixing for found in of_head]),
        bounds=bounds,
        scale=scale,
        pull=np.array([found.pull for found in of_head]),
    )


def _head_arrays(found: RelationWeights) -> dict[str, Any]:
    return {one.name: getattr(found, one.name) for one in fields(RelationWeights)}


def _head_of(arrays: dict[str, Any]) -> RelationWeights:
    numbers = {name: float(arrays[name]) for name in ("mixing", "pull")}
    return RelationWeights(**{**arrays, **numbers})

"""`RuleTable`: timestamp rules as rows of numbers, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.tlogic_scores import ScoringSettings, TLogicRules, score_queries
from tilp._kernels.tlogic_walks import count_bodies, walk_back
from tilp.errors import TilpError
from tilp.forecasting.events import TimedEdges, event_times
from tilp.graph import QueryTable, TemporalGraph, Vocabulary
from tilp.parallel import Workers, opened
from tilp.rules import Atom, Constraint, MinedRule, Rule, RuleSet
from tilp.scoring import Scores
from tilp.types import Transition, Unit, choose


@dataclass(frozen=True, eq=False)
class RuleTable:
    """Rules (E1, head, E(l+1), T(l+1)) ← (E1, r1, E2, T1) ∧ … with T1 ≤ … ≤ Tl < T(l+1).

    Attributes:
        head: directed relation of each rule.
        length: of its body.
        relations: of its body, -1 past its end.
        same: of each place the first place that must have the same entity.
        bodies: how many distinct ones were sampled.
        support: how many of them the head follows.
        confidence: the share of these.
    """

    head: NDArray[np.int64]
    length: NDArray[np.int64]
    relations: NDArray[np.int64]
    same: NDArray[np.int64]
    bodies: NDArray[np.int64]
    support: NDArray[np.int64]
    confidence: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.head)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> RuleTable:
        return RuleTable(*(getattr(self, column.name)[rows] for column in fields(self)))

    @classmethod
    def join(cls, tables: Sequence[RuleTable]) -> RuleTable:
        """The rules of several tables, one after the other."""
        return cls(
            *(
                np.concatenate([getattr(one, column.name) for one in tables])
                for column in fields(cls)
            )
        )

    def sorted(self) -> RuleTable:
        """By head, the most confident first; of equally confident ones the shorter first."""
        keys = [*self.same.T[::-1], *self.relations.T[::-1], self.length, -self.confidence]
        return self[np.lexsort((*keys, self.head))]

    def applied(self, heads: int, *, plain: bool = False) -> TLogicRules:
        """A sorted table as the loops read it.

        Args:
            heads: how many directed relations there are.
            plain: whether every body is gone through.
        """
        n, length = self.relations.shape
        once = np.full((n, length), not plain)
        # Past these places a body comes back to an entity before: how it came there matters.
        for place in range(length):
            later = self.same[:, place + 1 :]
            once[:, place] &= ~((later > 1) & (later < place)).any(axis=1)
        return TLogicRules(
            np.searchsorted(self.head, np.arange(heads + 1)),
            self.length,
            self.relations,
            self.same,
            self.confidence,
            once,
            (self.same[:, 3:] == 1).any(axis=1) & (not plain),
        )

    def rule_set(
        self, relations: Vocabulary, facts: NDArray[np.int64], *, sampled: bool = True
    ) -> RuleSet:
        """The rules in the words of people, in the order of the table.

        Args:
            relations: their names.
            facts: of each directed relation.
            sampled: whether bodies were.
        """
        names = list(relations)
        atoms = [Atom(name, inverse) for inverse in (False, True) for name in names]
        return RuleSet(
            MinedRule(
                Rule(
                    atoms[head],
                    tuple(atoms[one] for one in body[:length]),
                    (*_order(length), *_meetings(same[: length + 1])),
                ),
                support=support,
                body_support=bodies,
                confidence=confidence,
                facts=int(facts[head]),
                sampled=sampled,
            )
            for head, length, body, same, bodies, support, confidence in zip(
                *(getattr(self, column.name).tolist() for column in fields(self)), strict=True
            )
        )


def _order(length: int) -> tuple[Constraint, ...]:
    """What every timestamp rule of a length says of times."""
    steps = [f"I{place}" for place in range(1, length + 2)]
    return (
        *(Constraint("no_later_than", pair) for pair in pairwise(steps[:-1])),
        Constraint("earlier_than", (steps[-2], steps[-1])),
    )


def _meetings(same: Sequence[int]) -> tuple[Constraint, ...]:
    """Which places of a rule have the same entity."""
    return tuple(
        Constraint("the_same_as", (f"E{first + 1}", f"E{place + 1}"))
        for place, first in enumerate(same)
        if first != place
    )


@dataclass(frozen=True, eq=False)
class TimestampScorer:
    """Scores candidates by rules whose bodies lie before the query.

    A score is -log(1 - the noisy-or of what the rules give). Where no rule leads anywhere,
    candidates score by how often they answered the relation before, or, where it never was asked,
    any relation. Nothing dated at or after a query is used, unless rules look ahead; a query
    without a date is asked after all facts.

    Attributes:
        edges: the evidence.
        rules: to apply.
        manner: how.
    """

    edges: TimedEdges
    rules: TLogicRules
    manner: ScoringSettings

    def __call__(self, queries: QueryTable) -> Scores:
        """The scores of the candidates of queries."""
        time = event_times(*queries.given_dates())
        # Its own fact is never earlier than a query.
        own = queries.fact if self.manner.ahead else np.full_like(queries.fact, -1)
        asked = np.stack([queries.subject, queries.directed_relation, time, own], axis=1)
        distinct, of_query = np.unique(asked, axis=0, return_inverse=True)
        subject, head, time, own = np.ascontiguousarray(distinct.T)
        by_rules = Scores(
            *score_queries(
                self.edges.by_relation, self.rules, self.manner, subject, head, time, own
            )
        )
        found = self._filled(by_rules, head, time, own).take(of_query)
        return replace(found, reached=_listed(by_rules.take(of_query), queries.answer))

    def _filled(
        self,
        by_rules: Scores,
        head: NDArray[np.int64],
        time: NDArray[np.int64],
        own: NDArray[np.int64],
    ) -> Scores:
        """The same scores, and for queries without any how often candidates answered."""
        bounds = by_rules.offsets[1:-1]
        candidates, scores = (np.split(one, bounds) for one in (by_rules.candidate, by_rules.score))
        for query in np.flatnonzero(np.diff(by_rules.offsets) == 0):
            answers = self._answers(head[query], time[query], own[query])
            candidates[query], scores[query] = np.unique(answers, return_counts=True)
        offsets = np.append(0, np.cumsum([len(one) for one in candidates]))
        return Scores(offsets, np.concatenate(candidates), np.concatenate(scores))

    def _answers(self, head: int, time: int, own: int) -> NDArray[np.int32]:
        """What answered a relation, or any, in the facts that are evidence for a query."""
        heads = self.edges.by_head
        for part in (slice(heads.offsets[head], heads.offsets[head + 1]), slice(None)):
            evidence = heads.fact[part] != own if self.manner.ahead else heads.time[part] < time
            answers: NDArray[np.int32] = heads.target[part][evidence]
            if len(answers):
                break
        return answers


def _listed(scores: Scores, entity: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each query lists its entity."""
    query = scores.query
    listed = np.zeros(len(scores), np.bool_)
    listed[query[scores.candidate == entity[query]]] = True
    return listed


@dataclass(frozen=True, eq=False, repr=False)
class TimestampModel:
    """What `TimestampRules.fit` found.

    Attributes:
        table: the rules, by head, the most confident first.
        relations: their names.
        unit: what times count.
        facts: of each directed relation, in train, with a date.
        manner: how queries are answered.
    """

    table: RuleTable
    relations: Vocabulary
    unit: Unit
    facts: NDArray[np.int64]
    manner: ScoringSettings

    def __repr__(self) -> str:
        lengths, counts = np.unique(self.table.length, return_counts=True)
        listed = ", ".join(
            f"{n:,} of length {length}" for length, n in zip(lengths, counts, strict=True)
        )
        return f"TimestampModel({len(self.table):,} rules: {listed})"

    @cached_property
    def rules(self) -> RuleSet:
        """The rules by relation, the most confident first.

        `fired` counts the distinct bodies that were sampled, `support` those of them whose ends
        the head joins at a later time; `confidence` is their share.
        """
        return self.table.rule_set(self.relations, self.facts)

    def scorer(
        self,
        graph: TemporalGraph,
        evidence: Iterable[str] | str = "train",
        *,
        plain: bool = False,
    ) -> TimestampScorer:
        """What scores the candidates of queries.

        Args:
            graph: the facts; it has the same relations and the same unit of time.
            evidence: the splits whose facts are used, as far as they are dated before a query;
                only train if rules look ahead.
            plain: go through every walk of a rule, as the original does, for comparing times; the
                scores are the same.

        Raises:
            TilpError: the graph has other relations, or another unit of time; or facts that are
                asked for would be evidence of themselves.
        """
        check_relations(graph, self.relations, self.unit)
        edges = TimedEdges.of(graph, evidence)
        if self.manner.ahead and edges.fact.max(initial=0) >= len(graph.rows("train")):
            raise TilpError(
                "rules that look ahead have train alone as evidence: facts of other splits would "
                "be evidence of themselves. Fit with ahead=False to use all that is earlier."
            )
        applied = self.table.applied(2 * len(self.relations), plain=plain)
        return TimestampScorer(edges, applied, self.manner)


def check_relations(graph: TemporalGraph, relations: Vocabulary, unit: Unit) -> None:
    """Refuse a graph that rules were not learned for.

    Raises:
        TilpError: it has other relations, or another unit of time.
    """
    if graph.relations != relations or graph.unit is not unit:
        raise TilpError(
            f"the rules are of {len(relations):,} relations in {unit.value}s, the "
            f"graph has {len(graph.relations):,} in {graph.unit.value}s; use a graph that was "
            "read with the same relations and unit"
        )


_LONGEST = 5
_SEEDS = 1 << 62


@dataclass(frozen=True)
class TimestampRules:
    """Rules over facts at instants, in the manner of TLogic (Liu et al., AAAI 2022).

    Of every fact only its start is read; where that is no date, its end.

    Attributes:
        lengths: of rules.
        walks: how many walks are tried for each directed relation and length.
        transition: how a walk chooses among facts; `exponential` prefers late ones.
        samples: bodies that are drawn to estimate a rule's confidence.
        smoothing: added to the number of distinct bodies that the head's are divided by.
        min_confidence: of a rule that is kept.
        min_bodies: distinct bodies of a rule that is kept.
        window: how long before the query the facts of a body may lie; 0 for any time.
        ahead: whether facts at and after the query are evidence too. Rules say what comes later,
            but to complete a graph they are as well applied to all of it.
        decay: how fast what is far counts less: a fact counts exp(-decay · time between).
        share: of a rule's confidence in what it gives a candidate; the rest is for how near its
            body is in time.
        top: how many candidates must be told apart before no further rule is applied.
        seed: for everything that is drawn.

    >>> import tilp
    >>> graph = tilp.datasets.world(0, 1000).graph
    >>> model = TimestampRules(lengths=(1,), seed=0).fit(graph)
    >>> print(model.rules.filter(relation="diedIn")[0].rule)
    diedIn(E1,E2,I2) ← bornIn(E1,E2,I1) ∧ earlier_than(I1,I2)
    """

    lengths: tuple[int, ...] = (1, 2, 3)
    walks: int = 200
    transition: Transition = Transition.EXPONENTIAL
    samples: int = 500
    smoothing: float = 0.0
    min_confidence: float = 0.01
    min_bodies: int = 2
    window: int = 0
    ahead: bool = False
    decay: float = 0.1
    share: float = 0.5
    top: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(sorted(set(self.lengths))))
        object.__setattr__(self, "transition", choose(Transition, self.transition, "transition"))
        if not self.lengths or self.lengths[0] < 1 or self.lengths[-1] > _LONGEST:
            raise TilpError(f"lengths are some of 1 to {_LONGEST}, not {self.lengths}")
        for name in ("walks", "samples", "top"):
            if getattr(self, name) < 1:
                raise TilpError(f"{name} is {getattr(self, name)}; it is at least 1")
        for name in ("smoothing", "window", "decay", "min_confidence", "min_bodies"):
            if getattr(self, name) < 0:
                raise TilpError(f"{name} is {getattr(self, name)}; it is at least 0")
        if not 0.0 <= self.share <= 1.0:
            raise TilpError(f"share is {self.share}; it is from 0 to 1")

    def fit(
        self,
        graph: TemporalGraph,
        *,
        threads: int = 1,
        workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> TimestampModel:
        """Find rules in the train split, for every relation in both directions.

        Args:
            graph: the facts.
            threads: do not change the result.
            workers: in place of threads; they do not change it either.
            progress: called with the share that is done.

        Raises:
            TilpError: no training fact has a date.
        """
        edges = TimedEdges.of(graph, "train")
        if not len(edges.time):
            raise TilpError("no training fact has a date; timestamp rules are learned from dates")
        facts = np.diff(edges.by_head.offsets)
        heads = np.flatnonzero(facts)
        tables = []
        edges.by_time, edges.by_relation  # noqa: B018 - made before threads ask for them
        with opened(workers, threads) as workers:
            learned = workers.map(partial(self._learn_head, edges), heads.tolist())
            for number, table in enumerate(learned, start=1):
                tables.append(table)
                if progress is not None:
                    progress(number / len(heads))
        manner = ScoringSettings(self.window, self.ahead, self.decay, self.share, self.top)
        return TimestampModel(RuleTable.join(tables), graph.relations, graph.unit, facts, manner)

    def _learn_head(self, edges: TimedEdges, head: int) -> RuleTable:
        """The rules for one directed relation, the most confident first."""
        tables = [self._learn(edges, head, length) for length in self.lengths]
        return RuleTable.join(tables).sorted()

    def _learn(self, edges: TimedEdges, head: int, length: int) -> RuleTable:
        """Those of one length: found by walks, weighed by sampled bodies."""
        chances = np.random.default_rng([self.seed, head, length])
        entities, walked, _ = walk_back(
            edges.by_time,
            edges.by_head,
            edges.n_relations,
            head,
            length,
            self.walks,
            self.transition is Transition.EXPONENTIAL,
            int(chances.integers(_SEEDS)),
        )
        relations, same = lift(entities, walked, edges.n_relations)
        bodies, support = count_bodies(
            edges.by_relation,
            edges.by_head,
            head,
            relations,
            same,
            self.samples,
            chances.integers(_SEEDS, size=len(relations)),
        )
        longest = self.lengths[-1]
        found = RuleTable(
            np.full(len(relations), head),
            np.full(len(relations), length),
            _widened(relations, np.full(longest, -1)),
            _widened(same, np.arange(longest + 1)),
            bodies,
            support,
            support / np.maximum(bodies + self.smoothing, 1.0),
        )
        enough = (found.support > 0) & (found.bodies >= self.min_bodies)
        return found[enough & (found.confidence >= self.min_confidence)]


def lift(
    entities: NDArray[np.int32], relations: NDArray[np.int32], n_relations: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rules of walks that all have one head and length.

    A walk goes back in time, from the head's object to its subject; a rule's body is the same
    walk the other way.

    Returns:
        The relations of each body, and of each of its places the first with the same entity.
    """
    body = (relations[:, :0:-1] + n_relations) % (2 * n_relations)
    places = entities[:, :0:-1]
    same = (places[:, :, None] == places[:, None, :]).argmax(axis=2)
    rules = np.unique(np.concatenate([body, same], axis=1), axis=0)
    relations, same = np.split(rules, [body.shape[1]], axis=1)
    return np.ascontiguousarray(relations), np.ascontiguousarray(same)


def _widened(columns: NDArray[np.int64], row: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same columns, and those that the row has past them."""
    wide = np.tile(row, (len(columns), 1))
    wide[:, : columns.shape[1]] = columns
    return wide

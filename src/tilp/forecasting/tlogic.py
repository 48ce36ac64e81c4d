"""`TimestampRules`: mine and apply rules over events as TLogic does."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from tilp._kernels import tlogic as kernel
from tilp._utils.arrays import Ids, Ints
from tilp.errors import TilpError
from tilp.forecasting.events import RuleTable, TimedEdges, check_relations, event_times
from tilp.graph import QueryTable, TemporalGraph, Vocabulary
from tilp.parallel import Workers, use_workers
from tilp.rules import RuleSet
from tilp.scoring import Scores
from tilp.types import Transition, Unit, choose

_MAX_LENGTH = 5
_MAX_SEED = 1 << 62


@dataclass(frozen=True, eq=False)
class TimestampScorer:
    """Scorer that applies rules whose bodies lie before the query.

    A score is -log(1 - p), where p is the noisy-or of the rules that reach the candidate. If no
    rule reaches any candidate, the score is how often a candidate answered the relation before; if
    the relation never occurred, any relation. Only facts dated before the query are used, unless
    the rules look ahead. A query without a date comes after all facts.
    """

    edges: TimedEdges  # facts that are evidence
    rules: kernel.TLogicRules  # rules to apply
    settings: kernel.ScoringSettings  # how rules are applied and combined

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""
        time = event_times(*queries.given_dates())
        # The fact of a query is never dated before the query.
        fact = queries.fact if self.settings.ahead else np.full_like(queries.fact, -1)
        columns = np.stack([queries.subject, queries.directed_relation, time, fact], axis=1)
        distinct, inverse = np.unique(columns, axis=0, return_inverse=True)
        subject, relation, time, fact = np.ascontiguousarray(distinct.T)
        edges, query = self.edges.by_entity_relation, (subject, relation, time, fact)
        rule_scores = Scores(*kernel.score_queries(edges, self.rules, self.settings, *query))
        scores = self._add_frequencies(rule_scores, relation, time, fact).take(inverse)
        by_rules = rule_scores.take(inverse)
        reached = np.zeros(len(by_rules), np.bool_)
        reached[by_rules.query[by_rules.candidate == queries.answer[by_rules.query]]] = True
        return replace(scores, reached=reached)

    def _add_frequencies(self, scores: Scores, relation: Ints, time: Ints, fact: Ints) -> Scores:
        """Score candidates by their frequency as answers, for queries without any candidate."""
        columns = (scores.candidate, scores.score)
        candidates, values = (np.split(column, scores.offsets[1:-1]) for column in columns)
        edges, ahead = self.edges.by_relation, self.settings.ahead
        for query in np.flatnonzero(np.diff(scores.offsets) == 0):
            own = slice(edges.offsets[relation[query]], edges.offsets[relation[query] + 1])
            for rows in (own, slice(None)):  # of the relation, else of any
                mask = edges.fact[rows] != fact[query] if ahead else edges.time[rows] < time[query]
                answers = edges.target[rows][mask]
                if len(answers):
                    break
            candidates[query], values[query] = np.unique(answers, return_counts=True)
        offsets = np.append(0, np.cumsum([len(ids) for ids in candidates]))
        return Scores(offsets, np.concatenate(candidates), np.concatenate(values))


@dataclass(frozen=True, eq=False, repr=False)
class TimestampModel:
    """Rules that `TimestampRules.fit` mined."""

    table: RuleTable  # by head relation, most confident first
    relations: Vocabulary
    unit: Unit
    facts: Ints  # number of dated training facts of each directed relation
    settings: kernel.ScoringSettings  # how queries are scored

    def __repr__(self) -> str:
        lengths, counts = np.unique(self.table.length, return_counts=True)
        pairs = zip(lengths, counts, strict=True)
        listed = ", ".join(f"{count:,} of length {length}" for length, count in pairs)
        return f"TimestampModel({len(self.table):,} rules: {listed})"

    @cached_property
    def rules(self) -> RuleSet:
        """Rules by relation, most confident first.

        `body_support` counts the distinct groundings of the body that were sampled, `support` those
        whose ends the head joins at a later time; `confidence` is their share.
        """
        return self.table.rule_set(self.relations, self.facts)

    def scorer(
        self, graph: TemporalGraph, evidence: Iterable[str] | str = "train", *, plain: bool = False
    ) -> TimestampScorer:
        """Return a scorer for queries on a graph.

        Args:
            graph: facts, with the same relations and the same unit of time.
            evidence: splits whose facts are used, as far as they are dated before a query. `train`
                by default, and the only choice if rules look ahead.
            plain: follow every walk of a rule as the original does, to compare run times; False by
                default. The scores are the same.

        Raises:
            TilpError: the graph has other relations or another unit of time, or facts would be
                evidence of themselves.
        """
        check_relations(graph, self.relations, self.unit)
        edges = TimedEdges.of(graph, evidence)
        if self.settings.ahead and edges.fact.max(initial=0) >= len(graph.rows("train")):
            raise TilpError(
                "rules that look ahead use train alone as evidence: facts of other splits would "
                "be evidence of themselves. Fit with ahead=False to use all earlier facts."
            )
        rules = self.table.kernel_rules(2 * len(self.relations), plain=plain)
        return TimestampScorer(edges, rules, self.settings)


@dataclass(frozen=True)
class TimestampRules:
    """Baseline that mines rules over events as TLogic does (Liu et al., AAAI 2022).

    The time of a fact is its start, or its end if the start is not a date.

    Args:
        lengths: lengths of rules, each from 1 to 5; (1, 2, 3) by default.
        walks: random walks per directed relation and length, 200 by default. More walks find more
            rules.
        transition: how a walk chooses the next fact; `exponential` (default) prefers late facts,
            `uniform` does not.
        samples: body groundings drawn to estimate the confidence of a rule, 500 by default.
        smoothing: added to the number of groundings when confidence is computed, 0 by default.
            Raise it to trust rare rules less.
        min_confidence: drop rules below this confidence, 0.01 by default.
        min_bodies: drop rules with fewer distinct body groundings, 2 by default.
        window: use only facts at most this long before the query; 0 (default) uses all.
        ahead: use facts at and after the query too, to complete a graph rather than forecast;
            False by default.
        decay: rate at which older facts count less, exp(-decay · gap); 0.1 by default.
        share: weight of confidence against recency in the score of a rule, 0.5 by default.
        top: stop applying rules once this many best candidates have different scores, 20 by
            default.
        seed: random seed, 0 by default.

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
        if not self.lengths or self.lengths[0] < 1 or self.lengths[-1] > _MAX_LENGTH:
            raise TilpError(f"lengths is {self.lengths}; choose some of 1 to {_MAX_LENGTH}")
        least = dict.fromkeys(("walks", "samples", "top"), 1)
        least |= dict.fromkeys(("smoothing", "window", "decay", "min_confidence", "min_bodies"), 0)
        for name, minimum in least.items():
            if getattr(self, name) < minimum:
                raise TilpError(f"{name} is {getattr(self, name)}; choose at least {minimum}")
        if not 0.0 <= self.share <= 1.0:
            raise TilpError(f"share is {self.share}; choose a number from 0 to 1")

    def fit(
        self,
        graph: TemporalGraph,
        *,
        threads: int = 1,
        workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> TimestampModel:
        """Mine rules in the train split, for every relation in both directions.

        Args:
            graph: facts to learn from.
            threads: number of threads, 1 by default; the result does not depend on it.
            workers: used in place of threads, if given.
            progress: called with the finished share of the work.

        Raises:
            TilpError: no training fact has a date.
        """
        edges = TimedEdges.of(graph, "train")
        if not len(edges.time):
            raise TilpError("no training fact has a date; timestamp rules are learned from dates")
        facts = np.diff(edges.by_relation.offsets)
        relations = np.flatnonzero(facts)
        tables = []
        edges.by_time, edges.by_entity_relation  # noqa: B018 - built before threads use them
        with use_workers(workers, threads) as workers:
            mined = workers.map(partial(self._mine_relation, edges), relations.tolist())
            for done, table in enumerate(mined, start=1):
                tables.append(table)
                if progress is not None:
                    progress(done / len(relations))
        settings = kernel.ScoringSettings(self.window, self.ahead, self.decay, self.share, self.top)
        return TimestampModel(RuleTable.join(tables), graph.relations, graph.unit, facts, settings)

    def _mine_relation(self, edges: TimedEdges, relation: int) -> RuleTable:
        tables = [self._mine_length(edges, relation, length) for length in self.lengths]
        return RuleTable.join(tables).sorted()

    def _mine_length(self, edges: TimedEdges, relation: int, length: int) -> RuleTable:
        """Find the rules of one length by random walks, and sample bodies to weigh them."""
        rng = np.random.default_rng([self.seed, relation, length])
        exponential = self.transition is Transition.EXPONENTIAL
        target = (edges.n_relations, relation, length)
        options = (self.walks, exponential, int(rng.integers(_MAX_SEED)))
        entities, walked, _ = kernel.walk_back(edges.by_time, edges.by_relation, *target, *options)
        body, same = distinct_rules(entities, walked, edges.n_relations)
        rules, seeds = (relation, body, same), rng.integers(_MAX_SEED, size=len(body))
        body_support, support = kernel.count_bodies(
            edges.by_entity_relation, edges.by_relation, *rules, self.samples, seeds
        )
        confidence = support / np.maximum(body_support + self.smoothing, 1.0)
        head, lengths = np.full(len(body), relation), np.full(len(body), length)
        body = _pad(body, np.full(self.lengths[-1], -1))
        same = _pad(same, np.arange(self.lengths[-1] + 1))
        table = RuleTable(head, lengths, body, same, body_support, support, confidence)
        mask = (table.support > 0) & (table.body_support >= self.min_bodies)
        return table[mask & (table.confidence >= self.min_confidence)]


def distinct_rules(entities: Ids, relations: Ids, n_relations: int) -> tuple[Ints, Ints]:
    """Return the distinct rules of walks that have one head relation and length.

    A walk goes back in time, from the object of the head to its subject; the body of its rule is
    the same walk in the other direction. The second array has, for each entity position, the first
    position with the same entity.
    """
    body = (relations[:, :0:-1] + n_relations) % (2 * n_relations)
    ends = entities[:, :0:-1]
    same = (ends[:, :, None] == ends[:, None, :]).argmax(axis=2)
    rules = np.unique(np.concatenate([body, same], axis=1), axis=0)
    relations, same = np.split(rules, [body.shape[1]], axis=1)
    return np.ascontiguousarray(relations), np.ascontiguousarray(same)


def _pad(columns: Ints, row: Ints) -> Ints:
    """Extend columns to the width of a row, with the values of the row."""
    padded = np.tile(row, (len(columns), 1))
    padded[:, : columns.shape[1]] = columns
    return padded

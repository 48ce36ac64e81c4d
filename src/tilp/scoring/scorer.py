"""`Scorer`, the interface of every model; `RuleScorer`: scores by rules and prior (eq. 15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from tilp._kernels.score import score_candidates, sort_rows
from tilp._utils.arrays import Floats, Ids, Ints, read_only, split_by_sum
from tilp.graph import QueryTable
from tilp.learning import KnownAnswers, Mark, PopularityPrior, known_answers
from tilp.rules import Atom, Rule
from tilp.scoring.scores import Scores
from tilp.time.imputation import MissingDates
from tilp.types import Missing
from tilp.walks import Grounder, Walker

_STEPS_PER_NUMBER = 8  # steps of walks for one number in memory: most are counted together
_LEAST_SCORE = 1e-300  # lower bound of a divisor, against 0 / 0
_Parts = dict[str, Floats]

_BATCH, _BYTES_PER_NUMBER = 512, 32  # most queries of a batch; of `memory_per_query`, with copies


def query_batches(rows: Ints, memory: Floats, block_bytes: float) -> list[Ints]:
    """Return indices of queries in batches, given the `memory_per_query` of each."""
    sizes = np.maximum(_BYTES_PER_NUMBER * memory, block_bytes / _BATCH)
    return split_by_sum(rows, sizes, block_bytes)


NOT_SCORED = "not looked at"
"""Kind of the contribution that stands for everything a scorer left out for a candidate."""

FactPath = tuple[tuple[int, bool], ...]
"""Ids of facts as a walk reads them; True where one is read from object to subject."""


class ReasonKind(StrEnum):
    """Kind of the evidence that contributions come from."""

    CHAIN = "chain"  # of relations from the query's entity to the candidate
    CANDIDATE = "candidate"  # a relation of the candidate's own facts
    PRIOR = "prior"  # how common the candidate is
    CONNECTION = "connection"  # all random walks that no chain stands for
    REST = "rest"  # what cannot be attributed


@dataclass(frozen=True)
class Evidence:
    """Evidence that contributions share; the same evidence may speak for other candidates."""

    kind: ReasonKind
    relations: tuple[Atom, ...] = ()  # of a chain from the query's entity, else from the candidate


@dataclass(frozen=True, eq=False)
class Contribution:
    """One part of a score; in its text `{given}` and `{candidate}` stand for the query's ends."""

    evidence: Evidence
    kind: str  # such as `rule`, `prior` or `other facts`
    score: float
    text: str
    walks: int = 0
    rule: Rule | None = None
    find_facts: Callable[[int], Sequence[FactPath]] | None = None  # returns up to n of them
    note: str = ""  # sentence about cases like this; by default the rule's counts
    draw: Callable[[], str] | None = None  # returns a picture of what was learned, as SVG


def only_path(path: FactPath) -> Callable[[int], Sequence[FactPath]]:
    """Return a `find_facts` of a single walk."""
    return lambda _: [path]


class Scorer(Protocol):
    """Scores all candidates of queries, and splits scores into contributions."""

    @property
    def rule_scorer(self) -> RuleScorer:
        """The part that scores by rules alone."""

    def __call__(self, queries: QueryTable) -> Scores:
        """Do the same as `score`, so that a scorer is a `ScoreFunction`."""

    def score(self, queries: QueryTable, applied: AppliedRules | None = None) -> Scores:
        """Score the candidates of queries; `applied` is that of `RuleScorer.apply_rules`."""

    def contributions(
        self, queries: QueryTable, offsets: Ints, candidate: Ids,
        applied: AppliedRules | None = None,
    ) -> _Parts:  # fmt: skip
        """Split the scores of the given candidates into parts by name, which add up to them."""

    def attribute_scores(
        self, query: QueryTable, candidates: Sequence[int], applied: AppliedRules
    ) -> list[list[Contribution]]:
        """Split the scores of candidates of a single query into contributions with their facts.

        Evidence that is told apart for one of them is told apart for all.
        """

    def without(self, facts: Iterable[int]) -> Scorer:
        """Return the same scorer on evidence without some facts."""

    def memory_per_query(self, queries: QueryTable) -> Floats:
        """Estimate how many numbers are in memory while each query is scored."""


@dataclass(frozen=True)
class RuleWeights:
    """Learned weights of rules, of the prior, and of candidates known at another time."""

    rule: Floats
    prior: Floats  # by directed relation
    factor: Floats  # by directed relation and kind
    walks_power: float = 0.0


@dataclass(frozen=True)
class AppliedRules:
    """Rules applied to queries, and the candidates that train has as answers at other times."""

    offsets: Ints  # where the rows of each query begin, sorted by rule, and where the last end
    rule: Ints
    end: Ints
    count: Ints  # of walks
    known: KnownAnswers

    @property
    def rows(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Offsets of queries, and columns of rules, ends and counts, as kernels read them."""
        return self.offsets, self.rule, self.end, self.count


@dataclass(frozen=True)
class RuleContributions:
    """Contributions of the rules that reach one candidate of a query."""

    rule: Ints
    walks: Ints  # N
    arriving: Ints  # N_c, the number of walks that end at the candidate
    score: Floats  # summand of φ of the candidate


class RuleScorer:
    """Scores candidates of queries: φ(c) = Σ score(Rule) N^power α_c(Rule) + the prior of c.

    Arriving rates are shares of walks in which candidates that are already known as answers at
    other times count by their factor. `missing_dates` imputes those of queries; by default a
    missing date is the known one.
    """

    def __init__(
        self, walker: Walker, rules: Sequence[Rule], weights: RuleWeights,
        missing_dates: MissingDates | None = None,
    ) -> None:  # fmt: skip
        self.walker = walker
        self.rules = tuple(rules)
        self._rows = read_only(walker.encoding.encode(rules))
        self.prior = PopularityPrior.from_graph(walker.graph, by_start=walker.only_earlier)
        self._missing_dates = missing_dates or MissingDates(Missing.POINT)
        self._compiled = walker.encoding.compiled(self._rows)
        self._set_weights(weights)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of their weights."""
        return tuple(self.walker.encoding.lift(row) for row in self._rows)

    @property
    def rule_relations(self) -> Ints:
        """Directed relation of each rule."""
        return np.asarray(self._rows[:, 2])

    @cached_property
    def _grounder(self) -> Grounder:
        return Grounder(self.walker)

    @property
    def rule_scorer(self) -> RuleScorer:
        """This scorer."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        # Copies and other processes decode the rules again when they need them.
        decoded = ("rules", "_grounder")
        return {name: value for name, value in vars(self).items() if name not in decoded}

    def _set_weights(self, weights: RuleWeights) -> None:
        offsets, rows = self.prior.listed
        relations = np.repeat(np.arange(self.prior.n_directed), np.diff(offsets))
        self._weights = weights
        self._prior_score = read_only(weights.prior[relations] * self.prior.probability[rows])
        self._listed = offsets, read_only(self.prior.entity[rows])
        self._default = weights.prior * self.prior.min_probability

    def with_weights(self, weights: RuleWeights) -> RuleScorer:
        """Return the same rules with other weights."""
        other = copy(self)
        other._set_weights(weights)
        return other

    def without(self, facts: Iterable[int]) -> RuleScorer:
        """Return the same rules on evidence without some facts; the others have new ids."""
        removed = np.unique(np.fromiter(facts, np.int64))
        other = copy(self)
        other.walker = self.walker.without(removed)
        other.prior = self.prior.without(self.walker.graph, removed)
        other._set_weights(self._weights)
        return other

    def fill_dates(self, queries: QueryTable) -> QueryTable:
        """Return the queries with their missing dates imputed, and the evidence of each."""
        return self.walker.with_evidence(self._missing_dates.fill_queries(queries))

    def resolve_dates(self, queries: QueryTable) -> QueryTable:
        """Return queries as they are asked: a query without dates is about all of time."""
        return self.walker.with_evidence(queries)

    def apply_rules(self, queries: QueryTable) -> AppliedRules:
        """Return everything that scores are computed from, apart from the weights."""
        queries = self.fill_dates(queries)
        rows, _ = self.walker.apply(queries, self._compiled)
        known = known_answers(self.walker.graph, queries.without_answers())
        return AppliedRules(*sort_rows(rows, len(queries), len(self._rows)), known)

    def score(self, queries: QueryTable, applied: AppliedRules | None = None) -> Scores:
        """Score the candidates of queries; candidates that are not listed have the least prior."""
        applied = applied or self.apply_rules(queries)
        known, weights, prior = applied.known, self._weights, self.prior
        walks, relation = applied.rows, queries.directed_relation
        answers = known.offsets, known.entity, known.mark - Mark.KNOWN
        learned = weights.rule, weights.factor, weights.walks_power
        priors = relation, *self._listed, self._prior_score
        if prior.starts is not None:
            row, offsets, entity, probability = prior.by_start(self.fill_dates(queries))
            weight = np.empty(len(offsets) - 1)
            weight[row] = weights.prior[relation]
            priors = row, offsets, entity, np.repeat(weight, np.diff(offsets)) * probability
        offsets, candidate, score, reached = score_candidates(
            *walks, relation, queries.answer, *answers, *learned, *priors, self._default,
            prior.n_entities,
        )  # fmt: skip
        return Scores(offsets, candidate, score, self._default[relation], reached)

    __call__ = score

    def memory_per_query(self, queries: QueryTable) -> Floats:
        """Estimate how many numbers are in memory while each query is scored."""
        listed = np.diff(self._listed[0])[queries.directed_relation]
        return np.asarray(listed + self.walk_memory(queries))

    def walk_memory(self, queries: QueryTable) -> Floats:
        """Estimate the part of `memory_per_query` that walks take."""
        return np.asarray(self.walker.steps_from[queries.subject] / _STEPS_PER_NUMBER)

    def contributions(
        self, queries: QueryTable, offsets: Ints, candidate: Ids,
        applied: AppliedRules | None = None,
    ) -> _Parts:  # fmt: skip
        """Split the scores of the given candidates into those of rules and prior."""
        scores = self.score(queries, applied).of_candidates(offsets, candidate)
        return self.split_rules_and_prior(queries, offsets, candidate, scores, scores)

    def split_rules_and_prior(
        self, queries: QueryTable, offsets: Ints, candidate: Ids, score: Floats, total: Floats
    ) -> _Parts:
        """Split a total, some function of φ, by the shares that rules and prior have in φ."""
        relation = np.repeat(queries.directed_relation, np.diff(offsets))
        latest = np.repeat(self.fill_dates(queries).latest, np.diff(offsets))
        probability = self.prior.probabilities(relation, candidate, latest)
        prior = self._weights.prior[relation] * probability
        share = prior / score
        return {"rules": (1 - share) * total, "prior": share * total}

    def rule_contributions(
        self, query: QueryTable, applied: AppliedRules, candidate: int
    ) -> RuleContributions:
        """Return the summands of eq. 15 for a candidate of a single query."""
        rule, end, count = applied.rule, applied.end, applied.count
        relation, known = int(query.directed_relation[0]), applied.known
        factor = np.ones(self.prior.n_entities)
        factor[known.entity] = self._weights.factor[relation, known.mark - Mark.KNOWN]
        first = np.flatnonzero(np.diff(rule, prepend=-1))
        group = np.repeat(np.arange(len(first)), np.diff(first, append=len(rule)))
        walks = np.bincount(group, count, len(first))
        total = np.bincount(group, count * factor[end], len(first))
        here = np.flatnonzero(end == candidate)
        group = group[here]
        weight = self._weights.rule[rule[here]] * walks[group] ** self._weights.walks_power
        score = weight * count[here] * factor[candidate] / total[group]
        return RuleContributions(rule[here], walks[group].astype(np.int64), count[here], score)

    def attribute_scores(
        self, query: QueryTable, candidates: Sequence[int], applied: AppliedRules
    ) -> list[list[Contribution]]:
        """Split scores into a contribution for each rule and one for the prior."""
        offsets = np.array([0, 1])
        each = (np.array([candidate], np.int32) for candidate in candidates)
        parts = [self.contributions(query, offsets, entity, applied) for entity in each]
        return [
            self.attribute_rules(query, candidate, applied, part)
            for candidate, part in zip(candidates, parts, strict=True)
        ]

    def attribute_rules(
        self, query: QueryTable, candidate: int, applied: AppliedRules, parts: _Parts,
        more: Callable[[RuleContributions], Floats] | None = None,
    ) -> list[Contribution]:  # fmt: skip
        """Split what rules and prior add to a score into single rules and the prior.

        `parts` has the joint contributions of `rules` and `prior`; `more` returns a further
        contribution of each rule that reaches the candidate.
        """
        reaching = self.rule_contributions(query, applied, candidate)
        score = float(parts["rules"][0]) * reaching.score / max(reaching.score.sum(), _LEAST_SCORE)
        if more is not None:
            score += more(reaching)
        dated = self.fill_dates(query)

        def find_walks(rule: Rule, n: int) -> list[FactPath]:
            walks = self._grounder(rule, dated, candidate, n).walks[:n]
            return [tuple((step.fact, step.inverse) for step in walk) for walk in walks]

        contributions = []
        for index, rule_id in enumerate(reaching.rule.tolist()):
            rule, walks = self.rules[rule_id], int(reaching.arriving[index])
            evidence, find = Evidence(ReasonKind.CHAIN, rule.body), partial(find_walks, rule)
            part = float(score[index])
            contributions.append(Contribution(evidence, "rule", part, "", walks, rule, find))
        text = self.popularity_text(query, candidate)
        prior = Contribution(Evidence(ReasonKind.PRIOR), "prior", float(parts["prior"][0]), text)
        return [*contributions, prior]

    def popularity_text(self, query: QueryTable, candidate: int) -> str:
        """Say how many facts of the query's relation have a candidate as their answer."""
        entity, relations = np.array([candidate], np.int32), self.walker.graph.relations
        latest = self.fill_dates(query).latest
        counts = self.prior.counts(query.directed_relation, entity, latest)
        count, total = (int(column[0]) for column in counts)
        relation = int(query.directed_relation[0])
        end = "object" if relation < len(relations) else "subject"
        name = relations.label(relation % len(relations))
        return f"{{candidate}} is the {end} of {count:,} of {total:,} {name} facts"

"""`Tracer`: the facts that a piece of evidence for a candidate was read from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.negative_sampling import top_indices
from tilp.features.paper.attribution import feature_contributions
from tilp.features.paper.evidence import EVIDENCE_KINDS
from tilp.features.paper.features import FeatureWeights, PaperFeatures
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, Scores
from tilp.scoring.scorer import NOT_SCORED, AppliedRules, Contribution
from tilp.time import known_ends
from tilp.types import EvidenceKind

Steps = tuple[tuple[int, bool], ...]


class Tracer:
    """Finds facts again by what `Evidence` says of them.

    Args:
        features: that the evidence was gathered for.
        queries: a single query.
        candidate: of it.
    """

    def __init__(self, features: PaperFeatures, queries: QueryTable, candidate: int) -> None:
        graph = features.graph
        index = graph.index(("train",))
        self._features = features
        self._queries = queries
        self._candidate = candidate
        self._size = len(graph.entities)
        self._n_relations = len(graph.relations)
        edge = np.flatnonzero(index.fact != queries.fact[0])
        source = np.repeat(np.arange(self._size, dtype=np.int32), np.diff(index.offsets))
        start, _ = known_ends(graph.start, graph.end)
        self._source, self._target = source[edge], index.target[edge]
        self._relation, self._fact = index.relation[edge], index.fact[edge]
        self._start = start[self._fact]

    def __call__(self, kind: int, relation: int, difference: int | None) -> Steps:
        """The fact of a piece of evidence; of walks the shortest walk that it is on.

        Args:
            kind: the place in `KINDS`.
            relation: directed, as the evidence reads it.
            difference: of its start to the query's; None: any will do.

        Returns:
            The facts in order, each with whether it is read from object to subject.
        """
        wanted = self._relation == relation
        if difference is not None:
            wanted &= self._start == self._queries.start[0] + difference
        if EVIDENCE_KINDS[kind] == EvidenceKind.WALKS:
            away = self._from_subject[self._source] + 1 + self._to_candidate[self._target]
            wanted &= self._walked & (away <= self._features.max_length)
            return self._along(int(np.flatnonzero(wanted)[0]))
        with_subject = self._target == self._queries.subject[0]
        wanted &= self._source == self._candidate
        wanted &= with_subject == (EVIDENCE_KINDS[kind] == EvidenceKind.BETWEEN)
        return (self._step(int(np.flatnonzero(wanted)[0])),)

    def _along(self, edge: int) -> Steps:
        """A shortest walk over an edge."""
        before, after = [], []
        here = int(self._source[edge])
        for away in range(int(self._from_subject[here]) - 1, -1, -1):
            nearer = self._walked & (self._target == here)
            step = int(np.flatnonzero(nearer & (self._from_subject[self._source] == away))[0])
            before.append(self._step(step))
            here = int(self._source[step])
        here = int(self._target[edge])
        for away in range(int(self._to_candidate[here]) - 1, -1, -1):
            nearer = self._walked & (self._source == here)
            step = int(np.flatnonzero(nearer & (self._to_candidate[self._target] == away))[0])
            after.append(self._step(step))
            here = int(self._target[step])
        return (*before[::-1], self._step(edge), *after)

    def _step(self, edge: int) -> tuple[int, bool]:
        return int(self._fact[edge]), bool(self._relation[edge] >= self._n_relations)

    @cached_property
    def _walked(self) -> NDArray[np.bool_]:
        walked: NDArray[np.bool_] = self._features.walked[self._queries.directed_relation[0]][
            self._relation
        ]
        return walked

    @cached_property
    def _from_subject(self) -> NDArray[np.int64]:
        return self._steps_away(int(self._queries.subject[0]), self._source, self._target)

    @cached_property
    def _to_candidate(self) -> NDArray[np.int64]:
        return self._steps_away(self._candidate, self._target, self._source)

    def _steps_away(
        self, entity: int, here: NDArray[np.int32], there: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """How many steps each entity is away, along the edges that are walked."""
        far = self._features.max_length + 1
        away = np.full(self._size, far)
        away[entity] = 0
        for steps in range(1, far):
            reached = there[self._walked & (away[here] == steps - 1)]
            away[reached] = np.minimum(away[reached], steps)
        return away


_LOOKED_AT = 200
"""Candidates of a query whose features are looked at, the best by the rules."""


class PaperFeatureScorer:
    """Scores candidates by φ_TILP = γ_TLR φ_TLR + γ_tfm φ_tfm.

    φ_TLR is taken as its share of the sum over all entities. Features are looked at for the best
    candidates by the rules; the others count as candidates without any evidence.

    Args:
        rules: scores by rules alone.
        features: with their distributions.
        weights: what phase two learned.
    """

    def __init__(self, rules: RuleScorer, features: PaperFeatures, weights: FeatureWeights) -> None:
        self.rule_scorer = rules
        self.features = features
        self._weights = weights
        self._n_entities = len(rules.walker.graph.entities)

    def without(self, facts: Iterable[int]) -> PaperFeatureScorer:
        """The same on the evidence without some facts, as `RuleScorer.without` has it."""
        other = copy(self)
        other.rule_scorer = self.rule_scorer.without(facts)
        other.features = self.features.on(other.rule_scorer.walker.graph)
        return other

    def memory_per_query(self, queries: QueryTable) -> NDArray[np.float64]:
        """Estimate how many numbers are in memory while each query is scored."""
        return self.rule_scorer.memory_per_query(queries)

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""
        return self.score(queries)

    def score(self, queries: QueryTable, applied: AppliedRules | None = None) -> Scores:
        """Score the candidates of queries; `applied` is what `RuleScorer.apply_rules` returned."""
        applied = applied or self.rule_scorer.apply_rules(queries)
        return self.scores_by([self._weights], queries, applied)[0]

    def scores_by(
        self, weights: Sequence[FeatureWeights], queries: QueryTable, applied: AppliedRules
    ) -> list[Scores]:
        """The scores under other weights of features; evidence is gathered once."""
        by_rules = self.rule_scorer.score(queries, applied)
        settled = self.rule_scorer.fill_dates(queries)
        total = by_rules.totals(self._n_entities)
        place = top_indices(by_rules.offsets, by_rules.score, _LOOKED_AT)
        query = by_rules.query
        begin = np.searchsorted(place, by_rules.offsets)
        evidence = self.features.gather(settled, begin, by_rules.candidate[place])
        phi, unlisted = by_rules.score / total[query], by_rules.defaults / total
        found = []
        for one in weights:
            nothing = self.features.nothing(one)[queries.directed_relation]
            score = one.rules * phi + nothing[query]
            score[place] = self.features.score(one, settled, evidence, phi[place])
            default = one.rules * unlisted + nothing
            found.append(
                replace(by_rules, score=score, default=default, temperature=one.temperature)
            )
        return found

    def contributions(
        self,
        queries: QueryTable,
        offsets: NDArray[np.int64],
        candidate: NDArray[np.int32],
        applied: AppliedRules | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Split the scores of the given candidates into parts by name, which add up to them.

        The joint contribution of rules and prior is split by their shares of φ_TLR.
        """
        by_rules = self.rule_scorer.score(queries, applied)
        settled = self.rule_scorer.fill_dates(queries)
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        scores = by_rules.of_candidates(offsets, candidate)
        phi = scores / by_rules.totals(self._n_entities)[query]
        looked_at = top_indices(by_rules.offsets, by_rules.score, _LOOKED_AT)
        evidence = self.features.gather(settled, offsets, candidate).only(
            np.isin(by_rules.indices_of(offsets, candidate), looked_at)
        )
        terms = self.features.terms(self._weights, settled, evidence, phi)
        together = terms.pop("rules")
        relation = queries.directed_relation[query]
        rules = self.rule_scorer.split_rules_and_prior(relation, candidate, scores, together)
        return {**rules, **terms}

    def attribute_score(
        self, query: QueryTable, candidate: int, applied: AppliedRules
    ) -> list[Contribution]:
        """Split a score into contributions of rules, prior, and each feature with its evidence."""
        only, offsets = np.array([candidate], np.int32), np.array([0, 1])
        parts = self.contributions(query, offsets, only, applied)
        by_rules = self.rule_scorer.score(query, applied)
        of_rules = self.rule_scorer.attribute_score(query, candidate, applied, parts)
        looked_at = top_indices(by_rules.offsets, by_rules.score, _LOOKED_AT)
        if candidate not in by_rules.candidate[looked_at]:
            text = (
                "rules rank it too low for features to be looked at; it counts as without evidence"
            )
            score = float(self.features.nothing(self._weights)[query.directed_relation[0]])
            rest = Contribution((NOT_SCORED,), NOT_SCORED, score, text)
            return [*of_rules, rest] if score else of_rules
        dated = self.rule_scorer.fill_dates(query)
        evidence = self.features.gather(dated, offsets, only)
        pieces = self.features.pieces(self._weights, dated, evidence)
        tracer = Tracer(self.features, dated, candidate)
        return [
            *of_rules,
            *feature_contributions(self.features, dated, evidence, parts, *pieces, tracer),
        ]

"""`PaperFeatureScorer`: scores from rules and the paper's temporal features (eq. 16)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tilp._kernels.candidates import top_indices
from tilp._utils.arrays import Floats, Ids, Indices
from tilp._utils.text import percent
from tilp.features.paper.distributions import recurs
from tilp.features.paper.evidence import EVIDENCE_KINDS, UNDATED, EvidenceTracer
from tilp.features.paper.features import FeatureWeights, PaperFeatures
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, Scores
from tilp.scoring import scorer as scoring
from tilp.types import EvidenceKind, Unit

_NO_FEATURES = "rules rank it too low for features to be looked at; it counts as without evidence"
_MAX_CANDIDATES = 200  # of a query that have features: the best by the rules
_LOCATION = {
    EvidenceKind.BETWEEN: "between candidate and subject",
    EvidenceKind.WALKS: "on walks to the candidate",
}
_PARTNER = {EvidenceKind.BETWEEN: "with the subject", EvidenceKind.OTHERS: "with another entity"}


class PaperFeatureScorer:
    """Scores candidates, the best by rules with features: φ_TILP = γ_TLR φ_TLR + γ_tfm φ_tfm."""

    def __init__(
        self, rule_scorer: RuleScorer, features: PaperFeatures, weights: FeatureWeights,
        max_candidates: int = _MAX_CANDIDATES,
    ) -> None:  # fmt: skip
        self.rule_scorer = rule_scorer
        self.features = features
        self.max_candidates = max_candidates
        self._weights = weights
        self._n_entities = len(rule_scorer.walker.graph.entities)

    def without(self, facts: Iterable[int]) -> PaperFeatureScorer:
        """Return the same scorer on evidence without some facts."""
        other = copy(self)
        other.rule_scorer = self.rule_scorer.without(facts)
        other.features = replace(self.features, graph=other.rule_scorer.walker.graph)
        return other

    def memory_per_query(self, queries: QueryTable) -> Floats:
        """Estimate how many numbers are in memory while each query is scored."""
        return self.rule_scorer.memory_per_query(queries)

    def score(self, queries: QueryTable, applied: scoring.AppliedRules | None = None) -> Scores:
        """Score the candidates of queries; `applied` is what `RuleScorer.apply_rules` returned."""
        return self.score_variants([self._weights], queries, applied)[0]

    __call__ = score

    def score_variants(
        self, variants: Sequence[FeatureWeights], queries: QueryTable,
        applied: scoring.AppliedRules | None = None,
    ) -> list[Scores]:  # fmt: skip
        """Score the candidates with several weights of features; gather the evidence once."""
        by_rules = self.rule_scorer.score(queries, applied)
        filled = self.rule_scorer.fill_dates(queries)
        total = by_rules.totals(self._n_entities)
        query, best = by_rules.query, self._best(by_rules)
        offsets = np.searchsorted(best, by_rules.offsets)
        evidence = self.features.gather(filled, offsets, by_rules.candidate[best])
        phi, default_phi = by_rules.score / total[query], by_rules.defaults / total
        variant_scores = []
        for weights in variants:
            no_evidence = self.features.score_without_evidence(weights)[queries.directed_relation]
            score = weights.rules * phi + no_evidence[query]
            score[best] = self.features.score(weights, filled, evidence, phi[best])
            default = weights.rules * default_phi + no_evidence
            new = replace(by_rules, score=score, default=default, temperature=weights.temperature)
            variant_scores.append(new)
        return variant_scores

    def contributions(
        self, queries: QueryTable, offsets: Indices, candidate: Ids,
        applied: scoring.AppliedRules | None = None,
    ) -> dict[str, Floats]:  # fmt: skip
        """Split the scores of the given candidates into parts by name, which add up to them."""
        by_rules = self.rule_scorer.score(queries, applied)
        filled = self.rule_scorer.fill_dates(queries)
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        scores = by_rules.of_candidates(offsets, candidate)
        phi = scores / by_rules.totals(self._n_entities)[query]
        has_features = np.isin(by_rules.indices_of(offsets, candidate), self._best(by_rules))
        evidence = self.features.gather(filled, offsets, candidate).restrict(has_features)
        parts = self.features.contributions(self._weights, filled, evidence, phi)
        together, rules = parts.pop("rules"), self.rule_scorer.split_rules_and_prior
        return {**rules(queries, offsets, candidate, scores, together), **parts}

    def attribute_scores(
        self, query: QueryTable, candidates: Sequence[int], applied: scoring.AppliedRules
    ) -> list[list[scoring.Contribution]]:
        """Split scores into contributions of rules, prior, and each feature with its evidence."""
        return [self._attribute_score(query, candidate, applied) for candidate in candidates]

    def _attribute_score(
        self, query: QueryTable, candidate: int, applied: scoring.AppliedRules
    ) -> list[scoring.Contribution]:
        entity, offsets = np.array([candidate], np.int32), np.array([0, 1])
        parts = self.contributions(query, offsets, entity, applied)
        by_rules = self.rule_scorer.score(query, applied)
        of_rules = self.rule_scorer.attribute_rules(query, candidate, applied, parts)
        if candidate not in by_rules.candidate[self._best(by_rules)]:
            scores = self.features.score_without_evidence(self._weights)
            score = float(scores[query.directed_relation[0]])
            rest = scoring.Contribution(
                scoring.Evidence(scoring.ReasonKind.REST), scoring.NOT_SCORED, score, _NO_FEATURES
            )
            return [*of_rules, rest] if score else of_rules
        filled = self.rule_scorer.fill_dates(query)
        return [*of_rules, *self._attribute_features(filled, candidate, parts)]

    def _attribute_features(
        self, query: QueryTable, candidate: int, parts: dict[str, Floats]
    ) -> Iterator[scoring.Contribution]:
        features, atoms = self.features, self.rule_scorer.walker.encoding.atoms
        gathered = features.gather(query, np.array([0, 1]), np.array([candidate], np.int32))
        dated, scores = features.piece_contributions(self._weights, query, gathered)
        walks = (features.graph, features.walked, features.max_length)
        find_facts = EvidenceTracer(*walks, query, candidate)

        def path(kind: int, relation: int, start: int | None) -> scoring.FactPath:
            """Return the facts, read from the query's subject where they lead to it."""
            steps = find_facts(kind, relation, start)
            if EVIDENCE_KINDS[kind] != EvidenceKind.BETWEEN:
                return steps
            return tuple((fact, not inverse) for fact, inverse in reversed(steps))

        def evidence(kind: int, relation: int, steps: scoring.FactPath) -> scoring.Evidence:
            if EVIDENCE_KINDS[kind] == EvidenceKind.OTHERS:
                return scoring.Evidence(scoring.ReasonKind.CANDIDATE, (atoms[relation],))
            if not steps:
                return scoring.Evidence(scoring.ReasonKind.CHAIN, (atoms[relation].converse,))
            relations = ((int(features.graph.relation[row]), inverse) for row, inverse in steps)
            chain = (atoms[relation + text.n * inverse] for relation, inverse in relations)
            return scoring.Evidence(scoring.ReasonKind.CHAIN, tuple(chain))

        text = _Text(features, int(query.directed_relation[0]))
        from_candidate = (text.relation + text.n) % (2 * text.n)
        for kind, recurring in enumerate(recurs(query, gathered)[0].tolist()):
            score = float(parts[f"recurrence_{EVIDENCE_KINDS[kind]}"][0])
            steps: scoring.FactPath = ()
            if recurring:
                same = (gathered.kind == kind) & (gathered.relation == from_candidate)
                (start,) = gathered.difference[same].tolist()
                steps = path(kind, from_candidate, None if start == UNDATED else start)
            shared = evidence(kind, from_candidate, steps), "recurrence", score
            find = scoring.only_path(steps) if steps else None
            words = text.recurrence(kind, recurring)
            yield scoring.Contribution(*shared, words, int(recurring), find_facts=find)
        rows = features.distributions.indices(dated.kind, dated.query_relation, dated.relation)
        for index, row in enumerate(rows.tolist()):
            kind, relation = int(dated.kind[index]), int(dated.relation[index])
            difference = int(dated.difference[index])
            steps = path(kind, relation, difference)
            source, find = evidence(kind, relation, steps), scoring.only_path(steps)
            for name, describe in (("order", text.order), ("pair", text.pair)):
                score, words = float(scores[name][index]), describe(kind, relation, row, difference)
                yield scoring.Contribution(source, name, score, words, 1, find_facts=find)

    def _best(self, by_rules: Scores) -> Indices:
        return top_indices(by_rules.offsets, by_rules.score, self.max_candidates)


class _Text(NamedTuple):
    """Sentences about the evidence for a candidate of a directed relation."""

    features: PaperFeatures
    relation: int

    @property
    def n(self) -> int:
        return len(self.features.graph.relations)

    def recurrence(self, kind: int, recurring: bool) -> str:
        """Say if the candidate has the relation again, and how many answers do."""
        probability = float(self.features.distributions.recurrence.probability[kind, self.relation])
        partner = _PARTNER[EvidenceKind(EVIDENCE_KINDS[kind])]
        count = "another" if recurring else "no other"
        fact = f"{count} {self._label(self.relation)} {partner}"
        return f"the candidate has {fact}; {percent(probability)} of answers have one"

    def order(self, kind: int, relation: int, row: int, difference: int) -> str:
        """Say which starts first, and how many do so."""
        later = float(self.features.distributions.order.probability[row])
        side, share = ("after", later) if difference > 0 else ("no later than", 1 - later)
        return f"{self._fact(kind, relation)} starts {side} the query; {percent(share)} do"

    def pair(self, kind: int, relation: int, row: int, difference: int) -> str:
        """Say how far apart the starts are, and how far they usually are."""
        usual = self.features.distributions.interval[row]
        length = (
            f"{usual.gaussian.mean:,.1f} ± {usual.gaussian.deviation:,.1f}"
            if usual.is_gaussian
            else f"{1 / usual.exponential.rate:,.1f} on average"
        )
        distance = "with"
        if difference:
            size = in_units(f"{abs(difference):,}", self.features.graph.unit)
            size = size.removesuffix("s") if abs(difference) == 1 else size
            distance = f"{size} {'after' if difference > 0 else 'before'}"
        return f"{self._fact(kind, relation)} starts {distance} the query; usual {length}"

    def _fact(self, kind: int, relation: int) -> str:
        name = self._label(relation)
        if relation % self.n == self.relation % self.n:
            name = f"another {name}"
        if EVIDENCE_KINDS[kind] == EvidenceKind.OTHERS:
            return f"{name} {'of' if relation < self.n else 'to'} the candidate"
        return f"{name} {_LOCATION[EvidenceKind(EVIDENCE_KINDS[kind])]}"

    def _label(self, relation: int) -> str:
        return self.features.graph.relations.label(relation % self.n)


def in_units(length: str, unit: Unit) -> str:
    """Return a length with the unit of time, if it has a name."""
    return length if unit is Unit.INTEGER else f"{length} {unit.value}s"

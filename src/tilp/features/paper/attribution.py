"""Contributions of the paper's features to a score, in words and with their facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tilp._utils.arrays import Floats
from tilp.features.describe import in_units, percent
from tilp.features.paper.distributions import recurs
from tilp.features.paper.evidence import EVIDENCE_KINDS, UNDATED, DatedEvidence, Evidence
from tilp.features.paper.features import PaperFeatures
from tilp.graph import QueryTable
from tilp.scoring.scorer import Contribution, FactPath
from tilp.types import EvidenceKind

_LOCATION = {
    EvidenceKind.BETWEEN: "between candidate and subject",
    EvidenceKind.WALKS: "on walks to the candidate",
}
_PARTNER = {EvidenceKind.BETWEEN: "with the subject", EvidenceKind.OTHERS: "with another entity"}

FindFacts = Callable[[int, int, int | None], tuple[tuple[int, bool], ...]]


def feature_contributions(
    features: PaperFeatures,
    query: QueryTable,
    evidence: Evidence,
    parts: dict[str, Floats],
    dated: DatedEvidence,
    scores: dict[str, Floats],
    find_facts: FindFacts,
) -> list[Contribution]:
    """Return the contributions of all features to the score of a candidate."""

    def path(kind: int, relation: int, difference: int | None) -> Callable[[int], list[FactPath]]:
        return lambda _: [FactPath(find_facts(kind, relation, difference))]

    text = _Text(features, int(query.directed_relation[0]))
    from_candidate = (text.relation + text.n) % (2 * text.n)
    contributions = []
    for kind, recurring in enumerate(recurs(query, evidence)[0].tolist()):
        score = float(parts[f"recurrence_{EVIDENCE_KINDS[kind]}"][0])
        closest = _closest(evidence, kind, from_candidate) if recurring else None
        find = path(kind, from_candidate, closest) if recurring else None
        words = text.recurrence(kind, recurring)
        contributions.append(
            Contribution(
                ("recurrence", kind), "recurrence", score, words, int(recurring), find_facts=find
            )
        )
    rows = features.distributions.indices(dated.kind, dated.query_relation, dated.relation)
    for index, row in enumerate(rows.tolist()):
        kind, relation = int(dated.kind[index]), int(dated.relation[index])
        difference = int(dated.difference[index])
        for feature, words in (
            ("order", text.order(kind, relation, row, difference)),
            ("pair", text.pair(kind, relation, row, difference)),
        ):
            key, find = (feature, kind, relation), path(kind, relation, difference)
            score = float(scores[feature][index])
            contributions.append(Contribution(key, feature, score, words, 1, find_facts=find))
    return contributions


def _closest(evidence: Evidence, kind: int, relation: int) -> int | None:
    """Return the difference of the fact by which a relation recurs; None if it has no time."""
    (row,) = np.flatnonzero((evidence.kind == kind) & (evidence.relation == relation))
    difference = int(evidence.difference[row])
    return None if difference == UNDATED else difference


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
        distance = self._distance(difference)
        return f"{self._fact(kind, relation)} starts {distance} the query; usual {length}"

    def _distance(self, difference: int) -> str:
        if not difference:
            return "with"
        size = in_units(f"{abs(difference):,}", self.features.graph.unit)
        if abs(difference) == 1:
            size = size.removesuffix("s")
        return f"{size} {'after' if difference > 0 else 'before'}"

    def _fact(self, kind: int, relation: int) -> str:
        name = self._label(relation)
        if relation % self.n == self.relation % self.n:
            name = f"another {name}"
        if EVIDENCE_KINDS[kind] == EvidenceKind.OTHERS:
            return f"{name} {'of' if relation < self.n else 'to'} the candidate"
        return f"{name} {_LOCATION[EvidenceKind(EVIDENCE_KINDS[kind])]}"

    def _label(self, relation: int) -> str:
        return self.features.graph.relations.label(relation % self.n)

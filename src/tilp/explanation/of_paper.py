"""Terms of the paper's temporal features: recurrence, order and pair interval (eq. 17-21)."""

from __future__ import annotations

import numpy as np

from tilp.choices import EvidenceKind
from tilp.explanation.parts import Reason
from tilp.explanation.terms import NOT_LOOKED_AT, Case, Ground, Term
from tilp.features.evidence import KINDS, UNDATED, Evidence
from tilp.features.fitted import FittedFeatures, recurs
from tilp.features.tracing import Tracer
from tilp.features.wording import in_units, percent
from tilp.ranking import PaperScorer

__all__ = ["paper_terms"]

_WHERE = {
    EvidenceKind.BETWEEN: "between candidate and subject",
    EvidenceKind.WALKS: "on walks to the candidate",
}
_WHOM = {EvidenceKind.BETWEEN: "with the subject", EvidenceKind.OTHERS: "with another entity"}


def paper_terms(case: Case, scorer: PaperScorer, added: dict[str, float]) -> list[Term]:
    """A term for each feature and piece of evidence.

    Args:
        case: what is asked.
        scorer: whose features are looked at.
        added: what each kind of feature adds, by name.
    """
    if not scorer.looks_at(case.queries, case.applied, case.candidate):
        words = "rules rank it too low for features to be looked at; it counts as without evidence"
        score = scorer.without_evidence(case.queries)
        return [Term((NOT_LOOKED_AT,), Reason(NOT_LOOKED_AT, score, words))]
    settled = scorer.rules.settled(case.queries)
    tracer = Tracer(scorer.features, settled, case.candidate)

    def ground(kind: int, relation: int, difference: int | None) -> Ground:
        return lambda _: (case.walked(tracer(kind, relation, difference)),)

    fitted = scorer.features.fitted
    evidence, dated, of_pieces = scorer.pieces(case.queries, case.candidate)
    terms = []
    n_relations = len(case.graph.relations)
    asked = (case.head + n_relations) % (2 * n_relations)
    again = recurs(settled, evidence)[0]
    for kind, recurring in enumerate(again.tolist()):
        probability = float(fitted.recurrence.probability[kind, case.head])
        words = _recurs(case, kind, recurring, probability)
        reason = Reason("recurrence", added[f"recurrence_{KINDS[kind]}"], words, walks=recurring)
        grounded = ground(kind, asked, _closest(evidence, kind, asked)) if recurring else None
        terms.append(Term(("recurrence", kind), reason, grounded))
    places = fitted.places(dated.kind, dated.head, dated.relation)
    for number, place in enumerate(places.tolist()):
        kind, relation = int(dated.kind[number]), int(dated.relation[number])
        apart = int(dated.difference[number])
        for feature, words in (
            ("order", _order(case, fitted, kind, relation, place, apart)),
            ("pair", _pair(case, fitted, kind, relation, place, apart)),
        ):
            reason = Reason(feature, float(of_pieces[feature][number]), words, walks=1)
            grounded = ground(kind, relation, apart)
            terms.append(Term((feature, kind, relation), reason, grounded))
    return terms


def _closest(evidence: Evidence, kind: int, relation: int) -> int | None:
    """The difference of the fact by which a relation recurs; None where it has no time."""
    (place,) = np.flatnonzero((evidence.kind == kind) & (evidence.relation == relation))
    difference = int(evidence.difference[place])
    return None if difference == UNDATED else difference


def _recurs(case: Case, kind: int, recurring: bool, probability: float) -> str:
    relation, whom = case.relation(case.head), _WHOM[EvidenceKind(KINDS[kind])]
    has = f"the candidate has {'another' if recurring else 'no other'} {relation} {whom}"
    return f"{has}; {percent(probability)} of answers have one"


def _order(
    case: Case, fitted: FittedFeatures, kind: int, relation: int, place: int, apart: int
) -> str:
    later = float(fitted.order.probability[place])
    side, share = ("after", later) if apart > 0 else ("no later than", 1 - later)
    return f"{_named(case, kind, relation)} starts {side} the query; {percent(share)} do"


def _pair(
    case: Case, fitted: FittedFeatures, kind: int, relation: int, place: int, apart: int
) -> str:
    usual = fitted.interval[place]
    length = (
        f"{usual.gaussian.mean:,.1f} ± {usual.gaussian.deviation:,.1f}"
        if usual.is_gaussian
        else f"{1 / usual.exponential.rate:,.1f} on average"
    )
    return f"{_named(case, kind, relation)} starts {_away(case, apart)} the query; usual {length}"


def _away(case: Case, apart: int) -> str:
    if not apart:
        return "with"
    size = in_units(f"{abs(apart):,}", case.graph.unit)
    if abs(apart) == 1:
        size = size.removesuffix("s")
    return f"{size} {'after' if apart > 0 else 'before'}"


def _named(case: Case, kind: int, relation: int) -> str:
    name = case.relation(relation)
    if relation % len(case.graph.relations) == case.head % len(case.graph.relations):
        name = f"another {name}"
    if KINDS[kind] == EvidenceKind.OTHERS:
        return f"{name} {'of' if relation < len(case.graph.relations) else 'to'} the candidate"
    return f"{name} {_WHERE[EvidenceKind(KINDS[kind])]}"

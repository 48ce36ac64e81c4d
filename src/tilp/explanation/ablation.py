"""How far a score falls without the facts of its top grounding."""

from __future__ import annotations

from collections.abc import Iterable

from tilp.explanation.types import AblationEffect, ExplainedQuery, Grounding, Reason
from tilp.scoring import Scorer


def top_grounding(reasons: Iterable[Reason]) -> tuple[Grounding, float] | None:
    """The grounding on whose facts most of a score hangs by plain shares, and how much that is.

    A walk adds what its reason adds, divided by the number of the reason's walks; where these have
    chances rather than a number, in proportion to its own. What groundings of the same facts add,
    whichever way they are walked and of whichever reasons, is added up, and the largest sum wins;
    of equal ones the first. Only what is listed counts: a walk that a reason has but does not list
    adds nothing.

    Returns:
        None where no grounding speaks for the candidate.
    """
    hangs: dict[frozenset[int], float] = {}
    first: dict[frozenset[int], Grounding] = {}
    for reason in reasons:
        for grounding in reason.groundings:
            facts = grounding.facts
            hangs[facts] = hangs.get(facts, 0.0) + reason.score * grounding.share_of(reason.walks)
            first.setdefault(facts, grounding)
    if not hangs:
        return None
    facts = max(hangs, key=lambda one: hangs[one])
    return (first[facts], hangs[facts]) if hangs[facts] > 0 else None


def ablation_effect(
    scorer: Scorer,
    case: ExplainedQuery,
    score: float,
    reasons: Iterable[Reason],
) -> AblationEffect | None:
    """How far a candidate's score falls without the facts of its top grounding.

    The score is computed anew on the evidence that is left: other walks, their numbers, the prior
    and what is nearest in time change too.

    Args:
        scorer: of any kind of model.
        case: what was asked, and the candidate.
        score: of the candidate.
        reasons: for it, with their groundings.
    """
    top = top_grounding(reasons)
    if top is None:
        return None
    grounding, hangs = top
    terms = scorer.without(grounding.facts).contributions(case.queries, *case.listed)
    left = sum(float(term[0]) for term in terms.values())
    return AblationEffect(grounding, hangs / score if score > 0 else 0.0, left, score - left)

"""Ablation: the effect on a score of removing the facts of its top grounding."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tilp.explanation.types import AblationEffect, Grounding, Reason
from tilp.graph import QueryTable
from tilp.scoring import Scorer


def top_grounding(reasons: Iterable[Reason]) -> tuple[Grounding, float] | None:
    """Return the grounding to whose facts most of a score is attributed, and how much that is.

    A walk has an equal share of its reason's score, or a share in proportion to its probability
    where walks have one. Shares of groundings with the same facts are added up, in whichever
    order and for whichever reason the facts are walked; of equal sums the first wins. Walks that
    a reason does not list count nothing.

    Returns:
        None if no grounding has a positive sum.
    """
    attributed: dict[frozenset[int], float] = {}
    first: dict[frozenset[int], Grounding] = {}
    for reason in reasons:
        for grounding in reason.groundings:
            facts = grounding.facts
            share = reason.score * grounding.share_of(reason.walks)
            attributed[facts] = attributed.get(facts, 0.0) + share
            first.setdefault(facts, grounding)
    if not attributed:
        return None
    facts = max(attributed, key=attributed.__getitem__)
    return (first[facts], attributed[facts]) if attributed[facts] > 0 else None


def ablation_effect(
    scorer: Scorer, query: QueryTable, candidate: int, score: float, reasons: Iterable[Reason]
) -> AblationEffect | None:
    """Score a candidate again without the facts of its top grounding.

    Everything is computed on the evidence that is left: other walks and their counts, the prior,
    and the facts that are nearest in time change too.
    """
    top = top_grounding(reasons)
    if top is None:
        return None
    grounding, attributed = top
    parts = scorer.without(grounding.facts).contributions(
        query, np.array([0, 1]), np.array([candidate], np.int32)
    )
    left = sum(float(part[0]) for part in parts.values())
    share = attributed / score if score > 0 else 0.0
    return AblationEffect(grounding, share, left, score - left)

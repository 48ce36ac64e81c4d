"""Pictures for what explanations tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilp.explanation import Explanation, Grounding
from tilp.explanation.pictures import draw_grounding

__all__ = ["add_pictures"]


def add_pictures(one: Explanation, told: dict[str, Any]) -> None:
    """Give every grounding of an explanation its picture, as `svg`.

    Args:
        one: the explanation.
        told: what its `to_json` gave.
    """

    def draw(groundings: Iterable[Grounding], shown: list[dict[str, Any]], speaks_for: str) -> None:
        for grounding, place in zip(groundings, shown, strict=True):
            place["svg"] = draw_grounding(grounding, one.query, speaks_for)

    for reason, place in zip(one.shown, told["reasons"], strict=True):
        draw(reason.groundings, place["groundings"], one.candidate)
    for lack, place in zip(one.shown_lacks, told["lacks"], strict=True):
        speaks_for = one.winner if lack.winner else one.candidate
        draw(lack.reason.groundings, place["reason"]["groundings"], speaks_for)
    if one.fall is not None:
        draw([one.fall.grounding], [told["fall"]["grounding"]], one.candidate)

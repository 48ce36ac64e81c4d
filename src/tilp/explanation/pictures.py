"""`draw_grounding`: the dated facts behind a reason, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from tilp.choices import Unit
from tilp.explanation.parts import Grounding, WalkedFact
from tilp.ranking import Query
from tilp.viz import Chain, Link, draw_chain

__all__ = ["draw_grounding"]


def draw_grounding(grounding: Grounding, query: Query, candidate: str) -> str:
    """A picture of a grounding, as SVG.

    Args:
        grounding: a walk from the query's subject (or the object, where that is given) to the
            candidate; or a fact that one of these two has.
        query: as it was asked.
        candidate: the answer that the grounding speaks for.
    """
    unit = grounding.steps[0].fact.unit if grounding.steps else Unit.YEAR
    asked = query.interval(unit)
    nodes, steps, ends = _laid_out(grounding.steps, query.given, candidate)
    numbers = count(1)
    links = tuple(
        None
        if step is None
        else Link.dated(
            step.fact.relation,
            step.fact.interval,
            unit,
            asked,
            inverse=step.inverse,
            mark=str(next(numbers)),
        )
        for step in steps
    )
    inverse = query.subject != query.given
    head = Link.dated(query.relation, asked, unit, None, inverse=inverse, mark="?")
    return draw_chain(Chain(tuple(nodes), links, head, ends, unit))


def _laid_out(
    steps: Sequence[WalkedFact], given: str, candidate: str
) -> tuple[list[str], list[WalkedFact | None], tuple[int, int]]:
    """Names in a row, the facts between them, and the places of what is given and asked for."""
    path = [step.source for step in steps[:1]] + [step.target for step in steps]
    walked: list[WalkedFact | None] = list(steps)
    if path and path[-1] == candidate:
        # What is given may be told by its id, but a walk to the candidate begins there.
        return path, walked, (0, len(steps))
    if path and (path[0], path[-1]) == (candidate, given):
        back = [replace(step, inverse=not step.inverse) for step in reversed(steps)]
        return path[::-1], [*back], (0, len(steps))
    if not path:
        return [given, candidate], [None], (0, 1)
    if path[0] != given:
        path, walked = [given, *path], [None, *walked]
    if candidate not in path[1:]:
        path, walked = [*path, candidate], [*walked, None]
    return path, walked, (0, path.index(candidate, 1))

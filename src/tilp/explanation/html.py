"""Explanations as HTML, for notebooks and as a page of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilp.explanation.parts import Explanation, Grounding
from tilp.explanation.pictures import draw_grounding
from tilp.explanation.text import (
    Line,
    fall_text,
    grounding_text,
    lack_lines,
    reason_lines,
    standing,
)
from tilp.ranking import Query
from tilp.viz.html import Markup, bar, element, fragment, page

__all__ = ["explanation_html", "explanation_page"]


def explanation_html(one: Explanation) -> str:
    """What stands within a page or a notebook."""
    return fragment(*_parts(one))


def explanation_page(one: Explanation) -> str:
    """A page of its own, which needs nothing else."""
    return page(f"{one.query}: why {one.candidate}?", *_parts(one))


def _parts(one: Explanation) -> Iterator[Markup]:
    yield element("h2", f"Why {one.candidate}?")
    yield element("p", str(one.query))
    yield element("p", standing(one), class_="tilp-soft")
    yield element("h3", "Reasons, which add up to the score")
    yield from _reasons(one.query, list(reason_lines(one)), opened=1)
    if one.fall is not None:
        yield element("h3", "Without the facts of the top grounding")
        yield element("p", fall_text(one.fall))
        yield _figure(one.fall.grounding, one.query, one.candidate)
    if one.lacks:
        yield element("h3", f"What {one.winner} has more than {one.candidate}")
        yield from _reasons(one.query, list(lack_lines(one)), opened=0)


def _reasons(query: Query, lines: Sequence[Line], opened: int) -> Iterator[Markup]:
    """Reasons with their bars, the first few with their facts in sight."""
    scores = [0.0, *(line.score for line in lines)]
    for number, line in enumerate(lines):
        row = element(
            "span",
            bar(line.score, min(scores), max(scores)),
            element("span", f"{line.score:+.4f}", class_="tilp-number"),
            element("span", line.words),
            class_="tilp-row",
        )
        inner = list(_behind(query, line))
        if inner:
            opening = {"open": None} if number < opened else {}
            box = element("div", *inner, class_="tilp-inner")
            row = element("details", element("summary", row), box, **opening)
        yield element("div", row, class_="tilp-reason")


def _behind(query: Query, line: Line) -> Iterator[Markup]:
    """What was counted of a reason, and the facts behind it."""
    groundings = () if line.reason is None else line.reason.groundings
    captions = [grounding_text(one) for one in groundings]
    for note in line.notes:
        if note in captions:
            yield _figure(groundings[captions.index(note)], query, line.whom, note)
        else:
            yield element("p", note, class_="tilp-soft")


def _figure(grounding: Grounding, query: Query, candidate: str, caption: str = "") -> Markup:
    picture = Markup(draw_grounding(grounding, query, candidate))
    return element("figure", *([element("figcaption", caption)] if caption else []), picture)

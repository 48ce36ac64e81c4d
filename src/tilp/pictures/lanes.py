"""Intervals on a time axis, one lane each, with the one asked for across all of them."""

from __future__ import annotations

from collections.abc import Sequence

from tilp.pictures.axis import TICK_SIZE, Axis
from tilp.pictures.bars import FADE, Bars
from tilp.pictures.colours import colour
from tilp.pictures.labels import clean, wrap
from tilp.pictures.parts import Link
from tilp.pictures.svg import Drawing
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, Interval, TemporalRelation
from tilp.types import Unit

__all__ = ["draw_badge", "draw_lanes"]

_SIZE, _SMALL = 12.0, 10.5
_HEIGHT = 34.0
_NAMES, _WORDS = 178.0, 98.0  # room for names on the left, and for words on the right
_MARGIN = 12.0
_BADGE = 16.0
_SIGNS = {
    TemporalRelation.BEFORE: "←",
    TemporalRelation.TOUCHING: "↔",
    TemporalRelation.AFTER: "→",
}


def draw_lanes(
    drawing: Drawing,
    top: float,
    width: float,
    links: Sequence[tuple[Link, str]],
    asked: Link,
    unit: Unit | None,
) -> float:
    """Draw the intervals of links, and of the one asked for below them.

    Args:
        drawing: where to.
        top: where the lanes begin.
        width: of the drawing.
        links: each with its colour.
        asked: the link asked for.
        unit: of time; None: only the order of times is shown.

    Returns:
        Where they end.
    """
    intervals = [link.interval for link, _ in links] + [asked.interval]
    axis = _axis([one for one in intervals if one is not None], unit, width)
    bars = Bars(drawing, axis, asked.interval)
    bottom = top + len(intervals) * _HEIGHT
    bars.draw_band(top, bottom - top)
    for x, _ in axis.ticks:
        drawing.line([(x, top), (x, bottom)], colour("line"), 1.0, stroke_dasharray="1 3")
    for number, (link, fill) in enumerate([*links, (asked, colour("ink"))]):
        middle = top + (number + 0.5) * _HEIGHT
        drawing.line([(axis.left, middle), (axis.right, middle)], colour("line"), 1.0)
        is_asked = number == len(links)
        _draw_names(drawing, middle, link, fill, hollow=is_asked)
        _draw_word(drawing, axis.right + 10, middle, link)
        # Where only an order is shown, a place to which nothing holds an interval says nothing.
        loose = unit is None and link.relation is None and asked.interval is not None
        bars.draw(middle, link.interval, fill, link.relation, hollow=loose and not is_asked)
    for x in axis.breaks:
        drawing.rect(x - 2, top, 4, bottom - top, colour("paper"))
    _draw_axis(drawing, axis, bottom)
    return bottom + 22


def draw_badge(drawing: Drawing, x: float, y: float, mark: str, fill: str, hollow: bool) -> None:
    """The sign by which an edge and its lane belong together."""
    wide = _BADGE + 6.5 * max(len(mark) - 1, 0)
    drawing.rect(
        x - wide / 2,
        y - _BADGE / 2,
        wide,
        _BADGE,
        colour("paper") if hollow else fill,
        rx=_BADGE / 2,
        stroke=fill,
        stroke_width=1.5,
        **({"stroke_dasharray": "3 2"} if hollow else {}),
    )
    ink = fill if hollow else colour("paper")
    drawing.text(x, y + 4, [mark], 11, fill=ink, text_anchor="middle", font_weight=600)


def _axis(intervals: Sequence[Interval], unit: Unit | None, width: float) -> Axis:
    left, right = _NAMES, width - _WORDS
    if unit is None:
        return Axis.of_order(intervals, left, right, _MARGIN)
    sides = {UNKNOWN, OPEN_START, OPEN_END}
    fading = any({one.start, one.end} & sides for one in intervals)
    return Axis.of_dates(intervals, unit, left, right, _MARGIN + FADE * fading)


def _draw_names(drawing: Drawing, middle: float, link: Link, fill: str, *, hollow: bool) -> None:
    draw_badge(drawing, 14, middle, link.mark, fill, hollow)
    room = _NAMES - 38
    y = middle - 2 if link.detail else middle + 4
    drawing.label(30, y, link.label, room, _SIZE, font_weight=500)
    drawing.label(30, middle + 11, link.detail, room, _SMALL, fill=colour("soft"))


def _draw_word(drawing: Drawing, x: float, middle: float, link: Link) -> None:
    if link.relation is not None:
        drawing.text(x, middle + 4, [_SIGNS[link.relation]], _SIZE, font_weight=600)
    words = wrap(clean(link.word), _WORDS - 28, _SMALL)
    y = middle + 4 - (len(words) - 1) * 6
    drawing.text(x + 17, y, words, _SMALL, full=link.word)


def _draw_axis(drawing: Drawing, axis: Axis, y: float) -> None:
    soft = colour("soft")
    drawing.line([(axis.left, y), (axis.right, y)], soft, 1.0)
    drawing.arrowhead(axis.right + 6, y, (1, 0), soft, 6)
    for x in axis.breaks:
        drawing.line([(x - 3, y), (x + 3, y)], colour("paper"), 4.0)
        for shift in (-3, 3):
            drawing.line([(x + shift - 2, y + 5), (x + shift + 2, y - 5)], soft, 1.2)
    for x, date in axis.ticks:
        drawing.line([(x, y), (x, y + 4)], soft, 1.0)
        drawing.text(x, y + 16, [date], TICK_SIZE, fill=soft, text_anchor="middle")
    if not axis.ticks:
        text = "time: one arrangement that fits" if axis.knots else "no date is known"
        middle = (axis.left + axis.right) / 2
        drawing.text(middle, y + 16, [text], TICK_SIZE, fill=soft, text_anchor="middle")

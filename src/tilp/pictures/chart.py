"""Charts as SVG: lines with error bars, and bars side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilp.pictures.scales import Scale, short_number
from tilp.viz.labels import text_width
from tilp.viz.svg import Drawing, colour, series

__all__ = ["Bars", "Line", "Point", "draw_bars", "draw_lines"]

_WIDTH = 640.0
_LEFT, _RIGHT = 62.0, 18.0
_SIZE = 12.0
_TICK = 10.5
_TALL = 250.0
_COLOURS = 5
_DASHES = ("", "7 4", "2 3")  # past the last colour, lines are told apart by these
_BAR, _BETWEEN, _GROUP = 12.0, 2.0, 14.0
_LABELS = 190.0


@dataclass(frozen=True, slots=True)
class Point:
    """A value, and how far it was seen to lie from its mean."""

    x: float
    y: float
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """A series of points.

    Attributes:
        name: in the legend; empty: it is not in it.
        points: from left to right.
        like: the number of the line whose colour it has; its own, where None.
        faint: whether it is no measurement, but what is expected of one.
    """

    name: str
    points: tuple[Point, ...]
    like: int | None = None
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """One bar in each group.

    Attributes:
        name: in the legend.
        values: of each group; None for no bar.
    """

    name: str
    values: tuple[Point | None, ...]


def draw_lines(
    title: str,
    lines: Sequence[Line],
    x_name: str,
    y_name: str,
    *,
    x_log: bool = False,
    y_log: bool = False,
) -> str:
    """Lines over a scale.

    Args:
        title: for who cannot see it.
        lines: with their points.
        x_name: below the chart.
        y_name: above it.
        x_log: whether equal steps to the right are equal ratios.
        y_log: likewise upwards.
    """
    points = [point for line in lines for point in line.points]
    drawing = Drawing(_WIDTH, title, _told(lines))
    top = _legend(drawing, [line.name for line in lines], [_look(*one) for one in enumerate(lines)])
    top += 32
    bottom = top + _TALL
    ys = [point.y + sign * point.spread for point in points for sign in (-1, 1)]
    x = _scale([point.x for point in points], _LEFT, _WIDTH - _RIGHT, log=x_log, zero=False)
    y = _scale(ys, bottom, top, log=y_log, zero=True)
    drawing.text(_LEFT, top - 10, [y_name], _SIZE, fill=colour("soft"))
    for tick in y.ticks:
        at = y.place(tick)
        drawing.line([(_LEFT, at), (_WIDTH - _RIGHT, at)], colour("line"), 1)
        words = [short_number(tick)]
        drawing.text(_LEFT - 8, at + 4, words, _TICK, fill=colour("soft"), text_anchor="end")
    # Where points are few, they are what is written; no date falls between them.
    distinct = sorted({point.x for point in points})
    for tick in _apart(distinct if len(distinct) <= 8 else list(x.ticks), x):
        at = x.place(tick)
        drawing.line([(at, bottom), (at, bottom + 4)], colour("soft"), 1)
        drawing.text(
            at, bottom + 17, [short_number(tick)], _TICK, fill=colour("soft"), text_anchor="middle"
        )
    drawing.text(
        _WIDTH - _RIGHT, bottom + 34, [x_name], _SIZE, fill=colour("soft"), text_anchor="end"
    )
    for number, line in enumerate(lines):
        _draw_line(drawing, line, *_look(number, line), x, y)
    return drawing.finish(bottom + 42)


def draw_bars(title: str, groups: Sequence[str], bars: Sequence[Bars], x_name: str) -> str:
    """Bars from zero to the right, or to the left where they are negative, in groups.

    Args:
        title: for who cannot see it.
        groups: their names.
        bars: one in each group.
        x_name: below the chart.
    """
    drawing = Drawing(_WIDTH, title, x_name)
    looks = [(series(number), "") for number in range(len(bars))]
    top = _legend(drawing, [one.name for one in bars], looks) + 10
    each = len(bars) * (_BAR + _BETWEEN) + _GROUP
    bottom = top + each * len(groups)
    ends = [
        value.y + sign * value.spread
        for one in bars
        for value in one.values
        if value is not None
        for sign in (-1, 1)
    ]
    x = Scale.even(ends, _LABELS, _WIDTH - _RIGHT - 30, zero=True)
    for tick in x.ticks:
        at = x.place(tick)
        drawing.line([(at, top), (at, bottom)], colour("line" if tick else "soft"), 1)
        drawing.text(
            at, bottom + 16, [short_number(tick)], _TICK, fill=colour("soft"), text_anchor="middle"
        )
    for place, group in enumerate(groups):
        begin = top + place * each + _GROUP / 2
        middle = begin + (each - _GROUP) / 2 + 4
        drawing.label(_LABELS - 12, middle, group, _LABELS - 16, _SIZE, text_anchor="end")
        for number, one in enumerate(bars):
            value = one.values[place]
            if value is not None:
                _draw_bar(drawing, value, begin + number * (_BAR + _BETWEEN), series(number), x)
    drawing.text(
        _WIDTH - _RIGHT, bottom + 34, [x_name], _SIZE, fill=colour("soft"), text_anchor="end"
    )
    return drawing.finish(bottom + 42)


def _draw_bar(drawing: Drawing, value: Point, y: float, fill: str, x: Scale) -> None:
    zero, end = x.place(0.0), x.place(value.y)
    width = max(abs(end - zero), 1.0)
    drawing.rect(min(zero, end), y, width, _BAR, fill, rx=1.5)
    tip = end
    if value.spread:
        low, high = x.place(value.y - value.spread), x.place(value.y + value.spread)
        middle = y + _BAR / 2
        drawing.line([(low, middle), (high, middle)], colour("ink"), 1.2)
        for at in (low, high):
            drawing.line([(at, middle - 3), (at, middle + 3)], colour("ink"), 1.2)
        tip = low if value.y < 0 else high
    side = -1 if value.y < 0 else 1
    drawing.text(
        tip + 5 * side,
        y + _BAR - 2.5,
        [short_number(round(value.y, 3))],
        9.5,
        fill=colour("soft"),
        text_anchor="end" if value.y < 0 else "start",
    )


def _draw_line(drawing: Drawing, line: Line, stroke: str, dashes: str, x: Scale, y: Scale) -> None:
    places = [(x.place(point.x), y.place(point.y)) for point in line.points]
    dashed = {"stroke_dasharray": dashes} if dashes else {}
    if line.faint:
        drawing.line(places, stroke, 1.2, opacity=0.65, **dashed)
        return
    if len(places) > 1:
        drawing.line(places, stroke, 2, **dashed)
    for point, (at, high) in zip(line.points, places, strict=True):
        if point.spread:
            ends = [(at, y.place(point.y + sign * point.spread)) for sign in (-1, 1)]
            drawing.line(ends, stroke, 1.4)
            for _, end in ends:
                drawing.line([(at - 3.5, end), (at + 3.5, end)], stroke, 1.4)
        drawing.circle(at, high, 3.4, stroke)


def _look(number: int, line: Line) -> tuple[str, str]:
    """The colour and the dashes of a line."""
    place = number if line.like is None else line.like
    dashes = "3 4" if line.faint else _DASHES[place // _COLOURS % len(_DASHES)]
    return series(place), dashes


def _legend(drawing: Drawing, names: Sequence[str], looks: Sequence[tuple[str, str]]) -> float:
    """The names with their colours, in rows; gives where the last row ends."""
    x, y = 4.0, 16.0
    for name, (stroke, dashes) in zip(names, looks, strict=True):
        if not name:
            continue
        width = 24 + text_width(name, _SIZE) + 16
        if x + width > _WIDTH and x > 4.0:
            x, y = 4.0, y + 19
        dashed = {"stroke_dasharray": dashes} if dashes else {}
        drawing.line([(x, y - 4), (x + 18, y - 4)], stroke, 3, **dashed)
        drawing.label(x + 24, y, name, _WIDTH - x - 24, _SIZE)
        x += width
    return y


def _scale(values: list[float], begin: float, end: float, *, log: bool, zero: bool) -> Scale:
    if log:
        return Scale.ratios(values, begin, end)
    return Scale.even(values, begin, end, zero=zero)


def _apart(ticks: Sequence[float], x: Scale) -> list[float]:
    """Those that have room for their text, the first and the last rather than others."""
    kept: list[float] = []
    for tick in [ticks[0], ticks[-1], *ticks[1:-1]] if len(ticks) > 1 else ticks:
        half = text_width(short_number(tick), _TICK) / 2 + 4
        if all(
            abs(x.place(tick) - x.place(other))
            > half + text_width(short_number(other), _TICK) / 2 + 4
            for other in kept
        ):
            kept.append(tick)
    return sorted(kept)


def _told(lines: Sequence[Line]) -> str:
    """The points in words, for who cannot see them."""
    return "; ".join(
        f"{line.name}: "
        + ", ".join(f"{short_number(one.x)} {short_number(one.y)}" for one in line.points)
        for line in lines
        if not line.faint
    )

"""One interval on a time axis: a bar, a dot, or as much of it as is known."""

from __future__ import annotations

from dataclasses import dataclass

from tilp.pictures.axis import Axis, known_times
from tilp.pictures.colours import colour
from tilp.pictures.svg import Drawing
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, Interval, TemporalRelation

__all__ = ["FADE", "Bars"]

FADE = 40.0
"""How far an end of which nothing is known fades out."""

_THIN, _THICK = 8.0, 16.0
_POINT, _LARGE_POINT = 5.0, 7.0
_LEAST = 4.0  # what an interval takes at least, so that it can be seen
_PIECES = 5  # of what fades out
_SIZE = 12.0

Core = tuple[int, int]


@dataclass(frozen=True)
class Bars:
    """Draws intervals, and how they lie to the one asked for.

    Attributes:
        drawing: where to.
        axis: of time.
        asked: the interval asked for; None where nothing is said of it.
    """

    drawing: Drawing
    axis: Axis
    asked: Interval | None

    def draw_band(self, top: float, tall: float) -> None:
        """The interval asked for, behind all others."""
        core = _core(self.asked)
        if core is None or self.asked is None:
            return
        first, last = self._stretch(core, least=_LEAST + 2)
        self.drawing.rect(first, top, last - first, tall, colour("band"))
        if self.asked.start == UNKNOWN:
            self._fade(first, -1, top, tall, colour("band"), FADE / _PIECES)
        if self.asked.end == UNKNOWN:
            self._fade(last, 1, top, tall, colour("band"), FADE / _PIECES)

    def draw(
        self,
        middle: float,
        interval: Interval | None,
        fill: str,
        relation: TemporalRelation | None = None,
        *,
        hollow: bool = False,
    ) -> None:
        """Draw one interval.

        Args:
            middle: the height of its lane.
            interval: None if nothing is said of it.
            fill: its colour.
            relation: how it lies to the one asked for: what they share is thick, what lies
                between them is dotted.
            hollow: whether it is there only to show the order of others.
        """
        axis, core = self.axis, _core(interval)
        if interval is None:
            self._outline(axis.left + 4, axis.right - 4, middle, fill)
        elif core is None:
            self._draw_unknown(middle, fill)
            self._draw_open(middle, interval, fill)
        elif hollow:
            self._outline(*self._stretch(core, _LEAST), middle, fill)
        else:
            self._draw_known(middle, interval, core, fill, relation)
            self._draw_open(middle, interval, fill)

    def _draw_known(
        self,
        middle: float,
        interval: Interval,
        core: Core,
        fill: str,
        relation: TemporalRelation | None,
    ) -> None:
        first, last = self._stretch(core, _LEAST)
        high = middle - _THIN / 2
        if interval.start == UNKNOWN:
            self._doubt(first, -1, middle, fill)
        if interval.end == UNKNOWN:
            self._doubt(last, 1, middle, fill)
        other = _core(self.asked)
        if interval.is_point and known_times([interval]):
            large = relation is TemporalRelation.TOUCHING
            radius = _LARGE_POINT if large else _POINT
            self.drawing.circle((first + last) / 2, middle, radius, fill)
        else:
            self.drawing.rect(first, high, last - first, _THIN, fill, rx=2)
            if other is not None and relation is TemporalRelation.TOUCHING:
                self._draw_shared(middle, core, other, fill)
        if other is not None and relation in (TemporalRelation.BEFORE, TemporalRelation.AFTER):
            before = relation is TemporalRelation.BEFORE
            times = (core[1], other[0]) if before else (other[1], core[0])
            points = [(self.axis.x(time), middle) for time in times]
            self.drawing.line(points, fill, 1.5, stroke_dasharray="2 3")

    def _draw_shared(self, middle: float, core: Core, other: Core, fill: str) -> None:
        shared = max(core[0], other[0]), min(core[1], other[1])
        if shared[0] <= shared[1]:
            first, last = self._stretch(shared, _LEAST)
            self.drawing.rect(first, middle - _THICK / 2, last - first, _THICK, fill, rx=2)

    def _draw_unknown(self, middle: float, fill: str) -> None:
        axis = self.axis
        width = axis.right - axis.left
        self.drawing.rect(axis.left, middle - _THIN / 2, width, _THIN, fill, opacity=0.18, rx=2)
        self._question(axis.left + width / 2, middle, fill)

    def _draw_open(self, middle: float, interval: Interval, fill: str) -> None:
        times = interval.start, interval.end
        if OPEN_START in times:
            self.drawing.arrowhead(self.axis.left - 4, middle, (-1, 0), fill, 14)
        if OPEN_END in times:
            self.drawing.arrowhead(self.axis.right + 4, middle, (1, 0), fill, 14)

    def _outline(self, first: float, last: float, middle: float, fill: str) -> None:
        self.drawing.rect(
            first,
            middle - _THIN / 2,
            last - first,
            _THIN,
            colour("paper"),
            rx=2,
            stroke=fill,
            stroke_width=1.2,
            stroke_dasharray="3 3",
        )

    def _doubt(self, x: float, side: int, middle: float, fill: str) -> None:
        piece = FADE / (_PIECES + 1)
        self._fade(x, side, middle - _THIN / 2, _THIN, fill, piece)
        self._question(x + side * (FADE - piece / 2), middle, fill)

    def _fade(self, x: float, side: int, top: float, tall: float, fill: str, piece: float) -> None:
        for step in range(_PIECES):
            near = x + side * piece * step
            pale = 0.75 * (1 - step / _PIECES)
            self.drawing.rect(min(near, near + side * piece), top, piece, tall, fill, opacity=pale)

    def _question(self, x: float, middle: float, fill: str) -> None:
        self.drawing.text(
            x, middle + 4, ["?"], _SIZE, fill=fill, text_anchor="middle", font_weight=700
        )

    def _stretch(self, core: Core, least: float) -> tuple[float, float]:
        first, last = self.axis.x(core[0]), self.axis.x(core[1])
        short = max(least - (last - first), 0.0) / 2
        return first - short, last + short


def _core(interval: Interval | None) -> Core | None:
    """The part of an interval that is certain: all of it, or the end that is known."""
    if interval is None or not (interval.is_known or known_times([interval])):
        return None
    start = interval.end if interval.start == UNKNOWN else interval.start
    end = interval.start if interval.end == UNKNOWN else interval.end
    return start, end

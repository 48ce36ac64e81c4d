"""Draw a chain of links as a small graph, with their intervals on a time axis below it."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from typing import Any, Self

from tilp.time.dates import OPEN_END, OPEN_START, UNKNOWN, format_time
from tilp.time.interval import Interval
from tilp.time.relations import TemporalRelation, possible_relations, temporal_relation
from tilp.types import Unit
from tilp.viz.svg import Drawing, clean, colour, series, shorten, text_width, wrap

TICK_SIZE = 10.5  # of dates and other small text
_TICK_GAP = 16.0
_SIDES = frozenset({UNKNOWN, OPEN_START, OPEN_END})

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Axis:
    """A map from times to positions between left and right."""

    left: float
    right: float
    knots: tuple[tuple[int, float], ...] = ()  # ascending times and positions; linear in between
    ticks: tuple[tuple[float, str], ...] = ()  # positions of known times, and their dates

    @classmethod
    def of_times(
        cls, intervals: Iterable[Interval], left: float, right: float, pad: float,
        unit: Unit | None = None,
    ) -> Self:  # fmt: skip
        """Make an axis of the known times of intervals, with dates below it if there is a unit.

        Long times take little more room than short ones, so that both can be seen.
        """
        times = known_times(intervals)
        steps = [0.0]
        for time, following in pairwise(times):
            steps.append(steps[-1] + 1 + log2(following - time))
        first, scale = (left + right) / 2, 0.0
        if len(times) > 1:
            first, scale = left + pad, (right - left - 2 * pad) / steps[-1]
        knots = [(time, first + scale * at) for time, at in zip(times, steps, strict=False)]
        ticks = [] if unit is None else _apart((x, format_time(time, unit)) for time, x in knots)
        return cls(left, right, tuple(knots), tuple(ticks))

    def x(self, time: int) -> float:
        """Return the position of a time; open ends are at the sides."""
        if time == OPEN_START:
            return self.left
        if time == OPEN_END:
            return self.right
        if len(self.knots) == 1:
            return self.knots[0][1]
        index = bisect_right(self.knots, time, key=lambda knot: knot[0])
        index = min(max(index, 1), len(self.knots) - 1)
        (time_before, before), (time_after, after) = self.knots[index - 1 : index + 1]
        return before + (after - before) * ((time - time_before) / (time_after - time_before))


def known_times(intervals: Iterable[Interval]) -> Sequence[int]:
    """Return the distinct starts and ends that are neither unknown nor open, ascending."""
    times = {time for interval in intervals for time in (interval.start, interval.end)}
    return sorted(times - _SIDES)


def _apart(ticks: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Drop dates that would overlap the one before them."""
    free = float("-inf")
    for x, text in ticks:
        half = text_width(text, TICK_SIZE) / 2
        if x - half > free:
            yield x, text
            free = x + half + _TICK_GAP / 4


_SIZE, _SMALL = 12.0, 11.0
_HEIGHT = 34.0
_NAMES, _WORDS = 178.0, 98.0  # width of the names on the left, and of the words on the right
_MARGIN = 12.0
_BADGE = 16.0
_THIN, _THICK = 8.0, 16.0
_POINT, _LARGE_POINT = 5.0, 7.0
_LEAST = 4.0  # width of the shortest interval, so that it can be seen
_FADE, _FADE_STEPS = 40.0, 5  # how far an unknown end fades out
_SIGNS = {TemporalRelation.BEFORE: "←", TemporalRelation.TOUCHING: "↔", TemporalRelation.AFTER: "→"}


@dataclass(frozen=True, slots=True)
class Link:
    """A relation between two entities at a time."""

    label: str  # name of the relation
    interval: Interval | None = None  # when it holds; None if nothing is said about it
    inverse: bool = False  # whether it points from right to left
    mark: str = ""  # one or two characters that join the edge to its lane
    detail: str = ""  # text below the label beside the axis, such as the dates
    word: str = ""  # how the interval lies to the query's; empty for the query itself
    relation: TemporalRelation | None = None  # that the word means, if it means a single one

    @classmethod
    def dated(
        cls, label: str, interval: Interval, unit: Unit, query: Interval | None, **more: Any
    ) -> Self:
        """Make a link with its dates as text, and their relation to the query's interval.

        >>> Link.dated("won", Interval(1990, 1993), Unit.YEAR, Interval(1995, 1999)).word
        '2 years before'
        """
        word = "" if query is None else _relation_text(interval, query, unit)
        relation = None if query is None else temporal_relation(interval, query)
        start, end = (format_time(time, unit) or "?" for time in (interval.start, interval.end))
        detail = f"{start} – {end}"
        if start == end:
            detail = "no dates" if start == "?" else start
        return cls(label, interval, detail=detail, word=word, relation=relation, **more)

    def sentence(self, here: str, there: str) -> str:
        """Return the link as text, from the node on its left to the node on its right."""
        subject, object_ = (there, here) if self.inverse else (here, there)
        text = f"{self.mark}: " * bool(self.mark) + f"{subject} {self.label} {object_}"
        return ", ".join(filter(None, (text, self.detail, self.word)))


def _draw_timeline(
    drawing: Drawing, top: float, links: Sequence[tuple[Link, str]], query: Link, unit: Unit | None
) -> float:
    """Draw the intervals of links, each in its colour, and the query's; return where they end.

    Without a unit, only the order of times is shown.
    """
    lanes = [*links, (query, colour("ink"))]
    known = [link.interval for link, _ in lanes if link.interval is not None]
    left, right = _NAMES, drawing.width - _WORDS
    fading = unit is not None and any({each.start, each.end} & _SIDES for each in known)
    axis = Axis.of_times(known, left, right, _MARGIN + _FADE * fading, unit)
    timeline = _Timeline(drawing, axis, query.interval)
    bottom = top + len(lanes) * _HEIGHT
    timeline.draw_band(top, bottom - top)
    for x, _ in axis.ticks:
        drawing.line([(x, top), (x, bottom)], colour("line"), 1.0, stroke_dasharray="1 3")
    for index, (link, fill) in enumerate(lanes):
        middle = top + (index + 0.5) * _HEIGHT
        drawing.line([(left, middle), (right, middle)], colour("line"), 1.0)
        is_query = index == len(links)
        _draw_labels(drawing, right + 10, middle, link, fill, hollow=is_query)
        # Where only an order is shown, the position of an unconstrained interval means nothing.
        loose = unit is None and link.relation is None and query.interval is not None
        timeline.draw(middle, link, fill, hollow=loose and not is_query)
    timeline.draw_axis(bottom)
    return bottom + 22


def _draw_badge(drawing: Drawing, x: float, y: float, mark: str, fill: str, hollow: bool) -> None:
    """Draw the sign that joins an edge to its lane."""
    wide = _BADGE + 6.5 * max(len(mark) - 1, 0)
    inside, ink = (colour("paper"), fill) if hollow else (fill, colour("paper"))
    border: dict[str, Any] = {"rx": _BADGE / 2, "stroke": fill, "stroke_width": 1.5}
    border |= {"stroke_dasharray": "3 2"} if hollow else {}
    drawing.rect(x - wide / 2, y - _BADGE / 2, wide, _BADGE, inside, **border)
    drawing.text(x, y + 4, [mark], 11, fill=ink, text_anchor="middle", font_weight=600)


@dataclass(frozen=True)
class _Timeline:
    """Draws intervals, and how they lie to the query's."""

    drawing: Drawing
    axis: Axis
    query: Interval | None

    def draw_band(self, top: float, tall: float) -> None:
        """Draw the query's interval behind all others."""
        span = _known_span(self.query)
        if span is not None and self.query is not None:
            first, last = self._stretch(span, least=_LEAST + 2)
            self.drawing.rect(first, top, last - first, tall, colour("band"))
            self._fade(self.query, first, last, top, tall, colour("band"), _FADE / _FADE_STEPS)

    def draw(self, middle: float, link: Link, fill: str, *, hollow: bool) -> None:
        """Draw one interval: time shared with the query's is thick, time between is dotted."""
        left, right, interval = self.axis.left, self.axis.right, link.interval
        span = _known_span(interval)
        if interval is None or (hollow and span is not None):
            ends = (left + 4, right - 4) if span is None else self._stretch(span)
            dashed: Any = {"stroke_width": 1.2, "stroke_dasharray": "3 3"}
            self._draw_bar(*ends, middle, colour("paper"), _THIN, stroke=fill, **dashed)
            return
        if span is None:
            top, width = middle - _THIN / 2, right - left
            self.drawing.rect(left, top, width, _THIN, fill, opacity=0.18, rx=2)
            self._draw_question((left + right) / 2, middle, fill)
        else:
            self._draw_known(middle, interval, span, link.relation, fill)
        if OPEN_START in (interval.start, interval.end):
            self.drawing.arrowhead(left - 4, middle, (-1, 0), fill, 14)
        if OPEN_END in (interval.start, interval.end):
            self.drawing.arrowhead(right + 4, middle, (1, 0), fill, 14)

    def _draw_known(
        self, middle: float, interval: Interval, span: Span, relation: TemporalRelation | None,
        fill: str,
    ) -> None:  # fmt: skip
        first, last = self._stretch(span)
        step, other = _FADE / (_FADE_STEPS + 1), _known_span(self.query)
        for x, side in self._fade(interval, first, last, middle - _THIN / 2, _THIN, fill, step):
            self._draw_question(x + side * (_FADE - step / 2), middle, fill)
        touching = relation is TemporalRelation.TOUCHING
        if interval.is_point and known_times([interval]):
            radius = _LARGE_POINT if touching else _POINT
            x = (first + last) / 2
            self.drawing.add("circle", cx=x, cy=middle, r=radius, fill=fill)
        else:
            self._draw_bar(first, last, middle, fill)
            if other is not None and touching:
                shared = max(span[0], other[0]), min(span[1], other[1])
                if shared[0] <= shared[1]:
                    self._draw_bar(*self._stretch(shared), middle, fill, _THICK)
        if other is not None and relation is not None and not touching:
            before = relation is TemporalRelation.BEFORE
            times = (span[1], other[0]) if before else (other[1], span[0])
            points = [(self.axis.x(time), middle) for time in times]
            self.drawing.line(points, fill, 1.5, stroke_dasharray="2 3")

    def _draw_bar(
        self, first: float, last: float, middle: float, fill: str, tall: float = _THIN, **more: Any
    ) -> None:
        self.drawing.rect(first, middle - tall / 2, last - first, tall, fill, rx=2, **more)

    def _fade(
        self, interval: Interval, first: float, last: float, top: float, tall: float, fill: str,
        step: float,
    ) -> list[tuple[float, int]]:  # fmt: skip
        """Let unknown ends fade out; return where, and to which side."""
        ends = ((first, -1, interval.start), (last, 1, interval.end))
        unknown = [(x, side) for x, side, time in ends if time == UNKNOWN]
        for x, side in unknown:
            for index in range(_FADE_STEPS):
                near = x + side * step * index
                pale, begin = 0.75 * (1 - index / _FADE_STEPS), min(near, near + side * step)
                self.drawing.rect(begin, top, step, tall, fill, opacity=pale)
        return unknown

    def _draw_question(self, x: float, middle: float, fill: str) -> None:
        style: dict[str, Any] = {"fill": fill, "text_anchor": "middle", "font_weight": 700}
        self.drawing.text(x, middle + 4, ["?"], _SIZE, **style)

    def _stretch(self, span: Span, least: float = _LEAST) -> tuple[float, float]:
        first, last = map(self.axis.x, span)
        short = max(least - (last - first), 0.0) / 2
        return first - short, last + short

    def draw_axis(self, y: float) -> None:
        """Draw the axis with its dates."""
        drawing, axis, soft = self.drawing, self.axis, colour("soft")
        drawing.line([(axis.left, y), (axis.right, y)], soft, 1.0)
        drawing.arrowhead(axis.right + 6, y, (1, 0), soft, 6)
        for x, date in axis.ticks:
            drawing.line([(x, y), (x, y + 4)], soft, 1.0)
            drawing.text(x, y + 16, [date], TICK_SIZE, fill=soft, text_anchor="middle")
        if not axis.ticks:
            text = "time: one arrangement that fits" if axis.knots else "no date is known"
            middle = (axis.left + axis.right) / 2
            drawing.text(middle, y + 16, [text], TICK_SIZE, fill=soft, text_anchor="middle")


def _known_span(interval: Interval | None) -> Span | None:
    """Return the part of an interval that is certain: all of it, or its known end."""
    if interval is None or not (interval.is_known or known_times([interval])):
        return None
    start, end = interval.start, interval.end
    return end if start == UNKNOWN else start, start if end == UNKNOWN else end


def _draw_labels(
    drawing: Drawing, right: float, middle: float, link: Link, fill: str, *, hollow: bool
) -> None:
    """Write the names of a link on the left of its lane, and how it lies to the query's right."""
    _draw_badge(drawing, 14, middle, link.mark, fill, hollow)
    room = _NAMES - 38
    y = middle - 2 if link.detail else middle + 4
    drawing.label(30, y, link.label, room, _SIZE, font_weight=500)
    drawing.label(30, middle + 11, link.detail, room, TICK_SIZE, fill=colour("soft"))
    if link.relation is not None:
        drawing.text(right, middle + 4, [_SIGNS[link.relation]], _SIZE, font_weight=600)
    words = wrap(clean(link.word), _WORDS - 28, TICK_SIZE)
    drawing.text(right + 17, middle + 4 - (len(words) - 1) * 6, words, TICK_SIZE, full=link.word)


def _relation_text(interval: Interval, query: Interval, unit: Unit) -> str:
    """Say how an interval lies to the query's, as far as known ends tell (eq. 4)."""
    possible = possible_relations(interval, query)
    if len(possible) > 1:
        in_order = [relation.value for relation in TemporalRelation if relation in possible]
        return "not known" if len(possible) == 3 else " or ".join(in_order)
    (relation,) = possible
    before = relation is TemporalRelation.BEFORE
    times = (interval.end, query.start) if before else (query.end, interval.start)
    is_known = all(OPEN_START < time < OPEN_END for time in times)
    if relation is TemporalRelation.TOUCHING or not is_known:
        return relation.value
    gap = times[1] - times[0]
    name = "" if unit is Unit.INTEGER else f" {unit.value}{'' if gap == 1 else 's'}"
    return f"{gap:,}{name} {relation.value}"


_WIDTH = 600.0
_LEAST_STEP = 100.0  # between two nodes
_BOLD = 1.08 * _SIZE  # as wide as if it were so large
_NODE = 6.0
_ROOF, _EDGE = 30.0, 86.0  # heights of the query's link, and of the others
_LINES = 13.5


@dataclass(frozen=True, slots=True)
class Chain:
    """Entities in a row, and the links that join each to the next."""

    nodes: tuple[str, ...]  # names of the entities
    links: tuple[Link | None, ...]  # one fewer; None between neighbours that nothing joins
    query: Link  # the query's link
    ends: tuple[int, int]  # indices of the two nodes that the query joins
    unit: Unit | None = None  # of time; None if intervals only show an order and have no dates
    notes: tuple[str, ...] = ()  # lines of text below the picture

    @property
    def sentences(self) -> str:
        """The chain as text, for readers who cannot see it."""
        first, last = (self.nodes[end] for end in self.ends)
        neighbours = zip(self.links, self.nodes[:-1], self.nodes[1:], strict=True)
        facts = [link.sentence(here, there) for link, here, there in neighbours if link is not None]
        return "; ".join([*facts, f"asked: {self.query.sentence(first, last)}", *self.notes])


def draw_chain(chain: Chain) -> str:
    """Draw a chain, as SVG that can stand in any page.

    The query's link is dashed. Arrows point from subject to object. Below, every link has its
    interval in a lane of its own, thick where it shares time with the query's interval, which is
    a band across all lanes. An unknown end fades out with a question mark, an open end has an
    arrow, and a single instant is a dot.

    >>> picture = draw_chain(Chain(("Ada", "Leeds"), (Link("born in"),), Link("lives in"), (0, 1)))
    >>> picture[:4]
    '<svg'
    """
    width = max(_WIDTH, _LEAST_STEP * len(chain.nodes))
    first, last = (chain.nodes[end] for end in chain.ends)
    drawing = Drawing(width, f"{first} – {chain.query.label} – {last}", chain.sentences)
    step = width / len(chain.nodes)
    xs = [step * (index + 0.5) for index in range(len(chain.nodes))]
    _draw_query(drawing, chain.query, *(xs[end] for end in chain.ends))
    links: list[tuple[Link, str]] = []
    for here, there, link in zip(xs[:-1], xs[1:], chain.links, strict=True):
        if link is not None:
            links.append((link, series(len(links))))
            _draw_edge(drawing, here, there, *links[-1])
    lines = [
        _draw_node(drawing, x, name, step - 8, end=index in chain.ends)
        for index, (x, name) in enumerate(zip(xs, chain.nodes, strict=True))
    ]
    bottom = _EDGE + 28 + (max(lines) - 1) * _LINES
    if any(link.interval is not None for link in (chain.query, *(link for link, _ in links))):
        bottom = _draw_timeline(drawing, bottom + 10, links, chain.query, chain.unit)
    for note in chain.notes:
        for line in wrap(clean(note), width - 16, _SMALL, lines=3):
            bottom += _LINES + 3
            drawing.text(8, bottom, [line], _SMALL, fill=colour("soft"))
    return drawing.finish(bottom + 8)


def _draw_node(drawing: Drawing, x: float, name: str, room: float, *, end: bool) -> int:
    """Draw an entity; return the count of lines that its name takes."""
    ink, weight = colour("ink"), 600 if end else 400
    words = wrap(clean(name), room, _BOLD if end else _SIZE, lines=3)
    look = {"fill": ink if end else colour("paper"), "stroke": ink, "stroke_width": 1.5}
    drawing.add("circle", cx=x, cy=_EDGE, r=_NODE, **look)
    drawing.text(x, _EDGE + 22, words, _SIZE, full=name, text_anchor="middle", font_weight=weight)
    return len(words)


def _draw_edge(drawing: Drawing, here: float, there: float, link: Link, fill: str) -> None:
    begin, end = here + _NODE + 3, there - _NODE - 3
    drawing.line([(begin, _EDGE), (end, _EDGE)], fill, 2.0)
    tip, side = (begin - 2, -1) if link.inverse else (end + 2, 1)
    drawing.arrowhead(tip, _EDGE, (side, 0), fill)
    middle = (here + there) / 2
    words = wrap(clean(link.label), there - here - 2 * _NODE - 8, _SMALL)
    top = _EDGE - 15 - (len(words) - 1) * _SMALL * 1.15
    drawing.text(middle, top, words, _SMALL, full=link.label, text_anchor="middle")
    _draw_badge(drawing, middle, _EDGE, link.mark, fill, hollow=False)


def _draw_query(drawing: Drawing, link: Link, here: float, there: float) -> None:
    ink, foot, bend = colour("ink"), _EDGE - _NODE - 4, 10.0
    side = 1 if there > here else -1
    path = (
        f"M{here:.1f},{foot:.1f} V{_ROOF + bend:.1f} Q{here:.1f},{_ROOF:.1f} "
        f"{here + side * bend:.1f},{_ROOF:.1f} H{there - side * bend:.1f} "
        f"Q{there:.1f},{_ROOF:.1f} {there:.1f},{_ROOF + bend:.1f} V{foot:.1f}"
    )
    look = {"stroke": ink, "stroke_width": 1.5, "stroke_dasharray": "5 4"}
    drawing.add("path", d=path, fill="none", **look)
    drawing.arrowhead(here if link.inverse else there, foot + 3, (0, 1), ink)
    middle = (here + there) / 2
    label = shorten(clean(link.label), abs(there - here) - 60, _BOLD)
    style: dict[str, Any] = {"full": link.label, "text_anchor": "middle", "font_weight": 600}
    drawing.text(middle, _ROOF - 13, [label], _SIZE, **style)
    _draw_badge(drawing, middle, _ROOF, link.mark, ink, hollow=True)

"""Draw a chain of links as a small graph, with their intervals on a time axis below it."""

from dataclasses import dataclass
from typing import Any

from tilp.types import Unit
from tilp.viz.svg import Drawing, clean, colour, series, shorten, wrap
from tilp.viz.timeline import Link, draw_badge, draw_timeline

_WIDTH = 600.0
_LEAST_STEP = 100.0  # between two nodes
_SIZE, _SMALL = 12.0, 11.0
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
        facts = [
            link.sentence(self.nodes[index], self.nodes[index + 1])
            for index, link in enumerate(self.links)
            if link is not None
        ]
        return "; ".join([*facts, f"asked: {self.query.sentence(first, last)}", *self.notes])


def draw_chain(chain: Chain) -> str:
    """Draw a chain, as SVG that can stand in any page.

    The query's link is dashed. Arrows point from subject to object. Below, every link has its
    interval in a lane of its own, thick where it shares time with the query's interval, which is
    a band across all lanes. An unknown end fades out with a question mark, an open end has an
    arrow, and a single instant is a dot.

    Args:
        chain: Entities, the links between them, and the query's link.

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
        bottom = draw_timeline(drawing, bottom + 10, links, chain.query, chain.unit)
    for note in chain.notes:
        for line in wrap(clean(note), width - 16, _SMALL, lines=3):
            bottom += _LINES + 3
            drawing.text(8, bottom, [line], _SMALL, fill=colour("soft"))
    return drawing.finish(bottom + 8)


def _draw_node(drawing: Drawing, x: float, name: str, room: float, *, end: bool) -> int:
    """Draw an entity; return the count of lines that its name takes."""
    ink, weight = colour("ink"), 600 if end else 400
    words = wrap(clean(name), room, _BOLD if end else _SIZE, lines=3)
    drawing.circle(x, _EDGE, _NODE, ink if end else colour("paper"), stroke=ink, stroke_width=1.5)
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
    draw_badge(drawing, middle, _EDGE, link.mark, fill, hollow=False)


def _draw_query(drawing: Drawing, link: Link, here: float, there: float) -> None:
    ink, foot, bend = colour("ink"), _EDGE - _NODE - 4, 10.0
    side = 1 if there > here else -1
    path = (
        f"M{here:.1f},{foot:.1f} V{_ROOF + bend:.1f} Q{here:.1f},{_ROOF:.1f} "
        f"{here + side * bend:.1f},{_ROOF:.1f} H{there - side * bend:.1f} "
        f"Q{there:.1f},{_ROOF:.1f} {there:.1f},{_ROOF + bend:.1f} V{foot:.1f}"
    )
    drawing.path(path, ink, 1.5, stroke_dasharray="5 4")
    drawing.arrowhead(here if link.inverse else there, foot + 3, (0, 1), ink)
    middle = (here + there) / 2
    label = shorten(clean(link.label), abs(there - here) - 60, _BOLD)
    style: dict[str, Any] = {"full": link.label, "text_anchor": "middle", "font_weight": 600}
    drawing.text(middle, _ROOF - 13, [label], _SIZE, **style)
    draw_badge(drawing, middle, _ROOF, link.mark, ink, hollow=True)

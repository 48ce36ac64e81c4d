"""Draw simple shapes and text as SVG, in colours that the page around them may set.

Pictures carry no style sheet, no identifiers and no script. Any number of them can stand in one
page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from tilp.viz.labels import clean, shorten

# Colours of text, quiet text, lines, the background and the query's interval; the numbered ones
# tell facts apart, for colour-blind readers too.
LIGHT = {
    "ink": "#1b1f24",
    "soft": "#57606a",
    "line": "#d0d7de",
    "paper": "#ffffff",
    "band": "#e8ecf1",
    "1": "#0072b2",
    "2": "#d55e00",
    "3": "#008a64",
    "4": "#aa3377",
    "5": "#8a6d00",
}
DARK = {
    "ink": "#e6edf3",
    "soft": "#9da7b3",
    "line": "#3d444d",
    "paper": "#0d1117",
    "band": "#232b36",
    "1": "#56b4e9",
    "2": "#ff9248",
    "3": "#2ec79b",
    "4": "#e58cc3",
    "5": "#e2c044",
}
SERIES = 5

_PROPERTY = re.compile(r"var\(--tilp-[a-z0-9]+, (#[0-9a-f]{6})\)")
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_LINE_HEIGHT = 1.15

Point = tuple[float, float]


def colour(name: str) -> str:
    """Return a colour by its name, as a CSS property that a page may set.

    >>> colour("ink")
    'var(--tilp-ink, #1b1f24)'
    """
    return f"var(--tilp-{name}, {LIGHT[name]})"


def series(index: int) -> str:
    """Return the colour of the fact with this index."""
    return colour(str(index % SERIES + 1))


class Drawing:
    """An SVG picture under construction."""

    def __init__(self, width: float, title: str, description: str) -> None:
        self._width = width
        self._root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "role": "img",
                "font-family": _FONTS,
                "style": "max-width:100%;height:auto",
            },
        )
        for tag, text in (("title", title), ("desc", description)):
            ElementTree.SubElement(self._root, tag).text = clean(text)

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, **more: object
    ) -> None:
        """Add a rectangle."""
        self._add("rect", x=x, y=y, width=width, height=height, fill=fill, **more)

    def circle(self, x: float, y: float, radius: float, fill: str, **more: object) -> None:
        """Add a circle."""
        self._add("circle", cx=x, cy=y, r=radius, fill=fill, **more)

    def line(self, points: Sequence[Point], stroke: str, width: float, **more: object) -> None:
        """Add a line through points."""
        path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._add("polyline", points=path, fill="none", stroke=stroke, stroke_width=width, **more)

    def path(self, path: str, stroke: str, width: float, **more: object) -> None:
        """Add a curve."""
        self._add("path", d=path, fill="none", stroke=stroke, stroke_width=width, **more)

    def arrowhead(self, x: float, y: float, direction: Point, fill: str, size: float = 8) -> None:
        """Add an arrowhead with its tip at a point."""
        across, along = direction
        back_x, back_y = x - across * size, y - along * size
        half = size * 0.5
        corners = (
            (x, y),
            (back_x + along * half, back_y + across * half),
            (back_x - along * half, back_y - across * half),
        )
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in corners)
        self._add("polygon", points=points, fill=fill)

    def text(
        self,
        x: float,
        y: float,
        lines: Iterable[str],
        size: float,
        *,
        fill: str | None = None,
        full: str = "",
        **more: object,
    ) -> None:
        """Add lines of text, the first with its baseline at y; `full` is shown on hovering."""
        lines = list(lines)
        if not any(lines):
            return
        element = self._add("text", x=x, y=y, font_size=size, fill=fill or colour("ink"), **more)
        if full and clean(full) != " ".join(lines):
            ElementTree.SubElement(element, "title").text = clean(full)
        for index, line in enumerate(lines):
            part = ElementTree.SubElement(element, "tspan", {"x": _number(x)})
            if index:
                part.set("dy", _number(size * _LINE_HEIGHT))
            part.text = clean(line)

    def label(
        self, x: float, y: float, text: str, width: float, size: float, **more: object
    ) -> None:
        """Add one line of text, cut to a width, and in full on hovering."""
        text = clean(text)
        self.text(x, y, [shorten(text, width, size)], size, full=text, **more)  # type: ignore[arg-type]

    def finish(self, height: float) -> str:
        """Return the picture, now that its height is known."""
        width, tall = _number(self._width), _number(height)
        self._root.set("viewBox", f"0 0 {width} {tall}")
        self._root.set("width", width)
        self._root.set("height", tall)
        return ElementTree.tostring(self._root, encoding="unicode")

    def _add(self, tag: str, **attributes: object) -> ElementTree.Element:
        return ElementTree.SubElement(
            self._root,
            tag,
            {
                name.replace("_", "-"): _number(value) if isinstance(value, float) else str(value)
                for name, value in attributes.items()
            },
        )


def standalone(picture: str) -> str:
    """Return an SVG picture as the text of a file of its own.

    The picture gets a white background and plain colours in place of CSS properties.

    Args:
        picture: SVG, such as `draw_chain` returns.

    >>> standalone("<svg><desc>x</desc></svg>").splitlines()[0]
    '<?xml version="1.0" encoding="UTF-8"?>'
    """
    opening, sign, rest = picture.partition("</desc>")
    paper = f'<rect width="100%" height="100%" fill="{LIGHT["paper"]}" />'
    plain = _PROPERTY.sub(r"\1", opening + sign + paper + rest)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{plain}'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

"""`Drawing`: a few shapes and words, written as SVG.

Pictures carry no style sheet, no identifiers and no script, so that any number of them can stand
in one page, whatever it allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from tilp.pictures.colours import colour, resolved
from tilp.pictures.labels import clean, shorten

__all__ = ["Drawing", "standalone"]

_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_LINE_HEIGHT = 1.15

Point = tuple[float, float]


class Drawing:
    """An SVG in the making; colours are names of `tilp.pictures.colours`."""

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
        """A rectangle."""
        self._add("rect", x=x, y=y, width=width, height=height, fill=fill, **more)

    def circle(self, x: float, y: float, radius: float, fill: str, **more: object) -> None:
        """A circle."""
        self._add("circle", cx=x, cy=y, r=radius, fill=fill, **more)

    def line(self, points: Sequence[Point], stroke: str, width: float, **more: object) -> None:
        """A line through points."""
        path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._add("polyline", points=path, fill="none", stroke=stroke, stroke_width=width, **more)

    def path(self, path: str, stroke: str, width: float, **more: object) -> None:
        """A curve."""
        self._add("path", d=path, fill="none", stroke=stroke, stroke_width=width, **more)

    def arrowhead(self, x: float, y: float, direction: Point, fill: str, size: float = 8) -> None:
        """The head of an arrow whose tip is at a point."""
        across, along = direction
        back_x, back_y = x - across * size, y - along * size
        half = size * 0.5
        corners = (
            (x, y),
            (back_x + along * half, back_y + across * half),
            (back_x - along * half, back_y - across * half),
        )
        points = " ".join(f"{_number(one)},{_number(other)}" for one, other in corners)
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
        """Lines of text, the first with its baseline at y.

        Args:
            x: where they are anchored.
            y: of the first line.
            lines: the text; nothing is drawn for none.
            size: of the font.
            fill: the colour; ink, if it is not said.
            full: what to show on pointing at it, where the lines say less.
            more: further attributes.
        """
        lines = list(lines)
        if not any(lines):
            return
        element = self._add("text", x=x, y=y, font_size=size, fill=fill or colour("ink"), **more)
        if full and clean(full) != " ".join(lines):
            ElementTree.SubElement(element, "title").text = clean(full)
        for number, line in enumerate(lines):
            part = ElementTree.SubElement(element, "tspan", {"x": _number(x)})
            if number:
                part.set("dy", _number(size * _LINE_HEIGHT))
            part.text = clean(line)

    def label(
        self, x: float, y: float, text: str, width: float, size: float, **more: object
    ) -> None:
        """One line of text, cut where it is too long, and then whole on pointing at it."""
        text = clean(text)
        self.text(x, y, [shorten(text, width, size)], size, full=text, **more)  # type: ignore[arg-type]

    def finish(self, height: float) -> str:
        """The picture, of a height that is known by now."""
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
    """A picture as a file of its own: on paper, in colours that any program can read."""
    opening, sign, rest = picture.partition("</desc>")
    paper = f'<rect width="100%" height="100%" fill="{colour("paper")}" />'
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + resolved(opening + sign + paper + rest)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

"""Draw simple shapes and text as SVG, in colours that the page around them may set.

Pictures carry no style sheet, no identifiers and no script. Any number of them can stand in one
page. The width of text is estimated without a font, to wrap and cut labels.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree

# Colours of text, quiet text, lines, the background and the query's interval; the numbered ones
# tell facts apart, for colour-blind readers too.
_NAMES = ("ink", "soft", "line", "paper", "band", "1", "2", "3", "4", "5")
_LIGHT = "#1b1f24 #57606a #d0d7de #ffffff #e8ecf1 #0072b2 #d55e00 #008a64 #aa3377 #8a6d00"
_DARK = "#e6edf3 #9da7b3 #3d444d #0d1117 #232b36 #56b4e9 #ff9248 #2ec79b #e58cc3 #e2c044"
LIGHT = dict(zip(_NAMES, _LIGHT.split(), strict=True))
DARK = dict(zip(_NAMES, _DARK.split(), strict=True))
SERIES = 5

_PROPERTY = re.compile(r"var\(--tilp-[a-z0-9]+, (#[0-9a-f]{6})\)")
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_LINE_HEIGHT = 1.15
# What XML 1.0 cannot hold, escaped or not.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NARROW = frozenset("iIjl.,:;'|!()[]{}ftr/\\ -\"`·")
_BROAD = frozenset("mwMW@%&—…")
# A line breaks after these, and within a name like `playsFor`.
_PIECES = re.compile(r"[^\s_\-/,]+?(?:(?<=[a-z0-9])(?=[A-Z])|[\s_\-/,]+|$)|[\s_\-/,]+")
_CUT = "…"

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
        self.width = width
        attributes = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "font-family": _FONTS}
        style = {"style": "max-width:100%;height:auto"}
        self._root = ElementTree.Element("svg", attributes | style)
        for tag, text in (("title", title), ("desc", description)):
            ElementTree.SubElement(self._root, tag).text = clean(text)

    def rect(self, x: float, y: float, width: float, height: float, fill: str, **more: Any) -> None:
        """Add a rectangle."""
        self.add("rect", x=x, y=y, width=width, height=height, fill=fill, **more)

    def line(self, points: Sequence[Point], stroke: str, width: float, **more: Any) -> None:
        """Add a line through points."""
        path = _points_text(points)
        self.add("polyline", points=path, fill="none", stroke=stroke, stroke_width=width, **more)

    def arrowhead(self, x: float, y: float, direction: Point, fill: str, size: float = 8) -> None:
        """Add an arrowhead with its tip at a point."""
        across, along = direction
        back_x, back_y, half = x - across * size, y - along * size, size * 0.5
        left = back_x + along * half, back_y + across * half
        right = back_x - along * half, back_y - across * half
        self.add("polygon", points=_points_text([(x, y), left, right]), fill=fill)

    def text(
        self, x: float, y: float, lines: Sequence[str], size: float, *, full: str = "", **more: Any
    ) -> None:
        """Add lines of text, the first with its baseline at y; `full` is shown on hovering."""
        if not any(lines):
            return
        more = {"fill": colour("ink")} | more
        element = self.add("text", x=x, y=y, font_size=size, **more)
        if full and clean(full) != " ".join(lines):
            ElementTree.SubElement(element, "title").text = clean(full)
        for index, line in enumerate(lines):
            part = ElementTree.SubElement(element, "tspan", {"x": _number(x)})
            if index:
                part.set("dy", _number(size * _LINE_HEIGHT))
            part.text = clean(line)

    def label(self, x: float, y: float, text: str, width: float, size: float, **more: Any) -> None:
        """Add one line of text, cut to a width, and in full on hovering."""
        text = clean(text)
        self.text(x, y, [shorten(text, width, size)], size, full=text, **more)

    def finish(self, height: float) -> str:
        """Return the picture, now that its height is known."""
        width, tall = _number(self.width), _number(height)
        self._root.attrib.update({"viewBox": f"0 0 {width} {tall}", "width": width, "height": tall})
        return ElementTree.tostring(self._root, encoding="unicode")

    def add(self, tag: str, **attributes: object) -> ElementTree.Element:
        """Add an element."""
        texts = {
            name.replace("_", "-"): _number(value) if isinstance(value, float) else str(value)
            for name, value in attributes.items()
        }
        return ElementTree.SubElement(self._root, tag, texts)


def standalone(picture: str) -> str:
    """Return an SVG picture as the text of a file of its own.

    It gets a white background, and plain colours in place of CSS properties.

    >>> standalone("<svg><desc>x</desc></svg>").splitlines()[0]
    '<?xml version="1.0" encoding="UTF-8"?>'
    """
    opening, sign, rest = picture.partition("</desc>")
    paper = f'<rect width="100%" height="100%" fill="{LIGHT["paper"]}" />'
    plain = _PROPERTY.sub(r"\1", opening + sign + paper + rest)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{plain}'


def _points_text(points: Iterable[Point]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def legal(text: str) -> str:
    """Replace characters that XML and HTML cannot hold."""
    return _ILLEGAL.sub("\ufffd", text)


def clean(text: str) -> str:
    """Return a label on one line, without characters that XML cannot hold."""
    return " ".join(legal(text).split())


def text_width(text: str, size: float) -> float:
    """Estimate the width of text in a wide sans-serif font, rather too large than too small."""
    return size * sum(map(_char_width, text))


def _char_width(char: str) -> float:
    if char in _NARROW:
        return 0.42
    if char in _BROAD:
        return 1.0
    if char.isascii():
        return 0.72 if char.isupper() else 0.62
    if unicodedata.combining(char) or unicodedata.category(char) == "Cf":
        return 0.0
    return 1.1 if unicodedata.east_asian_width(char) in "WF" else 0.75


def shorten(text: str, width: float, size: float) -> str:
    """Cut text to a width, with an ellipsis where something is lost.

    >>> shorten("a rather long label", 60, 12)
    'a rathe…'
    """
    if text_width(text, size) <= width:
        return text
    room = width - text_width(_CUT, size)
    for end, char in enumerate(text):
        room -= size * _char_width(char)
        if room < 0:
            return text[:end].rstrip() + _CUT
    return text


def wrap(text: str, width: float, size: float, lines: int = 2) -> list[str]:
    """Break text between words into at most `lines` lines; cut what is left over.

    >>> wrap("member of sports team", 90, 12)
    ['member of', 'sports team']
    >>> wrap("isAffiliatedTo", 80, 12)
    ['isAffiliated', 'To']
    """
    done: list[str] = []
    line = ""
    pieces = [part for piece in _PIECES.findall(text) for part in _cut_up(piece, width, size)]
    for index, piece in enumerate(pieces):
        if line and text_width((line + piece).rstrip(), size) > width:
            if len(done) == lines - 1:
                line += "".join(pieces[index:])
                break
            done.append(line.rstrip())
            line = ""
        line += piece
    return [shorten(text, width, size) for text in (*done, line.rstrip()) if text]


def _cut_up(word: str, width: float, size: float) -> list[str]:
    pieces = [""]
    for char in word:
        if pieces[-1] and text_width((pieces[-1] + char).rstrip(), size) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces

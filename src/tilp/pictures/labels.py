"""Labels that fit: how wide text is without a font at hand, lines broken and cut."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean", "legal", "shorten", "text_width", "wrap"]

# What XML 1.0 cannot hold, escaped or not.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NARROW = frozenset("iIjl.,:;'|!()[]{}ftr/\\ -\"`·")
_BROAD = frozenset("mwMW@%&—…")
# A line breaks after these, and within a name like `playsFor`.
_PIECES = re.compile(r"[^\s_\-/,]+?(?:(?<=[a-z0-9])(?=[A-Z])|[\s_\-/,]+|$)|[\s_\-/,]+")
_CUT = "…"


def legal(text: str) -> str:
    """Text without what XML and HTML cannot hold."""
    return _ILLEGAL.sub("\ufffd", text)


def clean(text: str) -> str:
    """A label as it can stand in XML, on one line."""
    return " ".join(legal(text).split())


def text_width(text: str, size: float) -> float:
    """About how wide text is in a broad sans-serif font, rather too much than too little."""
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
    """Text that is no wider than asked, cut with an ellipsis where it must be.

    >>> shorten("a rather long label", 60, 12)
    'a rathe…'
    """
    if text_width(text, size) <= width:
        return text
    room = width - text_width(_CUT, size)
    kept = 0
    for place, char in enumerate(text):
        room -= size * _char_width(char)
        if room < 0:
            break
        kept = place + 1
    return text[:kept].rstrip() + _CUT


def wrap(text: str, width: float, size: float, lines: int = 2) -> list[str]:
    """Text in at most so many lines, broken between words; what is left over is cut off.

    >>> wrap("member of sports team", 90, 12)
    ['member of', 'sports team']
    >>> wrap("isAffiliatedTo", 80, 12)
    ['isAffiliated', 'To']
    """
    found: list[str] = []
    line = ""
    pieces = [part for piece in _PIECES.findall(text) for part in _cut_up(piece, width, size)]
    for place, piece in enumerate(pieces):
        fits = text_width((line + piece).rstrip(), size) <= width
        if line and not fits:
            if len(found) == lines - 1:
                line += "".join(pieces[place:])
                break
            found.append(line.rstrip())
            line = ""
        line += piece
    return [shorten(one, width, size) for one in (*found, line.rstrip()) if one]


def _cut_up(word: str, width: float, size: float) -> list[str]:
    """A word in pieces that fit into a line each."""
    pieces = [""]
    for char in word:
        if pieces[-1] and text_width((pieces[-1] + char).rstrip(), size) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces

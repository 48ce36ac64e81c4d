"""Fit labels into a picture: estimate their width without a font, wrap and cut them."""

from __future__ import annotations

import re
import unicodedata

# What XML 1.0 cannot hold, escaped or not.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NARROW = frozenset("iIjl.,:;'|!()[]{}ftr/\\ -\"`·")
_BROAD = frozenset("mwMW@%&—…")
# A line breaks after these, and within a name like `playsFor`.
_PIECES = re.compile(r"[^\s_\-/,]+?(?:(?<=[a-z0-9])(?=[A-Z])|[\s_\-/,]+|$)|[\s_\-/,]+")
_CUT = "…"


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
        fits = text_width((line + piece).rstrip(), size) <= width
        if line and not fits:
            if len(done) == lines - 1:
                line += "".join(pieces[index:])
                break
            done.append(line.rstrip())
            line = ""
        line += piece
    return [shorten(text, width, size) for text in (*done, line.rstrip()) if text]


def _cut_up(word: str, width: float, size: float) -> list[str]:
    """Cut a word into pieces that fit into a line each."""
    pieces = [""]
    for char in word:
        if pieces[-1] and text_width((pieces[-1] + char).rstrip(), size) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces

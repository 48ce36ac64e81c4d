"""The colours of pictures and of HTML, as CSS custom properties that a page may set."""

from __future__ import annotations

import re

__all__ = ["DARK", "LIGHT", "colour", "resolved", "series"]

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
"""What each property falls back to: the first five words are for text, quiet text, lines, the
background and the query's interval; the figures tell facts apart, for the colour-blind too."""
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
"""The same on a dark background."""

_SERIES = 5
_PROPERTY = re.compile(r"var\(--tilp-[a-z0-9]+, (#[0-9a-f]{6})\)")


def colour(name: str) -> str:
    """A colour by its name, to be set by the page.

    >>> colour("ink")
    'var(--tilp-ink, #1b1f24)'
    """
    return f"var(--tilp-{name}, {LIGHT[name]})"


def series(number: int) -> str:
    """The colour of the fact of a number, from 0."""
    return colour(str(number % _SERIES + 1))


def resolved(text: str) -> str:
    """Text without properties: every colour as it is on a light background."""
    return _PROPERTY.sub(r"\1", text)

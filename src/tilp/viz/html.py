"""Write HTML that escapes its text, in the style that all displays share.

Displays stand in notebooks and other pages. They carry their style, run no script, load nothing.
"""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from tilp.viz.svg import DARK, LIGHT, legal


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | None) -> Markup:
    """Return an element; its children are escaped unless they are `Markup`.

    An attribute that is None has no value; an underscore at the end of its name is dropped.

    >>> element("p", "1 < 2 ", element("b", "so"), class_="note")
    '<p class="note">1 &lt; 2 <b>so</b></p>'
    """
    opening = tag + "".join(
        f" {name.rstrip('_')}" + ("" if value is None else f'="{escape(legal(value))}"')
        for name, value in attributes.items()
    )
    texts = (c if isinstance(c, Markup) else escape(legal(c)) for c in children)
    return Markup(f"<{opening}>{''.join(texts)}</{tag}>")


def bar(value: float, low: float, high: float) -> Markup:
    """Return a bar from zero to a value, on a scale from low (at most 0) to high (at least 0)."""
    whole = high - low or 1.0
    left, width = (min(value, 0.0) - low) / whole, abs(value) / whole
    kind = "tilp-bar tilp-minus" if value < 0 else "tilp-bar"
    inner = element("span", class_=kind, style=f"left:{left:.2%};width:{width:.2%}")
    zero = element("span", class_="tilp-zero", style=f"left:{-low / whole:.2%}")
    return element("span", inner, zero, class_="tilp-track")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: int) -> Markup:
    """Return a table; its last `numbers` columns hold numbers."""
    texts = len(header) - numbers

    def row(tag: str, cells: Sequence[str]) -> Markup:
        left = [element(tag, cell) for cell in cells[:texts]]
        right = [element(tag, cell, class_="tilp-number") for cell in cells[texts:]]
        return element("tr", *left, *right)

    body = element("tbody", *(row("td", cells) for cells in rows))
    return element("table", element("thead", row("th", header)), body)


def fragment(*children: str) -> str:
    """Return HTML to stand within any page, with its style."""
    return element("div", element("style", Markup(_STYLE)), *children, class_="tilp")


def page(title: str, *children: str, style: str = "") -> str:
    """Return a whole page; `style` holds further CSS rules."""
    size = "width=device-width, initial-scale=1"
    meta = Markup(f'<meta charset="utf-8"><meta name="viewport" content="{size}">')
    head = element("head", meta, element("title", title), element("style", Markup(_PAGE_STYLE)))
    own = [element("style", Markup(style))] if style else []
    body = element("body", fragment(*own, *children))
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


def _properties(colours: dict[str, str]) -> str:
    return "".join(f"--tilp-{name}:{value};" for name, value in colours.items())


_LIGHT, _DARK = _properties(LIGHT), _properties(DARK)
# Notebooks have themes of their own, whatever the system prefers.
_STYLE = f"""
.tilp{{{_LIGHT}color:var(--tilp-ink);background:var(--tilp-paper);padding:.75em;max-width:56em;
font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}}
@media (prefers-color-scheme:dark){{.tilp{{{_DARK}}}}}
[data-jp-theme-light="true"] .tilp,.vscode-light .tilp{{{_LIGHT}}}
[data-jp-theme-light="false"] .tilp,.vscode-dark .tilp{{{_DARK}}}

{resources.files("tilp.viz").joinpath("display.css").read_text("utf-8")}"""
_PAGE_STYLE = (
    f"html{{background:{LIGHT['paper']}}}body{{margin:0}}.tilp{{margin:0 auto}}"
    f"@media (prefers-color-scheme:dark){{html{{background:{DARK['paper']}}}}}"
)

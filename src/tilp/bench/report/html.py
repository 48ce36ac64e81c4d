"""A report as one page of HTML, with its pictures in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilp.bench.report.blocks import Block, Code, Entry, Figure, Folded, Heading, Items, Table, Text
from tilp.pictures.markup import Markup, element, page, table

__all__ = ["html"]


def html(title: str, blocks: Iterable[Block]) -> str:
    """Blocks as a page that needs nothing else."""
    return page(title, *_written(blocks), style=_STYLE)


def _written(blocks: Iterable[Block]) -> Iterator[Markup]:
    for block in blocks:
        match block:
            case Heading(text, level):
                yield element(f"h{level}", text)
            case Text(text, quiet):
                yield element("p", text, **({"class_": "tilp-soft"} if quiet else {}))
            case Items(lines):
                yield element("ul", *(element("li", line) for line in lines))
            case Code(text):
                yield element("pre", text)
            case Table():
                yield _table(block)
            case Figure(_, picture, caption):
                words = [element("figcaption", caption)] if caption else []
                yield element("figure", Markup(picture), *words)
            case Folded(summary, inner):
                yield element("details", element("summary", summary), *_written(inner))


def _table(one: Table) -> Markup:
    rows = [[_entry(entry) for entry in row] for row in one.rows]
    made = table(one.header, rows, numbers=len(one.header) - one.words)
    caption = [element("p", one.caption, class_="bench-caption")] if one.caption else []
    return element("div", *caption, made, class_="bench-table")


def _entry(one: Entry) -> str:
    if one.strong:
        return element("strong", one.text)
    return element("em", one.text) if one.slanted else one.text


_STYLE = """
.tilp{max-width:68em;padding:1.5em 1.5em 4em}
.tilp h1{font-size:1.7em;line-height:1.2;margin:0 0 .4em}
.tilp h2{font-size:1.35em;margin:2.2em 0 .4em;padding-top:.7em;
border-top:1px solid var(--tilp-line)}
.tilp h3{font-size:1.08em;margin:1.6em 0 .3em}
.tilp p{max-width:46em;margin:.5em 0}
.tilp ul{margin:.4em 0;padding-left:1.2em}
.tilp pre{background:var(--tilp-band);padding:.7em .9em;overflow-x:auto;font-size:.9em;
white-space:pre-wrap;overflow-wrap:anywhere}
.tilp .bench-table{overflow-x:auto;margin:.8em 0 1.4em}
.tilp .bench-table table{width:auto;min-width:40%}
.tilp .bench-table th,.tilp .bench-table td{padding:.28em 1.1em .28em 0}
.tilp .bench-caption{font-weight:600}
.tilp em{color:var(--tilp-soft)}
.tilp figure{max-width:760px;margin:1em 0 1.6em}
.tilp details{margin:.8em 0}
.tilp summary{color:var(--tilp-soft)}
"""

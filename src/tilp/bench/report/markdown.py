"""A report as Markdown, with its pictures as files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tilp.bench.report.blocks import Block, Code, Entry, Figure, Folded, Heading, Items, Table, Text
from tilp.pictures.labels import clean, legal

__all__ = ["markdown"]

_SIGNS = re.compile(r"([\\`*_{}\[\]<>|#~$])")
# What begins a list, of signs or numbers, where it stands first.
_FIRST = re.compile(r"^(\s*(?:\d+(?=[.)]))?)([-+.)])(?=\s|$)")


def markdown(blocks: Iterable[Block], pictures: str) -> str:
    """Blocks as Markdown.

    Args:
        blocks: of the report.
        pictures: the folder of pictures, as seen from the file.
    """
    return "\n\n".join(_written(blocks, pictures)) + "\n"


def _written(blocks: Iterable[Block], pictures: str) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading(text, level):
                yield f"{'#' * level} {_escaped(text)}"
            case Text(text):
                yield _escaped(text)
            case Items(lines):
                yield "\n".join(f"- {_escaped(line)}" for line in lines)
            case Code(text):
                yield f"```text\n{legal(text).replace('```', '` ` `')}\n```"
            case Table():
                yield _table(block)
            case Figure(name, _, caption):
                words = _escaped(caption)
                yield f"![{words}]({pictures}/{name}.svg)\n\n{words}"
            case Folded(summary, inner):
                yield f"<details><summary>{_escaped(summary)}</summary>"
                yield from _written(inner, pictures)
                yield "</details>"


def _table(table: Table) -> str:
    rule = ["---" if place < table.words else "---:" for place in range(len(table.header))]
    rows = [
        [_escaped(one) for one in table.header],
        rule,
        *([_entry(one) for one in row] for row in table.rows),
    ]
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{_escaped(table.caption)}\n\n{lines}" if table.caption else lines


def _entry(one: Entry) -> str:
    text = _escaped(one.text)
    if not text:
        return ""
    return f"**{text}**" if one.strong else f"*{text}*" if one.slanted else text


def _escaped(text: str) -> str:
    """Text that stands for itself, on one line."""
    return _FIRST.sub(r"\1\\\2", _SIGNS.sub(r"\\\1", clean(text).replace("&", "&amp;")))

"""What a report is made of, before it is Markdown or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Block", "Code", "Entry", "Figure", "Folded", "Heading", "Items", "Table", "Text"]


@dataclass(frozen=True)
class Heading:
    """The title of what follows; 1 is the report's own."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; quiet where it is a note."""

    text: str
    quiet: bool = False


@dataclass(frozen=True)
class Items:
    """Short lines, one below the other."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """What can be typed, or was printed."""

    text: str


@dataclass(frozen=True)
class Entry:
    """What stands in a table; the best of its column is strong, a figure of others is slanted."""

    text: str
    strong: bool = False
    slanted: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under a header.

    Attributes:
        header: a word or two for each column.
        rows: as many entries each.
        words: how many of the first columns hold words; the others hold numbers.
        caption: what it shows.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    words: int = 1
    caption: str = ""

    @classmethod
    def of(
        cls,
        header: Sequence[str],
        rows: Sequence[Sequence[str | Entry]],
        words: int = 1,
        caption: str = "",
    ) -> Table:
        """A table whose entries may be plain texts."""
        entries = tuple(
            tuple(one if isinstance(one, Entry) else Entry(one) for one in row) for row in rows
        )
        return cls(tuple(header), entries, words, caption)


@dataclass(frozen=True)
class Figure:
    """A picture.

    Attributes:
        name: of its file, without an ending.
        picture: as SVG.
        caption: what it shows.
    """

    name: str
    picture: str
    caption: str


@dataclass(frozen=True)
class Folded:
    """What is shown when it is asked for."""

    summary: str
    blocks: tuple[Block, ...]


Block = Heading | Text | Items | Code | Table | Figure | Folded

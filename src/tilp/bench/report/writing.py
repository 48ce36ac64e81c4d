"""`write_report`: one report as HTML, and as Markdown with its pictures beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tilp._utils.files import new_file
from tilp.bench.report.blocks import Block, Figure, Folded
from tilp.bench.report.html import html
from tilp.bench.report.markdown import markdown
from tilp.pictures import standalone

__all__ = ["write_report"]


def write_report(folder: Path, name: str, title: str, blocks: Sequence[Block]) -> tuple[Path, Path]:
    """Write a report.

    Args:
        folder: where.
        name: of its files, without an ending.
        title: of the page.
        blocks: what it says.

    Returns:
        The HTML and the Markdown.
    """
    pictures = folder / f"{name}-figures"
    pictures.mkdir(parents=True, exist_ok=True)
    for figure in _figures(blocks):
        _write(pictures / f"{figure.name}.svg", standalone(figure.picture))
    page, text = folder / f"{name}.html", folder / f"{name}.md"
    _write(page, html(title, blocks))
    _write(text, markdown(blocks, pictures.name))
    return page, text


def _write(path: Path, text: str) -> None:
    with new_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _figures(blocks: Iterable[Block]) -> Iterable[Figure]:
    for block in blocks:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, Folded):
            yield from _figures(block.blocks)

"""Digest of everything in a graph, computed in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.graph.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tilp.graph.graph import TemporalGraph

BLOCK_SIZE = 200_000  # rows


class Column(Protocol):
    """An array, or something that reads slices of one."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> NDArray[Any]: ...


def graph_fingerprint(
    graph: TemporalGraph, column: Callable[[str], Column], block_size: int = BLOCK_SIZE
) -> str:
    """Return the SHA-256 digest of a graph, whose fact columns `column` gives by name."""
    digest = hashlib.sha256(f"{graph.unit.value} {graph.bounds}".encode())
    for name in ("subject", "relation", "object", "start", "end"):
        _update(digest, _array_blocks(column(name), block_size))
    for names in (graph.entities, graph.relations):
        _update(digest, _json_blocks(names, block_size))
    for name in ("start_text", "end_text"):
        _update(digest, _text_blocks(graph.texts, column(name), block_size))
    if graph.estimated.any():
        _update(digest, _array_blocks(graph.estimated, block_size))
    if graph.walked_only.any():
        digest.update(b"walked only")
        _update(digest, _array_blocks(graph.walked_only, block_size))
    for name, values in sorted(graph.attributes.items()):
        digest.update(name.encode())
        _update(digest, _array_blocks(values, block_size))
    return digest.hexdigest()


def _update(digest: hashlib._Hash, blocks: Iterator[Any]) -> None:
    for block in blocks:
        digest.update(block)


def _array_blocks(column: Column, size: int) -> Iterator[memoryview]:
    for begin in range(0, len(column), size):
        yield np.ascontiguousarray(column[begin : begin + size]).data


def _json_blocks(names: Vocabulary, size: int) -> Iterator[bytes]:
    """Yield what `write_json` makes of all names at once."""
    yield b"["
    for index, table in enumerate(names.slices(size)):
        yield (b"," if index else b"") + table.write_json().encode()[1:-1]
    yield b"]"


def _text_blocks(texts: pl.Series, indices: Column, size: int) -> Iterator[bytes]:
    """Yield texts by their indices, with line breaks between them."""
    for begin in range(0, len(indices), size):
        lines = texts.gather(indices[begin : begin + size]).str.join("\n").item()
        yield (b"\n" if begin else b"") + lines.encode()

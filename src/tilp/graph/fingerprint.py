"""A digest of all that a graph holds, in bounded memory."""

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

_BLOCK = 200_000  # rows


class Column(Protocol):
    """An array, or what gives parts of one."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> NDArray[Any]: ...


def fingerprint_of(graph: TemporalGraph, column: Callable[[str], Column]) -> str:
    """The SHA-256 digest of a graph.

    Args:
        graph: whose unit, splits, names, dates, marks and attributes.
        column: gives its columns of facts by their names.
    """
    digest = hashlib.sha256(f"{graph.unit.value} {graph.bounds}".encode())
    for name in ("subject", "relation", "object", "start", "end"):
        _add(digest, _parts(column(name)))
    for names in (graph.entities, graph.relations):
        _add(digest, _json(names))
    for name in ("start_text", "end_text"):
        _add(digest, _lines(graph.texts, column(name)))
    if graph.estimated.any():
        _add(digest, _parts(graph.estimated))
    if graph.walked_only.any():
        digest.update(b"walked only")
        _add(digest, _parts(graph.walked_only))
    for name, numbers in sorted(graph.attributes.items()):
        digest.update(name.encode())
        _add(digest, _parts(numbers))
    return digest.hexdigest()


def _add(digest: hashlib._Hash, pieces: Iterator[Any]) -> None:
    for piece in pieces:
        digest.update(piece)


def _parts(column: Column) -> Iterator[memoryview]:
    for begin in range(0, len(column), _BLOCK):
        yield np.ascontiguousarray(column[begin : begin + _BLOCK]).data


def _json(names: Vocabulary) -> Iterator[bytes]:
    """What `write_json` makes of all names at once."""
    yield b"["
    for number, table in enumerate(names.slices(_BLOCK)):
        yield (b"," if number else b"") + table.write_json().encode()[1:-1]
    yield b"]"


def _lines(texts: pl.Series, places: Column) -> Iterator[bytes]:
    """Texts by their places, with line breaks between them."""
    for begin in range(0, len(places), _BLOCK):
        lines = texts.gather(places[begin : begin + _BLOCK]).str.join("\n").item()
        yield (b"\n" if begin else b"") + lines.encode()

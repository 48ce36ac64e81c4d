"""A digest of columns, names and texts, in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.graph.vocabulary import Vocabulary

__all__ = ["Part", "digest_of"]

Part = bytes | NDArray[Any] | Vocabulary | tuple[pl.Series, NDArray[np.int32]]
"""Bytes as they are, an array's bytes, names as JSON, or texts by their places, a line each."""

_BLOCK = 200_000  # rows


def digest_of(parts: Iterable[Part]) -> str:
    """The SHA-256 digest of all parts, one after the other."""
    digest = hashlib.sha256()
    for part in parts:
        for piece in _pieces(part):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(part: Part) -> Iterator[Any]:
    match part:
        case bytes():
            yield part
        case Vocabulary():
            yield b"["
            for number, table in enumerate(part.slices(_BLOCK)):
                yield (b"," if number else b"") + table.write_json().encode()[1:-1]
            yield b"]"
        case (texts, places):
            for begin in range(0, len(places), _BLOCK):
                written = texts.gather(places[begin : begin + _BLOCK]).str.join("\n").item()
                yield (b"\n" if begin else b"") + written.encode()
        case _:
            for begin in range(0, len(part), _BLOCK):
                yield np.ascontiguousarray(part[begin : begin + _BLOCK]).data

"""Graphs and names as workers elsewhere have them: what walks never ask for comes when asked for.

Names and texts are many small strings, of which every process would have a copy of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from tilp.graph import TemporalGraph, Vocabulary

__all__ = ["Apart", "Far", "far"]

_OF_GRAPH = ("texts", "defects")


class Apart:
    """Attributes that travel apart from their object.

    Args:
        fetch: gives them by name.
    """

    def __init__(self, fetch: Callable[[], dict[str, Any]]) -> None:
        self.fetch = fetch


class Far:
    """An object some attributes of which are elsewhere until one of them is asked for."""

    def __getattr__(self, name: str) -> Any:
        held = vars(self)
        # Python itself asks for names with underscores, which are none of its attributes.
        if name.startswith("__") or "_apart" not in held:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        held.update(held["_apart"].fetch())
        del held["_apart"]
        return getattr(self, name)


class _FarVocabulary(Far, Vocabulary):
    """Names that are known by their number alone."""

    def __len__(self) -> int:
        return int(vars(self)["_size"])


class _FarGraph(Far, TemporalGraph):
    """A graph without the texts of its dates; it travels with the indexes that it has."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        # The files of a packed graph need not be there where it goes: its arrays travel.
        return object.__reduce_ex__(self, protocol)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "attributes": dict(self.attributes)}


def far(thing: Vocabulary | TemporalGraph) -> Far:
    """What travels in place of names or a graph."""
    held = {
        name: value
        for name, value in vars(thing).items()
        if not isinstance(getattr(type(thing), name, None), cached_property)
    }
    if isinstance(thing, Vocabulary):
        sent: Far = _FarVocabulary.__new__(_FarVocabulary)
        here = {"kind": held.pop("kind"), "_size": len(thing)}
        apart = held
    else:
        sent = _FarGraph.__new__(_FarGraph)
        apart = {name: held.pop(name) for name in _OF_GRAPH if name in held}
        here = held
    vars(sent).update(here, _apart=Apart(lambda: apart))
    return sent

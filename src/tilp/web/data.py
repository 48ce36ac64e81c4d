"""`DataView`: what the model was learned from, to be looked at and completed from."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.graph import SPLITS, TemporalGraph
from tilp.inspection import facts_over_time, inspect
from tilp.intervals import OPEN_END, OPEN_START, UNKNOWN, format_time

__all__ = ["DataView"]


class DataView:
    """Names, facts and figures of a graph, all splits together.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: TemporalGraph) -> None:
        self.graph = graph
        self._names = pl.Series([name.casefold() for name in graph.entities])
        index = graph.index(SPLITS)
        self._offsets, self._fact = index.offsets, index.fact
        with_itself = graph.subject[graph.subject == graph.object]
        twice = np.bincount(with_itself, minlength=len(graph.entities))
        self._counts = np.diff(index.offsets) - twice

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `inspect` finds, and how many facts start when."""
        try:
            found = facts_over_time(self.graph)
            texts = [format_time(time, self.graph.unit) for time in found.bins]
            over_time = {**asdict(found), "texts": texts}
        except TilpError:  # no date at all
            unknown = len(self.graph)
            over_time = {"bins": [], "texts": [], "splits": {}, "unknown": unknown, "outside": 0}
        return {"inspection": inspect(self.graph).to_json(), "over_time": over_time}

    def warm_up(self) -> None:
        """Do what the first request would wait for."""
        _ = self.summary
        self.entities("a", 1)
        self.facts(self.graph.entities.id(0), 0, 1)

    def relations(self) -> list[tuple[str, int]]:
        """Each relation and how many facts it has, in the order of their numbers."""
        counts = np.bincount(self.graph.relation, minlength=len(self.graph.relations))
        return list(zip(self.graph.relations, counts.tolist(), strict=True))

    def entities(self, text: str, limit: int) -> list[dict[str, Any]]:
        """Entities whose names begin with a text, then those that have it inside.

        Capital letters or not; of each kind those with most facts first. An entity whose id is
        the text comes before all.
        """
        wanted = text.strip().casefold()
        rank = np.full(len(self._names), 3)
        rank[self._names.str.contains(wanted, literal=True).to_numpy()] = 2
        rank[self._names.str.starts_with(wanted).to_numpy()] = 1
        rank[(self.graph.entities.ids == text.strip()).to_numpy()] = 0
        found = np.flatnonzero(rank < 3)
        best = found[np.lexsort((found, -self._counts[found], rank[found]))[:limit]]
        return [
            {
                "name": self.graph.entities.label(number),
                "id": self.graph.entities.id(number),
                "facts": int(self._counts[number]),
            }
            for number in best.tolist()
        ]

    def facts(self, entity: str, offset: int, limit: int) -> dict[str, Any]:
        """The facts of an entity, by their start, those without a date last.

        Raises:
            UnknownNameError: no such entity.
        """
        graph = self.graph
        number = graph.entities.find(entity)
        # What an entity has with itself stands twice in the index.
        rows = np.unique(self._fact[self._offsets[number] : self._offsets[number + 1]])
        start, end = graph.start[rows], graph.end[rows]
        first = np.where(start == UNKNOWN, np.where(end == UNKNOWN, OPEN_END, end), start)
        ordered = rows[np.lexsort((rows, end, first))]
        return {
            "entity": graph.entities.label(number),
            "id": graph.entities.id(number),
            "total": len(rows),
            "facts": [self._fact_json(row) for row in ordered[offset : offset + limit].tolist()],
        }

    def _fact_json(self, row: int) -> dict[str, Any]:
        graph = self.graph
        return {
            "subject": graph.entities.label(int(graph.subject[row])),
            "relation": graph.relations.label(int(graph.relation[row])),
            "object": graph.entities.label(int(graph.object[row])),
            "start": str(graph.texts[int(graph.start_text[row])]),
            "end": str(graph.texts[int(graph.end_text[row])]),
            "from": _number(graph.start, row),
            "to": _number(graph.end, row),
            "split": SPLITS[int(np.searchsorted(graph.bounds[1:], row, side="right"))],
        }


def _number(times: NDArray[np.int64], row: int) -> int | None:
    time = int(times[row])
    return None if time in (UNKNOWN, OPEN_START, OPEN_END) else time

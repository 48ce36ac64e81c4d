"""What a picture shows: a chain of entities, the links between them, and the link asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilp.time import (
    OPEN_END,
    OPEN_START,
    Interval,
    TemporalRelation,
    format_time,
    possible_relations,
    temporal_relation,
)
from tilp.types import Unit

__all__ = ["Chain", "Link"]


@dataclass(frozen=True, slots=True)
class Link:
    """A relation between two entities at a time.

    Attributes:
        label: its name.
        interval: when it holds; None where nothing is said of it.
        inverse: whether it leads from right to left.
        mark: a sign or two that join the edge to its interval.
        detail: what stands below its name beside the axis, such as its dates.
        word: how its interval lies to the one asked for; nothing for the latter.
        relation: the class of that word, where it has one.
    """

    label: str
    interval: Interval | None = None
    inverse: bool = False
    mark: str = ""
    detail: str = ""
    word: str = ""
    relation: TemporalRelation | None = None

    @classmethod
    def dated(
        cls, label: str, interval: Interval, unit: Unit, asked: Interval | None, **more: Any
    ) -> Link:
        """A link with its dates in words, and how they lie to the ones asked for.

        >>> Link.dated("won", Interval(1990, 1993), Unit.YEAR, Interval(1995, 1999)).word
        '2 years before'
        """
        word = "" if asked is None else _standing(interval, asked, unit)
        relation = None if asked is None else temporal_relation(interval, asked)
        return cls(
            label, interval, detail=_dates(interval, unit), word=word, relation=relation, **more
        )


@dataclass(frozen=True, slots=True)
class Chain:
    """Entities in a row, and what joins each to the next.

    Attributes:
        nodes: their names.
        links: one fewer than nodes; None between neighbours that nothing joins.
        asked: the link asked for.
        ends: the places of the two nodes that it joins.
        unit: of time; None: intervals only show an order, and have no dates.
        notes: lines of text below.
    """

    nodes: tuple[str, ...]
    links: tuple[Link | None, ...]
    asked: Link
    ends: tuple[int, int]
    unit: Unit | None = None
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> str:
        """The chain in words, for who cannot see it."""
        said = [
            _sentence(self.nodes[place], link, self.nodes[place + 1])
            for place, link in enumerate(self.links)
            if link is not None
        ]
        first, last = self.ends
        asked = _sentence(self.nodes[first], self.asked, self.nodes[last])
        return "; ".join([*said, f"asked: {asked}", *self.notes])


def _dates(interval: Interval, unit: Unit) -> str:
    """An interval as a line of text."""
    start, end = (format_time(time, unit) or "?" for time in (interval.start, interval.end))
    if start == end:
        return "no dates" if start == "?" else start
    return f"{start} – {end}"


def _standing(interval: Interval, asked: Interval, unit: Unit) -> str:
    """How an interval lies to the one asked for, as far as known ends tell (eq. 4)."""
    possible = possible_relations(interval, asked)
    if len(possible) > 1:
        in_order = [relation.value for relation in TemporalRelation if relation in possible]
        return "not known" if len(possible) == 3 else " or ".join(in_order)
    (relation,) = possible
    match relation:
        case TemporalRelation.BEFORE:
            times = interval.end, asked.start
        case TemporalRelation.AFTER:
            times = asked.end, interval.start
        case _:
            return relation.value
    if not all(OPEN_START < time < OPEN_END for time in times):
        return relation.value
    return f"{_length(times[1] - times[0], unit)} {relation.value}"


def _length(time: int, unit: Unit) -> str:
    name = "" if unit is Unit.INTEGER else f" {unit.value}{'' if time == 1 else 's'}"
    return f"{time:,}{name}"


def _sentence(here: str, link: Link, there: str) -> str:
    subject, object_ = (there, here) if link.inverse else (here, there)
    said = [f"{link.mark}: " * bool(link.mark) + f"{subject} {link.label} {object_}"]
    return ", ".join([*said, *filter(None, (link.detail, link.word))])

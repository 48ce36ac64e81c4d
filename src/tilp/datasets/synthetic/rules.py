"""The planted rules, and their confidence by exact joins over the facts before noise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tilp.datasets.synthetic.facts import RELATION_IDS, Facts, Ints
from tilp.graph import INVERSE_MARK
from tilp.time import TemporalRelation, temporal_relation_codes

Rates = NDArray[np.float64]

_CLASSES = tuple(TemporalRelation)


@dataclass(frozen=True)
class PlantedRule:
    """Rule that the world was made with, and its exact confidence.

    The confidence is the mean arriving rate over the facts of the head relation. For a fact
    (s, r, o, I) let N be the number of walks from s that satisfy the body and every temporal
    relation, where I is the interval of the head. The fact itself is no edge of a walk, and no walk
    takes an edge twice. Of these, N_o walks end in o. The confidence is the mean of N_o / N over
    the facts with N > 0. It is computed on all splits, before noise is added.

    Attributes:
        text: the rule, with the temporal relations of all pairs of intervals.
        relation: head relation.
        length: number of body atoms.
        confidence: mean arriving rate before noise; NaN if the body has no grounding.
        body: body relations in the order of the walk; ⁻¹ marks an inverse.
    """

    text: str
    relation: str
    length: int
    confidence: float
    body: tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """Rule without its confidence: temporal relations of pairs (1,2), (1,3), ..., (2,3), ..."""

    relation: str
    body: tuple[str, ...]
    times: tuple[TemporalRelation, ...]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Indexes of the two intervals of each temporal relation; the last is that of the head."""
        return list(combinations(range(len(self.body) + 1), 2))

    @property
    def text(self) -> str:
        """The rule in readable notation."""
        last = len(self.body) + 1
        atoms = [f"{name}(E{i},E{i + 1},I{i})" for i, name in enumerate(self.body, 1)]
        atoms += [
            f"{time.value}(I{i + 1},I{j + 1})"
            for (i, j), time in zip(self.pairs, self.times, strict=True)
        ]
        return f"{self.relation}(E1,E{last},I{last}) ← {' ∧ '.join(atoms)}"

    def planted(self, confidence: float) -> PlantedRule:
        """Return the rule with a confidence."""
        return PlantedRule(self.text, self.relation, len(self.body), confidence, self.body)


def _pattern(relation: str, body: str, times: str) -> Pattern:
    codes = {time.value[0]: time for time in TemporalRelation}
    return Pattern(relation, tuple(body.split()), tuple(codes[letter] for letter in times))


# b, t, a: before, touching, after, for the pairs (1,2), (1,3), ..., (2,3), ...
PATTERNS = (
    _pattern("receivedAward", "nominatedFor", "t"),
    _pattern("marriedTo", f"marriedTo{INVERSE_MARK}", "t"),
    _pattern("wonTitle", "wonTitle", "b"),
    _pattern("wonTitle", "wonTitle", "a"),
    _pattern("diedIn", "livesIn", "t"),
    _pattern("livesIn", "diedIn", "t"),
    _pattern("livesIn", "playsFor basedIn", "ttt"),
    _pattern("livesIn", "graduatedFrom universityIn", "tbt"),
    _pattern("citizenOf", "bornIn cityIn", "tbt"),
    _pattern("graduatedFrom", f"bornIn universityIn{INVERSE_MARK}", "tbt"),
    _pattern("graduatedFrom", "memberOfClub clubOf", "tat"),
    _pattern("graduatedFrom", f"livesIn universityIn{INVERSE_MARK}", "tat"),
    _pattern("memberOfClub", f"graduatedFrom clubOf{INVERSE_MARK}", "tbt"),
    _pattern("memberOfParty", "marriedTo memberOfParty", "ttt"),
    _pattern("memberOfParty", f"marriedTo{INVERSE_MARK} memberOfParty", "ttt"),
    _pattern("licensedBy", "playsFor playsInLeague governedBy", "tttttt"),
)
"""Patterns that the lives follow, some of them in both directions."""


class EdgeLists:
    """Facts by relation and direction, sorted by source."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sorted: dict[str, tuple[Ints, Ints]] = {}

    def leaving(self, name: str) -> tuple[Ints, Ints]:
        """Return the sorted sources of the edges of a relation, and their rows."""
        if name not in self._sorted:
            plain = name.removesuffix(INVERSE_MARK)
            rows = np.flatnonzero(self._facts.relation == RELATION_IDS[plain])
            column = self._facts.subject if plain == name else self._facts.object
            order = np.argsort(column[rows], kind="stable")
            self._sorted[name] = column[rows][order], rows[order]
        return self._sorted[name]


def arriving_rates(pattern: Pattern, facts: Facts, edges: EdgeLists, first: int = 0) -> Rates:
    """Return N_o / N of each fact of the head relation from row `first` on where N is above 0."""
    head = first + np.flatnonzero(facts.relation[first:] == RELATION_IDS[pattern.relation])
    entity = facts.subject[head]
    taken: list[Ints] = []
    relations = dict(zip(pattern.pairs, pattern.times, strict=True))
    for step, name in enumerate(pattern.body):
        walk, edge = _follow(entity, *edges.leaving(name))
        head, taken = head[walk], [rows[walk] for rows in taken]
        fits = _relate(facts, edge, head, relations[step, len(pattern.body)]) & (edge != head)
        for earlier, rows in enumerate(taken):
            fits &= _relate(facts, rows, edge, relations[earlier, step]) & (edge != rows)
        head, edge, taken = head[fits], edge[fits], [rows[fits] for rows in taken]
        entity = facts.subject[edge] if name.endswith(INVERSE_MARK) else facts.object[edge]
        taken.append(edge)
    walks = np.bincount(head, minlength=len(facts))
    arrived = np.bincount(head[entity == facts.object[head]], minlength=len(facts))
    has_walks = walks > 0
    rates: Rates = arrived[has_walks] / walks[has_walks]
    return rates


def _follow(entity: Ints, source: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Extend walks by every edge: return the index of the walk and the row of the edge."""
    low = np.searchsorted(source, entity, side="left")
    count = np.searchsorted(source, entity, side="right") - low
    walk = np.repeat(np.arange(len(entity)), count)
    nth = np.arange(len(walk)) - np.repeat(np.cumsum(count) - count, count)
    return walk, rows[low[walk] + nth]


def _relate(facts: Facts, row: Ints, other: Ints, relation: TemporalRelation) -> NDArray[np.bool_]:
    """Return True where the intervals of two facts have a temporal relation."""
    codes = temporal_relation_codes(
        facts.start[row], facts.end[row], facts.start[other], facts.end[other]
    )
    fits: NDArray[np.bool_] = codes == _CLASSES.index(relation)
    return fits


class RuleConfidences:
    """Mean arriving rates of the planted rules, computed block by block.

    This is exact: no walk of a planted rule leads from a place to people, and couples are in one
    block, so the facts of a block and of places contain every walk of its people.
    """

    def __init__(self, places: Facts) -> None:
        self._places = places
        self._sums = np.zeros(len(PATTERNS))
        self._counts = np.zeros(len(PATTERNS))
        self._add(places, 0)

    def add(self, block: Facts) -> None:
        """Add the facts of a block of people."""
        self._add(Facts.concatenate([self._places, block]), len(self._places))

    def _add(self, facts: Facts, first: int) -> None:
        edges = EdgeLists(facts)
        for index, pattern in enumerate(PATTERNS):
            rates = arriving_rates(pattern, facts, edges, first)
            self._sums[index] += rates.sum()
            self._counts[index] += len(rates)

    def rules(self) -> tuple[PlantedRule, ...]:
        """Return the planted rules with their confidence in all facts added."""
        means = np.divide(
            self._sums, self._counts, out=np.full(len(PATTERNS), np.nan), where=self._counts > 0
        )
        return tuple(
            pattern.planted(float(mean)) for pattern, mean in zip(PATTERNS, means, strict=True)
        )

"""The planted rules, and their confidence: exact joins over the truth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tilp.datasets.synthetic.facts import Facts, Ints, relation_id
from tilp.graph import INVERSE_MARK
from tilp.time import TemporalRelation, temporal_relation_codes

Rates = NDArray[np.float64]

_CLASSES = tuple(TemporalRelation)


@dataclass(frozen=True)
class PlantedRule:
    """A rule that the world was made with, and what it is worth in the truth.

    The confidence is the mean arriving rate over the head's facts, known by exact evaluation. For
    a fact (s, r, o, I) of the head relation let N be the number of walks from s that satisfy the
    body and every temporal relation, I being the head's interval; the fact itself is no edge of a
    walk, no walk takes an edge twice. Of these, N_o walks end in o. The confidence is the mean of
    N_o / N over the facts with N > 0. The facts are the whole truth: all splits, before noise and
    before dates went missing.

    Attributes:
        text: the rule, the relations of all pairs of intervals stated.
        relation: the head relation.
        length: the number of body atoms.
        confidence: the mean arriving rate in the truth; NaN if the body holds nowhere.
        body: the body relations in the order of the walk; ⁻¹ marks one walked backwards.
    """

    text: str
    relation: str
    length: int
    confidence: float
    body: tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """A rule without its confidence: temporal relations of pairs (1,2), (1,3), ..., (2,3), ..."""

    relation: str
    body: tuple[str, ...]
    times: tuple[TemporalRelation, ...]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Places of the two intervals of each temporal relation; the last is the head's."""
        return list(combinations(range(len(self.body) + 1), 2))

    @property
    def text(self) -> str:
        """The rule as people write it."""
        last = len(self.body) + 1
        atoms = [f"{name}(E{i},E{i + 1},I{i})" for i, name in enumerate(self.body, 1)]
        atoms += [
            f"{time.value}(I{i + 1},I{j + 1})"
            for (i, j), time in zip(self.pairs, self.times, strict=True)
        ]
        return f"{self.relation}(E1,E{last},I{last}) ← {' ∧ '.join(atoms)}"

    def planted(self, confidence: float) -> PlantedRule:
        """The rule with its confidence."""
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
"""What the lives are made to follow, some of it told from its other end too."""


class EdgeLists:
    """Facts by relation and direction, sorted by the entity they leave."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sorted: dict[str, tuple[Ints, Ints]] = {}

    def leaving(self, name: str) -> tuple[Ints, Ints]:
        """The entities that edges of the relation leave, in order, and the edges' rows."""
        if name not in self._sorted:
            plain = name.removesuffix(INVERSE_MARK)
            rows = np.flatnonzero(self._facts.relation == relation_id(plain))
            column = self._facts.subject if plain == name else self._facts.object
            order = np.argsort(column[rows], kind="stable")
            self._sorted[name] = column[rows][order], rows[order]
        return self._sorted[name]


def arriving_rates(pattern: Pattern, facts: Facts, edges: EdgeLists, first: int = 0) -> Rates:
    """N_o / N for each fact of the head relation from row ``first`` on, where N is above 0."""
    heads = first + np.flatnonzero(facts.relation[first:] == relation_id(pattern.relation))
    head, place = heads, facts.subject[heads]
    taken: list[Ints] = []
    wanted = dict(zip(pattern.pairs, pattern.times, strict=True))
    for step, name in enumerate(pattern.body):
        walk, edge = _follow(place, *edges.leaving(name))
        head, taken = head[walk], [rows[walk] for rows in taken]
        fits = _relate(facts, edge, head, wanted[step, len(pattern.body)]) & (edge != head)
        for earlier, rows in enumerate(taken):
            fits &= _relate(facts, rows, edge, wanted[earlier, step]) & (edge != rows)
        head, edge, taken = head[fits], edge[fits], [rows[fits] for rows in taken]
        place = facts.subject[edge] if name.endswith(INVERSE_MARK) else facts.object[edge]
        taken.append(edge)
    walks = np.bincount(head, minlength=len(facts))
    right = np.bincount(head[place == facts.object[head]], minlength=len(facts))
    fired = walks > 0
    rates: Rates = right[fired] / walks[fired]
    return rates


def _follow(place: Ints, leaving: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Every edge from every place: which walk goes on, and along which row."""
    low = np.searchsorted(leaving, place, side="left")
    count = np.searchsorted(leaving, place, side="right") - low
    walk = np.repeat(np.arange(len(place)), count)
    nth = np.arange(len(walk)) - np.repeat(np.cumsum(count) - count, count)
    return walk, rows[low[walk] + nth]


def _relate(facts: Facts, row: Ints, other: Ints, wanted: TemporalRelation) -> NDArray[np.bool_]:
    """Whether the one interval lies to the other as wanted."""
    codes = temporal_relation_codes(
        facts.start[row], facts.end[row], facts.start[other], facts.end[other]
    )
    fits: NDArray[np.bool_] = codes == _CLASSES.index(wanted)
    return fits


class Confidences:
    """Mean arriving rates of the planted rules, gathered block by block.

    No walk of a planted rule leads from a place to people, and couples are of one block: so a
    block's facts and the places' hold every walk of the block's people, and nothing is lost.
    """

    def __init__(self, places: Facts) -> None:
        self._places = places
        self._sums = np.zeros(len(PATTERNS))
        self._counts = np.zeros(len(PATTERNS))
        self._add(places, 0)

    def add(self, block: Facts) -> None:
        """Take in the truth about a block's people."""
        self._add(Facts.concatenate([self._places, block]), len(self._places))

    def _add(self, facts: Facts, first: int) -> None:
        edges = EdgeLists(facts)
        for number, pattern in enumerate(PATTERNS):
            rates = arriving_rates(pattern, facts, edges, first)
            self._sums[number] += rates.sum()
            self._counts[number] += len(rates)

    def rules(self) -> tuple[PlantedRule, ...]:
        """The planted rules with their confidence in all that was taken in."""
        means = np.divide(
            self._sums, self._counts, out=np.full(len(PATTERNS), np.nan), where=self._counts > 0
        )
        return tuple(
            pattern.planted(float(mean)) for pattern, mean in zip(PATTERNS, means, strict=True)
        )

"""`world`: put places and lives together and add noise; planted rules and their confidence."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ids, Ints, Mask
from tilp.datasets.people import Block, simulate_lives
from tilp.datasets.places import (
    RELATION_IDS,
    Facts,
    Places,
    add_errors,
    draw_people_names,
    draw_splits,
    make_places,
    remove_dates,
)
from tilp.errors import TilpError
from tilp.graph import INVERSE_MARK, TemporalGraph, Vocabulary
from tilp.time import TemporalRelation, temporal_relation_codes

_CLASSES = tuple(TemporalRelation)


@dataclass(frozen=True)
class PlantedRule:
    """Rule that the world was made with, and its exact confidence.

    The confidence is the mean arriving rate over the facts of the head relation. For a fact
    (s, r, o, I) let N be the number of walks from s that satisfy the body and every temporal
    relation, where I is the interval of the head. The fact itself is no edge of a walk, and no walk
    takes an edge twice. Of these, N_o walks end in o. The confidence is the mean of N_o / N over
    the facts with N > 0. It is computed on all splits, before noise is added.
    """

    text: str  # with the temporal relations of all pairs of intervals
    relation: str  # of the head
    length: int  # number of body atoms
    confidence: float  # mean arriving rate before noise; NaN if the body has no grounding
    body: tuple[str, ...]  # relations in the order of the walk; ⁻¹ marks an inverse


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
        related = zip(self.pairs, self.times, strict=True)
        atoms += [f"{time.value}(I{i + 1},I{j + 1})" for (i, j), time in related]
        return f"{self.relation}(E1,E{last},I{last}) ← {' ∧ '.join(atoms)}"


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


def _leaving_edges(facts: Facts, name: str) -> tuple[Ints, Ints]:
    """Return the sorted sources of the edges of a relation or an inverse, and their rows."""
    plain = name.removesuffix(INVERSE_MARK)
    rows = np.flatnonzero(facts.relation == RELATION_IDS[plain])
    column = facts.subject if plain == name else facts.object
    order = np.argsort(column[rows], kind="stable")
    return column[rows][order], rows[order]


def _arriving_rates(
    pattern: Pattern, facts: Facts, leaving: Callable[[str], tuple[Ints, Ints]], first: int
) -> Floats:
    """Return N_o / N of each fact of the head relation from row `first` on where N is above 0."""
    head = first + np.flatnonzero(facts.relation[first:] == RELATION_IDS[pattern.relation])
    entity = facts.subject[head]
    taken: list[Ints] = []
    relations = dict(zip(pattern.pairs, pattern.times, strict=True))
    for step, name in enumerate(pattern.body):
        walk, edge = _follow(entity, *leaving(name))
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
    rates: Floats = arrived[has_walks] / walks[has_walks]
    return rates


def _follow(entity: Ints, source: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Extend walks by every edge: return the index of the walk and the row of the edge."""
    low = np.searchsorted(source, entity, side="left")
    count = np.searchsorted(source, entity, side="right") - low
    walk = np.repeat(np.arange(len(entity)), count)
    nth = np.arange(len(walk)) - np.repeat(np.cumsum(count) - count, count)
    return walk, rows[low[walk] + nth]


def _relate(facts: Facts, row: Ints, other: Ints, relation: TemporalRelation) -> Mask:
    """Return True where the intervals of two facts have a temporal relation."""
    ends = facts.start[row], facts.end[row], facts.start[other], facts.end[other]
    fits: Mask = temporal_relation_codes(*ends) == _CLASSES.index(relation)
    return fits


class RuleConfidences:
    """Mean arriving rates of the planted rules, computed block by block.

    This is exact: no walk of a planted rule leads from a place to people, and couples are in one
    block, so the facts of a block and of places contain every walk of its people.
    """

    def __init__(self, places: Facts) -> None:
        self._places = places
        self._sums, self._counts = np.zeros((2, len(PATTERNS)))
        self._add(places, 0)

    def add(self, block: Facts) -> None:
        """Add the facts of a block of people."""
        self._add(Facts.join([self._places, block]), len(self._places))

    def _add(self, facts: Facts, first: int) -> None:
        leaving = cache(partial(_leaving_edges, facts))
        for index, pattern in enumerate(PATTERNS):
            rates = _arriving_rates(pattern, facts, leaving, first)
            self._sums[index] += rates.sum()
            self._counts[index] += len(rates)

    def rules(self) -> tuple[PlantedRule, ...]:
        """Return the planted rules with their confidence in all facts added."""
        with np.errstate(invalid="ignore"):  # a body without a grounding
            means = (self._sums / self._counts).tolist()
        rules = zip(PATTERNS, means, strict=True)
        return tuple(PlantedRule(p.text, p.relation, len(p.body), m, p.body) for p, m in rules)


MIN_SIZE, MAX_SIZE = 1_000, 20_000_000

_COLUMNS = ("subject", "relation", "object", "start", "end")
_BLOCK_SIZE = 20_000  # people whose lives are made at once: bounds the memory
_FACTS_PER_PERSON = 10.5  # about; only for choosing how many people to start with
_PLACE_FACTS_PER_PERSON = 0.7


@dataclass(frozen=True, eq=False)
class WorldTables:
    """The world as columns, one row for each fact."""

    entity_labels: list[str]  # all different
    relation_labels: list[str]
    subject: Ids
    relation: Ids
    object: Ids
    start: Ints  # year, `UNKNOWN` if it is missing
    end: Ints
    split: NDArray[np.uint8]  # 0 train, 1 valid, 2 test
    attributes: Mapping[str, Floats]  # NaN if missing
    rules: tuple[PlantedRule, ...]  # with their confidence before noise

    def __len__(self) -> int:
        return len(self.subject)


@dataclass(frozen=True, eq=False)
class World:
    """Synthetic graph and the rules that were planted in it."""

    graph: TemporalGraph
    rules: tuple[PlantedRule, ...]


def world(seed: int = 0, size: int = 10_000) -> World:
    """Make a small world with planted rules; the same seed and size make the same world.

    Args:
        seed: random seed, 0 by default; any whole number from 0.
        size: approximate number of facts, 10,000 by default; from a thousand to twenty million.

    >>> made = world(seed=0, size=1_000)
    >>> print(made.rules[0].text)
    receivedAward(E1,E2,I2) ← nominatedFor(E1,E2,I1) ∧ touching(I1,I2)
    """
    tables = make_tables(seed, size)
    graph = TemporalGraph.from_arrays(
        Vocabulary.of("entity", pl.Series(tables.entity_labels, dtype=pl.String)),
        Vocabulary.of("relation", pl.Series(tables.relation_labels, dtype=pl.String)),
        {name: getattr(tables, name) for name in _COLUMNS},
        tables.split,
        attributes=tables.attributes,
    )
    return World(graph, tables.rules)


def make_tables(
    seed: int, size: int, *, noisy: bool = True, block_size: int = _BLOCK_SIZE
) -> WorldTables:
    """Make the world as plain columns, in blocks of people; without errors unless `noisy`."""
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise TilpError(
            f"a world of {size:,} facts is not possible; choose a size from {MIN_SIZE:,}, below "
            f"which planted rules have too little support, to {MAX_SIZE:,}, above which it would "
            "not fit in the memory of a usual machine"
        )
    if seed < 0:
        raise TilpError(f"the seed is {seed}; choose a whole number from 0")
    # Each part has its own random stream, so that noise does not change the lives.
    root = np.random.SeedSequence(seed)
    place_rng, place_noise_rng, name_rng = (np.random.default_rng(s) for s in root.spawn(3))
    places = make_places(place_rng, int(size / (_FACTS_PER_PERSON + _PLACE_FACTS_PER_PERSON)))
    parts: dict[str, list[NDArray[Any]]] = defaultdict(list)

    def add(rng: np.random.Generator, truth: Facts) -> None:
        parts["split"].append(draw_splits(rng, truth))
        facts = remove_dates(rng, add_errors(rng, truth)) if noisy else truth
        for name, column in zip(_COLUMNS, facts.columns, strict=True):
            is_time = name in ("start", "end")
            parts[name].append(column if is_time else column.astype(np.int32))

    def join(name: str) -> NDArray[Any]:
        # Its parts are dropped, so that only one column is in memory twice.
        return np.concatenate(parts.pop(name))

    add(place_noise_rng, places.facts)
    confidences = RuleConfidences(places.facts)
    births, heights = [], []
    n_people, missing, complete = 0, size - len(places.facts), False
    while not complete:
        life_rng, noise_rng = (np.random.default_rng(s) for s in root.spawn(1)[0].spawn(2))
        count = min(block_size, int(1.05 * missing / _FACTS_PER_PERSON) + 20)
        first = len(places.labels) + n_people
        block, complete = _trim(simulate_lives(life_rng, places, first, count), first, missing)
        confidences.add(block.facts)
        add(noise_rng, block.facts)
        births.append(block.birth)
        heights.append(block.height)
        n_people += len(block.birth)
        missing -= len(block.facts)
    return WorldTables(
        entity_labels=places.labels + draw_people_names(name_rng, n_people),
        relation_labels=list(RELATION_IDS),
        **{name: join(name) for name in (*_COLUMNS, "split")},
        attributes=_attributes(places, np.concatenate(births), np.concatenate(heights)),
        rules=confidences.rules(),
    )


def _trim(block: Block, first: int, missing: int) -> tuple[Block, bool]:
    """Return as many people as come closest to the missing facts; True if there were enough."""
    facts = block.facts.distinct()
    owner = np.maximum(facts.subject, facts.object) - first
    total = np.cumsum(np.bincount(owner, minlength=len(block.birth)))
    if total[-1] < missing:
        return Block(facts, block.birth, block.height), False
    count = int(np.argmin(np.abs(total - missing))) + 1
    return Block(facts[owner < count], block.birth[:count], block.height[:count]), True


def _attributes(places: Places, birth: Ints, height: Floats) -> dict[str, Floats]:
    """Return birth year and height (cm) of people, population of cities."""
    n_places, first = len(places.labels), places.base["city"]
    birth_year, heights, population = np.full((3, n_places + len(birth)), np.nan)
    birth_year[n_places:], heights[n_places:] = birth, height
    population[first : first + len(places.population)] = 40_000.0 * places.population
    return {"birthYear": birth_year, "height": heights, "population": population}

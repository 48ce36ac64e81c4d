"""A believable small world, made from a seed, with rules planted in it.

People are born, study, play for teams that move, settle, marry, join clubs and parties, are
nominated for prizes, win and die; teams win titles season after season. The lives follow the
planted rules with given chances; then the records spoil some of it: errors, lost dates, splits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.datasets.synthetic import names
from tilp.datasets.synthetic.facts import RELATIONS, Facts, lose_dates, misreport, split
from tilp.datasets.synthetic.people import Block, live
from tilp.datasets.synthetic.places import Places, found
from tilp.datasets.synthetic.rules import Confidences, PlantedRule
from tilp.errors import TilpError
from tilp.graph import TemporalGraph, Vocabulary

MIN_SIZE, MAX_SIZE = 1_000, 20_000_000

_BLOCK = 20_000  # people whose lives are made at once: bounds the memory
_FACTS_PER_PERSON = 10.5  # about; only for choosing how many people to begin with
_PLACE_FACTS_PER_PERSON = 0.7


@dataclass(frozen=True, eq=False)
class WorldTables:
    """The world as columns, one row a fact.

    Attributes:
        entity_labels: names of the entities; all different.
        relation_labels: names of the relations.
        subject: entity of each fact; likewise `relation` and `object`.
        start: year of each fact's start, `UNKNOWN` where it is lost; likewise `end`.
        split: 0 train, 1 valid, 2 test.
        attributes: numbers of entities by name, NaN where there is none.
        rules: the planted rules and their confidence in the truth.
    """

    entity_labels: list[str]
    relation_labels: list[str]
    subject: NDArray[np.int32]
    relation: NDArray[np.int32]
    object: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    split: NDArray[np.uint8]
    attributes: Mapping[str, NDArray[np.float64]]
    rules: tuple[PlantedRule, ...]

    def __len__(self) -> int:
        return len(self.subject)


@dataclass(frozen=True, eq=False)
class World:
    """A graph, and the rules that were planted in it."""

    graph: TemporalGraph
    rules: tuple[PlantedRule, ...]


def world(seed: int = 0, size: int = 10_000) -> World:
    """Make a small world with planted rules; the same seed and size make the same world.

    Args:
        seed: any whole number from 0.
        size: about how many facts, from a thousand to twenty million.

    >>> made = world(seed=0, size=1_000)
    >>> print(made.rules[0].text)
    receivedAward(E1,E2,I2) ← nominatedFor(E1,E2,I1) ∧ touching(I1,I2)
    """
    made = tables(seed, size)
    graph = TemporalGraph.from_arrays(
        Vocabulary.of("entity", pl.Series(made.entity_labels, dtype=pl.String)),
        Vocabulary.of("relation", pl.Series(made.relation_labels, dtype=pl.String)),
        {name: getattr(made, name) for name in ("subject", "relation", "object", "start", "end")},
        made.split,
        attributes=made.attributes,
    )
    return World(graph, made.rules)


def tables(seed: int, size: int, *, spoiled: bool = True) -> WorldTables:
    """Make the world as plain columns, in blocks of people.

    Args:
        seed: any whole number from 0.
        size: about how many facts, from a thousand to twenty million.
        spoiled: False tells the same world as it was: no errors, no lost dates.
    """
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise TilpError(
            f"a world of {size:,} facts cannot be made: below {MIN_SIZE:,} the planted rules have"
            f" too few facts to show, above {MAX_SIZE:,} it would not fit in the memory of a usual"
            " machine; choose a size between"
        )
    if seed < 0:
        raise TilpError(f"the seed is {seed}; choose a whole number from 0")
    # Each part has its own stream, so that spoiling the records changes nothing about the lives.
    root = np.random.SeedSequence(seed)
    place_rng, place_records, name_rng = (np.random.default_rng(s) for s in root.spawn(3))
    places = found(place_rng, int(size / (_FACTS_PER_PERSON + _PLACE_FACTS_PER_PERSON)))
    columns = _Columns(spoiled)
    columns.add(place_records, places.facts)
    confidences = Confidences(places.facts)
    births, heights = [], []
    people, complete = 0, False
    while not complete:
        life_rng, records = (np.random.default_rng(s) for s in root.spawn(1)[0].spawn(2))
        missing = size - columns.count
        wanted = min(_BLOCK, int(1.05 * missing / _FACTS_PER_PERSON) + 20)
        first = len(places.labels) + people
        block, complete = _cut(live(life_rng, places, first, wanted), first, missing)
        confidences.add(block.facts)
        columns.add(records, block.facts)
        births.append(block.birth)
        heights.append(block.height)
        people += len(block.birth)
    return WorldTables(
        entity_labels=places.labels + names.people(name_rng, people),
        relation_labels=list(RELATIONS),
        subject=columns.join("subject"),
        relation=columns.join("relation"),
        object=columns.join("object"),
        start=columns.join("start"),
        end=columns.join("end"),
        split=columns.join("split"),
        attributes=_attributes(places, np.concatenate(births), np.concatenate(heights)),
        rules=confidences.rules(),
    )


class _Columns:
    """The columns of the tables, gathered part by part."""

    def __init__(self, spoiled: bool) -> None:
        self.count = 0
        self._spoiled = spoiled
        self._parts: dict[str, list[NDArray[Any]]] = defaultdict(list)

    def add(self, rng: np.random.Generator, truth: Facts) -> None:
        """Take in facts as the records have them."""
        self.count += len(truth)
        self._parts["split"].append(split(rng, truth))
        facts = lose_dates(rng, misreport(rng, truth)) if self._spoiled else truth
        for name in ("subject", "relation", "object"):
            self._parts[name].append(getattr(facts, name).astype(np.int32))
        for name in ("start", "end"):
            self._parts[name].append(getattr(facts, name))

    def join(self, name: str) -> NDArray[Any]:
        """A column as a whole; its parts are given up, so that only one is held twice."""
        return np.concatenate(self._parts.pop(name))


def _cut(block: Block, first: int, missing: int) -> tuple[Block, bool]:
    """The first people of a block, as many as come closest to the missing facts; whether enough.

    Only facts among these people and places are kept.
    """
    facts = block.facts.distinct()
    people = len(block.birth)
    owner = np.maximum(facts.subject, facts.object) - first
    total = np.cumsum(np.bincount(owner, minlength=people))
    if total[-1] < missing:
        return Block(facts, block.birth, block.height), False
    kept = int(np.argmin(np.abs(total - missing))) + 1
    return Block(facts[owner < kept], block.birth[:kept], block.height[:kept]), True


def _attributes(
    places: Places, birth: NDArray[np.int64], height: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Numbers of entities: birth year and height (cm) of people, inhabitants of cities."""
    none = np.full(len(places.labels), np.nan)
    population = np.concatenate([none, np.full(len(birth), np.nan)])
    first = places.base["city"]
    population[first : first + len(places.population)] = 40_000.0 * places.population
    return {
        "birthYear": np.concatenate([none, birth.astype(np.float64)]),
        "height": np.concatenate([none, height]),
        "population": population,
    }

"""`world`: put places and lives together, block by block, and add noise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.datasets.synthetic import names
from tilp.datasets.synthetic.facts import RELATIONS, Facts, add_errors, draw_splits, remove_dates
from tilp.datasets.synthetic.people import Block, simulate_lives
from tilp.datasets.synthetic.places import Places, make_places
from tilp.datasets.synthetic.rules import PlantedRule, RuleConfidences
from tilp.errors import TilpError
from tilp.graph import TemporalGraph, Vocabulary

MIN_SIZE, MAX_SIZE = 1_000, 20_000_000

_BLOCK_SIZE = 20_000  # people whose lives are made at once: bounds the memory
_FACTS_PER_PERSON = 10.5  # about; only for choosing how many people to start with
_PLACE_FACTS_PER_PERSON = 0.7


@dataclass(frozen=True, eq=False)
class WorldTables:
    """The world as columns, one row for each fact.

    Attributes:
        entity_labels: names of the entities; all different.
        relation_labels: names of the relations.
        subject: entity id of each fact; likewise `relation` and `object`.
        start: first year of each fact, `UNKNOWN` if it is missing; likewise `end`.
        split: 0 train, 1 valid, 2 test.
        attributes: numbers of entities by attribute name, NaN if missing.
        rules: planted rules, with their confidence before noise.
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
    """Synthetic graph and the rules that were planted in it."""

    graph: TemporalGraph
    rules: tuple[PlantedRule, ...]


def world(seed: int = 0, size: int = 10_000) -> World:
    """Make a small world with planted rules; the same seed and size make the same world.

    Args:
        seed: random seed, 0 by default; any whole number from 0.
        size: approximate number of facts, 10,000 by default; from a thousand to twenty million.

    Raises:
        TilpError: seed or size out of range.

    >>> made = world(seed=0, size=1_000)
    >>> print(made.rules[0].text)
    receivedAward(E1,E2,I2) ← nominatedFor(E1,E2,I1) ∧ touching(I1,I2)
    """
    tables = make_tables(seed, size)
    columns = ("subject", "relation", "object", "start", "end")
    graph = TemporalGraph.from_arrays(
        Vocabulary.of("entity", pl.Series(tables.entity_labels, dtype=pl.String)),
        Vocabulary.of("relation", pl.Series(tables.relation_labels, dtype=pl.String)),
        {name: getattr(tables, name) for name in columns},
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
    columns = _Columns(noisy)
    columns.add(place_noise_rng, places.facts)
    confidences = RuleConfidences(places.facts)
    births, heights = [], []
    n_people, complete = 0, False
    while not complete:
        life_rng, noise_rng = (np.random.default_rng(s) for s in root.spawn(1)[0].spawn(2))
        missing = size - columns.count
        count = min(block_size, int(1.05 * missing / _FACTS_PER_PERSON) + 20)
        first = len(places.labels) + n_people
        block, complete = _trim(simulate_lives(life_rng, places, first, count), first, missing)
        confidences.add(block.facts)
        columns.add(noise_rng, block.facts)
        births.append(block.birth)
        heights.append(block.height)
        n_people += len(block.birth)
    return WorldTables(
        entity_labels=places.labels + names.people(name_rng, n_people),
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
    """Columns of the tables, collected part by part."""

    def __init__(self, noisy: bool) -> None:
        self.count = 0
        self._noisy = noisy
        self._parts: dict[str, list[NDArray[Any]]] = defaultdict(list)

    def add(self, rng: np.random.Generator, truth: Facts) -> None:
        """Append facts, after noise."""
        self.count += len(truth)
        self._parts["split"].append(draw_splits(rng, truth))
        facts = remove_dates(rng, add_errors(rng, truth)) if self._noisy else truth
        for name in ("subject", "relation", "object"):
            self._parts[name].append(getattr(facts, name).astype(np.int32))
        for name in ("start", "end"):
            self._parts[name].append(getattr(facts, name))

    def join(self, name: str) -> NDArray[Any]:
        """Concatenate a column and drop its parts, so that only one column is in memory twice."""
        return np.concatenate(self._parts.pop(name))


def _trim(block: Block, first: int, missing: int) -> tuple[Block, bool]:
    """Return as many people as come closest to the missing facts; True if there were enough.

    Drops facts with the people who are left out.
    """
    facts = block.facts.distinct()
    owner = np.maximum(facts.subject, facts.object) - first
    total = np.cumsum(np.bincount(owner, minlength=len(block.birth)))
    if total[-1] < missing:
        return Block(facts, block.birth, block.height), False
    count = int(np.argmin(np.abs(total - missing))) + 1
    return Block(facts[owner < count], block.birth[:count], block.height[:count]), True


def _attributes(
    places: Places, birth: NDArray[np.int64], height: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return birth year and height (cm) of people, population of cities."""
    no_values = np.full(len(places.labels), np.nan)
    population = np.concatenate([no_values, np.full(len(birth), np.nan)])
    first = places.base["city"]
    population[first : first + len(places.population)] = 40_000.0 * places.population
    return {
        "birthYear": np.concatenate([no_values, birth.astype(np.float64)]),
        "height": np.concatenate([no_values, height]),
        "population": population,
    }

"""`world`: put places and lives together and add noise; planted rules and their confidence."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ids, Ints, Mask, ranges_to_indices
from tilp.datasets import places as of_places
from tilp.datasets.people import Lives
from tilp.datasets.places import RELATION_IDS, Facts, Places
from tilp.errors import TilpError
from tilp.graph import INVERSE_MARK, TemporalGraph, Vocabulary
from tilp.time import TemporalRelation, temporal_relation_codes

_CLASSES = tuple(TemporalRelation)
_LETTERS = [relation.value[0] for relation in _CLASSES]


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


def _read_rule(relation: str, body: str, times: str) -> tuple[PlantedRule, dict[Any, int]]:
    """Return a rule of the world's file, and the temporal relation of each pair of intervals."""
    names = tuple(body.split())
    last = len(names) + 1
    pairs = combinations(range(last), 2)  # the last interval is the head's
    codes = {pair: _LETTERS.index(letter) for pair, letter in zip(pairs, times, strict=True)}
    atoms = [f"{name}(E{i},E{i + 1},I{i})" for i, name in enumerate(names, 1)]
    atoms += [f"{_CLASSES[code].value}(I{i + 1},I{j + 1})" for (i, j), code in codes.items()]
    text = f"{relation}(E1,E{last},I{last}) ← {' ∧ '.join(atoms)}"
    return PlantedRule(text, relation, len(names), math.nan, names), codes


_RULES = [_read_rule(*rule) for rule in of_places.WORLD["rules"]]


def _sum_arriving_rates(facts: Facts, first: int) -> Floats:
    """Return the sum and the count of the arriving rates of each rule, of heads from a row on."""

    @cache
    def leaving(name: str) -> tuple[Ints, Ints]:
        """Return the sorted sources of the edges of a directed relation, and their rows."""
        plain = name.removesuffix(INVERSE_MARK)
        rows = np.flatnonzero(facts.relation == RELATION_IDS[plain])
        source = (facts.subject if plain == name else facts.object)[rows]
        order = np.argsort(source, kind="stable")
        return source[order], rows[order]

    def related(row: Ints, other: Ints, code: int) -> Mask:
        """Return where two different facts have a temporal relation."""
        ends = facts.start[row], facts.end[row], facts.start[other], facts.end[other]
        fits: Mask = (temporal_relation_codes(*ends) == code) & (row != other)
        return fits

    sums = np.zeros((2, len(_RULES)))
    for index, (rule, codes) in enumerate(_RULES):
        head = first + np.flatnonzero(facts.relation[first:] == RELATION_IDS[rule.relation])
        entity, taken = facts.subject[head], list[Ints]()
        for step, name in enumerate(rule.body):
            source, rows = leaving(name)
            low, high = (np.searchsorted(source, entity, side) for side in ("left", "right"))
            edge = rows[ranges_to_indices(low, high)[1]]
            head, *taken = (np.repeat(walked, high - low) for walked in (head, *taken))
            fits = related(edge, head, codes[step, rule.length])
            for earlier, walked in enumerate(taken):
                fits &= related(walked, edge, codes[earlier, step])
            head, *taken = (walked[fits] for walked in (head, *taken, edge))
            end = facts.subject if name.endswith(INVERSE_MARK) else facts.object
            entity = end[taken[-1]]
        walks = np.bincount(head, minlength=len(facts))
        arrived = np.bincount(head[entity == facts.object[head]], minlength=len(facts))
        rates = arrived[walks > 0] / walks[walks > 0]
        sums[:, index] = rates.sum(), len(rates)
    return sums


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
    entities = Vocabulary.of("entity", pl.Series(tables.entity_labels, dtype=pl.String))
    relations = Vocabulary.of("relation", pl.Series(tables.relation_labels, dtype=pl.String))
    columns = {name: getattr(tables, name) for name in _COLUMNS}
    names, attributes = (entities, relations), tables.attributes
    graph = TemporalGraph.from_arrays(*names, columns, tables.split, attributes=attributes)
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
    places = Places(place_rng, int(size / (_FACTS_PER_PERSON + _PLACE_FACTS_PER_PERSON)))
    parts: dict[str, list[NDArray[Any]]] = defaultdict(list)

    def add(rng: np.random.Generator, truth: Facts) -> None:
        parts["split"].append(of_places.draw_splits(rng, truth))
        facts = of_places.remove_dates(rng, of_places.add_errors(rng, truth)) if noisy else truth
        for name, column in zip(_COLUMNS, facts.columns, strict=True):
            is_time = name in ("start", "end")
            parts[name].append(column if is_time else column.astype(np.int32))

    def join(name: str) -> NDArray[Any]:
        # Its parts are dropped, so that only one column is in memory twice.
        return np.concatenate(parts.pop(name))

    add(place_noise_rng, places.facts)
    rates = _sum_arriving_rates(places.facts, 0)
    births, heights = [], []
    n_people, missing, complete = 0, size - len(places.facts), False
    while not complete:
        life_rng, noise_rng = (np.random.default_rng(s) for s in root.spawn(1)[0].spawn(2))
        count = min(block_size, int(1.05 * missing / _FACTS_PER_PERSON) + 20)
        first = len(places.labels) + n_people
        lives = Lives(life_rng, places, first, count)
        # As many people as come closest to the missing facts.
        owner = np.maximum(lives.facts.subject, lives.facts.object) - first
        total = np.cumsum(np.bincount(owner, minlength=count))
        complete = bool(total[-1] >= missing)
        if complete:
            count = int(np.argmin(np.abs(total - missing))) + 1
        facts = lives.facts[owner < count]
        # No walk of a planted rule leads from a place to people, and couples are in one block: so
        # the facts of a block and of places contain every walk of its people.
        rates += _sum_arriving_rates(Facts.join([places.facts, facts]), len(places.facts))
        add(noise_rng, facts)
        births.append(lives.birth[:count])
        heights.append(lives.height[:count])
        n_people += count
        missing -= len(facts)
    with np.errstate(invalid="ignore"):  # a body without a grounding
        means = (rates[0] / rates[1]).tolist()
    rules = (replace(rule, confidence=m) for (rule, _), m in zip(_RULES, means, strict=True))
    return WorldTables(
        entity_labels=places.labels + of_places.draw_people_names(name_rng, n_people),
        relation_labels=list(RELATION_IDS),
        **{name: join(name) for name in (*_COLUMNS, "split")},
        attributes=_attributes(places, np.concatenate(births), np.concatenate(heights)),
        rules=tuple(rules),
    )


def _attributes(places: Places, birth: Ints, height: Floats) -> dict[str, Floats]:
    """Return birth year and height (cm) of people, population of cities."""
    n_places, first = len(places.labels), places.base["city"]
    birth_year, heights, population = np.full((3, n_places + len(birth)), np.nan)
    birth_year[n_places:], heights[n_places:] = birth, height
    population[first : first + len(places.population)] = 40_000.0 * places.population
    return {"birthYear": birth_year, "height": heights, "population": population}

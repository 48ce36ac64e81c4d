"""The people of a block, and the draws that their lives are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp.datasets.bundled.facts import NOW, Ints
from tilp.datasets.bundled.places import Places

__all__ = ["People", "born", "elsewhere", "happens", "mostly"]

_BIRTHS = (1890, 1981)
_LIFETIME = (74.0, 11.0)
_SHORTEST_LIFE, _LONGEST_LIFE = 42, 100
_ATHLETES, _ARTISTS = 0.4, 0.3  # shares of the people; the others are neither
_STAYS_IN_COUNTRY = 0.5


@dataclass(frozen=True)
class People:
    """The people of a block; cities and countries are numbered within their kind."""

    number: Ints
    city: Ints
    country: Ints
    birth: Ints
    death: Ints
    until: Ints  # death, or the year of the records
    athlete: NDArray[np.bool_]
    artist: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.number)


def happens(rng: np.random.Generator, chance: float, count: int) -> NDArray[np.bool_]:
    """Whether something happens, each time with that chance."""
    return rng.random(count) < chance


def mostly(rng: np.random.Generator, chance: float, rule: Ints, other: Ints) -> Ints:
    """What the rule says, with that chance; else the other."""
    return np.where(happens(rng, chance, len(rule)), rule, other)


def elsewhere(rng: np.random.Generator, places: Places, country: Ints) -> Ints:
    """A random city, mostly of the given country."""
    any_city = rng.integers(0, places.count("city"), len(country))
    return mostly(rng, _STAYS_IN_COUNTRY, places.cities.draw(rng, country), any_city)


def born(rng: np.random.Generator, places: Places, first: int, count: int) -> People:
    """People of neighbouring cities, large cities having more; and when they are born and die."""
    # A block is a region, not a sample of the world: else its people would never meet in a city.
    share = min(count / places.people, 1.0)
    position = ((first - len(places.labels)) / places.people + share * rng.random(count)) % 1.0
    weight = np.cumsum(places.population)
    city = np.searchsorted(weight, (position * weight[-1]).astype(np.int64), side="right")
    birth = rng.integers(*_BIRTHS, count)
    age = np.clip(np.rint(rng.normal(*_LIFETIME, count)), _SHORTEST_LIFE, _LONGEST_LIFE)
    death = birth + age.astype(np.int64)
    calling = rng.random(count)
    return People(
        number=first + np.arange(count),
        city=city,
        country=places.country[city],
        birth=birth,
        death=death,
        until=np.minimum(death, NOW),
        athlete=calling < _ATHLETES,
        artist=calling > 1 - _ARTISTS,
    )

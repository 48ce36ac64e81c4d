"""Couples: they marry, divorce, marry again, and join parties together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.datasets.bundled.facts import Facts, Ints
from tilp.datasets.bundled.people import People, happens, mostly
from tilp.datasets.bundled.places import PARTIES, Places

__all__ = ["Couples", "marriages", "party_members", "unite"]

_SEEKS_PARTNER, _MEETS_AT_HOME, _DIVORCE, _MIRRORED = 0.75, 0.5, 0.25, 0.9
_POLITICAL_COUPLE, _POLITICAL_SINGLE = 0.4, 0.04
_SAME_PARTY, _CHANGES_PARTY = 0.9, 0.25


@dataclass(frozen=True)
class Couples:
    """Marriages; the two people as rows of the block."""

    first: Ints
    second: Ints
    start: Ints
    end: Ints
    divorced: NDArray[np.bool_]

    def __getitem__(self, rows: NDArray[Any]) -> Couples:
        return Couples(
            self.first[rows],
            self.second[rows],
            self.start[rows],
            self.end[rows],
            self.divorced[rows],
        )


def unite(rng: np.random.Generator, places: Places, people: People) -> Couples:
    """People who meet in one city at about one age marry; some divorce and marry another."""
    town = mostly(rng, _MEETS_AT_HOME, people.city, places.cities.draw(rng, people.country))
    seeking = np.flatnonzero(happens(rng, _SEEKS_PARTNER, len(people)))
    first = _pair(rng, people, town, seeking, people.birth[seeking] + 20, np.full(len(people), -1))
    parted = first[first.divorced]
    former = np.full(len(people), -1)
    former[parted.first], former[parted.second] = parted.second, parted.first
    again = np.concatenate([parted.first, parted.second])
    free = np.concatenate([parted.end, parted.end]) + 1
    second = _pair(rng, people, town, again, free, former)
    return Couples(
        *(
            np.concatenate([getattr(first, name), getattr(second, name)])
            for name in ("first", "second", "start", "end", "divorced")
        )
    )


def _pair(
    rng: np.random.Generator, people: People, town: Ints, seeking: Ints, free: Ints, former: Ints
) -> Couples:
    """Neighbours in the order of city and birth marry, once both are free."""
    order = np.lexsort((people.birth[seeking] + rng.integers(0, 4, len(seeking)), town[seeking]))
    order = order[: len(order) // 2 * 2]
    left, right = seeking[order[0::2]], seeking[order[1::2]]
    start = np.maximum(free[order[0::2]], free[order[1::2]]) + rng.integers(0, 13, len(left))
    together = np.minimum(people.until[left], people.until[right])
    parting = start + rng.integers(3, 21, len(left))
    divorced = happens(rng, _DIVORCE, len(left)) & (parting < together)
    fit = (
        (town[left] == town[right])
        & (np.abs(people.birth[left] - people.birth[right]) <= 9)
        & (former[left] != right)
        & (start < together)
    )
    return Couples(left, right, start, np.where(divorced, parting, together), divorced)[fit]


def marriages(rng: np.random.Generator, people: People, couples: Couples) -> Facts:
    """Each marriage as told by the one, and mostly as told by the other too."""
    first, second = people.number[couples.first], people.number[couples.second]
    mirrored = happens(rng, _MIRRORED, len(first))
    return Facts.concatenate(
        [
            Facts.of("marriedTo", first, second, couples.start, couples.end),
            Facts.of("marriedTo", second, first, couples.start, couples.end)[mirrored],
        ]
    )


def party_members(
    rng: np.random.Generator, places: Places, people: People, couples: Couples
) -> Facts:
    """Couples join a party together and change it together; some people join one alone."""
    political = couples[happens(rng, _POLITICAL_COUPLE, len(couples.first))]
    count = len(political.first)
    number, base = people.number, places.base["party"]
    country = people.country[political.first]
    party = rng.integers(0, PARTIES, count)
    start = political.start + rng.integers(1, 7, count)
    facts = []
    for turn in range(2):
        end = np.minimum(start + rng.integers(5, 16, count), political.end)
        other = rng.integers(0, PARTIES, count)
        follows = mostly(rng, _SAME_PARTY, party, other)
        later = np.minimum(start + rng.integers(0, 3, count), end)
        on = (start <= end) & (happens(rng, _CHANGES_PARTY, count) if turn else True)
        for who, choice, joined in (
            (political.first, party, start),
            (political.second, follows, later),
        ):
            object_ = base + country * PARTIES + choice
            facts.append(Facts.of("memberOfParty", number[who], object_, joined, end)[on])
        start = end + rng.integers(1, 3, count)
        party = (party + rng.integers(1, PARTIES, count)) % PARTIES

    alone = np.flatnonzero(happens(rng, _POLITICAL_SINGLE, len(people)))
    joined = people.birth[alone] + rng.integers(22, 36, len(alone))
    left = np.minimum(joined + rng.integers(5, 31, len(alone)), people.until[alone])
    choice = base + people.country[alone] * PARTIES + rng.integers(0, PARTIES, len(alone))
    facts.append(Facts.of("memberOfParty", number[alone], choice, joined, left)[joined <= left])
    return Facts.concatenate(facts)

"""The synthetic world without its people: facts as columns, noise; names, places, teams."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import accumulate, chain, product
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import ColumnTable, Ints, Mask
from tilp.time import UNKNOWN

FIRST_YEAR = 1500  # of any fact
NOW = 2020  # last year of the world; facts that still hold end here
_N_YEARS = NOW - FIRST_YEAR + 20  # different years in a key, and one code for unknown

WORLD = tomllib.loads(resources.files("tilp.datasets").joinpath("world.toml").read_text("utf-8"))
CHANCES: Mapping[str, Any] = WORLD["chances"]
_STRUCTURAL, _POINTS, _LASTING = WORLD["relations"].values()
STRUCTURAL, POINTS = tuple(_STRUCTURAL), tuple(_POINTS)
_KINDS: dict[str, str] = {**_STRUCTURAL, **_POINTS, **_LASTING}  # of subjects and objects
RELATIONS = tuple(_KINDS)
RELATION_IDS = {name: index for index, name in enumerate(RELATIONS)}
_WORDS = {name: words.split() for name, words in WORLD["words"].items()}
_FIGURES = _WORDS["qualities"], _WORDS["figures"]
_SYLLABLES = _WORDS["onsets"], _WORDS["middles"]

Rng = np.random.Generator


@dataclass(frozen=True)
class Facts(ColumnTable):
    """Facts as columns of ids and years."""

    subject: Ints
    relation: Ints
    object: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(
        cls, base: Mapping[str, int], name: str, subject: Ints, object: Ints, *years: Ints
    ) -> Facts:
        """Return facts of one relation: `base` has the first id of each kind, one year is both."""
        subject_base, object_base = (base[kind] for kind in _KINDS[name].split())
        relation = np.full(len(subject), RELATION_IDS[name], dtype=np.int64)
        return cls(subject_base + subject, relation, object_base + object, years[0], years[-1])

    def keys(self) -> Ints:
        """Return a number for each fact, equal for equal facts only; sorts by subject first."""
        years = [np.where(t == UNKNOWN, 0, t - FIRST_YEAR + 10) for t in (self.start, self.end)]
        # A block has 2^15 subjects, the largest world 2^22 entities: below 2^63 with room to spare.
        key = self.subject - self.subject.min(initial=np.iinfo(np.int64).max)
        key = key * len(RELATIONS) + self.relation
        key = key * (self.object.max(initial=0) + 1) + self.object
        keys: Ints = (key * _N_YEARS + years[0]) * _N_YEARS + years[1]
        return keys

    def distinct(self) -> Facts:
        """Return the sorted facts without duplicates."""
        return self[np.unique(self.keys(), return_index=True)[1]]

    def replaced(self, others: Facts, rows: Ints) -> Facts:
        """Return the facts with some rows of others."""
        swap = np.isin(np.arange(len(self)), rows)
        pairs = zip(self.columns, others.columns, strict=True)
        return Facts(*(np.where(swap, new, old) for old, new in pairs))


def add_errors(rng: Rng, truth: Facts) -> Facts:
    """Change some objects and years; never repeat a fact or relate an entity to itself."""
    chance = _chance_of_noise(rng, truth)
    wrong_object = chance < CHANCES["wrong_object"]
    wrong_date = ~wrong_object & (chance < CHANCES["wrong_object"] + CHANCES["wrong_date"])
    shift = rng.integers(1, 4, len(truth))
    later = (rng.random(len(truth)) < 0.5) & (truth.end + shift <= NOW)
    shift = np.where(wrong_date, np.where(later, shift, -shift), 0)
    # A wrong object is that of a random fact of the same relation.
    order = np.argsort(truth.relation, kind="stable")
    drawn = Groups.of(truth.relation, len(RELATIONS)).draw(rng, truth.relation)
    object_ = np.where(wrong_object, truth.object[order[drawn]], truth.object)
    wrong = replace(truth, object=object_, start=truth.start + shift, end=truth.end + shift)
    changed = np.flatnonzero(wrong_object | wrong_date)
    known, new = np.split(Facts.join([truth, wrong[changed]]).keys(), [len(truth)])
    is_new = _first_of_each(new) & ~np.isin(new, known)
    is_new &= wrong.subject[changed] != wrong.object[changed]
    return truth.replaced(wrong, changed[is_new])


def remove_dates(rng: Rng, facts: Facts) -> Facts:
    """Remove some dates; of facts that differ only in these dates, all but one keep theirs."""
    structural = facts.relation < len(STRUCTURAL)
    point = ~structural & (facts.relation < len(STRUCTURAL) + len(POINTS))
    chance = rng.random(len(facts))
    no_date = point & (chance < CHANCES["no_date"])
    no_end = np.where(point, no_date, chance < CHANCES["no_end"]) & ~structural
    no_start = np.where(point, no_date, rng.random(len(facts)) < CHANCES["no_start"]) & ~structural
    start = np.where(no_start, UNKNOWN, facts.start)
    undated = replace(facts, start=start, end=np.where(no_end, UNKNOWN, facts.end))
    changed = np.flatnonzero(no_start | no_end)
    return facts.replaced(undated, changed[_first_of_each(undated[changed].keys())])


def draw_splits(rng: Rng, facts: Facts) -> NDArray[np.uint8]:
    """Return 0 for train, 1 for valid, 2 for test; facts between places are always train."""
    limits = [CHANCES["test"], CHANCES["test"] + CHANCES["valid"]]
    splits = np.array([2, 1, 0], np.uint8)
    return splits[np.searchsorted(limits, _chance_of_noise(rng, facts), side="right")]


def _chance_of_noise(rng: Rng, facts: Facts) -> NDArray[np.float64]:
    """Draw a number for each fact, 1 for structural ones."""
    return np.where(facts.relation < len(STRUCTURAL), 1.0, rng.random(len(facts)))


def _first_of_each(keys: Ints) -> Mask:
    """Return a mask of the first occurrence of each key."""
    return np.isin(np.arange(len(keys)), np.unique(keys, return_index=True)[1])


def _draw_names(rng: Rng, count: int, *parts: Sequence[str], sep: str = " ") -> list[str]:
    """Draw different names, with one word of each part; add numbers once all are used up."""
    sizes = tuple(len(part) for part in parts)
    capacity = prod(sizes)
    names: list[str] = []
    for turn in range(-(-count // capacity)):
        codes = rng.choice(capacity, min(capacity, count - turn * capacity), replace=False)
        drawn = zip(parts, np.unravel_index(codes, sizes), strict=True)
        columns = [[part[i] for i in digits.tolist()] for part, digits in drawn]
        suffix = f" {turn + 1}" if turn else ""
        names.extend(sep.join(words) + suffix for words in zip(*columns, strict=True))
    return names


def surnames() -> list[str]:
    """Return all surnames; all different."""
    return ["".join(parts) for parts in product(*_SYLLABLES, _WORDS["surname_ends"])]


def draw_people_names(rng: Rng, count: int) -> list[str]:
    """Draw first and last names."""
    return _draw_names(rng, count, _WORDS["first_names"], surnames())


@dataclass(frozen=True)
class Groups:
    """Members with ids in group order: group g has the `count[g]` members from `first[g]` on."""

    first: Ints
    count: Ints

    @classmethod
    def of(cls, group: Ints, groups: int) -> Self:
        """Return groups from the group of each member."""
        count = np.bincount(group, minlength=groups)
        return cls(np.cumsum(count) - count, count)

    def draw(self, rng: Rng, group: Ints) -> Ints:
        """Draw a member of each group."""
        return self.first[group] + _draw_below(rng, self.count[group])

    def other(self, rng: Rng, group: Ints, member: Ints) -> Ints:
        """Draw another member of each group than the given one, unless it is alone."""
        count = self.count[group]
        step = 1 + _draw_below(rng, np.maximum(count - 1, 1))
        return self.first[group] + (member - self.first[group] + step) % count


def _draw_below(rng: Rng, limit: Ints) -> Ints:
    return (rng.random(len(limit)) * limit).astype(np.int64)


def _deal(members: int, groups: int) -> Ints:
    """Return the group of each member, dealt evenly and in order."""
    return np.arange(members) * groups // members


class Periods:
    """Memberships of each owner by period; a period starts the year after the one before ends.

    There is one period more than cuts, and each ends within 30 years of its cut.
    """

    def __init__(
        self, rng: Rng, founded: Ints, first: Ints, groups: Groups, group: Ints, *cuts: int
    ) -> None:
        count = len(founded)
        member, start, end = [first], [founded], list[Ints]()
        for cut in cuts:
            end.append(cut + rng.integers(0, 30, count))
            start.append(end[-1] + 1)
            member.append(groups.other(rng, group, member[-1]))
        end.append(np.full(count, NOW))
        columns = (np.stack(parts, axis=1) for parts in (member, start, end))
        self.member, self.start, self.end = columns

    @classmethod
    def of_one_group(cls, rng: Rng, founded: Ints, members: int, cut: int) -> Self:
        """Draw two periods for each owner, of members of a single group."""
        owners, all_members = len(founded), Groups.of(np.zeros(members, np.int64), 1)
        group = np.zeros(owners, np.int64)
        return cls(rng, founded, _deal(owners, members), all_members, group, cut)

    def at(self, owner: Ints, year: Ints) -> tuple[Ints, Ints]:
        """Return what an owner belongs to in a year, and the last year of that period."""
        period = (self.end[owner] < year[:, None]).sum(axis=1)
        return self.member[owner, period], self.end[owner, period]

    def facts(self, base: Mapping[str, int], relation: str) -> Facts:
        """Return the periods as facts."""
        rows = np.nonzero(self.start <= self.end)
        columns = (column[rows] for column in (self.member, self.start, self.end))
        return Facts.of(base, relation, rows[0], *columns)


N_PARTIES = len(_WORDS["party_words"])  # of each country
FIELD = 4  # prizes of one field; an artist is nominated for those of one field only
_SEASONS = 30


class Places:
    """Entities that people are related to, with ids within their kind, and the facts between them.

    More people have more places, not busier ones.
    """

    def __init__(self, rng: Rng, people: int) -> None:
        self.people = people
        n_cities = max(people // 40, 6)
        n_countries = max(n_cities // 4, 3)
        self.country = _deal(n_cities, n_countries)  # of each city
        self.cities = Groups.of(self.country, n_countries)
        self.population = rng.integers(1, 4, n_cities)  # of each city, relative to a small one
        self.population[self.cities.first] = 5  # the capital

        # Every second city of a country has a university, every tenth of these has two.
        seats = np.flatnonzero((np.arange(n_cities) - self.cities.first[self.country]) % 2 == 0)
        self.university_city = np.repeat(seats, 1 + (rng.random(len(seats)) < 0.1))
        n_universities = len(self.university_city)
        n_clubs = 1 + (rng.random(n_universities) < 0.25)
        club_university = np.repeat(np.arange(n_universities), n_clubs)
        self.city_universities = Groups.of(self.university_city, n_cities)
        self.universities = Groups.of(self.country[self.university_city], n_countries)
        self.clubs = Groups.of(club_university, n_universities)

        n_teams = max(people // 24, 2 * n_countries)
        n_leagues = max(n_teams // 4, 3)
        n_federations = max(int(n_leagues / 1.5), 3)
        n_trophies = max(n_teams // 3, 3)
        team_country = _deal(n_teams, n_countries)
        self.teams = Groups.of(team_country, n_countries)
        founded = rng.integers(1880, 1901, n_teams)
        first_home = self.cities.draw(rng, team_country)
        self.homes = Periods(rng, founded, first_home, self.cities, team_country, 1925, 1965)
        self.leagues = Periods.of_one_group(rng, founded, n_leagues, 1940)
        of_leagues = np.full(n_leagues, 1880)
        self.federations = Periods.of_one_group(rng, of_leagues, n_federations, 1950)

        cities = _draw_names(rng, n_cities, *_SYLLABLES, _WORDS["city_ends"], sep="")
        countries = _draw_names(rng, n_countries, *_SYLLABLES, _WORDS["country_ends"], sep="")
        # The town in the name of a team does not exist, because teams move.
        towns = ["".join(parts) for parts in product(*_SYLLABLES, ("dale", "ford", "ley"))]
        # The second university of a city is an institute.
        seconds = np.diff(self.university_city, prepend=-1) == 0
        universities = [
            f"{cities[city]} Institute of Arts" if second else f"University of {cities[city]}"
            for city, second in zip(self.university_city, seconds, strict=True)
        ]
        names = {
            "country": countries,
            "city": cities,
            "university": universities,
            "club": _draw_names(rng, len(club_university), *_FIGURES, _WORDS["club_words"]),
            "party": [f"{w} Party of {land}" for land in countries for w in _WORDS["party_words"]],
            "prize": _draw_prize_names(rng, max(people // 160, 2)),
            "team": _draw_names(rng, n_teams, towns, _WORDS["team_words"]),
            "league": _draw_names(rng, n_leagues, *_FIGURES, _WORDS["league_words"]),
            "federation": _draw_names(rng, n_federations, *_FIGURES, _WORDS["federation_words"]),
            "trophy": _draw_names(rng, n_trophies, *_FIGURES, _WORDS["trophy_words"]),
        }
        self.labels = list(chain.from_iterable(names.values()))  # by entity id
        self.count = {kind: len(own) for kind, own in names.items()}
        bases = accumulate(self.count.values(), initial=0)
        self.base = dict(zip(names, bases, strict=False))  # first entity id of each kind

        def belong(relation: str, owner: Ints, early: int, late: int) -> Facts:
            start, until = rng.integers(early, late, len(owner)), np.full(len(owner), NOW)
            return Facts.of(self.base, relation, np.arange(len(owner)), owner, start, until)

        party_country = np.repeat(np.arange(n_countries), N_PARTIES)
        facts = [
            belong("cityIn", self.country, FIRST_YEAR, 1800),
            belong("universityIn", self.university_city, 1600, 1880),
            belong("clubOf", club_university, 1880, 1901),
            belong("partyOf", party_country, 1870, 1901),
            self.homes.facts(self.base, "basedIn"),
            self.leagues.facts(self.base, "playsInLeague"),
            self.federations.facts(self.base, "governedBy"),
            self._titles(rng, n_teams, n_trophies),
        ]
        self.facts = Facts.join(facts).distinct()

    def _titles(self, rng: Rng, n_teams: int, n_trophies: int) -> Facts:
        """Draw the winner of every season of every trophy: mostly one of its few favourites."""
        favourites = Groups.of(_deal(n_teams, n_trophies), n_trophies)
        trophy = np.repeat(np.arange(n_trophies), _SEASONS)
        first = rng.integers(1930, 1961, n_trophies)[trophy]
        pause = rng.integers(1, 3, n_trophies)[trophy]
        year = first + np.tile(np.arange(_SEASONS), n_trophies) * pause
        usual = rng.random(len(trophy)) < CHANCES["favourite_wins"]
        stray = np.where(usual, 0, rng.integers(1, 3, len(trophy)))
        team = favourites.draw(rng, (trophy + stray) % n_trophies)
        return Facts.of(self.base, "wonTitle", team, trophy, year)[year <= NOW]


def _draw_prize_names(rng: Rng, fields: int) -> list[str]:
    """Draw names such as Marlow Medal for Poetry, with one subject for each field."""
    every = _WORDS["subjects"]
    subjects = [every[i] for i in rng.integers(0, len(every), fields).tolist()]
    honours = _draw_names(rng, fields * FIELD, surnames(), _WORDS["prize_words"])
    return [f"{honour} for {subjects[i // FIELD]}" for i, honour in enumerate(honours)]

"""The synthetic world without its people: facts as columns, noise; names, places, teams."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import accumulate, chain, product
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import ColumnTable, Ints, Mask
from tilp.time import UNKNOWN

FIRST_YEAR = 1500  # of any fact
NOW = 2020  # last year of the world; facts that still hold end here

_words = str.split
STRUCTURAL = _words("cityIn universityIn clubOf partyOf basedIn playsInLeague governedBy")
"""Relations between places and institutions: without noise, always in train."""
POINTS = ("wonTitle", "bornIn", "graduatedFrom", "nominatedFor", "receivedAward", "diedIn")
"""Relations that hold in a single year."""
_LASTING = _words("citizenOf playsFor licensedBy livesIn memberOfClub marriedTo memberOfParty")
RELATIONS = (*STRUCTURAL, *POINTS, *_LASTING)
RELATION_IDS = {name: index for index, name in enumerate(RELATIONS)}

_N_YEARS = NOW - FIRST_YEAR + 20  # different years in a key, and one code for unknown


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
        cls, name: str, subject: Ints, object: Ints, start: Ints, end: Ints | None = None
    ) -> Facts:
        """Return facts of one relation; in single years if `end` is None."""
        relation = np.full(len(subject), RELATION_IDS[name], dtype=np.int64)
        return cls(subject, relation, object, start, start if end is None else end)

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


_WRONG_OBJECT, _WRONG_DATE = 0.03, 0.02
_MAX_SHIFT = 3
_NO_END, _NO_START, _NO_DATE = 0.15, 0.05, 0.05
_VALID, _TEST = 0.1, 0.1

_STRUCTURAL_IDS = np.array([RELATION_IDS[name] for name in STRUCTURAL])
_POINT_IDS = np.array([RELATION_IDS[name] for name in POINTS])


def add_errors(rng: np.random.Generator, truth: Facts) -> Facts:
    """Change some objects and years; never repeat a fact or relate an entity to itself."""
    chance = np.where(np.isin(truth.relation, _STRUCTURAL_IDS), 1.0, rng.random(len(truth)))
    wrong_object = chance < _WRONG_OBJECT
    wrong_date = ~wrong_object & (chance < _WRONG_OBJECT + _WRONG_DATE)
    shift = rng.integers(1, _MAX_SHIFT + 1, len(truth))
    later = (rng.random(len(truth)) < 0.5) & (truth.end + shift <= NOW)
    shift = np.where(wrong_date, np.where(later, shift, -shift), 0)
    object_ = np.where(wrong_object, _objects_of_others(rng, truth), truth.object)
    wrong = replace(truth, object=object_, start=truth.start + shift, end=truth.end + shift)
    changed = np.flatnonzero(wrong_object | wrong_date)
    known, new = np.split(Facts.join([truth, wrong[changed]]).keys(), [len(truth)])
    is_new = _first_of_each(new) & ~np.isin(new, known)
    is_new &= wrong.subject[changed] != wrong.object[changed]
    return _replace_rows(truth, wrong, changed[is_new])


def remove_dates(rng: np.random.Generator, facts: Facts) -> Facts:
    """Remove some dates; of facts that differ only in these dates, all but one keep theirs."""
    structural = np.isin(facts.relation, _STRUCTURAL_IDS)
    point = np.isin(facts.relation, _POINT_IDS)
    chance = rng.random(len(facts))
    no_date = point & (chance < _NO_DATE)
    no_end = np.where(point, no_date, chance < _NO_END) & ~structural
    no_start = np.where(point, no_date, rng.random(len(facts)) < _NO_START) & ~structural
    start = np.where(no_start, UNKNOWN, facts.start)
    undated = replace(facts, start=start, end=np.where(no_end, UNKNOWN, facts.end))
    changed = np.flatnonzero(no_start | no_end)
    return _replace_rows(facts, undated, changed[_first_of_each(undated[changed].keys())])


def draw_splits(rng: np.random.Generator, facts: Facts) -> NDArray[np.uint8]:
    """Return 0 for train, 1 for valid, 2 for test; facts between places are always train."""
    chance = np.where(np.isin(facts.relation, _STRUCTURAL_IDS), 1.0, rng.random(len(facts)))
    return np.where(chance < _TEST, 2, np.where(chance < _TEST + _VALID, 1, 0)).astype(np.uint8)


def _objects_of_others(rng: np.random.Generator, facts: Facts) -> Ints:
    """Return for each fact the object of a random fact of the same relation."""
    order = np.argsort(facts.relation, kind="stable")
    count = np.bincount(facts.relation)
    first = np.cumsum(count) - count
    drawn = (rng.random(len(facts)) * count[facts.relation]).astype(np.int64)
    objects: Ints = facts.object[order[first[facts.relation] + drawn]]
    return objects


def _first_of_each(keys: Ints) -> Mask:
    """Return a mask of the first occurrence of each key."""
    return np.isin(np.arange(len(keys)), np.unique(keys, return_index=True)[1])


def _replace_rows(facts: Facts, others: Facts, rows: Ints) -> Facts:
    swap = np.isin(np.arange(len(facts)), rows)
    pairs = zip(facts.columns, others.columns, strict=True)
    return Facts(*(np.where(swap, new, old) for old, new in pairs))


Rng = np.random.Generator

_TEXT = resources.files("tilp.datasets").joinpath("words.toml").read_text("utf-8")
_WORDS = {name: words.split() for name, words in tomllib.loads(_TEXT).items()}
_FIGURES = _WORDS["qualities"], _WORDS["figures"]
_SYLLABLES = _WORDS["onsets"], _WORDS["middles"]


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


def _draw_prize_names(rng: Rng, fields: int) -> list[str]:
    """Draw names such as Marlow Medal for Poetry, with one subject for each field."""
    every = _WORDS["subjects"]
    subjects = [every[i] for i in rng.integers(0, len(every), fields).tolist()]
    honours = _draw_names(rng, fields * FIELD, surnames(), _WORDS["prize_words"])
    return [f"{honour} for {subjects[i // FIELD]}" for i, honour in enumerate(honours)]


PARTIES = len(_WORDS["party_words"])  # of each country
FIELD = 4  # prizes of one field; an artist is nominated for those of one field only
_PEOPLE_PER_CITY, _PEOPLE_PER_TEAM, _PEOPLE_PER_FIELD = 40, 24, 160
_CITIES_PER_COUNTRY, _TEAMS_PER_LEAGUE, _LEAGUES_PER_FEDERATION = 4, 4, 1.5
_TEAMS_PER_TROPHY, _SEASONS, _FAVOURITE_WINS = 3, 30, 0.88


@dataclass(frozen=True)
class Groups:
    """Members with ids in group order: group g has the `count[g]` members from `first[g]` on."""

    first: Ints
    count: Ints

    @classmethod
    def of(cls, group: Ints, groups: int) -> Self:
        """Return groups from the group of each member, in ascending order."""
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


@dataclass(frozen=True)
class Periods:
    """Memberships of each owner by period; a period starts the year after the one before ends."""

    member: Ints
    start: Ints
    end: Ints

    def at(self, owner: Ints, year: Ints) -> tuple[Ints, Ints]:
        """Return what an owner belongs to in a year, and the last year of that period."""
        period = (self.end[owner] < year[:, None]).sum(axis=1)
        return self.member[owner, period], self.end[owner, period]

    def facts(self, relation: str, owner_base: int, member_base: int) -> Facts:
        """Return the periods as facts."""
        rows = np.nonzero(self.start <= self.end)
        owner, member = owner_base + rows[0], member_base + self.member[rows]
        return Facts.of(relation, owner, member, self.start[rows], self.end[rows])


@dataclass(frozen=True)
class Places:
    """Entities that people are related to, with ids within their kind."""

    people: int  # that the places are for
    labels: list[str]  # by entity id
    base: dict[str, int]  # first entity id of each kind
    country: Ints  # of each city
    university_city: Ints
    population: Ints  # of each city, relative to a small one
    cities: Groups  # of each country
    city_universities: Groups
    universities: Groups  # of each country
    clubs: Groups  # of each university
    teams: Groups  # of each country
    homes: Periods  # cities of each team
    leagues: Periods  # of each team
    federations: Periods  # of each league
    facts: Facts  # between these entities

    def count(self, kind: str) -> int:
        """Return the number of entities of a kind."""
        later = [base for base in self.base.values() if base > self.base[kind]]
        return min(later, default=len(self.labels)) - self.base[kind]


def make_places(rng: Rng, people: int) -> Places:
    """Make the places for a number of people; more people have more places, not busier ones."""
    n_cities = max(people // _PEOPLE_PER_CITY, 6)
    n_countries = max(n_cities // _CITIES_PER_COUNTRY, 3)
    country = _deal(n_cities, n_countries)
    cities = Groups.of(country, n_countries)
    population = rng.integers(1, 4, n_cities)
    population[cities.first] = 5  # the capital

    # Every second city of a country has a university, every tenth of these has two.
    seats = np.flatnonzero((np.arange(n_cities) - cities.first[country]) % 2 == 0)
    university_city = np.repeat(seats, 1 + (rng.random(len(seats)) < 0.1))
    n_universities = len(university_city)
    club_university = np.repeat(np.arange(n_universities), 1 + (rng.random(n_universities) < 0.25))

    n_teams = max(people // _PEOPLE_PER_TEAM, 2 * n_countries)
    n_leagues = max(n_teams // _TEAMS_PER_LEAGUE, 3)
    n_federations = max(int(n_leagues / _LEAGUES_PER_FEDERATION), 3)
    n_trophies = max(n_teams // _TEAMS_PER_TROPHY, 3)
    team_country = _deal(n_teams, n_countries)
    team_start = rng.integers(1880, 1901, n_teams)
    first_home = cities.draw(rng, team_country)
    homes = _draw_periods(rng, team_start, first_home, cities, team_country, (1925, 1965))
    leagues = _draw_one_group(rng, team_start, n_leagues, 1940)
    federations = _draw_one_group(rng, np.full(n_leagues, 1880), n_federations, 1950)

    city_names = _draw_names(rng, n_cities, *_SYLLABLES, _WORDS["city_ends"], sep="")
    country_names = _draw_names(rng, n_countries, *_SYLLABLES, _WORDS["country_ends"], sep="")
    # The town in the name of a team does not exist, because teams move.
    towns = ["".join(parts) for parts in product(*_SYLLABLES, ("dale", "ford", "ley"))]
    # The second university of a city is an institute.
    seconds = np.diff(university_city, prepend=-1) == 0
    university_names = [
        f"{city_names[city]} Institute of Arts" if second else f"University of {city_names[city]}"
        for city, second in zip(university_city, seconds, strict=True)
    ]
    kinds = {
        "country": country_names,
        "city": city_names,
        "university": university_names,
        "club": _draw_names(rng, len(club_university), *_FIGURES, _WORDS["club_words"]),
        "party": [f"{w} Party of {land}" for land in country_names for w in _WORDS["party_words"]],
        "prize": _draw_prize_names(rng, max(people // _PEOPLE_PER_FIELD, 2)),
        "team": _draw_names(rng, n_teams, towns, _WORDS["team_words"]),
        "league": _draw_names(rng, n_leagues, *_FIGURES, _WORDS["league_words"]),
        "federation": _draw_names(rng, n_federations, *_FIGURES, _WORDS["federation_words"]),
        "trophy": _draw_names(rng, n_trophies, *_FIGURES, _WORDS["trophy_words"]),
    }
    labels = list(chain.from_iterable(kinds.values()))
    base = dict(zip(kinds, accumulate(map(len, kinds.values()), initial=0), strict=False))

    def belong(relation: str, kind: str, to: str, owner: Ints, early: int, late: int) -> Facts:
        start, member = rng.integers(early, late, len(owner)), base[kind] + np.arange(len(owner))
        return Facts.of(relation, member, base[to] + owner, start, np.full(len(owner), NOW))

    party_country = np.repeat(np.arange(n_countries), PARTIES)
    facts = [
        belong("cityIn", "city", "country", country, FIRST_YEAR, 1800),
        belong("universityIn", "university", "city", university_city, 1600, 1880),
        belong("clubOf", "club", "university", club_university, 1880, 1901),
        belong("partyOf", "party", "country", party_country, 1870, 1901),
        homes.facts("basedIn", base["team"], base["city"]),
        leagues.facts("playsInLeague", base["team"], base["league"]),
        federations.facts("governedBy", base["league"], base["federation"]),
        _titles(rng, base, n_teams, n_trophies),
    ]
    return Places(
        people=people,
        labels=labels,
        base=base,
        country=country,
        university_city=university_city,
        population=population,
        cities=cities,
        city_universities=Groups.of(university_city, n_cities),
        universities=Groups.of(country[university_city], n_countries),
        clubs=Groups.of(club_university, n_universities),
        teams=Groups.of(team_country, n_countries),
        homes=homes,
        leagues=leagues,
        federations=federations,
        facts=Facts.join(facts).distinct(),
    )


def _draw_below(rng: Rng, limit: Ints) -> Ints:
    return (rng.random(len(limit)) * limit).astype(np.int64)


def _deal(members: int, groups: int) -> Ints:
    """Return the group of each member, dealt evenly and in order."""
    return np.arange(members) * groups // members


def _draw_one_group(rng: Rng, founded: Ints, members: int, cut: int) -> Periods:
    """Draw two periods for each owner, of members of a single group."""
    group = Groups(np.zeros(1, np.int64), np.full(1, members))
    zeros = np.zeros(len(founded), np.int64)
    return _draw_periods(rng, founded, _deal(len(founded), members), group, zeros, (cut,))


def _draw_periods(
    rng: Rng, founded: Ints, first: Ints, groups: Groups, group: Ints, cuts: tuple[int, ...]
) -> Periods:
    """Draw one period more than cuts for each owner; a period ends within 30 years of its cut."""
    member, start, end = [first], [founded], []
    for cut in cuts:
        last = cut + rng.integers(0, 30, len(founded))
        end.append(last)
        start.append(last + 1)
        member.append(groups.other(rng, group, member[-1]))
    end.append(np.full(len(founded), NOW))
    return Periods(*(np.stack(columns, axis=1) for columns in (member, start, end)))


def _titles(rng: Rng, base: dict[str, int], n_teams: int, n_trophies: int) -> Facts:
    """Draw the winner of every season of every trophy: mostly one of its few favourites."""
    favourites = Groups.of(_deal(n_teams, n_trophies), n_trophies)
    trophy = np.repeat(np.arange(n_trophies), _SEASONS)
    first = rng.integers(1930, 1961, n_trophies)[trophy]
    year = first + np.tile(np.arange(_SEASONS), n_trophies) * rng.integers(1, 3, n_trophies)[trophy]
    stray = np.where(rng.random(len(trophy)) < _FAVOURITE_WINS, 0, rng.integers(1, 3, len(trophy)))
    team = favourites.draw(rng, (trophy + stray) % n_trophies)
    return Facts.of("wonTitle", base["team"] + team, base["trophy"] + trophy, year)[year <= NOW]

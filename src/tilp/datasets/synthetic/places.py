"""Countries, cities, universities, clubs, parties, prizes, and teams that move and win titles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilp.datasets.synthetic import names
from tilp.datasets.synthetic.facts import FIRST_YEAR, NOW, Facts, Ints
from tilp.datasets.synthetic.names import PARTY_WORDS

PARTIES = len(PARTY_WORDS)
"""Parties of each country."""
FIELD = 4
"""Prizes of one field; an artist is nominated for those of one field only."""

_PEOPLE_PER_CITY = 40
_PEOPLE_PER_TEAM = 24
_PEOPLE_PER_FIELD = 160
_CITIES_PER_COUNTRY = 4
_TEAMS_PER_LEAGUE = 4
_TEAMS_PER_TROPHY = 3
_LEAGUES_PER_FEDERATION = 1.5
_SEASONS = 30
_FAVOURITE_WINS = 0.88


@dataclass(frozen=True)
class Groups:
    """Members numbered group by group: group g has the ``count[g]`` members from ``first[g]``."""

    first: Ints
    count: Ints

    @classmethod
    def of(cls, group: Ints, groups: int) -> Groups:
        """Groups from the group of each member, in ascending order."""
        count = np.bincount(group, minlength=groups)
        return cls(np.cumsum(count) - count, count)

    def draw(self, rng: np.random.Generator, group: Ints) -> Ints:
        """A random member of each group."""
        return self.first[group] + _below(rng, self.count[group])

    def other(self, rng: np.random.Generator, group: Ints, member: Ints) -> Ints:
        """A random member of each group that is not the given one, unless it is alone."""
        count = self.count[group]
        step = 1 + _below(rng, np.maximum(count - 1, 1))
        return self.first[group] + (member - self.first[group] + step) % count


@dataclass(frozen=True)
class Periods:
    """What each owner belonged to, period after period: the next starts the year after one ends."""

    member: Ints
    start: Ints
    end: Ints

    def at(self, owner: Ints, year: Ints) -> tuple[Ints, Ints]:
        """What the owner belongs to in that year, and the last year of that period."""
        place = (self.end[owner] < year[:, None]).sum(axis=1)
        return self.member[owner, place], self.end[owner, place]

    def facts(self, relation: str, owner_base: int, member_base: int) -> Facts:
        """The periods as facts."""
        owner, place = np.nonzero(self.start <= self.end)
        return Facts.of(
            relation,
            owner_base + owner,
            member_base + self.member[owner, place],
            self.start[owner, place],
            self.end[owner, place],
        )


@dataclass(frozen=True)
class Places:
    """Everything that people are related to, numbered within its kind.

    Attributes:
        people: for how many people these places are.
        labels: names of all entities here, in the order of their numbers as entities.
        base: number of each kind's first entity.
        country: country of each city; likewise `university_city`.
        population: people of each city, relative to a small one.
        cities: cities of each country; likewise universities of each city and of each country,
            clubs of each university, teams of each country.
        homes: cities of each team; likewise leagues of each team, federations of each league.
        facts: what holds between all these.
    """

    people: int
    labels: list[str]
    base: dict[str, int]
    country: Ints
    university_city: Ints
    population: Ints
    cities: Groups
    city_universities: Groups
    universities: Groups
    clubs: Groups
    teams: Groups
    homes: Periods
    leagues: Periods
    federations: Periods
    facts: Facts

    def count(self, kind: str) -> int:
        """How many entities there are of a kind."""
        later = [base for base in self.base.values() if base > self.base[kind]]
        return min(later, default=len(self.labels)) - self.base[kind]


def found(rng: np.random.Generator, people: int) -> Places:
    """Make the places for a world of so many people: more people, more places, none busier."""
    n_cities = max(people // _PEOPLE_PER_CITY, 6)
    n_countries = max(n_cities // _CITIES_PER_COUNTRY, 3)
    country = _shares(n_cities, n_countries)
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
    team_country = _shares(n_teams, n_countries)
    team_start = rng.integers(1880, 1901, n_teams)
    league_start = np.full(n_leagues, 1880)
    first_home = cities.draw(rng, team_country)
    homes = _wander(rng, team_start, first_home, cities, team_country, (1925, 1965))
    leagues = _wander(rng, team_start, *_of_all(_shares(n_teams, n_leagues), n_leagues), (1940,))
    federations = _wander(
        rng, league_start, *_of_all(_shares(n_leagues, n_federations), n_federations), (1950,)
    )

    city_names, country_names = names.cities(rng, n_cities), names.countries(rng, n_countries)
    labels, base = _number(
        {
            "country": country_names,
            "city": city_names,
            "university": _university_names(city_names, university_city),
            "club": names.clubs(rng, len(club_university)),
            "party": [f"{word} Party of {land}" for land in country_names for word in PARTY_WORDS],
            "prize": names.prizes(rng, max(people // _PEOPLE_PER_FIELD, 2), FIELD),
            "team": names.teams(rng, n_teams),
            "league": names.leagues(rng, n_leagues),
            "federation": names.federations(rng, n_federations),
            "trophy": names.trophies(rng, n_trophies),
        }
    )
    party_country = np.repeat(np.arange(n_countries), PARTIES)
    facts = [
        _lasting(rng, "cityIn", base["city"], base["country"] + country, FIRST_YEAR, 1800),
        _lasting(
            rng, "universityIn", base["university"], base["city"] + university_city, 1600, 1880
        ),
        _lasting(rng, "clubOf", base["club"], base["university"] + club_university, 1880, 1901),
        _lasting(rng, "partyOf", base["party"], base["country"] + party_country, 1870, 1901),
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
        facts=Facts.concatenate(facts).distinct(),
    )


def _number(kinds: dict[str, list[str]]) -> tuple[list[str], dict[str, int]]:
    """All names one after the other, and the place of each kind's first."""
    labels: list[str] = []
    base: dict[str, int] = {}
    for kind, members in kinds.items():
        base[kind] = len(labels)
        labels += members
    return labels, base


def _lasting(
    rng: np.random.Generator, relation: str, first: int, owner: Ints, early: int, late: int
) -> Facts:
    """Entities from ``first`` on belong to their owners since some year from early to late."""
    count = len(owner)
    start = rng.integers(early, late, count)
    return Facts.of(relation, first + np.arange(count), owner, start, np.full(count, NOW))


def _below(rng: np.random.Generator, limit: Ints) -> Ints:
    """A random whole number from 0 up to each limit, without it."""
    return (rng.random(len(limit)) * limit).astype(np.int64)


def _shares(members: int, groups: int) -> Ints:
    """Members dealt out evenly to groups, in order."""
    return np.arange(members) * groups // members


def _of_all(member: Ints, members: int) -> tuple[Ints, Groups, Ints]:
    """A start for `_wander` among all members, one group."""
    groups = Groups(np.zeros(1, dtype=np.int64), np.full(1, members))
    return member, groups, np.zeros(len(member), dtype=np.int64)


def _wander(
    rng: np.random.Generator,
    founded: Ints,
    first: Ints,
    groups: Groups,
    group: Ints,
    cuts: tuple[int, ...],
) -> Periods:
    """One period more than cuts for each owner; a period ends within 30 years from its cut."""
    member, start, end = [first], [founded], []
    for cut in cuts:
        last = cut + rng.integers(0, 30, len(founded))
        end.append(last)
        start.append(last + 1)
        member.append(groups.other(rng, group, member[-1]))
    end.append(np.full(len(founded), NOW))
    return Periods(*(np.stack(columns, axis=1) for columns in (member, start, end)))


def _titles(rng: np.random.Generator, base: dict[str, int], n_teams: int, n_trophies: int) -> Facts:
    """The winner of every season of every trophy: mostly one of the few teams that favour it."""
    favourites = Groups.of(_shares(n_teams, n_trophies), n_trophies)
    trophy = np.repeat(np.arange(n_trophies), _SEASONS)
    first = rng.integers(1930, 1961, n_trophies)[trophy]
    year = first + np.tile(np.arange(_SEASONS), n_trophies) * rng.integers(1, 3, n_trophies)[trophy]
    stray = np.where(rng.random(len(trophy)) < _FAVOURITE_WINS, 0, rng.integers(1, 3, len(trophy)))
    team = favourites.draw(rng, (trophy + stray) % n_trophies)
    held = year <= NOW
    return Facts.of(
        "wonTitle", base["team"] + team[held], base["trophy"] + trophy[held], year[held]
    )


def _university_names(city_names: list[str], university_city: Ints) -> list[str]:
    labels: list[str] = []
    for place in university_city.tolist():
        name = f"University of {city_names[place]}"
        second = bool(labels) and labels[-1] == name
        labels.append(f"{city_names[place]} Institute of Arts" if second else name)
    return labels

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
    """Members with ids in group order: group g has the `count[g]` members from `first[g]` on."""

    first: Ints
    count: Ints

    @classmethod
    def of(cls, group: Ints, groups: int) -> Groups:
        """Return groups from the group of each member, in ascending order."""
        count = np.bincount(group, minlength=groups)
        return cls(np.cumsum(count) - count, count)

    def draw(self, rng: np.random.Generator, group: Ints) -> Ints:
        """Draw a member of each group."""
        return self.first[group] + _draw_below(rng, self.count[group])

    def other(self, rng: np.random.Generator, group: Ints, member: Ints) -> Ints:
        """Draw another member of each group than the given one, unless it is alone."""
        count = self.count[group]
        step = 1 + _draw_below(rng, np.maximum(count - 1, 1))
        return self.first[group] + (member - self.first[group] + step) % count


@dataclass(frozen=True)
class Periods:
    """What each owner belongs to, by period; a period starts the year after the one before ends."""

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
    """Entities that people are related to, with ids within their kind.

    Attributes:
        people: number of people that the places are for.
        labels: names of all these entities, by entity id.
        base: first entity id of each kind.
        country: country of each city; likewise `university_city`.
        population: population of each city, relative to a small one.
        cities: cities of each country; likewise universities of each city and of each country,
            clubs of each university, teams of each country.
        homes: cities of each team; likewise leagues of each team, federations of each league.
        facts: facts between these entities.
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
        """Return the number of entities of a kind."""
        later = [base for base in self.base.values() if base > self.base[kind]]
        return min(later, default=len(self.labels)) - self.base[kind]


def make_places(rng: np.random.Generator, people: int) -> Places:
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
    league_start = np.full(n_leagues, 1880)
    first_home = cities.draw(rng, team_country)
    homes = _draw_periods(rng, team_start, first_home, cities, team_country, (1925, 1965))
    leagues = _draw_periods(
        rng, team_start, *_in_one_group(_deal(n_teams, n_leagues), n_leagues), (1940,)
    )
    federations = _draw_periods(
        rng, league_start, *_in_one_group(_deal(n_leagues, n_federations), n_federations), (1950,)
    )

    city_names, country_names = names.cities(rng, n_cities), names.countries(rng, n_countries)
    labels, base = _assign_ids(
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
        _belong(rng, "cityIn", base["city"], base["country"] + country, FIRST_YEAR, 1800),
        _belong(
            rng, "universityIn", base["university"], base["city"] + university_city, 1600, 1880
        ),
        _belong(rng, "clubOf", base["club"], base["university"] + club_university, 1880, 1901),
        _belong(rng, "partyOf", base["party"], base["country"] + party_country, 1870, 1901),
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


def _assign_ids(kinds: dict[str, list[str]]) -> tuple[list[str], dict[str, int]]:
    """Return all names, and the first entity id of each kind."""
    labels: list[str] = []
    base: dict[str, int] = {}
    for kind, members in kinds.items():
        base[kind] = len(labels)
        labels += members
    return labels, base


def _belong(
    rng: np.random.Generator, relation: str, first: int, owner: Ints, early: int, late: int
) -> Facts:
    """Return facts: entities from `first` on belong to owners since a year from early to late."""
    count = len(owner)
    start = rng.integers(early, late, count)
    return Facts.of(relation, first + np.arange(count), owner, start, np.full(count, NOW))


def _draw_below(rng: np.random.Generator, limit: Ints) -> Ints:
    """Draw a whole number from 0 to below each limit."""
    return (rng.random(len(limit)) * limit).astype(np.int64)


def _deal(members: int, groups: int) -> Ints:
    """Return the group of each member, dealt evenly and in order."""
    return np.arange(members) * groups // members


def _in_one_group(member: Ints, members: int) -> tuple[Ints, Groups, Ints]:
    """Return arguments of `_draw_periods` for members of a single group."""
    groups = Groups(np.zeros(1, dtype=np.int64), np.full(1, members))
    return member, groups, np.zeros(len(member), dtype=np.int64)


def _draw_periods(
    rng: np.random.Generator,
    founded: Ints,
    first: Ints,
    groups: Groups,
    group: Ints,
    cuts: tuple[int, ...],
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


def _titles(rng: np.random.Generator, base: dict[str, int], n_teams: int, n_trophies: int) -> Facts:
    """Draw the winner of every season of every trophy: mostly one of its few favourites."""
    favourites = Groups.of(_deal(n_teams, n_trophies), n_trophies)
    trophy = np.repeat(np.arange(n_trophies), _SEASONS)
    first = rng.integers(1930, 1961, n_trophies)[trophy]
    year = first + np.tile(np.arange(_SEASONS), n_trophies) * rng.integers(1, 3, n_trophies)[trophy]
    stray = np.where(rng.random(len(trophy)) < _FAVOURITE_WINS, 0, rng.integers(1, 3, len(trophy)))
    team = favourites.draw(rng, (trophy + stray) % n_trophies)
    past = year <= NOW
    return Facts.of(
        "wonTitle", base["team"] + team[past], base["trophy"] + trophy[past], year[past]
    )


def _university_names(city_names: list[str], university_city: Ints) -> list[str]:
    """Name universities after their cities; the second one of a city is an institute."""
    labels: list[str] = []
    for city in university_city.tolist():
        name = f"University of {city_names[city]}"
        second = bool(labels) and labels[-1] == name
        labels.append(f"{city_names[city]} Institute of Arts" if second else name)
    return labels

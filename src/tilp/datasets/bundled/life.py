"""Lives: people are born, study, play, move, marry, join, are nominated, win and die.

Every step works on all people of a block at once. What the planted rules say is done with the
probability given beside it; in the other cases chance decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp.datasets.bundled.couples import marriages, party_members, unite
from tilp.datasets.bundled.facts import NOW, Facts, Ints
from tilp.datasets.bundled.people import People, born, elsewhere, happens, mostly
from tilp.datasets.bundled.places import FIELD, Places

__all__ = ["GRADUATION_AGE", "Block", "live"]

GRADUATION_AGE = (22.0, 1.0)
"""Mean and standard deviation of the years from birth to graduation."""

_CITIZEN_BY_BIRTH = 0.93
_STUDENT, _STUDENT_ATHLETE = 0.75, 0.05
_STUDIES_IN_BIRTHPLACE = 0.9
_ALUMNI_CLUB, _JOINS_CLUB, _JOINS_OTHER_CLUB = 0.88, 0.6, 0.06
_STINTS = (0.2, 0.35, 0.3, 0.15)  # of one, two, three and four teams
_TEAM_OF_OWN_COUNTRY = 0.75
_LIVES_WITH_TEAM = 0.93
_LICENSED_BY_LEAGUE = 0.93
_RETURNS_HOME, _STAYS_IN_UNIVERSITY_CITY, _STAYS_IN_BIRTHPLACE = 0.7, 0.92, 0.85
_MOVES_AGAIN = 0.15
_DIES_AT_HOME = 0.92
_NOMINATIONS = (0.1, 0.4, 0.5)  # for one, two and three prizes in one year
_YEARS_NOMINATED = (0.35, 0.4, 0.25)  # in one, two and three years
_WIN, _HONOUR = 0.85, 0.06


@dataclass(frozen=True)
class Block:
    """The lives of some people: their facts, and a number or two about each."""

    facts: Facts
    birth: Ints
    height: NDArray[np.float64]


def live(rng: np.random.Generator, places: Places, first: int, count: int) -> Block:
    """The lives of ``count`` people whose entity numbers start at ``first``."""
    people = born(rng, places, first, count)
    university, graduation = _study(rng, places, people)
    played, career_end = _play(rng, places, people)
    couples = unite(rng, places, people)
    facts = [
        _birthplaces(places, people),
        _citizens(rng, places, people),
        _degrees(places, people, university, graduation),
        *played,
        _homes(rng, places, people, university, graduation, career_end),
        _club_members(rng, places, people, university, graduation),
        marriages(rng, people, couples),
        party_members(rng, places, people, couples),
        _prizes(rng, places, people),
    ]
    height = np.rint(rng.normal(np.where(people.athlete, 177.0, 171.0), 8.0))
    return Block(Facts.concatenate(facts), people.birth, height)


def _birthplaces(places: Places, people: People) -> Facts:
    return Facts.of("bornIn", people.number, places.base["city"] + people.city, people.birth)


def _citizens(rng: np.random.Generator, places: Places, people: People) -> Facts:
    other = rng.integers(0, places.count("country"), len(people))
    country = mostly(rng, _CITIZEN_BY_BIRTH, people.country, other)
    base = places.base["country"]
    return Facts.of("citizenOf", people.number, base + country, people.birth + 18, people.until)


def _study(rng: np.random.Generator, places: Places, people: People) -> tuple[Ints, Ints]:
    """University and year of graduation of each person; -1 for who does not study."""
    near = places.city_universities
    abroad = places.universities.draw(rng, people.country)
    at_home = np.where(near.count[people.city] > 0, near.draw(rng, people.city), abroad)
    university = mostly(rng, _STUDIES_IN_BIRTHPLACE, at_home, abroad)
    studies = rng.random(len(people)) < np.where(people.athlete, _STUDENT_ATHLETE, _STUDENT)
    age = np.rint(rng.normal(*GRADUATION_AGE, len(people))).astype(np.int64)
    return np.where(studies, university, -1), np.where(studies, people.birth + age, -1)


def _degrees(places: Places, people: People, university: Ints, graduation: Ints) -> Facts:
    who = np.flatnonzero(university >= 0)
    base = places.base["university"]
    return Facts.of("graduatedFrom", people.number[who], base + university[who], graduation[who])


def _play(rng: np.random.Generator, places: Places, people: People) -> tuple[list[Facts], Ints]:
    """Facts of the athletes' careers, and the last year of each person's; -1 for who has none."""
    athletes = np.flatnonzero(people.athlete)
    stints = 1 + rng.choice(len(_STINTS), len(athletes), p=_STINTS)
    career_end = np.full(len(people), -1)
    start = people.birth[athletes] + rng.integers(18, 21, len(athletes))
    country = np.where(
        happens(rng, _TEAM_OF_OWN_COUNTRY, len(athletes)),
        people.country[athletes],
        rng.integers(0, places.count("country"), len(athletes)),
    )
    team = places.teams.draw(rng, country)
    facts: list[Facts] = []
    for turn in range(len(_STINTS)):
        end = start + rng.integers(1, 5, len(athletes))
        on = (stints > turn) & (end <= people.until[athletes])
        who = athletes[on]
        career_end[who] = end[on]
        facts += _stint(rng, places, people, who, team[on], start[on], end[on])
        start = end + rng.integers(1, 3, len(athletes))
        team = places.teams.other(rng, country, team)
    return facts, career_end


def _stint(
    rng: np.random.Generator,
    places: Places,
    people: People,
    who: Ints,
    team: Ints,
    start: Ints,
    end: Ints,
) -> list[Facts]:
    """Playing for a team, living where it is based at the time, licensed by its federation."""
    number, base = people.number[who], places.base
    facts = [Facts.of("playsFor", number, base["team"] + team, start, end)]

    with_team = happens(rng, _LIVES_WITH_TEAM, len(who))
    for period in range(places.homes.member.shape[1]):
        first = np.maximum(start, places.homes.start[team, period])
        last = np.minimum(end, places.homes.end[team, period])
        city = places.homes.member[team, period]
        city = np.where(with_team, city, elsewhere(rng, places, people.country[who]))
        there = first <= last
        facts.append(
            Facts.of(
                "livesIn", number[there], base["city"] + city[there], first[there], last[there]
            )
        )

    league, in_league = places.leagues.at(team, start)
    federation, governed = places.federations.at(league, start)
    other = rng.integers(0, places.count("federation"), len(who))
    federation = mostly(rng, _LICENSED_BY_LEAGUE, federation, other)
    last = np.minimum(end, np.minimum(in_league, governed))
    facts.append(Facts.of("licensedBy", number, base["federation"] + federation, start, last))
    return facts


def _homes(
    rng: np.random.Generator,
    places: Places,
    people: People,
    university: Ints,
    graduation: Ints,
    career_end: Ints,
) -> Facts:
    """Where people settle after studies or career, perhaps move to later, and die."""
    count = len(people)
    anywhere = elsewhere(rng, places, people.country)
    retired, studied = career_end >= 0, university >= 0
    city = np.where(
        retired,
        mostly(rng, _RETURNS_HOME, people.city, anywhere),
        np.where(
            studied,
            mostly(rng, _STAYS_IN_UNIVERSITY_CITY, places.university_city[university], anywhere),
            mostly(rng, _STAYS_IN_BIRTHPLACE, people.city, anywhere),
        ),
    )
    grown = np.where(studied, graduation, people.birth + 17)
    start = np.where(retired, career_end, grown) + rng.integers(1, 3, count)
    move = start + rng.integers(8, 26, count)
    second = elsewhere(rng, places, people.country)
    moves = happens(rng, _MOVES_AGAIN, count) & (move < people.until) & (second != city)
    settled = start <= people.until
    base = places.base["city"]

    death = np.flatnonzero((people.death <= NOW) & settled)
    last_city = np.where(moves, second, city)[death]
    place = mostly(rng, _DIES_AT_HOME, last_city, elsewhere(rng, places, people.country[death]))
    end = np.where(moves, move - 1, people.until)
    return Facts.concatenate(
        [
            Facts.of("livesIn", people.number, base + city, start, end)[settled],
            Facts.of("livesIn", people.number, base + second, move, people.until)[moves & settled],
            Facts.of("diedIn", people.number[death], base + place, people.death[death]),
        ]
    )


def _club_members(
    rng: np.random.Generator, places: Places, people: People, university: Ints, graduation: Ints
) -> Facts:
    """Graduates join a club of their university, a few others any club."""
    studied = university >= 0
    joins = rng.random(len(people)) < np.where(studied, _JOINS_CLUB, _JOINS_OTHER_CLUB)
    any_club = rng.integers(0, places.count("club"), len(people))
    club = np.where(
        studied & happens(rng, _ALUMNI_CLUB, len(people)),
        places.clubs.draw(rng, university),
        any_club,
    )
    start = np.where(studied, graduation, people.birth + 24) + rng.integers(1, 6, len(people))
    end = np.minimum(start + rng.integers(5, 31, len(people)), people.until)
    base = places.base["club"]
    return Facts.of("memberOfClub", people.number, base + club, start, end)[joins & (start <= end)]


def _prizes(rng: np.random.Generator, places: Places, people: People) -> Facts:
    """Artists are nominated for one to three prizes of their field in a year, and may win one."""
    artists = np.flatnonzero(people.artist)
    field = rng.integers(0, places.count("prize") // FIELD, len(artists))
    years = 1 + rng.choice(len(_YEARS_NOMINATED), len(artists), p=_YEARS_NOMINATED)
    base = places.base["prize"]
    year = people.birth[artists] + rng.integers(26, 36, len(artists))
    facts = []
    for turn in range(len(_YEARS_NOMINATED)):
        on = (years > turn) & (year <= people.until[artists])
        who, when, group = people.number[artists[on]], year[on], field[on]
        prize = base + FIELD * group[:, None] + rng.permuted(_columns(len(who), FIELD), axis=1)
        nominations = 1 + rng.choice(len(_NOMINATIONS), len(who), p=_NOMINATIONS)
        for place in range(len(_NOMINATIONS)):
            named = nominations > place
            facts.append(Facts.of("nominatedFor", who[named], prize[named, place], when[named]))
        # The order of the prizes is random, so the first may stand for any of those named.
        wins = happens(rng, _WIN, len(who))
        facts.append(Facts.of("receivedAward", who[wins], prize[wins, 0], when[wins]))
        year = year + rng.integers(2, 13, len(artists))

    honoured = np.flatnonzero(happens(rng, _HONOUR, len(people)))
    any_prize = base + rng.integers(0, places.count("prize"), len(honoured))
    when = np.minimum(
        people.birth[honoured] + rng.integers(40, 80, len(honoured)), people.until[honoured]
    )
    facts.append(Facts.of("receivedAward", people.number[honoured], any_prize, when))
    return Facts.concatenate(facts)


def _columns(rows: int, columns: int) -> Ints:
    return np.tile(np.arange(columns), (rows, 1))

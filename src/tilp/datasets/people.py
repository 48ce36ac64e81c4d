"""Lives of people: they are born, study, play, move, marry, join parties, win prizes, die."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tilp._utils.arrays import ColumnTable, Floats, Ints, Mask
from tilp.datasets.places import FIELD, NOW, PARTIES, Facts, Places, Rng

_BIRTHS = (1890, 1981)
_LIFETIME = (74.0, 11.0)
_SHORTEST_LIFE, _LONGEST_LIFE = 42, 100
_ATHLETES, _ARTISTS = 0.4, 0.3  # shares of the people; the others are neither
_STAYS_IN_COUNTRY = 0.5


@dataclass(frozen=True)
class People:
    """People of a block; ids of cities and countries are within their kind."""

    entity: Ints
    city: Ints
    country: Ints
    birth: Ints
    death: Ints
    until: Ints  # death, or the last year of the world
    athlete: Mask
    artist: Mask

    def __len__(self) -> int:
        return len(self.entity)


def _draw_bool(rng: Rng, chance: float, count: int) -> Mask:
    return rng.random(count) < chance


def _draw_mostly(rng: Rng, chance: float, usual: Ints, other: Ints) -> Ints:
    """Take the usual value with a chance, else the other."""
    return np.where(_draw_bool(rng, chance, len(usual)), usual, other)


def _draw_city(rng: Rng, places: Places, country: Ints) -> Ints:
    """Draw a city, mostly of the given country."""
    any_city = rng.integers(0, places.count("city"), len(country))
    return _draw_mostly(rng, _STAYS_IN_COUNTRY, places.cities.draw(rng, country), any_city)


def _make_people(rng: Rng, places: Places, first: int, count: int) -> People:
    """Draw home, birth, death and profession of people, in proportion to the size of cities."""
    # A block is a region, not a sample of the world: else its people would never meet in a city.
    share = min(count / places.people, 1.0)
    position = ((first - len(places.labels)) / places.people + share * rng.random(count)) % 1.0
    weight = np.cumsum(places.population)
    city = np.searchsorted(weight, (position * weight[-1]).astype(np.int64), side="right")
    birth = rng.integers(*_BIRTHS, count)
    age = np.clip(np.rint(rng.normal(*_LIFETIME, count)), _SHORTEST_LIFE, _LONGEST_LIFE)
    death = birth + age.astype(np.int64)
    profession = rng.random(count)
    return People(
        entity=first + np.arange(count),
        city=city,
        country=places.country[city],
        birth=birth,
        death=death,
        until=np.minimum(death, NOW),
        athlete=profession < _ATHLETES,
        artist=profession > 1 - _ARTISTS,
    )


_SEEKS_PARTNER, _MEETS_AT_HOME, _DIVORCE, _MIRRORED = 0.75, 0.5, 0.25, 0.9
_POLITICAL_COUPLE, _POLITICAL_SINGLE = 0.4, 0.04
_SAME_PARTY, _CHANGES_PARTY = 0.9, 0.25


@dataclass(frozen=True)
class Couples(ColumnTable):
    """Marriages; the two people as rows of the block."""

    first: Ints
    second: Ints
    start: Ints
    end: Ints
    divorced: Mask


def _make_couples(rng: Rng, places: Places, people: People) -> Couples:
    """Marry people who meet in one city at about one age; some divorce and marry another."""
    town = _draw_mostly(rng, _MEETS_AT_HOME, people.city, places.cities.draw(rng, people.country))
    seeking = np.flatnonzero(_draw_bool(rng, _SEEKS_PARTNER, len(people)))
    first = _pair(rng, people, town, seeking, people.birth[seeking] + 20, np.full(len(people), -1))
    ended = first[first.divorced]
    former = np.full(len(people), -1)
    former[ended.first], former[ended.second] = ended.second, ended.first
    again = np.concatenate([ended.first, ended.second])
    second = _pair(rng, people, town, again, np.concatenate([ended.end, ended.end]) + 1, former)
    return Couples.join([first, second])


def _pair(rng: Rng, people: People, town: Ints, seeking: Ints, free: Ints, former: Ints) -> Couples:
    """Marry neighbours in the order of city and birth, once both are free."""
    order = np.lexsort((people.birth[seeking] + rng.integers(0, 4, len(seeking)), town[seeking]))
    order = order[: len(order) // 2 * 2]
    left, right = seeking[order[0::2]], seeking[order[1::2]]
    start = np.maximum(free[order[0::2]], free[order[1::2]]) + rng.integers(0, 13, len(left))
    together = np.minimum(people.until[left], people.until[right])
    parting = start + rng.integers(3, 21, len(left))
    divorced = _draw_bool(rng, _DIVORCE, len(left)) & (parting < together)
    fit = (
        (town[left] == town[right])
        & (np.abs(people.birth[left] - people.birth[right]) <= 9)
        & (former[left] != right)
        & (start < together)
    )
    return Couples(left, right, start, np.where(divorced, parting, together), divorced)[fit]


def _marriages(rng: Rng, people: People, couples: Couples) -> Facts:
    """Return each marriage in one direction, and mostly in the other too."""
    first, second = people.entity[couples.first], people.entity[couples.second]
    mirrored = _draw_bool(rng, _MIRRORED, len(first))
    years = couples.start, couples.end
    mirror = Facts.of("marriedTo", second, first, *years)[mirrored]
    return Facts.join([Facts.of("marriedTo", first, second, *years), mirror])


def _party_members(rng: Rng, places: Places, people: People, couples: Couples) -> Facts:
    """Let couples join and change parties together, and some people join one alone."""
    political = couples[_draw_bool(rng, _POLITICAL_COUPLE, len(couples.first))]
    count = len(political.first)
    entity, base = people.entity, places.base["party"]
    country = people.country[political.first]
    party = rng.integers(0, PARTIES, count)
    start = political.start + rng.integers(1, 7, count)
    facts = []
    for turn in range(2):
        end = np.minimum(start + rng.integers(5, 16, count), political.end)
        follows = _draw_mostly(rng, _SAME_PARTY, party, rng.integers(0, PARTIES, count))
        later = np.minimum(start + rng.integers(0, 3, count), end)
        on = (start <= end) & (_draw_bool(rng, _CHANGES_PARTY, count) if turn else True)
        joins = ((political.first, party, start), (political.second, follows, later))
        for who, choice, joined in joins:
            party_id = base + country * PARTIES + choice
            facts.append(Facts.of("memberOfParty", entity[who], party_id, joined, end)[on])
        start = end + rng.integers(1, 3, count)
        party = (party + rng.integers(1, PARTIES, count)) % PARTIES
    alone = np.flatnonzero(_draw_bool(rng, _POLITICAL_SINGLE, len(people)))
    joined = people.birth[alone] + rng.integers(22, 36, len(alone))
    left = np.minimum(joined + rng.integers(5, 31, len(alone)), people.until[alone])
    choice = base + people.country[alone] * PARTIES + rng.integers(0, PARTIES, len(alone))
    facts.append(Facts.of("memberOfParty", entity[alone], choice, joined, left)[joined <= left])
    return Facts.join(facts)


GRADUATION_AGE = (22.0, 1.0)  # mean and standard deviation of the years from birth to graduation
_STUDENT, _STUDENT_ATHLETE, _STUDIES_IN_BIRTHPLACE = 0.75, 0.05, 0.9
_ALUMNI_CLUB, _JOINS_CLUB, _JOINS_OTHER_CLUB = 0.88, 0.6, 0.06
_STINTS = (0.2, 0.35, 0.3, 0.15)  # of one, two, three and four teams
_TEAM_OF_OWN_COUNTRY, _LIVES_WITH_TEAM, _LICENSED_BY_LEAGUE = 0.75, 0.93, 0.93
_RETURNS_HOME, _STAYS_IN_UNIVERSITY_CITY, _STAYS_IN_BIRTHPLACE = 0.7, 0.92, 0.85
_CITIZEN_BY_BIRTH, _MOVES_AGAIN, _DIES_AT_HOME = 0.93, 0.15, 0.92
_NOMINATIONS = (0.1, 0.4, 0.5)  # for one, two and three prizes in one year
_YEARS_NOMINATED = (0.35, 0.4, 0.25)  # in one, two and three years
_WIN, _HONOUR = 0.85, 0.06


class Block(NamedTuple):
    """Lives of some people: facts, year of birth and height."""

    facts: Facts
    birth: Ints
    height: Floats


def simulate_lives(rng: Rng, places: Places, first: int, count: int) -> Block:
    """Make the lives of `count` people with entity ids from `first` on."""
    people = _make_people(rng, places, first, count)
    university, graduation = _study(rng, places, people)
    played, career_end = _play(rng, places, people)
    couples = _make_couples(rng, places, people)
    school = places.base["university"] + university
    other = rng.integers(0, places.count("country"), count)
    citizen_of = _draw_mostly(rng, _CITIZEN_BY_BIRTH, people.country, other)
    citizen_of += places.base["country"]
    facts = [
        Facts.of("bornIn", people.entity, places.base["city"] + people.city, people.birth),
        Facts.of("citizenOf", people.entity, citizen_of, people.birth + 18, people.until),
        Facts.of("graduatedFrom", people.entity, school, graduation)[university >= 0],
        *played,
        _homes(rng, places, people, university, graduation, career_end),
        _clubs(rng, places, people, university, graduation),
        _marriages(rng, people, couples),
        _party_members(rng, places, people, couples),
        _prizes(rng, places, people),
    ]
    height = np.rint(rng.normal(np.where(people.athlete, 177.0, 171.0), 8.0))
    return Block(Facts.join(facts), people.birth, height)


def _study(rng: Rng, places: Places, people: People) -> tuple[Ints, Ints]:
    """Draw university and year of graduation of each person; -1 for none."""
    near = places.city_universities
    abroad = places.universities.draw(rng, people.country)
    at_home = np.where(near.count[people.city] > 0, near.draw(rng, people.city), abroad)
    university = _draw_mostly(rng, _STUDIES_IN_BIRTHPLACE, at_home, abroad)
    studies = rng.random(len(people)) < np.where(people.athlete, _STUDENT_ATHLETE, _STUDENT)
    age = np.rint(rng.normal(*GRADUATION_AGE, len(people))).astype(np.int64)
    return np.where(studies, university, -1), np.where(studies, people.birth + age, -1)


def _play(rng: Rng, places: Places, people: People) -> tuple[list[Facts], Ints]:
    """Draw careers of athletes; return their facts, and each person's last year or -1."""
    athletes = np.flatnonzero(people.athlete)
    stints = 1 + rng.choice(len(_STINTS), len(athletes), p=_STINTS)
    career_end = np.full(len(people), -1)
    start = people.birth[athletes] + rng.integers(18, 21, len(athletes))
    is_own = _draw_bool(rng, _TEAM_OF_OWN_COUNTRY, len(athletes))
    other = rng.integers(0, places.count("country"), len(athletes))
    country = np.where(is_own, people.country[athletes], other)
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
    rng: Rng, places: Places, people: People, who: Ints, team: Ints, start: Ints, end: Ints
) -> list[Facts]:
    """Return facts: play for a team, live where it is based then, licensed by its federation."""
    entity, base = people.entity[who], places.base
    facts = [Facts.of("playsFor", entity, base["team"] + team, start, end)]
    with_team = _draw_bool(rng, _LIVES_WITH_TEAM, len(who))
    for period in range(places.homes.member.shape[1]):
        first = np.maximum(start, places.homes.start[team, period])
        last = np.minimum(end, places.homes.end[team, period])
        city = places.homes.member[team, period]
        city = np.where(with_team, city, _draw_city(rng, places, people.country[who]))
        facts.append(Facts.of("livesIn", entity, base["city"] + city, first, last)[first <= last])
    league, in_league = places.leagues.at(team, start)
    federation, governed = places.federations.at(league, start)
    other = rng.integers(0, places.count("federation"), len(who))
    federation = _draw_mostly(rng, _LICENSED_BY_LEAGUE, federation, other)
    last = np.minimum(end, np.minimum(in_league, governed))
    facts.append(Facts.of("licensedBy", entity, base["federation"] + federation, start, last))
    return facts


def _homes(
    rng: Rng, places: Places, people: People, university: Ints, graduation: Ints, career_end: Ints
) -> Facts:
    """Draw where people live after studies or career, move to later, and die."""
    count = len(people)
    anywhere = _draw_city(rng, places, people.country)
    retired, studied = career_end >= 0, university >= 0
    back = _draw_mostly(rng, _RETURNS_HOME, people.city, anywhere)
    university_city = places.university_city[university]
    stays = _draw_mostly(rng, _STAYS_IN_UNIVERSITY_CITY, university_city, anywhere)
    home = _draw_mostly(rng, _STAYS_IN_BIRTHPLACE, people.city, anywhere)
    city = np.where(retired, back, np.where(studied, stays, home))
    adult = np.where(studied, graduation, people.birth + 17)
    start = np.where(retired, career_end, adult) + rng.integers(1, 3, count)
    move = start + rng.integers(8, 26, count)
    second = _draw_city(rng, places, people.country)
    moves = _draw_bool(rng, _MOVES_AGAIN, count) & (move < people.until) & (second != city)
    has_home = start <= people.until
    death = np.flatnonzero((people.death <= NOW) & has_home)
    last_city = np.where(moves, second, city)[death]
    other_city = _draw_city(rng, places, people.country[death])
    death_city = _draw_mostly(rng, _DIES_AT_HOME, last_city, other_city)
    entity, base, end = people.entity, places.base["city"], np.where(moves, move - 1, people.until)
    first_home = Facts.of("livesIn", entity, base + city, start, end)[has_home]
    second_home = Facts.of("livesIn", entity, base + second, move, people.until)[moves & has_home]
    deaths = Facts.of("diedIn", entity[death], base + death_city, people.death[death])
    return Facts.join([first_home, second_home, deaths])


def _clubs(rng: Rng, places: Places, people: People, university: Ints, graduation: Ints) -> Facts:
    """Let graduates join a club of their university, and a few others any club."""
    studied = university >= 0
    joins = rng.random(len(people)) < np.where(studied, _JOINS_CLUB, _JOINS_OTHER_CLUB)
    any_club = rng.integers(0, places.count("club"), len(people))
    alumni = studied & _draw_bool(rng, _ALUMNI_CLUB, len(people))
    club = np.where(alumni, places.clubs.draw(rng, university), any_club)
    start = np.where(studied, graduation, people.birth + 24) + rng.integers(1, 6, len(people))
    end = np.minimum(start + rng.integers(5, 31, len(people)), people.until)
    base = places.base["club"]
    return Facts.of("memberOfClub", people.entity, base + club, start, end)[joins & (start <= end)]


def _prizes(rng: Rng, places: Places, people: People) -> Facts:
    """Nominate artists for one to three prizes of their field in a year; they may win one."""
    artists = np.flatnonzero(people.artist)
    field = rng.integers(0, places.count("prize") // FIELD, len(artists))
    years = 1 + rng.choice(len(_YEARS_NOMINATED), len(artists), p=_YEARS_NOMINATED)
    base = places.base["prize"]
    year = people.birth[artists] + rng.integers(26, 36, len(artists))
    facts = []
    for turn in range(len(_YEARS_NOMINATED)):
        on = (years > turn) & (year <= people.until[artists])
        who, when, group = people.entity[artists[on]], year[on], field[on]
        columns = np.tile(np.arange(FIELD), (len(who), 1))
        prize = base + FIELD * group[:, None] + rng.permuted(columns, axis=1)
        nominations = 1 + rng.choice(len(_NOMINATIONS), len(who), p=_NOMINATIONS)
        facts += [
            Facts.of("nominatedFor", who, prize[:, index], when)[nominations > index]
            for index in range(len(_NOMINATIONS))
        ]
        # The order of the prizes is random, so the first may stand for any of the nominations.
        wins = _draw_bool(rng, _WIN, len(who))
        facts.append(Facts.of("receivedAward", who, prize[:, 0], when)[wins])
        year = year + rng.integers(2, 13, len(artists))
    honoured = np.flatnonzero(_draw_bool(rng, _HONOUR, len(people)))
    any_prize = base + rng.integers(0, places.count("prize"), len(honoured))
    when = people.birth[honoured] + rng.integers(40, 80, len(honoured))
    when = np.minimum(when, people.until[honoured])
    facts.append(Facts.of("receivedAward", people.entity[honoured], any_prize, when))
    return Facts.join(facts)

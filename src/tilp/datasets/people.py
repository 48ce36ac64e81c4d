"""Lives of people: they are born, study, play, move, marry, join parties, win prizes, die."""

from dataclasses import dataclass

import numpy as np

from tilp._utils.arrays import ColumnTable, Ints, Mask
from tilp.datasets.places import CHANCES, FIELD, N_PARTIES, NOW, Facts, Places, Rng

_BIRTHS = (1890, 1981)
_LIFETIME, _SHORTEST_LIFE, _LONGEST_LIFE = (74.0, 11.0), 42, 100
GRADUATION_AGE = (22.0, 1.0)  # mean and standard deviation of the years from birth to graduation


@dataclass(frozen=True)
class Couples(ColumnTable):
    """Marriages; the two people as rows of the block."""

    first: Ints
    second: Ints
    start: Ints
    end: Ints
    divorced: Mask


class Lives:
    """A block of people with entity ids from `first` on, and the facts of their lives.

    Ids of cities, countries and so on are within their kind, people are rows of the block.
    """

    def __init__(self, rng: Rng, places: Places, first: int, count: int) -> None:
        self._rng, self._places, self._all = rng, places, np.arange(count)
        self._base = {**places.base, "person": first}
        self._facts: list[Facts] = []
        # A block is a region, not a sample of the world: else its people would never meet in a
        # city. Larger cities have more people.
        share = min(count / places.people, 1.0)
        position = ((first - len(places.labels)) / places.people + share * rng.random(count)) % 1.0
        weight = np.cumsum(places.population)
        self._city = np.searchsorted(weight, (position * weight[-1]).astype(np.int64), side="right")
        self._country = places.country[self._city]
        self.birth = rng.integers(*_BIRTHS, count)
        age = np.clip(np.rint(rng.normal(*_LIFETIME, count)), _SHORTEST_LIFE, _LONGEST_LIFE)
        self._death = self.birth + age.astype(np.int64)
        self._until = np.minimum(self._death, NOW)
        profession = rng.random(count)
        athlete = profession < CHANCES["is_athlete"]
        university, graduation = self._study(athlete)
        career_end = self._play(np.flatnonzero(athlete))
        couples = self._couples()
        citizen_of = self._mostly("citizen_by_birth", self._country, self._any("country", count))
        self._add("bornIn", self._all, self._city, self.birth)
        self._add("citizenOf", self._all, citizen_of, self.birth + 18, self._until)
        self._live(university, graduation, career_end)
        self._join_clubs(university, graduation)
        self._marry(couples)
        self._join_parties(couples)
        self._win_prizes(np.flatnonzero(profession > 1 - CHANCES["is_artist"]))
        self.height = np.rint(rng.normal(np.where(athlete, 177.0, 171.0), 8.0))
        self.facts = Facts.join(self._facts).distinct()

    def _add(
        self, name: str, who: Ints, object: Ints, *years: Ints, where: Mask | None = None
    ) -> None:
        """Add facts of one relation, all or some of them; one year is start and end."""
        facts = Facts.of(self._base, name, who, object, *years)
        self._facts.append(facts if where is None else facts[where])

    def _happens(self, chance: str, count: int) -> Mask:
        return self._rng.random(count) < float(CHANCES[chance])

    def _mostly(self, chance: str, usual: Ints, other: Ints) -> Ints:
        """Take the usual value with a chance, else the other."""
        return np.where(self._happens(chance, len(usual)), usual, other)

    def _counts(self, chances: str, count: int) -> Ints:
        """Draw a count of one, two and so on for each."""
        shares = CHANCES[chances]
        return 1 + self._rng.choice(len(shares), count, p=shares)

    def _any(self, kind: str, count: int) -> Ints:
        return self._rng.integers(0, self._places.count[kind], count)

    def _draw_city(self, country: Ints) -> Ints:
        """Draw a city, mostly of the given country."""
        anywhere = self._any("city", len(country))
        near = self._places.cities.draw(self._rng, country)
        return self._mostly("stays_in_country", near, anywhere)

    def _study(self, athlete: Mask) -> tuple[Ints, Ints]:
        """Draw university and year of graduation of each person; -1 for none."""
        rng, near = self._rng, self._places.city_universities
        abroad = self._places.universities.draw(rng, self._country)
        at_home = np.where(near.count[self._city] > 0, near.draw(rng, self._city), abroad)
        university = self._mostly("studies_in_birthplace", at_home, abroad)
        chance = np.where(athlete, CHANCES["athlete_studies"], CHANCES["studies"])
        studies = rng.random(len(athlete)) < chance
        age = np.rint(rng.normal(*GRADUATION_AGE, len(athlete))).astype(np.int64)
        graduation = self.birth + age
        self._add("graduatedFrom", self._all, university, graduation, where=studies)
        return np.where(studies, university, -1), np.where(studies, graduation, -1)

    def _play(self, athletes: Ints) -> Ints:
        """Draw careers of athletes; return each person's last year or -1."""
        rng, places, count = self._rng, self._places, len(athletes)
        stints = self._counts("stints", count)
        career_end = np.full(len(self._all), -1)
        start = self.birth[athletes] + rng.integers(18, 21, count)
        is_own = self._happens("team_of_own_country", count)
        country = np.where(is_own, self._country[athletes], self._any("country", count))
        team = places.teams.draw(rng, country)
        for turn in range(len(CHANCES["stints"])):
            end = start + rng.integers(1, 5, count)
            on = (stints > turn) & (end <= self._until[athletes])
            career_end[athletes[on]] = end[on]
            self._play_for(athletes[on], team[on], start[on], end[on])
            start = end + rng.integers(1, 3, count)
            team = places.teams.other(rng, country, team)
        return career_end

    def _play_for(self, who: Ints, team: Ints, start: Ints, end: Ints) -> None:
        """Let people play for a team, live where it is based, be licensed by its federation."""
        places, homes = self._places, self._places.homes
        self._add("playsFor", who, team, start, end)
        with_team = self._happens("lives_with_team", len(who))
        for period in range(homes.member.shape[1]):
            first = np.maximum(start, homes.start[team, period])
            last = np.minimum(end, homes.end[team, period])
            other_city = self._draw_city(self._country[who])
            city = np.where(with_team, homes.member[team, period], other_city)
            self._add("livesIn", who, city, first, last, where=first <= last)
        league, in_league = places.leagues.at(team, start)
        federation, governed = places.federations.at(league, start)
        other = self._any("federation", len(who))
        federation = self._mostly("licensed_by_league", federation, other)
        last = np.minimum(end, np.minimum(in_league, governed))
        self._add("licensedBy", who, federation, start, last)

    def _couples(self) -> Couples:
        """Marry people who meet in one city at about one age; some divorce and marry another."""
        elsewhere = self._places.cities.draw(self._rng, self._country)
        town = self._mostly("meets_at_home", self._city, elsewhere)
        seeking = np.flatnonzero(self._happens("seeks_partner", len(town)))
        former = np.full(len(town), -1)
        first = self._pair(town, seeking, self.birth[seeking] + 20, former)
        ended = first[first.divorced]
        former[ended.first], former[ended.second] = ended.second, ended.first
        again, free = np.append(ended.first, ended.second), np.append(ended.end, ended.end) + 1
        return Couples.join([first, self._pair(town, again, free, former)])

    def _pair(self, town: Ints, seeking: Ints, free: Ints, former: Ints) -> Couples:
        """Marry neighbours in the order of city and birth, once both are free."""
        rng, birth = self._rng, self.birth
        order = np.lexsort((birth[seeking] + rng.integers(0, 4, len(seeking)), town[seeking]))
        even, odd = order[: len(order) // 2 * 2].reshape(-1, 2).T
        left, right = seeking[even], seeking[odd]
        start = np.maximum(free[even], free[odd]) + rng.integers(0, 13, len(left))
        together = np.minimum(self._until[left], self._until[right])
        parting = start + rng.integers(3, 21, len(left))
        divorced = self._happens("divorces", len(left)) & (parting < together)
        fit = (town[left] == town[right]) & (np.abs(birth[left] - birth[right]) <= 9)
        fit &= (former[left] != right) & (start < together)
        return Couples(left, right, start, np.where(divorced, parting, together), divorced)[fit]

    def _marry(self, couples: Couples) -> None:
        """Add each marriage in one direction, and mostly in the other too."""
        years = couples.start, couples.end
        self._add("marriedTo", couples.first, couples.second, *years)
        mirrored = self._happens("is_mirrored", len(couples))
        self._add("marriedTo", couples.second, couples.first, *years, where=mirrored)

    def _join_parties(self, couples: Couples) -> None:
        """Let couples join and change parties together, and some people join one alone."""
        rng, political = self._rng, couples[self._happens("political_couple", len(couples))]
        count = len(political)

        def join(who: Ints, party: Ints, *years: Ints, where: Mask) -> None:
            party_id = self._country[who] * N_PARTIES + party
            self._add("memberOfParty", who, party_id, *years, where=where)

        party = rng.integers(0, N_PARTIES, count)
        start = political.start + rng.integers(1, 7, count)
        for turn in range(2):
            end = np.minimum(start + rng.integers(5, 16, count), political.end)
            follows = self._mostly("same_party", party, rng.integers(0, N_PARTIES, count))
            later = np.minimum(start + rng.integers(0, 3, count), end)
            on = (start <= end) & (self._happens("changes_party", count) if turn else True)
            join(political.first, party, start, end, where=on)
            join(political.second, follows, later, end, where=on)
            start = end + rng.integers(1, 3, count)
            party = (party + rng.integers(1, N_PARTIES, count)) % N_PARTIES
        alone = np.flatnonzero(self._happens("political_single", len(self._all)))
        joined = self.birth[alone] + rng.integers(22, 36, len(alone))
        left = np.minimum(joined + rng.integers(5, 31, len(alone)), self._until[alone])
        party = rng.integers(0, N_PARTIES, len(alone))
        join(alone, party, joined, left, where=joined <= left)

    def _live(self, university: Ints, graduation: Ints, career_end: Ints) -> None:
        """Draw where people live after studies or career, move to later, and die."""
        rng, count, until = self._rng, len(self._all), self._until
        anywhere = self._draw_city(self._country)
        retired, studied = career_end >= 0, university >= 0
        back = self._mostly("returns_home", self._city, anywhere)
        university_city = self._places.university_city[university]
        stays = self._mostly("stays_in_university_city", university_city, anywhere)
        home = self._mostly("stays_in_birthplace", self._city, anywhere)
        city = np.where(retired, back, np.where(studied, stays, home))
        adult = np.where(studied, graduation, self.birth + 17)
        start = np.where(retired, career_end, adult) + rng.integers(1, 3, count)
        move = start + rng.integers(8, 26, count)
        second = self._draw_city(self._country)
        moves = self._happens("moves_again", count) & (move < until) & (second != city)
        has_home, end = start <= until, np.where(moves, move - 1, until)
        self._add("livesIn", self._all, city, start, end, where=has_home)
        self._add("livesIn", self._all, second, move, until, where=moves & has_home)
        died = np.flatnonzero((self._death <= NOW) & has_home)
        other_city = self._draw_city(self._country[died])
        death_city = self._mostly("dies_at_home", np.where(moves, second, city)[died], other_city)
        self._add("diedIn", died, death_city, self._death[died])

    def _join_clubs(self, university: Ints, graduation: Ints) -> None:
        """Let graduates join a club of their university, and a few others any club."""
        rng, count, studied = self._rng, len(self._all), university >= 0
        chance = np.where(studied, CHANCES["graduate_joins_club"], CHANCES["joins_club"])
        joins = rng.random(count) < chance
        any_club = self._any("club", count)
        alumni = studied & self._happens("alumni_club", count)
        club = np.where(alumni, self._places.clubs.draw(rng, university), any_club)
        start = np.where(studied, graduation, self.birth + 24) + rng.integers(1, 6, count)
        end = np.minimum(start + rng.integers(5, 31, count), self._until)
        self._add("memberOfClub", self._all, club, start, end, where=joins & (start <= end))

    def _win_prizes(self, artists: Ints) -> None:
        """Nominate artists for one to three prizes of their field in a year; they may win one."""
        rng, count = self._rng, len(artists)
        field = rng.integers(0, self._places.count["prize"] // FIELD, count)
        years = self._counts("years_nominated", count)
        year = self.birth[artists] + rng.integers(26, 36, count)
        for turn in range(len(CHANCES["years_nominated"])):
            on = (years > turn) & (year <= self._until[artists])
            who, when = artists[on], year[on]
            columns = np.tile(np.arange(FIELD), (len(who), 1))
            prize = FIELD * field[on, None] + rng.permuted(columns, axis=1)
            nominations = self._counts("nominations", len(who))
            for index in range(len(CHANCES["nominations"])):
                named = nominations > index
                self._add("nominatedFor", who, prize[:, index], when, where=named)
            # The order of the prizes is random, so the first may stand for any nomination.
            wins = self._happens("wins", len(who))
            self._add("receivedAward", who, prize[:, 0], when, where=wins)
            year = year + rng.integers(2, 13, count)
        honoured = np.flatnonzero(self._happens("is_honoured", len(self._all)))
        prize = self._any("prize", len(honoured))
        when = self.birth[honoured] + rng.integers(40, 80, len(honoured))
        self._add("receivedAward", honoured, prize, np.minimum(when, self._until[honoured]))

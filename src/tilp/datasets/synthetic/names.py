"""Readable invented names, drawn without repetition from lists of words and syllables."""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

_words = str.split

# An onset holds no vowel, a middle is always two letters: so no two triples spell the same word.
_ONSETS = _words(
    "B Bl Br C Ch Cl Cr D Dr F Fl Fr G Gl Gr H J K Kl Kr L M N P Pl Pr R S Sh Sk Sl St Str T Th "
    "Tr V W Wh Z"
)
_MIDDLES = _words("al am an ar av ed el em en er im in ir is ol om on or ov ul um un ur us")
_SURNAME_ENDS = _words(
    "bert by dale den field ford gard ham ker kin land ley low man mond nell ridge sby sen son "
    "stead ton ward wick worth"
)
_CITY_ENDS = _words(
    "berg borough bridge burg bury chester cliff dorf fell gate grad haven holm market mere "
    "minster mouth pool port stad stow vale ville wich wold"
)
_COUNTRY_ENDS = _words("aria avia enia esia garde land mark mora onia dor stan thia uria via")

_FIRST_NAMES = _words(
    "Ada Agnes Alba Aldo Alice Alma Amir Anders Anita Anton Arlo Asta Aurel Beatriz Bela Bianca "
    "Boris Bruno Carla Casper Cecil Clara Clement Conrad Cora Dalia Dario David Delia Dora "
    "Edgar Edith Elias Elina Elsa Emil Enzo Erik Esther Eva Fabian Felix Fiona Flora Frida "
    "Gemma Georg Gerda Gita Gregor Greta Hanna Harald Hector Hedda Helga Hugo Ida Igor Ilse "
    "Ines Iris Isaac Ivan Jana Jasper Joan Jonas Josef Judith Jules Karin Karl Katya Kira Klaus "
    "Lars Laura Lea Leon Lidia Linus Livia Lotte Louis Lucia Luis Lydia Mabel Magda Marco Marta "
    "Matteo Maya Milan Mina Mira Nadia Nils Nina Noel Nora Olaf Olga Omar Oscar Otto Paula "
    "Petra Rafael Rosa Rufus Samuel Selma Sergio Sofia Stella Sven Tamar"
)

_QUALITIES = _words(
    "Amber Ancient Azure Black Blue Bold Brass Bright Bronze Calm Cedar Copper Coral Crimson "
    "Crystal Eastern Ebony Emerald Fair Free Gentle Golden Grand Granite Green Grey Harvest "
    "High Hollow Honest Iron Ivory Jade Lofty Lunar Maple Marble Merry Midland Misty Noble "
    "Northern Oak Old Olive Open Pearl Quiet Red Royal Ruby Sable Scarlet Silent Silver Solar "
    "Southern Swift Velvet Western White"
)
_FIGURES = _words(
    "Anchor Arrow Badger Bear Bell Boar Bridge Castle Comet Compass Crane Crow Dolphin Dove "
    "Dragon Eagle Elk Falcon Feather Ferry Finch Forge Fountain Fox Garden Gate Hare Harp Hawk "
    "Heron Horse Hound Key Lamp Lantern Lark Lion Lynx Magpie Meadow Mill Moon Moose Orchard "
    "Osprey Otter Owl Pine Quill Raven River Rose Rook Salmon Seal Ship Stag Star Stork Summit "
    "Sun Swan Thistle Tiger Torch Tower Whale Willow Wolf Wren"
)
_TEAM_WORDS = _words(
    "Albion Athletic Badgers Bears Buffaloes Cavaliers Comets Corsairs Cranes Dragons Dynamos "
    "Eagles Falcons Foxes Giants Harriers Hawks Herons Hornets Hounds Lancers Lions Mariners "
    "Miners Orioles Otters Panthers Pilots Pirates Rangers Ravens Rovers Spartans Stags "
    "Stallions Storks Swans Tigers Titans United Victoria Wanderers Wolves Wrens"
)
_CLUB_WORDS = _words("Circle Club Company Fellowship Guild Lodge Order Society")
_LEAGUE_WORDS = _words("Conference Division League Series")
_FEDERATION_WORDS = _words("Association Board Federation Union")
_TROPHY_WORDS = _words("Bowl Crown Cup Plate Shield Sword Trophy Vase")
_PRIZE_WORDS = _words("Award Medal Prize")
_SUBJECTS = _words(
    "Architecture Astronomy Biology Chemistry Dance Drama Drawing Engineering Essay Fiction "
    "Film History Mathematics Medicine Music Painting Peace Philosophy Photography Physics "
    "Poetry Sculpture"
)
PARTY_WORDS = ("Agrarian", "Liberal", "People's", "Reform")
"""Parties of each country."""


def surnames() -> list[str]:
    """Return all surnames; all different."""
    return ["".join(parts) for parts in product(_ONSETS, _MIDDLES, _SURNAME_ENDS)]


def _draw(rng: np.random.Generator, count: int, *parts: Sequence[str], sep: str = "") -> list[str]:
    """Draw different names, with one word of each part; add numbers once all are used up."""
    sizes = tuple(len(part) for part in parts)
    capacity = prod(sizes)
    names: list[str] = []
    for turn in range(-(-count // capacity)):
        codes = rng.choice(capacity, min(capacity, count - turn * capacity), replace=False)
        columns = [
            [part[i] for i in digits.tolist()]
            for part, digits in zip(parts, np.unravel_index(codes, sizes), strict=True)
        ]
        suffix = f" {turn + 1}" if turn else ""
        names.extend(sep.join(words) + suffix for words in zip(*columns, strict=True))
    return names


def people(rng: np.random.Generator, count: int) -> list[str]:
    """Draw first and last names."""
    return _draw(rng, count, _FIRST_NAMES, surnames(), sep=" ")


def countries(rng: np.random.Generator, count: int) -> list[str]:
    """Draw names of one word."""
    return _draw(rng, count, _ONSETS, _MIDDLES, _COUNTRY_ENDS)


def cities(rng: np.random.Generator, count: int) -> list[str]:
    """Draw names of one word that no country can have."""
    return _draw(rng, count, _ONSETS, _MIDDLES, _CITY_ENDS)


def teams(rng: np.random.Generator, count: int) -> list[str]:
    """Draw a town and a team word; the town does not exist, because teams move."""
    towns = ["".join(parts) for parts in product(_ONSETS, _MIDDLES, ("dale", "ford", "ley"))]
    return _draw(rng, count, towns, _TEAM_WORDS, sep=" ")


def clubs(rng: np.random.Generator, count: int) -> list[str]:
    """Draw names such as Silver Heron Society."""
    return _draw(rng, count, _QUALITIES, _FIGURES, _CLUB_WORDS, sep=" ")


def leagues(rng: np.random.Generator, count: int) -> list[str]:
    """Draw names such as Northern Star League."""
    return _draw(rng, count, _QUALITIES, _FIGURES, _LEAGUE_WORDS, sep=" ")


def federations(rng: np.random.Generator, count: int) -> list[str]:
    """Draw names such as Golden Compass Federation."""
    return _draw(rng, count, _QUALITIES, _FIGURES, _FEDERATION_WORDS, sep=" ")


def trophies(rng: np.random.Generator, count: int) -> list[str]:
    """Draw names such as Amber Lion Cup."""
    return _draw(rng, count, _QUALITIES, _FIGURES, _TROPHY_WORDS, sep=" ")


def prizes(rng: np.random.Generator, fields: int, each: int) -> list[str]:
    """Draw names such as Marlow Medal for Poetry, with one subject for each field."""
    subjects = [_SUBJECTS[i] for i in rng.integers(0, len(_SUBJECTS), fields).tolist()]
    honours = _draw(rng, fields * each, surnames(), _PRIZE_WORDS, sep=" ")
    return [f"{honour} for {subjects[i // each]}" for i, honour in enumerate(honours)]

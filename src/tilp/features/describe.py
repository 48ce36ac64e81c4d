"""Sentences for temporal distributions."""

from tilp.types import EvidenceKind, Unit

_ALWAYS = 0.9  # from this share of pairs on, only one order is named
_WHERE: dict[str, str] = {
    EvidenceKind.BETWEEN: " between the same two",
    EvidenceKind.OTHERS: "",
    EvidenceKind.WALKS: " on walks to the answer",
}
_COUNTED = {"recurrence": "fact", "order": "pair", "pair": "pair", "duration": "interval"}


def recurrence_sentence(evidence: str, relation: str, probability: float) -> str:
    """Say how often an entity has a relation again.

    >>> recurrence_sentence("others", "playsFor", 0.83)
    'playsFor recurs, with another entity, in 83 % of cases'
    """
    whom = "the same" if evidence == EvidenceKind.BETWEEN else "another"
    return f"{relation} recurs, with {whom} entity, in {percent(probability)} of cases"


def order_sentence(evidence: str, relation: str, other: str, probability: float) -> str:
    """Say how often the other relation starts later.

    >>> order_sentence("others", "bornIn", "graduatedFrom", 0.99)
    'graduatedFrom starts after bornIn in 99 % of cases'
    """
    both = f"{_another(relation, other)} starts after {relation}{_WHERE[evidence]}"
    return f"{both} in {percent(probability)} of cases"


def pair_sentence(
    evidence: str,
    relation: str,
    other: str,
    later: float,
    mean: float,
    deviation: float,
    distribution: str,
    unit: Unit,
) -> str:
    """Say how long before or after a relation another starts.

    `later` is how often the other relation starts later.

    >>> pair_sentence(
    ...     "others", "bornIn", "graduatedFrom", 0.99, 22.1, 1.1, "Gaussian", Unit.YEAR
    ... )
    'graduatedFrom starts 22.1 ± 1.1 years after bornIn'
    """
    gaussian = distribution == "Gaussian"
    if later >= _ALWAYS:
        side = "after"
    elif later > 1 - _ALWAYS:
        side = "before or after"
    else:  # never later, but at the same time perhaps
        side = "before" if gaussian and mean > 2 * deviation else "at or before"
    length = f"{mean:,.1f} ± {deviation:,.1f}" if gaussian else f"on average {mean:,.1f}"
    start = f"{_another(relation, other)} starts {in_units(length, unit)}"
    return f"{start} {side} {relation}{_WHERE[evidence]}"


def duration_sentence(relation: str, mean: float, deviation: float, unit: Unit) -> str:
    """Say how long the facts of a relation last.

    >>> duration_sentence("playsFor", 3.4, 2.2, Unit.YEAR)
    'playsFor lasts 3.4 ± 2.2 years'
    >>> duration_sentence("bornIn", 0.1, 0.1, Unit.YEAR)
    'bornIn lasts less than a year'
    """
    if mean < 0.5:
        return f"{relation} lasts less than {'1' if unit is Unit.INTEGER else f'a {unit.value}'}"
    return f"{relation} lasts {in_units(f'{mean:,.1f} ± {deviation:,.1f}', unit)}"


def count_phrase(feature: str, count: int, pooled: bool) -> str:
    """Return what a distribution is fitted to, to follow its sentence.

    >>> count_phrase("pair", 512, False)
    '; 512 pairs'
    """
    phrase = f"; {count:,} {_COUNTED[feature]}{'' if count == 1 else 's'}"
    return f"{phrase}, too few: pooled with other relations" if pooled else phrase


def in_units(length: str, unit: Unit) -> str:
    """Return a length with the unit of time, if it has a name."""
    return length if unit is Unit.INTEGER else f"{length} {unit.value}s"


def percent(share: float) -> str:
    """Return a share in percent; what is above 0 never reads 0 %, what is below 1 never 100 %."""
    if share < 0.005:
        return "under 1 %"
    return "over 99 %" if share > 0.995 else f"{100 * share:.0f} %"


def _another(relation: str, other: str) -> str:
    return f"another {other}" if relation == other else other

"""Which column of a table is the subject, the relation, the object, the dates, the split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilp.errors import DataError

__all__ = ["FACT_COLUMNS", "ROLES", "assign_columns", "is_header", "name_roles"]

FACT_COLUMNS = ("subject", "relation", "object", "start", "end")
"""The columns of a fact, in the order of a table without header."""

_SYNONYMS: Mapping[str, frozenset[str]] = {
    "subject": frozenset({"subject", "s", "subj", "head", "h", "source", "subject_id", "head_id"}),
    "relation": frozenset(
        {"relation", "r", "rel", "predicate", "p", "property", "relation_id", "edge", "edge_type"}
    ),
    "object": frozenset({"object", "o", "obj", "tail", "t", "target", "object_id", "tail_id"}),
    "start": frozenset(
        {"start", "start_time", "start_date", "start_year", "begin", "since", "from", "valid_from"}
    ),
    "end": frozenset(
        {"end", "end_time", "end_date", "end_year", "until", "to", "valid_to", "valid_until"}
    ),
    "date": frozenset({"date", "time", "timestamp", "year", "day", "when", "point_in_time"}),
    "split": frozenset({"split"}),
    "estimated": frozenset({"estimated"}),
    "walked_only": frozenset({"walked_only"}),
}
_KEY_ROLES = frozenset({"subject", "relation", "object"})
_REMEDY = (
    "Name the columns in a header, or say which is which with columns= "
    "(--columns subject=…,relation=…,object=…,start=…,end=…)."
)
ROLES = tuple(_SYNONYMS)
"""What a column can be; 'date' is the one date of a fact that has no interval, 'estimated' says
which dates are estimates, 'walked_only' which facts are not learned from."""


def name_roles(names: Sequence[str]) -> dict[str, list[int]]:
    """The places of each role among column names."""
    roles: dict[str, list[int]] = {}
    plain = [name.strip().lower().replace(" ", "_").replace("-", "_") for name in names]
    for place, name in enumerate(plain):
        for role, synonyms in _SYNONYMS.items():
            if name in synonyms:
                roles.setdefault(role, []).append(place)
    if not {"subject", "object"} & roles.keys() and {"from", "to"} <= set(plain):
        # Of a graph's edges rather than of a fact's dates.
        for name, role, date in (("from", "subject", "start"), ("to", "object", "end")):
            roles[role] = [plain.index(name)]
            roles[date].remove(plain.index(name))
    return {role: places for role, places in roles.items() if places}


def is_header(cells: Sequence[str]) -> bool:
    """Whether a first row names its columns rather than states a fact.

    >>> is_header(["Subject", "predicate", "object", "since"]), is_header(["Ada", "knows", "Bob"])
    (True, False)
    """
    return name_roles(cells).keys() >= _KEY_ROLES


def assign_columns(
    names: Sequence[str] | None, count: int, source: str, chosen: Mapping[str, str] | None
) -> dict[str, int]:
    """The place of each role: chosen by the caller, by the names, or else by order.

    Args:
        names: the column names, where the table has any.
        count: how many columns there are.
        source: where the table comes from, for messages.
        chosen: column names by role, as the caller gave them.

    Raises:
        DataError: the columns cannot be told apart.
    """
    if chosen:
        return _chosen_columns(names, source, chosen)
    roles = name_roles(names or ())
    if roles.keys() >= _KEY_ROLES:
        return _single_roles(names or (), roles, source)
    if _KEY_ROLES & roles.keys():
        missing = ", ".join(sorted(_KEY_ROLES - roles.keys()))
        raise DataError(
            f"{source}: of the columns {', '.join(names or ())} none is called {missing}. {_REMEDY}"
        )
    if not 3 <= count <= 5:
        listed = f" ({', '.join(names)})" if names else ""
        raise DataError(
            f"{source}: {count} columns{listed}, but facts have 3 (subject, relation, object), "
            f"4 (and a date) or 5 (and start and end). {_REMEDY}"
        )
    if count == 4:
        return {"subject": 0, "relation": 1, "object": 2, "date": 3}
    return {role: place for place, role in enumerate(FACT_COLUMNS[:count])}


def _single_roles(
    names: Sequence[str], roles: Mapping[str, Sequence[int]], source: str
) -> dict[str, int]:
    """Each role's one place."""
    for role, places in roles.items():
        if len(places) > 1:
            listed = " and ".join(names[place] for place in places)
            raise DataError(f"{source}: {listed} could both be the {role}. {_REMEDY}")
    if "date" in roles and {"start", "end"} & roles.keys():
        raise DataError(
            f"{source}: {names[roles['date'][0]]} is a date beside a start or end. {_REMEDY}"
        )
    return {role: places[0] for role, places in roles.items()}


def _chosen_columns(
    names: Sequence[str] | None, source: str, chosen: Mapping[str, str]
) -> dict[str, int]:
    missing = [role for role in FACT_COLUMNS[:3] if role not in chosen]
    unknown = [role for role in chosen if role not in ROLES]
    if "date" in chosen and {"start", "end"} & chosen.keys():
        raise DataError("columns: give either date, or start and end")
    if missing or unknown:
        raise DataError(
            f"columns: {', '.join(missing or unknown)} {'missing' if missing else 'not known'}; "
            f"give subject, relation and object, and where there are any {', '.join(ROLES[3:])}"
        )
    if names is None:
        raise DataError(f"{source}: columns are chosen by name, but the table has no header")
    absent = [name for name in chosen.values() if name not in names]
    if absent:
        raise DataError(f"{source}: no column {absent[0]!r}; there are {', '.join(names)}")
    return {role: list(names).index(name) for role, name in chosen.items()}

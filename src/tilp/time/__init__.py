"""Time: dates as text, units, intervals, relations of two intervals (eq. 3-4), missing dates.

Only this package compares times. A time is an integer in the graph's unit; a missing date is
`UNKNOWN`, an end that is still to come `OPEN_END`, a start before all known time `OPEN_START`.
Open ones compare as minus and plus infinity; unknown ones never compare.
"""

from tilp.time.dates import (
    OPEN_END,
    OPEN_START,
    UNKNOWN,
    ParsedDate,
    choose_unit,
    format_length,
    format_time,
    parse_date,
    unit_words,
)
from tilp.time.interval import (
    FAR,
    Interval,
    end_as_of,
    ends_as_of,
    known_ends,
)
from tilp.time.relations import (
    GAP_CLASSES,
    UNDECIDED,
    Allen,
    TemporalRelation,
    allen,
    allen_code,
    allen_codes,
    gap_classes,
    gap_code,
    gap_codes,
    gap_lengths,
    possible_relations,
    relation_words,
    temporal_relation,
    temporal_relation_code,
    temporal_relation_codes,
)
from tilp.types import Unit

__all__ = [
    "FAR", "GAP_CLASSES", "OPEN_END", "OPEN_START", "UNDECIDED", "UNKNOWN", "Allen", "Interval",
    "ParsedDate", "TemporalRelation", "Unit", "allen", "allen_code", "allen_codes",
    "choose_unit", "end_as_of", "ends_as_of", "format_length", "format_time", "gap_classes",
    "gap_code", "gap_codes", "gap_lengths", "known_ends", "parse_date",
    "possible_relations", "relation_words", "temporal_relation", "temporal_relation_code",
    "temporal_relation_codes", "unit_words",
]  # fmt: skip

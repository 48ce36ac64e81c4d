"""Time: dates as text, units, intervals and how two intervals lie to each other (eq. 3-4).

This is the only place where time is compared. A time is an integer in the graph's unit; an
unknown time is `UNKNOWN`, an end that is still to come `OPEN_END`, a start before all known
time `OPEN_START`. The open ones compare as minus and plus infinity, unknown never compares.
"""

from tilp.choices import Unit
from tilp.intervals.dates import (
    OPEN_END,
    OPEN_START,
    UNKNOWN,
    ParsedDate,
    choose_unit,
    format_time,
    parse_date,
)
from tilp.intervals.gaps import GAP_WORDS, gap_code, gap_codes, gap_lengths
from tilp.intervals.interval import Interval
from tilp.intervals.missing import known_ends, readings
from tilp.intervals.relations import (
    UNDECIDED,
    Allen,
    TemporalRelation,
    allen,
    allen_code,
    allen_codes,
    possible_relations,
    temporal_relation,
    temporal_relation_code,
    temporal_relation_codes,
)

__all__ = [
    "GAP_WORDS",
    "OPEN_END",
    "OPEN_START",
    "UNDECIDED",
    "UNKNOWN",
    "Allen",
    "Interval",
    "ParsedDate",
    "TemporalRelation",
    "Unit",
    "allen",
    "allen_code",
    "allen_codes",
    "choose_unit",
    "format_time",
    "gap_code",
    "gap_codes",
    "gap_lengths",
    "known_ends",
    "parse_date",
    "possible_relations",
    "readings",
    "temporal_relation",
    "temporal_relation_code",
    "temporal_relation_codes",
]

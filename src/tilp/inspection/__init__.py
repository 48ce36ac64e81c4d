"""What is in a graph and what is wrong with it, and how its facts lie over time."""

from tilp.inspection.inspecting import (
    Dates,
    Defects,
    Inspection,
    RelationSummary,
    SplitSummary,
    YearCount,
    inspect,
)
from tilp.inspection.over_time import FactsOverTime, facts_over_time

__all__ = [
    "Dates",
    "Defects",
    "FactsOverTime",
    "Inspection",
    "RelationSummary",
    "SplitSummary",
    "YearCount",
    "facts_over_time",
    "inspect",
]

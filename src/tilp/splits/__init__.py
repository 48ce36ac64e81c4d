"""Splits of any data set: random; few samples, biased data, time shift (section 6, Appendix D)."""

from tilp.splits.folders import Released, released
from tilp.splits.kinds import (
    TimeShift,
    balanced,
    biased,
    few,
    random_split,
    reducible,
    time_shift,
)  # fmt: skip

__all__ = [
    "Released", "TimeShift", "balanced", "biased", "few", "random_split", "reducible",
    "released", "time_shift",
]  # fmt: skip

"""Splits of any data set: random; few samples, biased data, time shift (section 6, Appendix D)."""

from tilp.splits.folders import Released, released
from tilp.splits.samples import SHARES, balanced, biased, few, random_split, reducible
from tilp.splits.time_shift import TimeShift, time_shift

__all__ = [
    "SHARES", "Released", "TimeShift", "balanced", "biased", "few", "random_split", "reducible",
    "released", "time_shift",
]  # fmt: skip

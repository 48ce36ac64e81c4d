"""Forecasting by rules: facts are events at one time, and rule bodies lie before the query.

`TimestampRules` follows TLogic, as a baseline; `ForecastRules` weights rules by recency and count.
"""

from tilp.forecasting.recency import Curve, ForecastModel, ForecastRules, ForecastScorer
from tilp.forecasting.tlogic import TimestampModel, TimestampRules, TimestampScorer

__all__ = [
    "Curve", "ForecastModel", "ForecastRules", "ForecastScorer", "TimestampModel",
    "TimestampRules", "TimestampScorer",
]  # fmt: skip

"""Forecasting by rules: facts are events at one time, and rule bodies lie before the query.

`TimestampRules` follows TLogic, as a baseline; `ForecastModel` weights rules by recency and count,
and `tilp.ForecastRules` is the estimator around it.
"""

from tilp.forecasting.recency import Curve, ForecastModel, ForecastSettings
from tilp.forecasting.scorer import ForecastScorer
from tilp.forecasting.tlogic import TimestampModel, TimestampRules, TimestampScorer

__all__ = [
    "Curve", "ForecastModel", "ForecastScorer", "ForecastSettings", "TimestampModel",
    "TimestampRules", "TimestampScorer",
]  # fmt: skip

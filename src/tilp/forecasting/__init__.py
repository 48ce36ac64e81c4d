"""Rules that forecast: every fact is read as an event, and bodies lie before the query.

`TimestampRules` follows TLogic, as a baseline; `ForecastRules` weighs rules by recency and count.
"""

from tilp.forecasting.recency import Curve, ForecastModel, ForecastRules, ForecastScorer
from tilp.forecasting.tlogic import TimestampModel, TimestampRules, TimestampScorer

__all__ = [
    "Curve",
    "ForecastModel",
    "ForecastRules",
    "ForecastScorer",
    "TimestampModel",
    "TimestampRules",
    "TimestampScorer",
]

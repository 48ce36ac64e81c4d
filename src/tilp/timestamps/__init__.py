"""Rules that forecast: every fact is read as an event, and bodies lie before the query.

`TimestampRules` follows TLogic, as a baseline; `ForecastRules` weighs rules by recency and count.
"""

from tilp.timestamps.forecast_model import Curve, ForecastModel
from tilp.timestamps.forecast_scoring import ForecastScorer
from tilp.timestamps.forecasting import ForecastRules
from tilp.timestamps.learning import TimestampRules
from tilp.timestamps.model import TimestampModel
from tilp.timestamps.scoring import TimestampScorer

__all__ = [
    "Curve",
    "ForecastModel",
    "ForecastRules",
    "ForecastScorer",
    "TimestampModel",
    "TimestampRules",
    "TimestampScorer",
]

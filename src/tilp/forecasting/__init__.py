"""Forecasting by rules: facts are events at one time, and rule bodies lie before the query.

`TimestampRules` follows TLogic, as a baseline; `ForecastModel` weights rules by recency and count,
and `tilp.ForecastRules` is the estimator around it.
"""

from importlib import import_module

from tilp.forecasting.recency import Curve, ForecastModel, ForecastSettings
from tilp.forecasting.scorer import ForecastScorer
from tilp.forecasting.tlogic import TimestampModel, TimestampRules, TimestampScorer

__all__ = [
    "Curve", "ForecastModel", "ForecastScorer", "ForecastSettings", "TimestampModel",
    "TimestampRules", "TimestampScorer",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "ForecastRules":  # 0.1 had it here
        return import_module("tilp.model").ForecastRules
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

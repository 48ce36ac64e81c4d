"""When facts hold: distributions of start and end, learned from the dates of other facts."""

from tilp.time_prediction.answers import TimePrediction, TimePredictor
from tilp.time_prediction.model import TimeModel, TimeTraining, fit_time_model

__all__ = ["TimeModel", "TimePrediction", "TimePredictor", "TimeTraining", "fit_time_model"]

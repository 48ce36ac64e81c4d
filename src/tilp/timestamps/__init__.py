"""Timestamp rules in the manner of TLogic: a baseline that reads every fact as an event."""

from tilp.timestamps.learning import TimestampRules
from tilp.timestamps.model import TimestampModel
from tilp.timestamps.scoring import TimestampScorer

__all__ = ["TimestampModel", "TimestampRules", "TimestampScorer"]

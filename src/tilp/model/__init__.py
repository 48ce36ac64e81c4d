"""The estimator: fit, predict, explain, evaluate, update, save, load."""

from tilp.model.config import FitContext, ModelSettings, TILPConfig
from tilp.model.tilp import TILP
from tilp.scoring import Query

__all__ = ["TILP", "FitContext", "ModelSettings", "Query", "TILPConfig", "load"]

load = TILP.load

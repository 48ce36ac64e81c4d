"""The estimator: fit, predict, evaluate, save, load."""

from __future__ import annotations

from pathlib import Path

from tilp.model.estimator import TILP
from tilp.model.saving import load_model
from tilp.model.settings import ModelSettings
from tilp.ranking import Query

__all__ = ["TILP", "ModelSettings", "Query", "load"]


def load(folder: Path | str) -> TILP:
    """The model that `TILP.save` wrote.

    Raises:
        TilpError: the folder holds no model, a damaged one, or one of another version.
    """
    return TILP.of(*load_model(folder))

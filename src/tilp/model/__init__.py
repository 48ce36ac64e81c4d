"""The estimator: fit, predict, evaluate, save, load."""

from __future__ import annotations

from pathlib import Path

from tilp.model.config import ModelSettings
from tilp.model.persistence import load_model
from tilp.model.tilp import TILP
from tilp.scoring import Query

__all__ = ["TILP", "ModelSettings", "Query", "load"]


def load(folder: Path | str) -> TILP:
    """The model that `TILP.save` wrote.

    Raises:
        TilpError: the folder holds no model, a damaged one, or one of another version.
    """
    return TILP.of(*load_model(folder))

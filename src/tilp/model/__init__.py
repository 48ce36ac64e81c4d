"""The estimators: fit, predict, explain, evaluate, update, save, load."""

from pathlib import Path

from tilp.model.config import FitContext, ModelSettings, TILPConfig
from tilp.model.forecast import ForecastRules
from tilp.model.persistence import is_forecast
from tilp.model.tilp import TILP
from tilp.scoring import Query

__all__ = [
    "TILP", "FitContext", "ForecastRules", "ModelSettings", "Query", "TILPConfig", "load",
]  # fmt: skip


def load(folder: Path | str) -> TILP:
    """Read a model that `save` wrote, of either class. Nothing in the folder is executed.

    Args:
        folder: Of the model.

    >>> import tempfile, tilp
    >>> model = tilp.TILP(1, features="none").fit(tilp.datasets.world(0, 1000).graph)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = tilp.load(model.save(f"{folder}/model"))
    >>> again.rules() == model.rules()
    True
    """
    return ForecastRules.load(folder) if is_forecast(folder) else TILP.load(folder)

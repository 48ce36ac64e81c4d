"""Learn temporal logical rules, read them, predict missing links with them, and see why."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tilp._version import __version__
from tilp.errors import DataError, TilpError, TilpWarning

if TYPE_CHECKING:
    from tilp import datasets, evaluation, rules, splits
    from tilp.data_quality import inspect
    from tilp.evaluation import compare, evaluate
    from tilp.graph import SPLITS, Fact, TemporalGraph
    from tilp.io import read, write
    from tilp.io.packed.pack import pack
    from tilp.model import TILP, ForecastRules, TILPConfig, load
    from tilp.rules import Rule, RuleSet
    from tilp.scoring import Query
    from tilp.time import Interval
    from tilp.time.imputation import impute
    from tilp.types import Unit
    from tilp.walks import mine

__all__ = [
    "SPLITS", "TILP", "DataError", "Fact", "ForecastRules", "Interval", "Query", "Rule", "RuleSet",
    "TILPConfig", "TemporalGraph", "TilpError", "TilpWarning", "Unit", "__version__", "compare",
    "datasets", "evaluate", "evaluation", "impute", "inspect", "load", "mine", "pack", "read",
    "rules", "splits", "time", "write",
]  # fmt: skip

# Loaded when first asked for: `import tilp` and `tilp --help` need no table and no compiler.
_HOMES = {
    **dict.fromkeys(("SPLITS", "Fact", "TemporalGraph"), "tilp.graph"),
    **dict.fromkeys(("Interval", "Unit"), "tilp.time"),
    **dict.fromkeys(("compare", "evaluate"), "tilp.evaluation"),
    **dict.fromkeys(("ForecastRules", "Query", "TILP", "TILPConfig", "load"), "tilp.model"),
    **dict.fromkeys(("Rule", "RuleSet"), "tilp.rules"),
    **dict.fromkeys(("pack", "read", "write"), "tilp.io"),
    "impute": "tilp.time.imputation",
    "inspect": "tilp.data_quality",
    "mine": "tilp.walks",
}
_MODULES = ("datasets", "evaluation", "rules", "splits", "time")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"tilp.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tilp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

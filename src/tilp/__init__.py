"""Learn temporal logical rules, read them, predict missing links with them, and see why."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tilp._version import __version__
from tilp.errors import DataError, TilpError, TilpWarning

if TYPE_CHECKING:
    from tilp import datasets as datasets
    from tilp import evaluation as evaluation
    from tilp import intervals as intervals
    from tilp import rules as rules
    from tilp import splits as splits
    from tilp.evaluation import compare, evaluate
    from tilp.features.imputing import impute
    from tilp.graph import SPLITS, Fact, TemporalGraph
    from tilp.inspection import inspect
    from tilp.intervals import Interval, Unit
    from tilp.io import pack, read, write
    from tilp.model import TILP, Query, load
    from tilp.rules import Rule, RuleSet
    from tilp.walks import mine

__all__ = [
    "SPLITS",
    "TILP",
    "DataError",
    "Fact",
    "Interval",
    "Query",
    "Rule",
    "RuleSet",
    "TemporalGraph",
    "TilpError",
    "TilpWarning",
    "Unit",
    "__version__",
    "compare",
    "datasets",
    "evaluate",
    "evaluation",
    "impute",
    "inspect",
    "intervals",
    "load",
    "mine",
    "pack",
    "read",
    "rules",
    "splits",
    "write",
]

# Loaded when first asked for: `import tilp` and `tilp --help` need no table and no compiler.
_HOMES = {
    "SPLITS": "tilp.graph",
    "Fact": "tilp.graph",
    "TemporalGraph": "tilp.graph",
    "Interval": "tilp.intervals",
    "Unit": "tilp.intervals",
    "compare": "tilp.evaluation",
    "evaluate": "tilp.evaluation",
    "impute": "tilp.features.imputing",
    "inspect": "tilp.inspection",
    "Query": "tilp.model",
    "Rule": "tilp.rules",
    "RuleSet": "tilp.rules",
    "TILP": "tilp.model",
    "load": "tilp.model",
    "mine": "tilp.walks",
    "pack": "tilp.io",
    "read": "tilp.io",
    "write": "tilp.io",
}
_MODULES = ("datasets", "evaluation", "intervals", "rules", "splits")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"tilp.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tilp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

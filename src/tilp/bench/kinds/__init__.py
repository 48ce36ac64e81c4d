"""Kinds of experiments: a new one is a module here, a word in `ExperimentKind` and an entry."""

from collections.abc import Mapping

from tilp.bench.kinds.base import Kind
from tilp.bench.kinds.biased import BiasedData
from tilp.bench.kinds.compare import Compare
from tilp.bench.kinds.curve import Curve
from tilp.bench.kinds.efficiency import Efficiency
from tilp.bench.kinds.rules import Rules
from tilp.types import ExperimentKind

__all__ = ["KINDS", "Kind"]

KINDS: Mapping[ExperimentKind, Kind] = {
    ExperimentKind.COMPARE: Compare(),
    ExperimentKind.CURVE: Curve(),
    ExperimentKind.BIASED: BiasedData(),
    ExperimentKind.EFFICIENCY: Efficiency(),
    ExperimentKind.RULES: Rules(),
}
"""What each kind of experiment runs and reports."""

"""Kinds of experiments. A new kind is a module here and a word in `ExperimentKind`."""

from collections.abc import Mapping

from tilp.bench.experiments.base import Experiment
from tilp.bench.experiments.biased import BiasedData
from tilp.bench.experiments.compare import Compare
from tilp.bench.experiments.curve import Curve
from tilp.bench.experiments.efficiency import Efficiency
from tilp.bench.experiments.rules import Rules
from tilp.types import ExperimentKind

__all__ = ["EXPERIMENTS", "Experiment"]

EXPERIMENTS: Mapping[ExperimentKind, type[Experiment]] = {
    cls.kind: cls for cls in (Compare, Curve, BiasedData, Efficiency, Rules)
}

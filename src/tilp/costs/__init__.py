"""What jobs take, in time and memory: counted and tried out before they begin."""

from tilp.costs.amounts import WalkAmounts, expected_steps, steps_by_length, walk_amounts
from tilp.costs.calibration import Rates, Walks, calibrate
from tilp.costs.fits import FitCost, dry_run
from tilp.costs.memory import GraphSize
from tilp.costs.nodes import Nodes, Spread, spread
from tilp.costs.stage import StageCost

__all__ = [
    "FitCost",
    "GraphSize",
    "Nodes",
    "Rates",
    "Spread",
    "StageCost",
    "WalkAmounts",
    "Walks",
    "calibrate",
    "dry_run",
    "expected_steps",
    "spread",
    "steps_by_length",
    "walk_amounts",
]

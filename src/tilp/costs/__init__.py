"""What jobs take, in time and memory: counted and tried out before they begin."""

from tilp.costs.dry_run import FitCost, dry_run
from tilp.costs.stage import StageCost

__all__ = ["FitCost", "StageCost", "dry_run"]

"""Constrained random walks: from a query's subject to its answer, and under rules (eq. 2, 5-7)."""

from tilp.walks.constraints import PairConstraint, StepConstraint, Steps, compare
from tilp.walks.mining import MiningSettings, mine, mine_relation
from tilp.walks.walker import MAX_LENGTH, CompiledRules, Step, Walker

__all__ = [
    "MAX_LENGTH",
    "CompiledRules",
    "MiningSettings",
    "PairConstraint",
    "Step",
    "StepConstraint",
    "Steps",
    "Walker",
    "compare",
    "mine",
    "mine_relation",
]

"""Constrained random walks: from a query's subject to its answer, and under rules (eq. 2, 5-7)."""

from tilp.walks.chunks import chunks_by
from tilp.walks.constraints import PairConstraint, StepConstraint, Steps, compare
from tilp.walks.mining import MiningSettings, mine
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
    "chunks_by",
    "compare",
    "mine",
]

"""Constrained random walks from queries to answers, and the rules they fall under (eq. 2, 5-7)."""

from tilp.walks.encoding import MAX_LENGTH, CompiledRules, RuleEncoding
from tilp.walks.grounding import Grounder, Groundings
from tilp.walks.mining import MiningSettings, mine
from tilp.walks.walker import Step, Walker, chunks_by

__all__ = [
    "MAX_LENGTH", "CompiledRules", "Grounder", "Groundings", "MiningSettings", "RuleEncoding",
    "Step", "Walker", "chunks_by", "mine",
]  # fmt: skip

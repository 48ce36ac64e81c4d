"""Constrained random walks: from a query's subject to its answer, and under rules (eq. 2, 5-7)."""

from tilp.walks.walker import MAX_LENGTH, CompiledRules, QueryTable, Walker

__all__ = ["MAX_LENGTH", "CompiledRules", "QueryTable", "Walker"]

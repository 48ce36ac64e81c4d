"""Where the weights of clues lie, and how fast each is learned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.clues import Blocks, Evidence, Table
from tilp.timestamps.edges import TimedEdges

__all__ = ["evidence_of", "make_table", "rates"]

COUNTS = (1, 2, 3, 5, 10, 20)
"""The highest counts of classes; the last is of all above."""


def evidence_of(edges: TimedEdges) -> Evidence:
    """The edges in the orders in which clues are read."""
    return Evidence(edges.by_pair, edges.by_answer, edges.by_time)


def make_table(rules: NDArray[np.int64], heads: int, gaps: NDArray[np.int64]) -> Table:
    """The table of the weights for rules.

    Args:
        rules: `head · heads + body` of each, ascending.
        heads: how many directed relations there are.
        gaps: the highest of all classes of recency but the last.
    """
    head, body = np.divmod(rules, heads)
    slots = len(rules) + heads
    recencies, counts = len(gaps) + 1, len(COUNTS) + 1
    sizes = {
        "body_recency": 2 * recencies,
        "body_count": 2 * counts,
        "rule_level": slots,
        "rule_recency": slots * recencies,
        "pair_recency": recencies,
        "pair_count": counts,
        "answer_recency": 2 * recencies,
        "answer_count": 2 * counts,
        "entity_recency": 2 * recencies,
    }
    begins = np.append(0, np.cumsum([sizes[name] for name in Blocks._fields[:-1]]))
    return Table(
        np.searchsorted(head, np.arange(heads + 1)),
        body,
        gaps,
        np.array(COUNTS),
        Blocks(*(int(one) for one in begins)),
    )


def rates(table: Table, rate: float, own_rate: float) -> NDArray[np.float64]:
    """How fast each weight is learned."""
    names = Blocks._fields[:-1]
    each = [own_rate if name == "rule_recency" else rate for name in names]
    return np.repeat(each, np.diff(table.blocks))

"""`compare`: two evaluations of the same queries, paired, with significance."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from tilp._deprecated import RenamedAttribute
from tilp._utils.arrays import Floats
from tilp.errors import TilpError
from tilp.evaluation.result import FACT_METRICS, Evaluation, fact_means, resampled_bounds
from tilp.types import Protocol, Ties

_TOLERANCE = 1e-12
_BLOCK = 1 << 22  # signs drawn at a time


@dataclass(frozen=True)
class Difference:
    """A metric of two evaluations, and second - first with its bootstrap interval.

    `p_value` is the probability of an absolute difference at least as large, if for every fact
    the two evaluations were exchanged at random.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two evaluations side by side, under one protocol and tie rule.

    Attributes:
        protocol: Protocol of the ranks.
        ties: Tie rule of the ranks.
        facts: Number of facts, each a query in both directions.
        metrics: MRR and hits.
        wins: Number of queries whose answer the second ranks better.
        losses: Number of queries whose answer the second ranks worse.
        draws: Number of queries whose answer both rank the same.
        by_relation: MRR of both for each relation and direction, most queries first.
    """

    protocol: Protocol
    ties: Ties
    facts: int
    metrics: dict[str, Difference]
    wins: int
    losses: int
    draws: int
    by_relation: pl.DataFrame

    figures = RenamedAttribute("metrics")

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "protocol": self.protocol.value,
            "ties": self.ties.value,
            "facts": self.facts,
            "figures": {name: asdict(metric) for name, metric in self.metrics.items()},
            "wins": self.wins,
            "losses": self.losses,
            "draws": self.draws,
            "relations": self.by_relation.to_dicts(),
        }


def compare(
    first: Evaluation,
    second: Evaluation,
    protocol: Protocol | str | None = None,
    ties: Ties | str | None = None,
    *,
    resamples: int = 1_000,
    flips: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Comparison:
    """Compare two evaluations of the same queries: differences, intervals and p-values.

    Facts are resampled, and signs are flipped by fact, so that its two queries stay together.

    Args:
        first: The baseline.
        second: The evaluation to compare with it.
        protocol: Protocol of the ranks; `enumerate` by default.
        ties: Tie rule of the ranks; `average` by default.
        resamples: Number of bootstrap samples for intervals, 1,000 by default.
        flips: Number of random sign flips for p-values, 10,000 by default. If there are no more
            possible flips than that, all are counted and p-values are exact.
        seed: Seed of samples and flips.
        level: Confidence level of intervals, 0.95 by default.

    Raises:
        TilpError: The evaluations are of different queries, or have no such ranks.

    >>> from tilp import datasets
    >>> from tilp.evaluation import evaluate, popularity, recurrence
    >>> graph = datasets.world(0, 1000).graph
    >>> scorers = popularity(graph), recurrence(graph)
    >>> comparison = compare(*(evaluate(scorer, graph, "valid") for scorer in scorers))
    >>> comparison.wins + comparison.losses + comparison.draws == 2 * comparison.facts
    True
    """
    one, other = ((e.graph, e.split, e.sample) for e in (first, second))
    if one != other:
        why = "their graphs differ. Evaluate both on the same data, read in the same way."
        if first.split != second.split:
            why = f"one is of {first.split}, the other of {second.split}"
        elif first.sample != second.sample:
            why = f"one is of {first.sample or 'all facts'}, "
            why += f"the other of {second.sample or 'all facts'}"
        raise TilpError(f"the two evaluations are not of the same queries: {why}")
    if protocol is None and Protocol.ENUMERATE not in {*first.protocols} & {*second.protocols}:
        protocol = next((shared for shared in first.protocols if shared in second.protocols), None)
    column = first.column(protocol, ties)
    second.column(protocol, ties)
    chosen = next(pair for pair in first.protocols_and_ties() if first.column(*pair) == column)
    ranks = [evaluation.ranks[column] for evaluation in (first, second)]
    means = [fact_means(first.ranks["fact"], rank) for rank in ranks]
    differences = means[1] - means[0]
    averages = ([column.mean() for column in values.T] for values in (*means, differences))
    bounds = resampled_bounds(differences, resamples, seed, level)
    rows = zip(FACT_METRICS, *averages, *bounds, _sign_flip(differences, flips, seed), strict=True)
    metrics = {name: Difference(*map(float, values)) for name, *values in rows}
    base, rank = ranks
    wins, losses = int((rank < base).sum()), int((rank > base).sum())
    draws = len(first) - wins - losses
    by_relation = (
        first.ranks.select("relation", "direction")
        .with_columns(first=1.0 / base, second=1.0 / rank, better=rank < base, worse=rank > base)
        .group_by("relation", "direction")
        .agg(
            queries=pl.len().cast(pl.Int64),
            first=pl.col("first").mean(),
            second=pl.col("second").mean(),
            difference=pl.col("second").mean() - pl.col("first").mean(),
            wins=pl.col("better").sum().cast(pl.Int64),
            losses=pl.col("worse").sum().cast(pl.Int64),
        )
        .sort("queries", "relation", "direction", descending=[True, False, False])
    )
    return Comparison(*chosen, len(differences), metrics, wins, losses, draws, by_relation)


def _sign_flip(differences: Floats, flips: int, seed: int) -> Floats:
    """Return the share of sign flips with a sum at least as far from zero, for each column."""
    if flips < 1:
        raise TilpError("a p-value needs at least 1 flip")
    differences = differences[(differences != 0).any(axis=1)]  # the others change no sum
    facts = len(differences)
    observed = np.abs(differences.sum(axis=0)) - _TOLERANCE * max(facts, 1)
    if facts < flips.bit_length() and 2**facts <= flips:
        patterns = np.arange(2**facts)[:, None] >> np.arange(facts)
        sums = np.abs((1.0 - 2.0 * (patterns & 1)) @ differences)
        return np.asarray((sums >= observed).mean(axis=0))
    rng = np.random.default_rng(seed)
    extreme = np.zeros(differences.shape[1])
    block = max(1, _BLOCK // facts)
    for done in range(0, flips, block):
        signs = 2.0 * rng.integers(2, size=(min(block, flips - done), facts), dtype=np.int8) - 1.0
        extreme += (np.abs(signs @ differences) >= observed).sum(axis=0)
    return (extreme + 1.0) / (flips + 1.0)

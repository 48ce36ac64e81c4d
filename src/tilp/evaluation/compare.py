"""`compare`: two evaluations of the same queries, paired, with significance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.evaluation.result import Evaluation, fact_means, gains, resampled_bounds
from tilp.types import Protocol, Ties

_CLOSE = 1e-12
_BLOCK = 1 << 22  # signs drawn at a time


@dataclass(frozen=True)
class Difference:
    """One figure of both, and second - first with its bootstrap interval.

    `p_value` is the chance of a difference at least as large, up or down, if for every fact it
    were a toss-up which of the two evaluations is which.
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
        protocol: of the ranks; likewise `ties`.
        facts: how many facts were asked, each in both directions.
        figures: MRR and hits.
        wins: queries whose answer the second ranks better; `losses`: worse; `draws`: the same.
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

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "protocol": self.protocol.value,
            "ties": self.ties.value,
            "facts": self.facts,
            "figures": {name: asdict(one) for name, one in self.metrics.items()},
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
    """Tell how much better the second evaluation is than the first, and whether that is chance.

    What is resampled, and what signs are flipped of, is a fact: its two queries stay together.

    Args:
        first: the one to compare with.
        second: the other, of the same queries.
        protocol: `enumerate` by default.
        ties: `average` by default.
        resamples: for the interval of each difference.
        flips: how many flips of signs the p-value is estimated from; all of them are counted,
            and the p-value is exact, where they are no more than that.
        seed: for both.
        level: of the interval.

    Raises:
        TilpError: they are not of the same queries, or have no such ranks.
    """
    if first.graph != second.graph or first.split != second.split:
        raise TilpError(
            "the two evaluations are not of the same queries: "
            + (
                f"one asked {first.split}, the other {second.split}"
                if first.split != second.split
                else "their graphs differ. Evaluate both on the same data, read in the same way."
            )
        )
    if protocol is None and Protocol.ENUMERATE not in {*first.protocols} & {*second.protocols}:
        protocol = next((one for one in first.protocols if one in second.protocols), None)
    column = first.column(protocol, ties)
    second.column(protocol, ties)
    chosen = next(one for one in first.protocols_and_ties() if first.column(*one) == column)
    ranks = [one.ranks[column] for one in (first, second)]
    both = [gains(rank) for rank in ranks]
    means = [fact_means(first.ranks["fact"], np.stack(list(g.values()), axis=1)) for g in both]
    differences = means[1] - means[0]
    low, high = resampled_bounds(differences, resamples, seed, level)
    p_values = _sign_flip(differences, flips, seed)
    figures = {
        name: Difference(
            first=float(means[0][:, place].mean()),
            second=float(means[1][:, place].mean()),
            difference=float(differences[:, place].mean()),
            low=float(low[place]),
            high=float(high[place]),
            p_value=float(p_values[place]),
        )
        for place, name in enumerate(both[0])
    }
    wins, losses = int((ranks[1] < ranks[0]).sum()), int((ranks[1] > ranks[0]).sum())
    return Comparison(
        protocol=chosen[0],
        ties=chosen[1],
        facts=len(differences),
        metrics=figures,
        wins=wins,
        losses=losses,
        draws=len(first) - wins - losses,
        by_relation=_by_relation(first, *ranks),
    )


def _sign_flip(differences: NDArray[np.float64], flips: int, seed: int) -> NDArray[np.float64]:
    """The share of flips of signs that give a sum at least as far from zero, column by column.

    Facts without a difference change no sum and are left out.
    """
    if flips < 1:
        raise TilpError("a p-value needs at least 1 flip")
    differences = differences[(differences != 0).any(axis=1)]
    facts = len(differences)
    seen = np.abs(differences.sum(axis=0)) - _CLOSE * max(facts, 1)
    if facts < flips.bit_length() and 2**facts <= flips:
        patterns = np.arange(2**facts)[:, None] >> np.arange(facts)
        sums = np.abs((1.0 - 2.0 * (patterns & 1)) @ differences)
        return np.asarray((sums >= seen).mean(axis=0))
    chance = np.random.default_rng(seed)
    extreme = np.zeros(differences.shape[1])
    block = max(1, _BLOCK // facts)
    for done in range(0, flips, block):
        size = (min(block, flips - done), facts)
        signs = 2.0 * chance.integers(2, size=size, dtype=np.int8) - 1.0
        extreme += (np.abs(signs @ differences) >= seen).sum(axis=0)
    return (extreme + 1.0) / (flips + 1.0)


def _by_relation(first: Evaluation, rank: pl.Series, other: pl.Series) -> pl.DataFrame:
    return (
        first.ranks.select("relation", "direction")
        .with_columns(first=1.0 / rank, second=1.0 / other, better=other < rank, worse=other > rank)
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

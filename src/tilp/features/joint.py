"""`JointWeights`: what rules, facts and soft walks add to a candidate's score in phase two."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError

__all__ = ["COLUMNS", "SOFT_WALKS", "USUAL_PULL", "JointWeights"]

SOFT_WALKS = "soft walks"

COLUMNS = ("rules", SOFT_WALKS)
"""What has one weight for each head."""

USUAL_PULL = 10.0
"""How strongly weights of rules and words are drawn to 0, where nothing else was chosen."""


@dataclass(frozen=True)
class JointWeights:
    """Weights of a log-linear score; a mixing weight of each head is in all of them.

    Attributes:
        columns: for each head, the weights of `COLUMNS`.
        rule: of each rule, for the root of its arriving rate at the candidate.
        row_of: for each head and group of facts the row of its words' weights; -1: none.
        words: the weights of words, row by row.
        mixing: for each head, how much of what was learned is in the weights: 0 leaves the rules
            as phase one weighted them.
        bounds: of the distances that words tell.
        scale: of time, of soft walks.
        pull: for each head, how strongly weights of rules and words were drawn to 0.
    """

    columns: NDArray[np.float64]
    rule: NDArray[np.float64]
    row_of: NDArray[np.int32]
    words: NDArray[np.float64]
    mixing: NDArray[np.float64]
    bounds: NDArray[np.int64]
    scale: float
    pull: NDArray[np.float64]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays by name."""
        return {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> JointWeights:
        """What `to_arrays` gave.

        Raises:
            TilpError: an array is missing.
        """
        if "columns" in arrays:  # models of before do not tell it
            arrays = {"pull": np.full(len(arrays["columns"]), USUAL_PULL), **arrays}
        lacking = [one.name for one in fields(cls) if one.name not in arrays]
        if lacking:
            raise TilpError(f"weights of features lack {', '.join(lacking)}; fit the model anew")
        held: dict[str, Any] = {one.name: arrays[one.name] for one in fields(cls)}
        return cls(**{**held, "scale": float(held["scale"])})

    def of(self, heads: NDArray[np.int64], rules: NDArray[np.int64]) -> JointWeights:
        """The weights for other numbers of relations and rules.

        Args:
            heads: for each new head the old one; -1: none.
            rules: for each new rule the old one; -1: none.
        """
        n, kinds = len(self.columns), self.row_of.shape[1] // len(self.columns)
        known = heads >= 0
        columns = np.where(known[:, None], self.columns[heads], np.eye(1, len(COLUMNS)))
        groups = np.concatenate([np.where(known, heads + kind * n, -1) for kind in range(kinds)])
        row_of = np.where(
            known[:, None] & (groups >= 0), self.row_of[np.ix_(heads, groups)], np.int32(-1)
        )
        return JointWeights(
            columns,
            np.where(rules >= 0, np.append(self.rule, 0.0)[rules], 0.0),
            row_of,
            self.words,
            np.where(known, self.mixing[heads], 0.0),
            self.bounds,
            self.scale,
            np.where(known, self.pull[heads], USUAL_PULL),
        )

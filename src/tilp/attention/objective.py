"""`Objective`: the likelihood of answers under weighted rules, and its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.likelihood import add_likelihood
from tilp.attention.entries import Entries
from tilp.attention.known import KINDS
from tilp.attention.prior import CandidatePrior
from tilp.parallel import Workers, cut_by_cost

__all__ = ["LogWeights", "Objective"]

_PARTS = 16  # of the queries; does not depend on the number of threads


@dataclass(frozen=True)
class LogWeights:
    """Logarithms of what is learned, or the gradient for them.

    Attributes:
        rule: of each rule's weight.
        prior: of the prior's weight, for each directed relation.
        factor: of the factor that known candidates count by, for each directed relation and kind.
    """

    rule: NDArray[np.float64]
    prior: NDArray[np.float64]
    factor: NDArray[np.float64]


class Objective:
    """The negative log-likelihood of the answers of queries, as a mean over them.

    Args:
        entries: of the queries.
        prior: of candidates.
        n_rules: how many rules there are.
        walks_power: a rule's weight is multiplied by the number of its walks to this power.
    """

    def __init__(
        self, entries: Entries, prior: CandidatePrior, n_rules: int, walks_power: float = 0.0
    ) -> None:
        self._entries = entries
        self._n_rules = n_rules
        self._n_heads = prior.n_heads
        self._prior = prior.of_answers(entries.queries)
        walks = entries.others + entries.at_answer + entries.at_known.sum(axis=1)
        self._gain = walks**walks_power
        self._parts = cut_by_cost(np.diff(entries.begin) + 1.0, _PARTS)
        self.asked = int((np.diff(entries.begin) > 0).sum())

    def __call__(self, logs: LogWeights, workers: Workers) -> tuple[float, LogWeights]:
        """The mean loss, and its gradient."""
        weight, prior_weight = np.exp(logs.rule), np.exp(logs.prior)
        factor = np.exp(logs.factor)
        entries = self._entries

        def one(part: slice) -> tuple[float, LogWeights]:
            gradient = LogWeights(
                np.zeros(self._n_rules),
                np.zeros(self._n_heads),
                np.zeros((self._n_heads, len(KINDS))),
            )
            loss = add_likelihood(
                part.start,
                part.stop,
                entries.begin,
                entries.rule,
                entries.others,
                entries.at_answer,
                entries.at_known,
                self._gain,
                entries.queries.head,
                entries.answer_kind,
                self._prior,
                weight,
                prior_weight,
                factor,
                gradient.rule,
                gradient.prior,
                gradient.factor,
            )
            return loss, gradient

        total = 0.0
        rule = np.zeros(self._n_rules)
        prior = np.zeros(self._n_heads)
        of_factor = np.zeros((self._n_heads, len(KINDS)))
        for loss, gradient in workers.map_here(one, self._parts):
            total += loss
            rule += gradient.rule
            prior += gradient.prior
            of_factor += gradient.factor
        asked = max(self.asked, 1)
        return total / asked, LogWeights(rule / asked, prior / asked, of_factor / asked)

"""`ForecastScorer`: the shares that clues from before a query give its candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.clues import Evidence, Table
from tilp._kernels.forecasts import forecast_queries
from tilp.evaluation import Scores
from tilp.graph import QueryTable
from tilp.timestamps.edges import event_times

__all__ = ["ForecastScorer"]


@dataclass(frozen=True, eq=False)
class ForecastScorer:
    """Scores candidates by clues dated before the query.

    A score is the logarithm of the candidate's share. Candidates are the entities that the subject
    met before, and those that answered the relation before; all others come after them. A query
    without a date is asked after all facts.

    Attributes:
        evidence: that clues are read from.
        table: which clues have which weights.
        weights: these.
    """

    evidence: Evidence
    table: Table
    weights: NDArray[np.float64]

    def __call__(self, queries: QueryTable) -> Scores:
        """The scores of the candidates of queries."""
        asked = np.stack([queries.subject, queries.head, event_times(*queries.given())], axis=1)
        distinct, of_query = np.unique(asked, axis=0, return_inverse=True)
        subject, head, time = np.ascontiguousarray(distinct.T)
        found = forecast_queries(self.evidence, self.table, self.weights, subject, head, time)
        return Scores(*found, default=-np.inf, temperature=1.0).take(of_query)

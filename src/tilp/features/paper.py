"""`PaperFeatures`: recurrence, temporal order and relation pair interval (eq. 14, 16-21)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.features.evidence import DEFAULT_LIMIT, Dated, Evidence, Gatherer
from tilp.features.fitted import FittedFeatures
from tilp.features.scoring import measure, score_pieces, score_terms
from tilp.features.weights import FEATURES, FeatureWeights
from tilp.graph import QueryTable, TemporalGraph
from tilp.parallel import Workers

__all__ = ["PaperFeatures"]


@dataclass(frozen=True)
class PaperFeatures:
    """The temporal features of a graph, as the paper has them.

    Attributes:
        graph: whose train split is evidence.
        walked: for each head, which directed relations are walked along: those in bodies of its
            rules.
        max_length: of walks.
        fitted: the distributions.
        limit: edges that are read at the most, see `Gatherer`.
    """

    graph: TemporalGraph
    walked: NDArray[np.bool_]
    max_length: int
    fitted: FittedFeatures
    limit: int = DEFAULT_LIMIT

    @classmethod
    def fit(
        cls,
        graph: TemporalGraph,
        walked: NDArray[np.bool_],
        max_length: int,
        *,
        facts: NDArray[np.int64] | None = None,
        limit: int = DEFAULT_LIMIT,
        workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> PaperFeatures:
        """Fit the distributions to training facts in both directions, each with its own answer.

        Args:
            graph: its train split is learned from.
            walked: for each head, which directed relations are walked along.
            max_length: of walks.
            facts: to learn from; by default all of train.
            limit: edges that are read at the most, see `Gatherer`.
            workers: do not change the result.
            progress: called with the share that is done.
        """
        gather = Gatherer(graph, walked, max_length, limit)
        queries, evidence = _for_answers(graph, facts, gather, workers, progress)
        fitted = FittedFeatures.fit(2 * len(graph.relations), queries, evidence)
        return cls(graph, walked, max_length, fitted, limit)

    def observed(
        self,
        *,
        facts: NDArray[np.int64] | None = None,
        workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Dated:
        """What order and pair interval are fitted to: the dated evidence for answers.

        Args:
            facts: that were learned from; by default all of train.
            workers: do not change the result.
            progress: called with the share that is done.
        """
        queries, evidence = _for_answers(self.graph, facts, self._gatherer, workers, progress)
        return evidence.dated(queries)

    def __getstate__(self) -> dict[str, Any]:
        self._gatherer  # noqa: B018 - made once, here, for all that it travels to
        return vars(self)

    @cached_property
    def _gatherer(self) -> Gatherer:
        return Gatherer(self.graph, self.walked, self.max_length, self.limit)

    def gather(
        self,
        queries: QueryTable,
        offsets: NDArray[np.int64],
        candidate: NDArray[np.int32],
        workers: Workers | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Evidence:
        """The evidence for the candidates of queries.

        Args:
            queries: the queries.
            offsets: where the candidates of each query begin, and where the last end.
            candidate: these.
            workers: do not change the result.
            progress: called with the share that is done.
        """
        return self._gatherer(queries, offsets, candidate, workers or Workers(), progress=progress)

    def terms(
        self,
        weights: FeatureWeights,
        queries: QueryTable,
        evidence: Evidence,
        phi: NDArray[np.float64],
    ) -> dict[str, NDArray[np.float64]]:
        """What rules and each feature add to the score of each listed candidate, by name."""
        return score_terms(weights, measure(self.fitted, queries, evidence), phi)

    def pieces(
        self, weights: FeatureWeights, queries: QueryTable, evidence: Evidence
    ) -> tuple[Dated, dict[str, NDArray[np.float64]]]:
        """The dated evidence, and what each piece of it adds to order and pair."""
        of_pieces = score_pieces(weights, measure(self.fitted, queries, evidence))
        return evidence.dated(queries), of_pieces

    def score(
        self,
        weights: FeatureWeights,
        queries: QueryTable,
        evidence: Evidence,
        phi: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """φ_TILP of each listed candidate (eq. 16): the sum of its terms.

        Args:
            weights: what was learned.
            queries: the queries.
            evidence: for their candidates.
            phi: φ_TLR of each candidate.
        """
        terms = self.terms(weights, queries, evidence, phi)
        score: NDArray[np.float64] = np.sum(list(terms.values()), axis=0)
        return score

    def nothing(self, weights: FeatureWeights) -> NDArray[np.float64]:
        """γ_tfm φ_tfm of a candidate without any evidence, for each head."""
        never = np.exp(self.fitted.recurrence.log_density(np.zeros(1, np.bool_)))
        of_kind = weights.recurrence_weight * never + weights.recurrence_bias
        share = weights.evidence * weights.mixing[:, FEATURES.index("recurrence")]
        of_head: NDArray[np.float64] = weights.features * (share[: len(of_kind)] @ of_kind)
        return of_head

    def on(self, graph: TemporalGraph) -> PaperFeatures:
        """The same with another graph of the same relations as evidence."""
        return replace(self, graph=graph)

    def of(self, heads: NDArray[np.int64]) -> tuple[PaperFeatures, NDArray[np.int64]]:
        """The same for other numbers of relations; and for each new pair the old one.

        Args:
            heads: for each new head the old one; -1: none.
        """
        fitted, place = self.fitted.of(heads)
        known = heads >= 0
        walked = self.walked[np.ix_(heads, heads)] & known[:, None] & known
        return replace(self, walked=walked, fitted=fitted), place

    def table(self) -> pl.DataFrame:
        """Every distribution that was fitted, with its parameters, in words."""
        return self.fitted.table(self.graph.relations)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All but the graph, as arrays by name."""
        return {
            "walked": self.walked,
            "bounds": np.array([self.max_length, self.limit]),
            **self.fitted.to_arrays(),
        }

    @classmethod
    def from_arrays(cls, graph: TemporalGraph, arrays: dict[str, NDArray[Any]]) -> PaperFeatures:
        """What `to_arrays` gave, for the same relations.

        Raises:
            TilpError: an array is missing, or the graph has other relations.
        """
        fitted = FittedFeatures.from_arrays(arrays)
        if fitted.directed != 2 * len(graph.relations):
            raise TilpError(
                f"features were fitted for {fitted.directed // 2} relations, and the graph has "
                f"{len(graph.relations)}; give them a graph with the same relations"
            )
        if "walked" not in arrays or "bounds" not in arrays:
            raise TilpError("features lack what is walked along; fit the model anew")
        max_length, limit = (int(one) for one in arrays["bounds"])
        return cls(graph, arrays["walked"].astype(np.bool_), max_length, fitted, limit)


def _for_answers(
    graph: TemporalGraph,
    facts: NDArray[np.int64] | None,
    gather: Gatherer,
    workers: Workers | None,
    progress: Callable[[float], None] | None,
) -> tuple[QueryTable, Evidence]:
    """Facts asked in both directions, and the evidence for their answers alone."""
    if facts is None:
        facts = np.asarray(graph.rows("train"), np.int64)
    queries = QueryTable.of_facts(graph, facts, walked=True)
    offsets = np.arange(len(queries) + 1)
    evidence = gather(queries, offsets, queries.answer, workers or Workers(), progress=progress)
    return queries, evidence

"""Candidates that phase two learns from: the answer, the best by the rules, negative samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.candidates import sample_candidates
from tilp._utils.random import keyed_uniform
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import Mark, known_answers
from tilp.scoring import Scores


@dataclass(frozen=True)
class SampledCandidates:
    """Candidates of queries: the best by the rules, negative samples, and the answer.

    Attributes:
        queries: The queries.
        offsets: Where the candidates of each query begin, and where the last end.
        candidate: Entity of each candidate.
        score: φ_TLR of each candidate.
        default: φ_TLR of entities that no rule reaches, for each query.
        log_count: Logarithm of how many entities each candidate represents.
        answer_index: Index of each query's answer among all candidates.
    """

    queries: QueryTable
    offsets: NDArray[np.int64]
    candidate: NDArray[np.int32]
    score: NDArray[np.float64]
    default: NDArray[np.float64]
    log_count: NDArray[np.float64]
    answer_index: NDArray[np.int64]

    @classmethod
    def sample(
        cls,
        graph: TemporalGraph,
        queries: QueryTable,
        scores: Scores,
        *,
        n_best: int,
        n_sampled: int,
        seed: int,
    ) -> SampledCandidates:
        """Take the `n_best` candidates by score of each query, and `n_sampled` of the rest.

        Samples depend on the query alone. Other answers that hold at an instant drawn from the
        query's interval are excluded.
        """
        known = known_answers(graph, queries, instant_seed=seed)
        excluded = known.mark == Mark.EXCLUDED
        uniform = keyed_uniform(seed, queries.fact, queries.directed_relation, queries.subject)
        offsets, candidate, score, log_count, answer_index = sample_candidates(
            scores.offsets,
            scores.candidate,
            scores.score,
            scores.defaults,
            queries.answer,
            np.append(0, np.cumsum(excluded))[known.offsets],
            known.entity[excluded],
            (uniform * 2.0**53).astype(np.uint64),
            len(graph.entities),
            n_best,
            n_sampled,
        )
        default = scores.defaults
        return cls(queries, offsets, candidate, score, default, log_count, answer_index)

    @property
    def query(self) -> NDArray[np.int64]:
        """Query of each candidate."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

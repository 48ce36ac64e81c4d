"""Candidates that phase two learns from: the answer, the best by the rules, negative samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilp._kernels.candidates import sample_candidates
from tilp._utils.arrays import Floats, Ids, Indices
from tilp._utils.random import keyed_uniform
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import Mark, known_answers
from tilp.scoring import Scores


@dataclass(frozen=True)
class SampledCandidates:
    """Candidates of queries: the best by the rules, negative samples, and the answer."""

    queries: QueryTable  # the queries
    offsets: Indices  # where the candidates of each query begin, and where the last end
    candidate: Ids  # entity of each candidate
    score: Floats  # φ_TLR of each candidate
    default: Floats  # φ_TLR of entities that no rule reaches, for each query
    log_count: Floats  # logarithm of how many entities each candidate represents
    answer_index: Indices  # index of each query's answer among all candidates

    @classmethod
    def sample(
        cls, graph: TemporalGraph, queries: QueryTable, scores: Scores, n_best: int, n_sampled: int,
        seed: int,
    ) -> SampledCandidates:  # fmt: skip
        """Take the best candidates of each query, and samples of the rest, the same every time."""
        known = known_answers(graph, queries, instant_seed=seed)
        excluded = known.mark == Mark.EXCLUDED
        uniform = keyed_uniform(seed, queries.fact, queries.directed_relation, queries.subject)
        offsets, candidate, score, log_count, answer_index = sample_candidates(
            scores.offsets, scores.candidate, scores.score, scores.defaults, queries.answer,
            np.append(0, np.cumsum(excluded))[known.offsets], known.entity[excluded],
            (uniform * 2.0**53).astype(np.uint64), len(graph.entities), n_best, n_sampled,
        )  # fmt: skip
        return cls(queries, offsets, candidate, score, scores.defaults, log_count, answer_index)

    @property
    def query(self) -> Indices:
        """Query of each candidate."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

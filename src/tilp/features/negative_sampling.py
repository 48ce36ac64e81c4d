"""`Pool`: the candidates that phase two learns from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.negative_sampling import sample_candidates
from tilp._utils.random import keyed_uniform
from tilp.graph import QueryTable, TemporalGraph
from tilp.learning import Mark, known_answers
from tilp.scoring import Scores


@dataclass(frozen=True)
class SampledCandidates:
    """Listed candidates of queries: the best by the rules, some of the rest, and the answer.

    Attributes:
        queries: the queries.
        begin: where the candidates of each query begin, and where the last end.
        candidate: these.
        score: φ_TLR of each.
        default: φ_TLR of entities that no rule speaks of, for each query.
        stands_for: the logarithm of how many entities each candidate stands for.
        answer: the place of each query's answer.
    """

    queries: QueryTable
    begin: NDArray[np.int64]
    candidate: NDArray[np.int32]
    score: NDArray[np.float64]
    default: NDArray[np.float64]
    stands_for: NDArray[np.float64]
    answer: NDArray[np.int64]

    @classmethod
    def draw(
        cls,
        graph: TemporalGraph,
        queries: QueryTable,
        scores: Scores,
        *,
        best: int,
        drawn: int,
        seed: int,
    ) -> SampledCandidates:
        """Choose the candidates of queries; what is drawn depends on the query alone.

        Other answers that hold at an instant drawn from the query's interval are left out.

        Args:
            graph: its train split is what is known.
            queries: with their answers.
            scores: of their candidates by the rules.
            best: how many of the best are taken.
            drawn: how many of the rest.
            seed: for what is drawn.
        """
        known = known_answers(graph, queries, leave_out=seed)
        out = known.mark == Mark.LEFT_OUT
        chance = keyed_uniform(seed, queries.fact, queries.directed_relation, queries.subject)
        begin, candidate, score, stands_for, answer = sample_candidates(
            scores.offsets,
            scores.candidate,
            scores.score,
            scores.defaults,
            queries.answer,
            np.append(0, np.cumsum(out))[known.begin],
            known.entity[out],
            (chance * 2.0**53).astype(np.uint64),
            len(graph.entities),
            best,
            drawn,
        )
        return cls(queries, begin, candidate, score, scores.defaults, stands_for, answer)

    @property
    def query(self) -> NDArray[np.int64]:
        """The query of each candidate."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.begin))

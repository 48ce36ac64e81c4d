"""`TimestampScorer`: the scores that timestamp rules give candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.timestamp_scores import Applied, Manner, score_queries
from tilp.evaluation import Scores
from tilp.graph import QueryTable
from tilp.timestamps.edges import TimedEdges, event_times

__all__ = ["TimestampScorer"]


@dataclass(frozen=True, eq=False)
class TimestampScorer:
    """Scores candidates by rules whose bodies lie before the query.

    A score is -log(1 - the noisy-or of what the rules give). Where no rule leads anywhere,
    candidates score by how often they answered the relation before, or, where it never was asked,
    any relation. Nothing dated at or after a query is used; a query without a date is asked after
    all facts.

    Attributes:
        edges: the evidence.
        rules: to apply.
        manner: how.
    """

    edges: TimedEdges
    rules: Applied
    manner: Manner

    def __call__(self, queries: QueryTable) -> Scores:
        """The scores of the candidates of queries."""
        time = event_times(*queries.given())
        asked = np.stack([queries.subject, queries.head, time], axis=1)
        distinct, of_query = np.unique(asked, axis=0, return_inverse=True)
        subject, head, time = np.ascontiguousarray(distinct.T)
        by_rules = Scores(
            *score_queries(self.edges.by_relation, self.rules, self.manner, subject, head, time)
        )
        found = self._with_earlier_answers(by_rules, head, time).take(of_query)
        return replace(found, reached=_listed(by_rules.take(of_query), queries.answer))

    def _with_earlier_answers(
        self, by_rules: Scores, head: NDArray[np.int64], time: NDArray[np.int64]
    ) -> Scores:
        """The same scores, and for queries without any how often candidates answered before."""
        bounds = by_rules.offsets[1:-1]
        candidates, scores = (np.split(one, bounds) for one in (by_rules.candidate, by_rules.score))
        for query in np.flatnonzero(np.diff(by_rules.offsets) == 0):
            candidates[query], scores[query] = self._earlier_answers(head[query], time[query])
        sizes = [len(one) for one in candidates]
        offsets = np.append(0, np.cumsum(sizes))
        return Scores(offsets, np.concatenate(candidates), np.concatenate(scores))

    def _earlier_answers(self, head: int, time: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        heads = self.edges.by_head
        of_head = slice(heads.begin[head], heads.begin[head + 1])
        answers = heads.target[of_head][: np.searchsorted(heads.time[of_head], time)]
        if not len(answers):
            answers = self.edges.target[self.edges.time < time]
        return np.unique(answers, return_counts=True)


def _listed(scores: Scores, entity: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each query lists its entity."""
    query = np.repeat(np.arange(len(scores)), np.diff(scores.offsets))
    listed = np.zeros(len(scores), np.bool_)
    listed[query[scores.candidate == entity[query]]] = True
    return listed

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
    any relation. Nothing dated at or after a query is used, unless rules look ahead; a query
    without a date is asked after all facts.

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
        # Its own fact is never earlier than a query.
        own = queries.fact if self.manner.ahead else np.full_like(queries.fact, -1)
        asked = np.stack([queries.subject, queries.head, time, own], axis=1)
        distinct, of_query = np.unique(asked, axis=0, return_inverse=True)
        subject, head, time, own = np.ascontiguousarray(distinct.T)
        by_rules = Scores(
            *score_queries(
                self.edges.by_relation, self.rules, self.manner, subject, head, time, own
            )
        )
        found = self._filled(by_rules, head, time, own).take(of_query)
        return replace(found, reached=_listed(by_rules.take(of_query), queries.answer))

    def _filled(
        self,
        by_rules: Scores,
        head: NDArray[np.int64],
        time: NDArray[np.int64],
        own: NDArray[np.int64],
    ) -> Scores:
        """The same scores, and for queries without any how often candidates answered."""
        bounds = by_rules.offsets[1:-1]
        candidates, scores = (np.split(one, bounds) for one in (by_rules.candidate, by_rules.score))
        for query in np.flatnonzero(np.diff(by_rules.offsets) == 0):
            answers = self._answers(head[query], time[query], own[query])
            candidates[query], scores[query] = np.unique(answers, return_counts=True)
        offsets = np.append(0, np.cumsum([len(one) for one in candidates]))
        return Scores(offsets, np.concatenate(candidates), np.concatenate(scores))

    def _answers(self, head: int, time: int, own: int) -> NDArray[np.int32]:
        """What answered a relation, or any, in the facts that are evidence for a query."""
        heads = self.edges.by_head
        for part in (slice(heads.begin[head], heads.begin[head + 1]), slice(None)):
            evidence = heads.fact[part] != own if self.manner.ahead else heads.time[part] < time
            answers: NDArray[np.int32] = heads.target[part][evidence]
            if len(answers):
                break
        return answers


def _listed(scores: Scores, entity: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each query lists its entity."""
    query = scores.query
    listed = np.zeros(len(scores), np.bool_)
    listed[query[scores.candidate == entity[query]]] = True
    return listed

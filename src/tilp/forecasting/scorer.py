"""`ForecastScorer`: score candidates by what lies before a query, and say what adds to a score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tilp._kernels import recency as kernel
from tilp._kernels.recency import Evidence, WeightBlocks
from tilp._utils.arrays import Floats, Ids, Ints
from tilp.forecasting.events import TimedEdges, event_times
from tilp.graph import QueryTable, TemporalGraph
from tilp.rules import Atom, Constraint, Rule
from tilp.scoring import Scores
from tilp.scoring import scorer as scoring
from tilp.scoring.scorer import NOT_SCORED, Contribution, FactPath, ReasonKind
from tilp.time import FAR, UNKNOWN, format_length

if TYPE_CHECKING:
    from tilp.forecasting.recency import ForecastModel

_BODY = 4  # features of one body
_CONNECTION = {"pair_count", "pair_history", "pair_latest", "met_shared", "met_similar",
               "shared_rank", "similar_rank"}  # fmt: skip


def make_evidence(edges: TimedEdges) -> Evidence:
    """Return edges in the orders that features are computed from."""
    return Evidence(edges.by_pair, edges.by_answer, edges.by_time, edges.by_entity_relation)


@dataclass(frozen=True, eq=False)
class ForecastScorer:
    """Scorer by recency features of facts dated before the query.

    A score is the sum of the weights of a candidate's features. Candidates are the entities that
    the subject met in its latest 1,000 facts, those that answered the relation before (of more than
    500, those of its latest 500 facts), those that share partners with the subject, and the answers
    of such entities; all others have one score, below them. A query without a date is asked at
    `now`, the first instant after all facts.
    """

    model: ForecastModel  # for the graph's relations
    graph: TemporalGraph  # whose facts the edges are
    edges: TimedEdges  # facts that features are computed from

    @cached_property
    def evidence(self) -> Evidence:
        """The edges in the orders that kernels read."""
        return make_evidence(self.edges)

    @cached_property
    def now(self) -> int:
        """The first instant after all facts: one step after the last."""
        times = np.unique(self.edges.time)
        return int(times[-1] + max(np.gcd.reduce(np.diff(times)), 1)) if len(times) else 0

    @property
    def rule_scorer(self) -> Any:
        """This scorer: all that it does is by rules."""
        return self

    def apply_rules(self, queries: QueryTable) -> None:
        """Return nothing: features are gathered when queries are scored."""

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""
        return self.score(queries)

    def score(self, queries: QueryTable, applied: object = None) -> Scores:  # noqa: ARG002
        """Score the candidates of queries."""
        columns = np.stack([self.times(queries), queries.subject, queries.directed_relation], 1)
        distinct, inverse = np.unique(columns, axis=0, return_inverse=True)  # by time: faster
        time, subject, relation = np.ascontiguousarray(distinct.T)
        learned = self.model.table, self.model.weights
        found = kernel.forecast_queries(self.evidence, *learned, subject, relation, time)
        offsets, _, score = found
        lowest = np.zeros(len(distinct))
        listed = np.diff(offsets) > 0
        lowest[listed] = np.minimum.reduceat(score, offsets[:-1][listed]) if len(score) else 0.0
        default = lowest - np.log(max(len(self.graph.entities), 2))  # all together weigh no more
        return Scores(*found, default=default, temperature=1.0).take(inverse.ravel())

    def resolve_dates(self, queries: QueryTable) -> QueryTable:
        """Return queries as they are asked: one without dates is about `now`."""
        start, end = queries.given_dates()
        undated = (start == UNKNOWN) & (end == UNKNOWN)
        if not undated.any():
            return queries
        start, end = (np.where(undated, self.now, time) for time in (start, end))
        columns = queries.subject, queries.directed_relation, start, end
        return QueryTable.from_columns(*columns, queries.fact, queries.answer)

    def times(self, queries: QueryTable) -> Ints:
        """Return the time that each query is asked at."""
        time = event_times(*queries.given_dates())
        return np.where(time < FAR, time, self.now)

    def memory_per_query(self, queries: QueryTable) -> Floats:
        """Estimate how many numbers are in memory while each query is scored."""
        evidence, table = self.evidence, self.model.table
        runs = np.diff(evidence.answers.offsets)[queries.directed_relation]
        met = np.diff(evidence.entities.offsets)[queries.subject]
        runs, met = np.minimum(runs, table.listed), np.minimum(met, table.met)
        return np.asarray(runs + met + kernel.PARTNERS**2, np.float64)

    def without(self, facts: Iterable[int]) -> ForecastScorer:
        """Return the same scorer on evidence without some facts."""
        removed = list(facts)
        rows = self.graph.rows_after_removal(removed)
        fact = rows[self.edges.fact]
        kept = replace(self.edges, fact=fact)[fact >= 0]
        return ForecastScorer(self.model, self.graph.without(removed), kept)

    def contributions(
        self, queries: QueryTable, offsets: Ints, candidate: Ids, applied: object = None
    ) -> dict[str, Floats]:
        """Return the scores of the given candidates: all by rules."""
        scores = self.score(queries, applied)
        order = np.lexsort((scores.candidate, scores.query))
        scores = replace(scores, candidate=scores.candidate[order], score=scores.score[order])
        return {"rules": scores.of_candidates(offsets, candidate)}

    def attribute_scores(
        self, query: QueryTable, candidates: Sequence[int], applied: object
    ) -> list[list[Contribution]]:
        """Split scores into a contribution for each body, for the connection and for the prior."""
        time = int(self.times(query)[0])
        asked = int(query.subject[0]), int(query.directed_relation[0]), time
        of, weight = kernel.list_features(self.evidence, self.model.table, *asked)
        default = float(self.score(query, applied).defaults[0])
        return [
            self._attribute(asked, candidate, weight[of == candidate], default)
            for candidate in candidates
        ]

    def _attribute(
        self, asked: tuple[int, int, int], candidate: int, weight: Ints, default: float
    ) -> list[Contribution]:
        if not len(weight):
            text = "no fact before leads to {candidate}"
            return [Contribution(scoring.Evidence(ReasonKind.REST), NOT_SCORED, default, text)]
        model, (subject, relation, time) = self.model, asked
        blocks = WeightBlocks._fields
        kind = np.searchsorted(np.array(model.table.blocks), weight, side="right") - 1
        amount = model.weights[weight]
        met = self._between(subject, candidate, time)
        is_body = kind < _BODY
        lately = " lately" * (len(met) > 0)  # of many, those met too long ago are not looked at
        if not is_body.any():
            met = met[:0]
        bodies, first = np.unique(self.edges.relation[met], return_index=True)
        sums = amount[is_body].reshape(-1, _BODY).sum(axis=1).tolist()
        rules = (weight[is_body][2::_BODY] - model.table.blocks.rule_level).tolist()
        found = []
        for body, score, rule in zip(bodies.tolist(), sums, rules, strict=True):
            rows = met[self.edges.relation[met] == body]
            found.append(self._of_body(relation, body, score, rule, rows, time))
        gap = int(time - self.edges.time[met].max()) if len(first) else 0
        joint = model.table.blocks.unmet
        reached = (weight - joint) // (len(model.table.counts) + 2) > 0  # by shared partners
        names = np.array(blocks)[kind]
        connected = np.isin(names, list(_CONNECTION)) | ((names == "unmet") & reached)
        if connected.any():
            text = self._ago(
                f"{{given}} and {{candidate}} met in {len(met):,} facts, the last", gap
            )
            find = partial(self._paths, subject, candidate, time)
            if not len(met):
                text = f"{{given}} never met {{candidate}}{lately}; others met both"
            evidence = scoring.Evidence(ReasonKind.CONNECTION)
            score = float(amount[connected & ~is_body].sum())
            about = evidence, "meetings", score, text, len(met), None, find, f"{text}."
            found.append(Contribution(*about))
        prior = float(amount[~connected & ~is_body].sum())
        text = self._history(relation, candidate, time)
        found.append(Contribution(scoring.Evidence(ReasonKind.PRIOR), "history", prior, text))
        return found

    def _of_body(
        self, relation: int, body: int, score: float, rule: int, rows: Ints, time: int
    ) -> Contribution:
        """Return the contribution of one body, whose facts are edges, the latest last."""
        atom, model = self._atom(body), self.model
        text = f"{{given}} and {{candidate}}: {atom}"
        mined = note = picture = None
        gap = int(time - self.edges.time[rows[-1]])
        if rule < len(model.table.body) and model.support[rule].any():
            mined = Rule(self._atom(relation), (atom,), (Constraint("earlier_than", ("I1", "I2")),))
            curve = model.curve(mined)
            note, picture = curve.sentence(gap), partial(curve.draw, gap)
        evidence = scoring.Evidence(ReasonKind.CHAIN, (atom,))
        paths: list[FactPath] = [((int(self.edges.fact[row]), body >= self.edges.n_relations),)
                                 for row in rows[::-1]]  # fmt: skip
        return Contribution(
            evidence, "rule", score, text, len(rows), mined, lambda n: paths[:n], note or "",
            picture,
        )  # fmt: skip

    def _atom(self, directed: int) -> Atom:
        n = self.edges.n_relations
        return Atom(self.graph.relations.label(directed % n), directed >= n)

    def _edges_of(self, entity: int, time: int) -> Ints:
        """Return the edges of an entity before a time, the latest last."""
        first, last = np.searchsorted(self.edges.source, [entity, entity + 1])
        rows = np.arange(first, last)[self.edges.time[first:last] < time]
        return np.asarray(rows[np.argsort(self.edges.time[rows], kind="stable")])

    def _between(self, subject: int, candidate: int, time: int) -> Ints:
        rows = self._edges_of(subject, time)
        return np.asarray(rows[self.edges.target[rows] == candidate])

    def _paths(self, subject: int, candidate: int, time: int, n: int) -> list[FactPath]:
        """Return the latest facts of the two, or else paths over a partner that they share."""
        edges, half = self.edges, self.edges.n_relations
        fact, inverse = edges.fact, edges.relation >= half
        direct = self._between(subject, candidate, time)[::-1][:n]
        if len(direct):
            return [((int(fact[row]), bool(inverse[row])),) for row in direct]
        own, other = (self._edges_of(entity, time)[::-1] for entity in (subject, candidate))
        latest = {int(edges.target[row]): row for row in other[::-1]}
        partners = dict.fromkeys(edges.target[own].tolist())
        paths: list[FactPath] = []
        for partner in [one for one in partners if one in latest][:n]:
            row, last = own[edges.target[own] == partner][0], latest[partner]
            paths.append(
                ((int(fact[row]), bool(inverse[row])), (int(fact[last]), not bool(inverse[last])))
            )
        return paths

    def _history(self, relation: int, candidate: int, time: int) -> str:
        rows = self._edges_of(candidate, time)
        half = self.edges.n_relations
        back = relation - half if relation >= half else relation + half
        own = rows[self.edges.relation[rows] == back]
        end = "object" if relation < half else "subject"
        name = self.graph.relations.label(relation % half)
        if not len(rows):
            return "no fact before names {candidate}"
        about = self._ago("the last fact about it was", int(time - self.edges.time[rows[-1]]))
        if not len(own):
            return f"{{candidate}} was never the {end} of a {name} fact; {about}"
        facts = f"{{candidate}} was the {end} of {len(own):,} {name} facts, the last"
        return f"{self._ago(facts, int(time - self.edges.time[own[-1]]))}; {about}"

    def _ago(self, text: str, gap: int) -> str:
        return f"{text} {format_length(gap, self.graph.unit)} ago"

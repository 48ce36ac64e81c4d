"""`LogLinearScorer`: rules, candidate history and random walks in one log-linear score."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.candidate_history import FactEdges
from tilp._kernels.score import MIN_RATE, add_rule_evidence
from tilp._kernels.types import ListedCandidates
from tilp.features.candidate_history import (
    HISTORY_KINDS,
    CandidateHistory,
    HistoryFact,
    fact_edges,
    fact_edges_without,
    listed_candidates,
)
from tilp.features.log_linear import RANDOM_WALKS, LogLinearWeights
from tilp.features.random_walks import RandomWalks
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, Scores
from tilp.scoring.scorer import NOT_SCORED, AppliedRules, Contribution, FactPath, RuleContributions

_MAX_ENTITIES = 2**16
_WALKS_TEXT = "walks of any facts, longer than rules and likelier the nearer in time, lead to it"


class LogLinearScorer:
    """Scores candidates by a sum of contributions, each 0 for a candidate without evidence.

    - rules and prior: w log(φ_TLR / its least value), split by their shares of φ_TLR;
    - rule evidence: Σ w_Rule √α_c(Rule) over the rules that reach the candidate;
    - other facts, and facts with the subject: weights of the features of the candidate history;
    - random walks: w times the random walk score.

    Args:
        rule_scorer: Scores by rules alone.
        weights: Weights that phase two learned.
        walk_length: Longest random walk.
        max_entities: Score all entities up to this many; beyond, only those that rules or the
            prior list.
    """

    def __init__(
        self,
        rule_scorer: RuleScorer,
        weights: LogLinearWeights,
        walk_length: int,
        max_entities: int = _MAX_ENTITIES,
    ) -> None:
        self.rule_scorer = rule_scorer
        self.max_entities = max_entities
        self._weights = weights
        self._walk_length = walk_length
        self._n_entities = len(rule_scorer.walker.graph.entities)
        self._use_edges(fact_edges(rule_scorer.walker.graph))

    def _use_edges(self, edges: FactEdges) -> None:
        walker, weights = self.rule_scorer.walker, self._weights
        n_directed = 2 * len(walker.graph.relations)
        self._edges = edges
        self.history = CandidateHistory(edges, n_directed, weights.distance_bounds)
        self.random_walks = RandomWalks.for_walker(
            walker, edges, weights.time_scale, self._walk_length
        )

    def __getstate__(self) -> dict[str, Any]:
        if self.lists_all:
            self.history.prepare()  # once, for all processes that it is sent to
        return vars(self)

    def without(self, facts: Iterable[int]) -> LogLinearScorer:
        """Return the same scorer on evidence without some facts."""
        removed = np.fromiter(facts, np.int64)
        other = copy(self)
        other.rule_scorer = self.rule_scorer.without(removed)
        ids = self.rule_scorer.walker.graph.rows_after_removal(removed)
        other._use_edges(fact_edges_without(self._edges, ids, other.rule_scorer.walker.graph))
        return other

    @property
    def lists_all(self) -> bool:
        """Whether every entity is listed as a candidate of every query."""
        return self._n_entities <= self.max_entities

    def memory_per_query(self, queries: QueryTable) -> NDArray[np.float64]:
        """Estimate how many numbers are in memory while each query is scored."""
        if self.lists_all:
            return self._n_entities + self.rule_scorer.walk_memory(queries)
        return self.rule_scorer.memory_per_query(queries)

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""
        return self.score(queries)

    def score(self, queries: QueryTable, applied: AppliedRules | None = None) -> Scores:
        """Score the candidates of queries; `applied` is what `RuleScorer.apply_rules` returned."""
        applied = applied or self.rule_scorer.apply_rules(queries)
        by_rules = self.rule_scorer.score(queries, applied)
        n_entities, query = self._n_entities, by_rules.query
        if self.lists_all:
            offsets = np.arange(len(queries) + 1) * n_entities
            candidate = np.tile(np.arange(n_entities, dtype=np.int32), len(queries))
            row = query * n_entities + by_rules.candidate
        else:
            offsets, candidate = by_rules.offsets, by_rules.candidate
            row = np.arange(len(candidate))
        listed = listed_candidates(self.rule_scorer.fill_dates(queries), offsets, candidate)
        score = np.zeros(len(candidate))
        score[row] = self._rule_contribution(queries, by_rules, query, by_rules.score)
        self._add_rule_evidence(applied, listed, score)
        if self.lists_all:
            weights = self._weights
            matrix = score.reshape(-1, n_entities)
            self.history.add_scores_to_all(listed, weights.history_row, weights.history, matrix)
        else:
            self._add_history(listed, np.ones(len(HISTORY_KINDS), np.bool_), score)
        self._add_random_walks(listed, score)
        return Scores(offsets, candidate, score, 0.0, by_rules.reached, temperature=1.0)

    def contributions(
        self,
        queries: QueryTable,
        offsets: NDArray[np.int64],
        candidate: NDArray[np.int32],
        applied: AppliedRules | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Split the scores of the given candidates into parts by name, which add up to them."""
        applied = applied or self.rule_scorer.apply_rules(queries)
        by_rules = self.rule_scorer.score(queries, applied)
        listed = listed_candidates(self.rule_scorer.fill_dates(queries), offsets, candidate)
        scored = (by_rules.indices_of(offsets, candidate) >= 0) | self.lists_all
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        phi = by_rules.of_candidates(offsets, candidate)
        together = self._rule_contribution(queries, by_rules, query, phi)
        relation = queries.directed_relation[query]
        parts = self.rule_scorer.split_rules_and_prior(relation, candidate, phi, together)
        parts["rule evidence"] = np.zeros(len(candidate))
        self._add_rule_evidence(applied, listed, parts["rule evidence"])
        for index, kind in enumerate(HISTORY_KINDS):
            parts[kind] = np.zeros(len(candidate))
            self._add_history(listed, np.arange(len(HISTORY_KINDS)) == index, parts[kind])
        parts[RANDOM_WALKS] = np.zeros(len(candidate))
        self._add_random_walks(listed, parts[RANDOM_WALKS])
        return {name: np.where(scored, part, 0.0) for name, part in parts.items()}

    def attribute_score(
        self, query: QueryTable, candidate: int, applied: AppliedRules
    ) -> list[Contribution]:
        """Split a score into contributions of rules, prior, candidate history and random walks."""
        listed = self.rule_scorer.score(query, applied).candidate
        if not self.lists_all and candidate not in listed:
            text = "neither rules nor the prior lead to it, and nothing else was looked at"
            return [Contribution((NOT_SCORED,), NOT_SCORED, 0.0, text)]
        entity = np.array([candidate], np.int32)
        parts = self.contributions(query, np.array([0, 1]), entity, applied)
        return [
            *self.rule_scorer.attribute_score(
                query, candidate, applied, parts, self._rule_evidence
            ),
            *self._attribute_history(query, candidate),
            self._attribute_walks(query, candidate, float(parts[RANDOM_WALKS][0])),
        ]

    def _attribute_history(self, query: QueryTable, candidate: int) -> list[Contribution]:
        """Return a contribution for each fact of the candidate with a weight other than 0."""
        graph = self.rule_scorer.walker.graph
        contributions = []
        for fact, weights in self._history_facts(query, candidate):
            if not weights.any():
                continue
            heaviest = [
                fact.features[index] for index in np.argsort(-np.abs(weights), kind="stable")
            ]
            text = self._fact_text(query, fact, heaviest[: np.count_nonzero(weights)])
            inverse = fact.relation >= len(graph.relations)
            path = FactPath(((int(self._edges.fact[fact.edge]), inverse),))
            kind = HISTORY_KINDS[fact.kind]
            contributions.append(
                Contribution(
                    key=(kind, fact.relation),
                    kind=kind,
                    score=float(weights.sum()),
                    text=text,
                    walks=1,
                    find_facts=partial(_only, path),
                )
            )
        return contributions

    def _fact_text(self, query: QueryTable, fact: HistoryFact, features: list[int]) -> str:
        """Describe a fact of the candidate: `another playsFor of the candidate ends …`.

        The candidate is the subject of a fact `of` it, and the object of one `to` it.
        """
        graph = self.rule_scorer.walker.graph
        n = len(graph.relations)
        name = graph.relations.label(fact.relation % n)
        from_candidate = (int(query.directed_relation[0]) + n) % (2 * n)
        article = "an" if name[:1].lower() in "aeiou" else "a"
        which = "another" if fact.relation == from_candidate else article
        side, other = ("of", "to") if fact.relation < n else ("to", "of")
        ends = f"{side} the candidate"
        if HISTORY_KINDS[fact.kind] != HISTORY_KINDS[0]:
            ends += f" {other} the subject"
        *first, last = (self.history.clause(feature, graph.unit) for feature in features)
        clauses = f"{', '.join(first)} and {last}" if first else last
        return f"{which} {name} {ends} {clauses}"

    def _attribute_walks(self, query: QueryTable, candidate: int, score: float) -> Contribution:
        """Return the contribution of random walks, with the likeliest walk of each length."""
        filled = self.rule_scorer.fill_dates(query)
        n_relations = len(self.rule_scorer.walker.graph.relations)
        edges = self.random_walks.edges

        def find(n: int) -> list[FactPath]:
            walks = self.random_walks.likeliest_walks(filled, 0, candidate)
            entity = np.array([candidate], np.int32)
            total = float(
                self.random_walks.probabilities(
                    listed_candidates(filled, np.array([0, 1]), entity)
                )[0]
            )
            return [
                FactPath(
                    tuple(
                        (int(edges.fact[edge]), bool(edges.relation[edge] >= n_relations))
                        for edge in walk
                    ),
                    share=probability / total,
                )
                for walk, probability in walks[:n]
            ]

        return Contribution((RANDOM_WALKS,), RANDOM_WALKS, score, _WALKS_TEXT, find_facts=find)

    def _rule_evidence(self, reaching: RuleContributions) -> NDArray[np.float64]:
        """Return the evidence w_Rule √α_c of each rule that reaches a candidate."""
        rate = reaching.arriving / reaching.walks
        evidence = self._weights.rule[reaching.rule] * np.sqrt(rate)
        return np.where(reaching.arriving >= MIN_RATE * reaching.walks, evidence, 0.0)

    def _history_facts(
        self, queries: QueryTable, candidate: int
    ) -> list[tuple[HistoryFact, NDArray[np.float64]]]:
        """Return the history facts of a candidate of a single query, with their weights."""
        entity = np.array([candidate], np.int32)
        listed = listed_candidates(self.rule_scorer.fill_dates(queries), np.array([0, 1]), entity)
        rows = self._weights.history_row[queries.directed_relation[0]]
        rows = rows.reshape(len(HISTORY_KINDS), -1)
        return [
            (fact, self._weights.history[rows[fact.kind, fact.relation], list(fact.features)])
            for fact in self.history.nearest_facts(listed)
            if rows[fact.kind, fact.relation] >= 0
        ]

    def _rule_contribution(
        self,
        queries: QueryTable,
        by_rules: Scores,
        query: NDArray[np.int64],
        phi: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the contribution of φ_TLR above its least value, that of unreached entities."""
        weight = self._weights.dense[queries.directed_relation[query], 0]
        contribution: NDArray[np.float64] = weight * np.log(phi / by_rules.defaults[query])
        return contribution

    def _add_rule_evidence(
        self, applied: AppliedRules, listed: ListedCandidates, score: NDArray[np.float64]
    ) -> None:
        add_rule_evidence(
            *applied.by_query(len(listed.subject)),
            listed.offsets,
            listed.candidate,
            self._weights.rule,
            self._n_entities,
            score,
        )

    def _add_history(
        self, listed: ListedCandidates, kinds: NDArray[np.bool_], score: NDArray[np.float64]
    ) -> None:
        weights = self._weights
        self.history.add_scores(listed, weights.history_row, weights.history, kinds, score)

    def _add_random_walks(self, listed: ListedCandidates, score: NDArray[np.float64]) -> None:
        self.random_walks.add_scores(
            listed, self._weights.dense[listed.directed_relation, 1], score
        )


def _only(path: FactPath, _: int) -> list[FactPath]:
    return [path]

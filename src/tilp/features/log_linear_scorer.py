"""`LogLinearScorer`: rules, candidate history and random walks in one log-linear score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from tilp._kernels.candidate_history import FactEdges
from tilp._kernels.score import MIN_RATE, add_rule_evidence
from tilp._kernels.types import ListedCandidates
from tilp._utils.arrays import Floats, Ids, Indices, Mask
from tilp.features.candidate_counts import (
    COUNT_PARTS,
    DEGREE,
    KNOWN,
    POPULARITY,
    CandidateCounts,
)
from tilp.features.candidate_history import (
    HISTORY_KINDS,
    CandidateHistory,
    HistoryFact,
    fact_edges,
    fact_edges_without,
    listed_candidates,
)
from tilp.features.log_linear import RANDOM_WALKS, TERMS, LogLinearWeights
from tilp.features.random_walks import RandomWalks
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, Scores
from tilp.scoring.scorer import NOT_SCORED, AppliedRules, Contribution, FactPath, RuleContributions

_MAX_ENTITIES = 2**16  # more are not scored all, but those that rules or the prior list
_WALKS_TEXT = "walks of any facts, longer than rules and likelier the nearer in time, lead to it"


class LogLinearScorer:
    """Scores candidates by a sum of contributions, each 0 for a candidate without evidence.

    - rules and prior: w log(φ_TLR / its least value), split by their shares of φ_TLR;
    - rule evidence: Σ w_Rule √α_c(Rule) over the rules that reach the candidate;
    - other facts, and facts with the subject: weights of the features of the candidate history;
    - random walks: w times the random walk score;
    - degree, popularity, known at another time: weighted counts of the candidate's facts.
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
        self.weights = weights
        self._walk_length = walk_length
        self._n_entities = len(rule_scorer.walker.graph.entities)
        self._use_edges(fact_edges(rule_scorer.walker.graph))

    def _use_edges(self, edges: FactEdges) -> None:
        walker, weights = self.rule_scorer.walker, self.weights
        n_directed = 2 * len(walker.graph.relations)
        self._edges = edges
        self.history = CandidateHistory(edges, n_directed, weights.distance_bounds)
        self.random_walks = RandomWalks.for_walker(
            walker, edges, weights.time_scale, self._walk_length
        )
        self.counts = CandidateCounts(walker.graph, self.rule_scorer.prior)

    def __getstate__(self) -> dict[str, Any]:
        if self.lists_all:
            self.history.prepare()  # once, for all processes that it is sent to
        return vars(self)

    def with_weights(self, rules: RuleScorer, weights: LogLinearWeights) -> LogLinearScorer:
        """Return the scorer of the same rules and features with other weights."""
        other = copy(self)
        other.rule_scorer, other.weights = rules, weights
        return other

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

    def memory_per_query(self, queries: QueryTable) -> Floats:
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
            weights = self.weights
            matrix = score.reshape(-1, n_entities)
            self.history.add_scores_to_all(listed, weights.history_row, weights.history, matrix)
            self.counts.add_to_all(queries, applied.known, weights.counts, matrix)
        else:
            self._add_history(listed, np.ones(len(HISTORY_KINDS), np.bool_), score)
            score += self._weighted_counts(queries, applied, offsets, candidate).sum(axis=1)
        self._add_random_walks(listed, score)
        return Scores(offsets, candidate, score, 0.0, by_rules.reached, temperature=1.0)

    def contributions(
        self,
        queries: QueryTable,
        offsets: Indices,
        candidate: Ids,
        applied: AppliedRules | None = None,
    ) -> dict[str, Floats]:
        """Split the scores of the given candidates into parts by name, which add up to them."""
        applied = applied or self.rule_scorer.apply_rules(queries)
        parts = self._parts(queries, offsets, candidate, applied)
        listed = listed_candidates(self.rule_scorer.fill_dates(queries), offsets, candidate)
        parts[RANDOM_WALKS] = np.zeros(len(candidate))
        self._add_random_walks(listed, parts[RANDOM_WALKS])
        if self.lists_all:
            return parts
        scored = self.rule_scorer.score(queries, applied).indices_of(offsets, candidate) >= 0
        return {name: np.where(scored, part, 0.0) for name, part in parts.items()}

    def _parts(
        self, queries: QueryTable, offsets: Indices, candidate: Ids, applied: AppliedRules
    ) -> dict[str, Floats]:
        """Return the parts of the scores of the given candidates, without random walks."""
        by_rules = self.rule_scorer.score(queries, applied)
        listed = listed_candidates(self.rule_scorer.fill_dates(queries), offsets, candidate)
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
        counts = self._weighted_counts(queries, applied, offsets, candidate)
        parts |= {name: counts[:, columns].sum(axis=1) for name, columns in COUNT_PARTS.items()}
        return parts

    def term_values(
        self, queries: QueryTable, scores: Scores, offsets: Indices, candidate: Ids,
        applied: AppliedRules,
    ) -> Floats:  # fmt: skip
        """Return the `TERMS` of the scores of candidates, then their `COUNT_FEATURES`, as columns.

        Count features are as they are, without their weights. `scores` is what `score` returned.
        """
        parts = self._parts(queries, offsets, candidate, applied)
        parts["rules"] = parts["rules"] + parts.pop("prior")
        counts = self.counts.features(queries, applied.known, offsets, candidate)
        parts[RANDOM_WALKS] = scores.of_candidates(offsets, candidate) - sum(parts.values())
        terms = [parts[name] for name in TERMS]
        return np.column_stack([*terms, counts])

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
            *self._attribute_counts(query, candidate, parts),
        ]

    def _attribute_counts(
        self, query: QueryTable, candidate: int, parts: dict[str, Floats]
    ) -> Iterator[Contribution]:
        """Yield a contribution for each count of the candidate's facts."""
        prior, entity = self.rule_scorer.prior, np.array([candidate], np.int32)
        count, total = (int(column[0]) for column in prior.counts(query.directed_relation, entity))
        texts = {
            DEGREE: f"it has {self.counts.facts(candidate):,} facts in all",
            POPULARITY: f"{count:,} of {total:,} facts of the relation have it as their answer",
            KNOWN: "the facts have it as an answer to the same question at another time",
        }
        for kind, text in texts.items():
            yield Contribution((kind,), kind, float(parts[kind][0]), text)

    def _attribute_history(self, query: QueryTable, candidate: int) -> list[Contribution]:
        """Return a contribution for each fact of the candidate with a weight other than 0."""
        graph = self.rule_scorer.walker.graph
        rows = self.weights.history_row[query.directed_relation[0]]
        rows = rows.reshape(len(HISTORY_KINDS), -1)
        contributions = []
        for fact in self.history.nearest_facts(self._list_one(query, candidate)):
            row, features = rows[fact.kind, fact.relation], np.array(fact.features)
            weights = self.weights.history[row, features] if row >= 0 else np.empty(0)
            if not weights.any():
                continue
            heaviest = features[np.argsort(-np.abs(weights), kind="stable")].tolist()
            text = self._fact_text(query, fact, heaviest[: np.count_nonzero(weights)])
            kind, inverse = HISTORY_KINDS[fact.kind], fact.relation >= len(graph.relations)
            find = partial(_only, FactPath(((int(self._edges.fact[fact.edge]), inverse),)))
            key, score = (kind, fact.relation), float(weights.sum())
            contributions.append(Contribution(key, kind, score, text, 1, find_facts=find))
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
        walks, edges = self.random_walks, self.random_walks.edges
        n_relations = len(self.rule_scorer.walker.graph.relations)

        def path(walk: Indices, share: float) -> FactPath:
            facts, inverse = edges.fact[walk], edges.relation[walk] >= n_relations
            return FactPath(tuple(zip(facts.tolist(), inverse.tolist(), strict=True)), share)

        def find(n: int) -> list[FactPath]:
            total = float(walks.probabilities(self._list_one(query, candidate))[0])
            likeliest = walks.likeliest_walks(self.rule_scorer.fill_dates(query), 0, candidate)
            return [path(walk, probability / total) for walk, probability in likeliest[:n]]

        return Contribution((RANDOM_WALKS,), RANDOM_WALKS, score, _WALKS_TEXT, find_facts=find)

    def _rule_evidence(self, reaching: RuleContributions) -> Floats:
        """Return the evidence w_Rule √α_c of each rule that reaches a candidate."""
        rate = reaching.arriving / reaching.walks
        evidence = self.weights.rule[reaching.rule] * np.sqrt(rate)
        return np.where(reaching.arriving >= MIN_RATE * reaching.walks, evidence, 0.0)

    def _list_one(self, query: QueryTable, candidate: int) -> ListedCandidates:
        entity = np.array([candidate], np.int32)
        return listed_candidates(self.rule_scorer.fill_dates(query), np.array([0, 1]), entity)

    def _rule_contribution(
        self, queries: QueryTable, by_rules: Scores, query: Indices, phi: Floats
    ) -> Floats:
        """Return the contribution of φ_TLR above its least value, that of unreached entities."""
        weight = self.weights.dense[queries.directed_relation[query], 0]
        contribution: Floats = weight * np.log(phi / by_rules.defaults[query])
        return contribution

    def _add_rule_evidence(
        self, applied: AppliedRules, listed: ListedCandidates, score: Floats
    ) -> None:
        rows = applied.by_query(len(listed.subject))
        candidates = listed.offsets, listed.candidate
        add_rule_evidence(*rows, *candidates, self.weights.rule, self._n_entities, score)

    def _add_history(self, listed: ListedCandidates, kinds: Mask, score: Floats) -> None:
        weights = self.weights
        self.history.add_scores(listed, weights.history_row, weights.history, kinds, score)

    def _weighted_counts(
        self, queries: QueryTable, applied: AppliedRules, offsets: Indices, candidate: Ids
    ) -> Floats:
        """Return the count features of candidates, times their weights."""
        relation = np.repeat(queries.directed_relation, np.diff(offsets))
        features = self.counts.features(queries, applied.known, offsets, candidate)
        weighted: Floats = features * self.weights.counts[relation]
        return weighted

    def _add_random_walks(self, listed: ListedCandidates, score: Floats) -> None:
        weight = self.weights.dense[listed.directed_relation, 1]
        self.random_walks.add_scores(listed, weight, score)


def _only(path: FactPath, _: int) -> list[FactPath]:
    return [path]

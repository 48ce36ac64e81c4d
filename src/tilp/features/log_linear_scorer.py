"""`LogLinearScorer`: rules, the candidate's facts and soft walks, in one log-linear score."""

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
from tilp.features.log_linear import SOFT_WALKS, LogLinearWeights
from tilp.features.random_walks import RandomWalks
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, Scores
from tilp.scoring.scorer import NOT_SCORED, AppliedRules, Contribution, FactPath, RuleContributions

_MOST_ENTITIES = 2**16
"""Up to so many entities all are scored; past it those that rules or the prior list."""

_WALKS_TEXT = "walks of any facts, longer than rules and likelier the nearer in time, lead to it"


class LogLinearScorer:
    """Scores candidates of queries by a sum of terms, all of them 0 for one without evidence.

    - rules and prior: w log(φ_TLR / its least value), split by their shares of φ_TLR;
    - rule evidence: Σ w_Rule √α_c(Rule) over the rules that lead to the candidate;
    - other facts, and facts with the subject: the weights of the words for them;
    - soft walks: w times how likely they reach the candidate, as a logarithm.

    Args:
        rules: scores by rules alone.
        weights: what phase two learned.
        soft_length: steps of soft walks at the most.
    """

    def __init__(self, rules: RuleScorer, weights: LogLinearWeights, soft_length: int) -> None:
        self.rule_scorer = rules
        self._weights = weights
        self._soft_length = soft_length
        self._n_entities = len(rules.walker.graph.entities)
        self._stand_on(fact_edges(rules.walker.graph))

    def _stand_on(self, edges: FactEdges) -> None:
        walker, weights = self.rule_scorer.walker, self._weights
        self._edges = edges
        self.facts = CandidateHistory(edges, 2 * len(walker.graph.relations), weights.bounds)
        self.walks = RandomWalks.of(walker, edges, weights.scale, self._soft_length)

    def __getstate__(self) -> dict[str, Any]:
        if self._n_entities <= _MOST_ENTITIES:
            self.facts.prepare_for_all()  # once, here, for all that it travels to
        return vars(self)

    def without(self, facts: Iterable[int]) -> LogLinearScorer:
        """The same on the evidence without some facts, as `RuleScorer.without` has it."""
        gone = np.fromiter(facts, np.int64)
        other = copy(self)
        other.rule_scorer = self.rule_scorer.without(gone)
        numbers = self.rule_scorer.walker.graph.rows_after_removal(gone)
        other._stand_on(fact_edges_without(self._edges, numbers, other.rule_scorer.walker.graph))
        return other

    @property
    def _lists_all(self) -> bool:
        return self._n_entities <= _MOST_ENTITIES

    def memory_per_query(self, queries: QueryTable) -> NDArray[np.float64]:
        """Estimate how many numbers are in memory while each query is scored."""
        if self._lists_all:
            return self._n_entities + self.rule_scorer.walk_memory(queries)
        return self.rule_scorer.memory_per_query(queries)

    def __call__(self, queries: QueryTable) -> Scores:
        """Score the candidates of queries."""
        return self.score(queries)

    def score(self, queries: QueryTable, applied: AppliedRules | None = None) -> Scores:
        """Score the candidates of queries; `applied` is what `RuleScorer.apply_rules` returned."""
        applied = applied or self.rule_scorer.apply_rules(queries)
        by_rules = self.rule_scorer.score(queries, applied)
        settled = self.rule_scorer.fill_dates(queries)
        n, everything = self._n_entities, self._lists_all
        if everything:
            begin = np.arange(len(queries) + 1) * n
            candidate = np.tile(np.arange(n, dtype=np.int32), len(queries))
        else:
            begin, candidate = by_rules.offsets, by_rules.candidate
        asked = listed_candidates(settled, begin, candidate)
        score = np.zeros(len(candidate))
        query = by_rules.query
        place = query * n + by_rules.candidate if everything else np.arange(len(candidate))
        score[place] = self._log_rules(
            queries.directed_relation[query], by_rules.score, by_rules, query
        )
        self._add_evidence(applied, asked, score)
        if everything:
            weights = self._weights
            self.facts.add_of_all(asked, weights.row_of, weights.words, score.reshape(-1, n))
        else:
            self._add_facts(asked, np.ones(len(HISTORY_KINDS), np.bool_), score)
        self._add_walks(asked, score)
        return Scores(begin, candidate, score, 0.0, by_rules.reached, temperature=1.0)

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
        asked = listed_candidates(self.rule_scorer.fill_dates(queries), offsets, candidate)
        listed = by_rules.indices_of(offsets, candidate) >= 0
        scored = listed | self._lists_all
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        relation = queries.directed_relation[query]
        phi = by_rules.of_candidates(offsets, candidate)
        together = self._log_rules(relation, phi, by_rules, query)
        found = self.rule_scorer.split_rules_and_prior(relation, candidate, phi, together)
        found["rule evidence"] = np.zeros(len(candidate))
        self._add_evidence(applied, asked, found["rule evidence"])
        for number, kind in enumerate(HISTORY_KINDS):
            found[kind] = np.zeros(len(candidate))
            self._add_facts(asked, np.arange(len(HISTORY_KINDS)) == number, found[kind])
        found[SOFT_WALKS] = np.zeros(len(candidate))
        self._add_walks(asked, found[SOFT_WALKS])
        return {name: np.where(scored, term, 0.0) for name, term in found.items()}

    def attribute_score(
        self, query: QueryTable, candidate: int, applied: AppliedRules
    ) -> list[Contribution]:
        """Split a score into contributions of rules, prior, candidate history and random walks."""
        listed = self.rule_scorer.score(query, applied).candidate
        if not self._lists_all and candidate not in listed:
            text = "neither rules nor the prior lead to it, and nothing else was looked at"
            return [Contribution((NOT_SCORED,), NOT_SCORED, 0.0, text)]
        only = np.array([candidate], np.int32)
        parts = self.contributions(query, np.array([0, 1]), only, applied)
        return [
            *self.rule_scorer.attribute_score(
                query, candidate, applied, parts, self._rule_evidence
            ),
            *self._attribute_history(query, candidate),
            self._attribute_walks(query, candidate, float(parts[SOFT_WALKS][0])),
        ]

    def _attribute_history(self, query: QueryTable, candidate: int) -> list[Contribution]:
        """Return a contribution for each fact of the candidate with a weight other than 0."""
        graph = self.rule_scorer.walker.graph
        contributions = []
        for fact, weights in self._history_of(query, candidate):
            if not weights.any():
                continue
            heaviest = [fact.words[index] for index in np.argsort(-np.abs(weights), kind="stable")]
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

    def _fact_text(self, query: QueryTable, fact: HistoryFact, words: list[int]) -> str:
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
        *first, last = (self.facts.clause(word, graph.unit) for word in words)
        clauses = f"{', '.join(first)} and {last}" if first else last
        return f"{which} {name} {ends} {clauses}"

    def _attribute_walks(self, query: QueryTable, candidate: int, score: float) -> Contribution:
        """Return the contribution of random walks, with the likeliest walk of each length."""
        dated = self.rule_scorer.fill_dates(query)
        n_relations = len(self.rule_scorer.walker.graph.relations)
        edges = self.walks.edges

        def find(n: int) -> list[FactPath]:
            walks = self.walks.strongest(dated, 0, candidate)
            only = np.array([candidate], np.int32)
            total = float(self.walks.chances(listed_candidates(dated, np.array([0, 1]), only))[0])
            return [
                FactPath(
                    tuple(
                        (int(edges.fact[edge]), bool(edges.relation[edge] >= n_relations))
                        for edge in walk
                    ),
                    share=chance / total,
                )
                for walk, chance in walks[:n]
            ]

        return Contribution((SOFT_WALKS,), SOFT_WALKS, score, _WALKS_TEXT, find_facts=find)

    def _rule_evidence(self, reaching: RuleContributions) -> NDArray[np.float64]:
        """Return w_Rule √α_c of each rule that reaches a candidate."""
        rate = reaching.arriving / reaching.walks
        of_rule = self._weights.rule[reaching.rule] * np.sqrt(rate)
        return np.where(reaching.arriving >= MIN_RATE * reaching.walks, of_rule, 0.0)

    def _history_of(
        self, queries: QueryTable, candidate: int
    ) -> list[tuple[HistoryFact, NDArray[np.float64]]]:
        """Return the facts of a candidate of a single query, and the weights of their features."""
        only = np.array([candidate], np.int32)
        asked = listed_candidates(self.rule_scorer.fill_dates(queries), np.array([0, 1]), only)
        rows = self._weights.row_of[queries.directed_relation[0]].reshape(len(HISTORY_KINDS), -1)
        return [
            (one, self._weights.words[rows[one.kind, one.relation], list(one.words)])
            for one in self.facts.facts_of_candidate(asked)
            if rows[one.kind, one.relation] >= 0
        ]

    def _log_rules(
        self,
        head: NDArray[np.int32],
        phi: NDArray[np.float64],
        by_rules: Scores,
        query: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """What φ_TLR adds: above its least value, which entities have that nothing speaks for."""
        added: NDArray[np.float64] = self._weights.columns[head, 0] * np.log(
            phi / by_rules.defaults[query]
        )
        return added

    def _add_evidence(
        self, applied: AppliedRules, asked: ListedCandidates, score: NDArray[np.float64]
    ) -> None:
        add_rule_evidence(
            *applied.by_query(len(asked.subject)),
            asked.offsets,
            asked.candidate,
            self._weights.rule,
            self._n_entities,
            score,
        )

    def _add_facts(
        self, asked: ListedCandidates, kinds: NDArray[np.bool_], score: NDArray[np.float64]
    ) -> None:
        self.facts.add(asked, self._weights.row_of, self._weights.words, kinds, score)

    def _add_walks(self, asked: ListedCandidates, score: NDArray[np.float64]) -> None:
        self.walks.add(asked, self._weights.columns[asked.directed_relation, 1], score)


def _only(path: FactPath, _: int) -> list[FactPath]:
    return [path]

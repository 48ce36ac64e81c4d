"""`LogLinearScorer`: rules, candidate history and random walks in one log-linear score."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from tilp._kernels.candidate_history import FactEdges
from tilp._kernels.score import MIN_RATE, add_rule_evidence
from tilp._kernels.types import ListedCandidates
from tilp._utils.arrays import Floats, Ids, Indices, Mask
from tilp.features import candidate_history as of_candidates
from tilp.features.candidate_counts import (
    COUNT_PARTS,
    DEGREE,
    KIND,
    KNOWN,
    POPULARITY,
    CandidateCounts,
)
from tilp.features.candidate_history import HISTORY_KINDS, CandidateHistory, listed_candidates
from tilp.features.entity_kinds import EntityKinds
from tilp.features.log_linear import RANDOM_WALKS, TERMS, LogLinearWeights
from tilp.features.random_walks import RandomWalks, WalkChains
from tilp.graph import QueryTable
from tilp.scoring import RuleScorer, Scores
from tilp.scoring import scorer as scoring
from tilp.scoring.scorer import AppliedRules, Contribution, Evidence, ReasonKind

_MAX_ENTITIES = 2**16  # more are not scored all, but those that rules or the prior list
_WALKS_TEXT = "walks of any facts, longer than rules and likelier the nearer in time"


class LogLinearScorer:
    """Scores candidates by a sum of contributions, each 0 for a candidate without evidence.

    - rules and prior: w log(φ_TLR / its least value), split by their shares of φ_TLR;
    - rule evidence: Σ w_Rule √α_c(Rule) over the rules that reach the candidate;
    - other facts, and facts with the subject: weights of the features of the candidate history;
    - random walks: w times the random walk score;
    - degree, popularity, known at another time: weighted counts of the candidate's facts;
    - kind: less for a candidate of a kind that the relation never has as an answer.
    """

    def __init__(
        self, rule_scorer: RuleScorer, weights: LogLinearWeights, walk_length: int,
        max_entities: int = _MAX_ENTITIES, kinds: EntityKinds | None = None,
    ) -> None:  # fmt: skip
        self.rule_scorer = rule_scorer
        self.max_entities = max_entities
        self.weights = weights
        self._walk_length = walk_length
        self._n_entities = len(rule_scorer.walker.graph.entities)
        self._use_edges(of_candidates.fact_edges(rule_scorer.walker.graph), kinds)

    def _use_edges(self, edges: FactEdges, kinds: EntityKinds | None = None) -> None:
        walker, weights = self.rule_scorer.walker, self.weights
        n_directed = 2 * len(walker.graph.relations)
        self._edges = edges
        self.history = CandidateHistory(edges, n_directed, weights.distance_bounds)
        self.random_walks = RandomWalks.for_walker(
            walker, edges, weights.time_scale, self._walk_length
        )
        self.counts = CandidateCounts(walker.graph, self.rule_scorer.prior, kinds)

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
        graph = other.rule_scorer.walker.graph
        other._use_edges(of_candidates.fact_edges_without(self._edges, ids, graph))
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

    def score(
        self, queries: QueryTable, applied: AppliedRules | None = None,
        by_rules: Scores | None = None,
    ) -> Scores:  # fmt: skip
        """Score the candidates of queries.

        `applied` and `by_rules` are what `RuleScorer.apply_rules` and `RuleScorer.score` returned.
        """
        applied = applied or self.rule_scorer.apply_rules(queries)
        by_rules = by_rules or self.rule_scorer.score(queries, applied)
        n_entities, query = self._n_entities, by_rules.query
        if self.lists_all:
            offsets = np.arange(len(queries) + 1) * n_entities
            candidate = np.tile(np.arange(n_entities, dtype=np.int32), len(queries))
            row = query * n_entities + by_rules.candidate
        else:
            offsets, candidate = by_rules.offsets, by_rules.candidate
            row = np.arange(len(candidate))
        dated = self.rule_scorer.fill_dates(queries)
        listed = listed_candidates(dated, offsets, candidate)
        score = np.zeros(len(candidate))
        score[row] = self._rule_contribution(queries, by_rules, query, by_rules.score)
        self._add_rule_evidence(applied, listed, score)
        if self.lists_all:
            weights = self.weights
            matrix = score.reshape(-1, n_entities)
            self.history.add_scores_to_all(listed, weights.history_row, weights.history, matrix)
            self.counts.add_to_all(dated, applied.known, weights.counts, matrix)
        else:
            self._add_history(listed, np.ones(len(HISTORY_KINDS), np.bool_), score)
            score += self._weighted_counts(queries, applied, offsets, candidate).sum(axis=1)
        self._add_random_walks(listed, score)
        return Scores(offsets, candidate, score, 0.0, by_rules.reached, temperature=1.0)

    __call__ = score

    def contributions(
        self, queries: QueryTable, offsets: Indices, candidate: Ids,
        applied: AppliedRules | None = None,
    ) -> dict[str, Floats]:  # fmt: skip
        """Split the scores of the given candidates into parts by name, which add up to them."""
        applied = applied or self.rule_scorer.apply_rules(queries)
        by_rules = self.rule_scorer.score(queries, applied)
        parts = self._parts(queries, offsets, candidate, applied, by_rules)
        listed = listed_candidates(self.rule_scorer.fill_dates(queries), offsets, candidate)
        parts[RANDOM_WALKS] = np.zeros(len(candidate))
        self._add_random_walks(listed, parts[RANDOM_WALKS])
        if self.lists_all:
            return parts
        scored = by_rules.indices_of(offsets, candidate) >= 0
        return {name: np.where(scored, part, 0.0) for name, part in parts.items()}

    def _parts(
        self, queries: QueryTable, offsets: Indices, candidate: Ids, applied: AppliedRules,
        by_rules: Scores,
    ) -> dict[str, Floats]:  # fmt: skip
        """Return the parts of the scores of the given candidates, without random walks."""
        listed = listed_candidates(self.rule_scorer.fill_dates(queries), offsets, candidate)
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        phi = by_rules.of_candidates(offsets, candidate)
        together = self._rule_contribution(queries, by_rules, query, phi)
        parts = self.rule_scorer.split_rules_and_prior(queries, offsets, candidate, phi, together)
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
        applied: AppliedRules, by_rules: Scores,
    ) -> Floats:  # fmt: skip
        """Return the `TERMS` of candidates' scores and their plain `COUNT_FEATURES` as columns."""
        parts = self._parts(queries, offsets, candidate, applied, by_rules)
        parts["rules"] = parts["rules"] + parts.pop("prior")
        dated = self.rule_scorer.fill_dates(queries)
        counts = self.counts.features(dated, applied.known, offsets, candidate)
        parts[RANDOM_WALKS] = scores.of_candidates(offsets, candidate) - sum(parts.values())
        terms = [parts[name] for name in TERMS]
        return np.column_stack([*terms, counts])

    def attribute_scores(
        self, query: QueryTable, candidates: Sequence[int], applied: AppliedRules
    ) -> list[list[Contribution]]:
        """Split scores into contributions of rules, prior, candidate history and random walks."""
        scored = list(candidates)
        if not self.lists_all:
            listed = self.rule_scorer.score(query, applied).candidate
            scored = [entity for entity in candidates if entity in listed]
        entities = np.array(scored, np.int32)
        together = self.contributions(query, np.array([0, len(scored)]), entities, applied)
        walks = self._attribute_walks(query, scored, together[RANDOM_WALKS].tolist())
        attributed = {}
        for index, entity in enumerate(scored):
            parts = {name: part[index : index + 1] for name, part in together.items()}
            about = query, entity, applied, parts
            rules = self.rule_scorer.attribute_rules(*about, self._rule_evidence)
            history = self._attribute_history(query, entity)
            counts = self._attribute_counts(query, entity, parts)
            attributed[entity] = [*rules, *history, *walks[index], *counts]
        text = "neither rules nor the prior lead to {candidate}, and nothing else was looked at"
        other = Contribution(Evidence(ReasonKind.REST), scoring.NOT_SCORED, 0.0, text)
        return [attributed.get(entity, [other]) for entity in candidates]

    def _attribute_counts(
        self, query: QueryTable, candidate: int, parts: dict[str, Floats]
    ) -> Iterator[Contribution]:
        """Yield a contribution for each count of the candidate's facts."""
        prior = Evidence(ReasonKind.PRIOR)
        relation = self.rule_scorer.walker.encoding.atoms[int(query.directed_relation[0])]
        known = Evidence(ReasonKind.CHAIN, (relation,))
        popularity = self.rule_scorer.popularity_text(query, candidate)
        n_facts = self.counts.facts(self.rule_scorer.fill_dates(query), candidate)
        facts = f"{{candidate}} has {n_facts:,} facts in all"
        at_another_time = "{candidate} is known as an answer at another time"
        for kind, evidence, text in (
            (DEGREE, prior, facts), (POPULARITY, prior, popularity), (KNOWN, known, at_another_time)
        ):  # fmt: skip
            yield Contribution(evidence, kind, float(parts[kind][0]), text)
        of_kind = float(parts[KIND][0])
        if of_kind:
            yield Contribution(
                Evidence(ReasonKind.CANDIDATE), KIND, of_kind, self._kind_text(query, candidate)
            )

    def _kind_text(self, query: QueryTable, candidate: int) -> str:
        """Say which facts of a candidate no answer of the query's relation has."""
        atoms = self.rule_scorer.walker.encoding.atoms
        has = ", ".join(str(atoms[relation]) for relation in self.counts.kinds.relations(candidate))
        relation = int(query.directed_relation[0])
        end = "object" if relation < len(atoms) // 2 else "subject"
        name = atoms[relation].relation
        return f"nothing like {{candidate}}, with facts of {has} alone, is ever the {end} of {name}"

    def _attribute_history(self, query: QueryTable, candidate: int) -> Iterator[Contribution]:
        """Yield a contribution for each fact of the candidate with a weight other than 0."""
        walker = self.rule_scorer.walker
        atoms, unit = walker.encoding.atoms, walker.graph.unit
        rows = self.weights.history_row[query.directed_relation[0]]
        rows = rows.reshape(len(HISTORY_KINDS), -1)
        ends, entity = np.array([0, 1]), np.array([candidate], np.int32)
        listed = listed_candidates(self.rule_scorer.fill_dates(query), ends, entity)
        for fact in self.history.nearest_facts(listed):
            row, features = rows[fact.kind, fact.relation], np.array(fact.features)
            weights = self.weights.history[row, features] if row >= 0 else np.empty(0)
            if not weights.any():
                continue
            heaviest = features[np.argsort(-np.abs(weights), kind="stable")].tolist()
            features = heaviest[: np.count_nonzero(weights)]
            text = ", ".join(self.history.describe(feature, unit) for feature in features)
            atom, kind = atoms[fact.relation], HISTORY_KINDS[fact.kind]
            step = int(self._edges.fact[fact.edge]), atom.inverse
            evidence = Evidence(ReasonKind.CANDIDATE, (atom,))
            if fact.kind:  # a fact with the subject is a chain of its own, read from the subject
                evidence = Evidence(ReasonKind.CHAIN, (atom.converse,))
                step = step[0], not atom.inverse
            find, score = scoring.only_path((step,)), float(weights.sum())
            yield Contribution(evidence, kind, score, text, 1, find_facts=find)

    def _attribute_walks(
        self, query: QueryTable, candidates: Sequence[int], scores: Sequence[float]
    ) -> list[list[Contribution]]:
        """Split for each candidate its score by random walks, by the chains of walks.

        Each chain that is likely for one of the candidates gets the share of its probability, if it
        has a walk without a circle. What is left goes to the connection as a whole.
        """
        if not any(scores):
            return [[] for _ in scores]
        atoms, dated = self.rule_scorer.walker.encoding.atoms, self.rule_scorer.fill_dates(query)
        first = WalkChains(self.random_walks, dated, candidates[0])
        walks = [first, *map(first.to, candidates[1:])]
        likely = (found.likely() for found, score in zip(walks, scores, strict=True) if score)
        chains = list(dict.fromkeys(itertools.chain.from_iterable(likely)))
        contributions = []
        for found, score in zip(walks, scores, strict=True):
            parts = [
                (
                    Evidence(ReasonKind.CHAIN, tuple(atoms[relation] for relation in chain)),
                    score * found.share(chain),
                    partial(self._paths, found, chain),
                )
                for chain in chains
                if score and found.walks(chain, 1)
            ]
            left, find = score - sum(part[1] for part in parts), partial(self._shortest_path, found)
            parts.append((Evidence(ReasonKind.CONNECTION), left, find))
            of_candidate = [
                Contribution(evidence, RANDOM_WALKS, part, _WALKS_TEXT, 1, find_facts=find)
                for evidence, part, find in parts
            ]
            contributions.append(of_candidate)
        return contributions

    def _paths(self, walks: WalkChains, chain: tuple[int, ...], n: int) -> list[scoring.FactPath]:
        return [self._path(walk) for walk in walks.walks(chain, n)]

    def _shortest_path(self, walks: WalkChains, _: int) -> list[scoring.FactPath]:
        return [self._path(walks.shortest_walk())]

    def _path(self, walk: Indices) -> scoring.FactPath:
        edges, n = self.random_walks.edges, len(self.rule_scorer.walker.graph.relations)
        inverse = edges.relation[walk] >= n
        return tuple(zip(edges.fact[walk].tolist(), inverse.tolist(), strict=True))

    def _rule_evidence(self, reaching: scoring.RuleContributions) -> Floats:
        """Return the evidence w_Rule √α_c of each rule that reaches a candidate."""
        rate = reaching.arriving / reaching.walks
        evidence = self.weights.rule[reaching.rule] * np.sqrt(rate)
        return np.where(reaching.arriving >= MIN_RATE * reaching.walks, evidence, 0.0)

    def _rule_contribution(
        self, queries: QueryTable, by_rules: Scores, query: Indices, phi: Floats
    ) -> Floats:
        """Return the contribution of φ_TLR above its least value, that of unreached entities."""
        weight = self.weights.dense[queries.directed_relation[query], 0]
        return np.asarray(weight * np.log(phi / by_rules.defaults[query]))

    def _add_rule_evidence(
        self, applied: AppliedRules, listed: ListedCandidates, score: Floats
    ) -> None:
        rows = applied.rows
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
        dated = self.rule_scorer.fill_dates(queries)
        features = self.counts.features(dated, applied.known, offsets, candidate)
        return np.asarray(features * self.weights.counts[relation])

    def _add_random_walks(self, listed: ListedCandidates, score: Floats) -> None:
        weight = self.weights.dense[listed.directed_relation, 1]
        self.random_walks.add_scores(listed, weight, score)

"""`FeatureWeights`: what training phase two learns (eq. 14, 16-21)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.features.paper.distributions import Bernoulli, FittedDistributions, recurs
from tilp.features.paper.evidence import (
    DEFAULT_LIMIT,
    EVIDENCE_KINDS,
    DatedEvidence,
    Evidence,
    Gatherer,
)
from tilp.graph import QueryTable, TemporalGraph
from tilp.parallel import Workers
from tilp.rules import RuleSet

FEATURES = ("recurrence", "order", "pair")
"""The temporal features that candidates are scored by; walks know no recurrence."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureWeights:
    """Weights of temporal features.

    Attributes:
        recurrence_weight: w of eq. 18, for the facts with the subject and for others, by relation.
        recurrence_bias: b of eq. 18, likewise.
        order_weight: w of eq. 17, for each pair of `FittedFeatures`; likewise `pair_weight`.
        order_bias: b of eq. 17, for each pair; likewise `pair_bias`.
        mixing: γ of eq. 19-21, by kind of evidence and feature; the sum of each kind is 1.
        evidence: γ_1, γ_2, γ_3 of eq. 14.
        rules: γ_TLR of eq. 16; likewise `features`, γ_tfm.
        temperature: that scores were divided by in training; ranks do not depend on it.
    """

    recurrence_weight: Floats
    recurrence_bias: Floats
    order_weight: Floats
    order_bias: Floats
    pair_weight: Floats
    pair_bias: Floats
    mixing: Floats
    evidence: Floats
    rules: float
    features: float
    temperature: float

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays by name."""
        return {one.name: np.asarray(getattr(self, one.name), np.float64) for one in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> FeatureWeights:
        """What `to_arrays` gave.

        Raises:
            TilpError: an array is missing.
        """
        names = [one.name for one in fields(cls)]
        lacking = [name for name in names if name not in arrays]
        if lacking:
            raise TilpError(f"weights of features lack {', '.join(lacking)}; fit the model anew")
        held: dict[str, Any] = {
            name: arrays[name] if arrays[name].ndim else float(arrays[name]) for name in names
        }
        return cls(**held)

    def remap(self, heads: NDArray[np.int64], place: NDArray[np.int64]) -> FeatureWeights:
        """The weights for other numbers of relations and pairs.

        Args:
            heads: for each new head the old one; -1: none, which has the weights of any.
            place: for each new pair the old one.
        """
        by_head = {
            name: getattr(self, name)[:, heads] for name in ("recurrence_weight", "recurrence_bias")
        }
        names = ("order_weight", "order_bias", "pair_weight", "pair_bias")
        return replace(self, **by_head, **{name: getattr(self, name)[place] for name in names})


CONTRIBUTIONS = (
    "rules",
    *(
        f"{feature}_{kind}"
        for kind in EVIDENCE_KINDS
        for feature in FEATURES
        if (feature, kind) != ("recurrence", "walks")
    ),
)
"""The parts that a score is the sum of."""


@dataclass(frozen=True)
class EvidenceProbabilities:
    """The probabilities h of the evidence for candidates: all that scores need but the weights.

    Attributes:
        head: the query's relation, for each candidate.
        recurrence: h_rec, for each candidate, in its facts with the subject and in its others.
        group: candidate and kind of each dated piece of evidence: row · 3 + kind; never falling.
        pair: its place in `FittedFeatures`.
        order: h_order of it.
        interval: h_pair of it.
    """

    head: NDArray[np.int32]
    recurrence: Floats
    group: NDArray[np.int64]
    pair: NDArray[np.int64]
    order: Floats
    interval: Floats


def evidence_probabilities(
    fitted: FittedDistributions, queries: QueryTable, evidence: Evidence
) -> EvidenceProbabilities:
    """The probabilities of the evidence."""
    head = queries.directed_relation[evidence.query]
    again = Bernoulli(fitted.recurrence.probability[:, head].T)
    row, kind, of_row, relation, apart = evidence.dated(queries)
    pair = fitted.indices(kind, of_row, relation)
    return EvidenceProbabilities(
        head=head,
        recurrence=np.exp(again.log_density(recurs(queries, evidence))),
        group=row * len(EVIDENCE_KINDS) + kind,
        pair=pair,
        order=np.exp(fitted.order[pair].log_density(apart > 0)),
        interval=np.exp(fitted.interval[pair].log_density(np.abs(apart))),
    )


def score_terms(
    weights: FeatureWeights, measured: EvidenceProbabilities, phi: Floats
) -> dict[str, Floats]:
    """What each of `TERMS` adds to the score of each candidate, γ and all (eq. 14, 16, 19-21).

    Args:
        weights: what was learned.
        measured: the evidence for the candidates.
        phi: φ_TLR of each candidate.
    """
    of_recurrence = (  # eq. 18
        weights.recurrence_weight[:, measured.head].T * measured.recurrence
        + weights.recurrence_bias[:, measured.head].T
    )
    of_order = _by_kind(weights.order_weight, weights.order_bias, measured, measured.order)
    of_pair = _by_kind(weights.pair_weight, weights.pair_bias, measured, measured.interval)
    found = {"recurrence": of_recurrence, "order": of_order, "pair": of_pair}
    terms = {"rules": weights.rules * phi}
    for number, kind in enumerate(EVIDENCE_KINDS):
        for place, feature in enumerate(FEATURES):
            name = f"{feature}_{kind}"
            if name in CONTRIBUTIONS:
                share = weights.mixing[number, place] * weights.evidence[number]
                terms[name] = weights.features * share * found[feature][:, number]
    return terms


def score_pieces(weights: FeatureWeights, measured: EvidenceProbabilities) -> dict[str, Floats]:
    """What each dated piece of evidence adds to its candidate's terms of order and of pair."""
    kind = measured.group % len(EVIDENCE_KINDS)
    found = {}
    for feature, weight, bias, h in (
        ("order", weights.order_weight, weights.order_bias, measured.order),
        ("pair", weights.pair_weight, weights.pair_bias, measured.interval),
    ):
        mass = np.exp(weight[measured.pair])
        share = mass / np.bincount(measured.group, mass)[measured.group]
        mixing = weights.mixing[kind, FEATURES.index(feature)] * weights.evidence[kind]
        found[feature] = weights.features * mixing * share * (h + bias[measured.pair])
    return found


def _by_kind(weight: Floats, bias: Floats, measured: EvidenceProbabilities, h: Floats) -> Floats:
    """φ of eq. 17 for each candidate and kind; 0 where there is no evidence."""
    size = len(measured.head) * len(EVIDENCE_KINDS)
    mass = np.exp(weight[measured.pair])
    above = np.bincount(measured.group, mass * (h + bias[measured.pair]), size)
    below = np.bincount(measured.group, mass, size)
    mean = np.divide(above, below, out=np.zeros(size), where=below > 0)
    return mean.reshape(-1, len(EVIDENCE_KINDS))


@dataclass(frozen=True)
class PaperFeatures:
    """The temporal features of a graph, as the paper has them.

    Attributes:
        graph: whose train split is evidence.
        walked: for each head, which directed relations are walked along: those in bodies of its
            rules.
        max_length: of walks.
        fitted: the distributions.
        limit: edges that are read at the most, see `Gatherer`.
    """

    graph: TemporalGraph
    walked: NDArray[np.bool_]
    max_length: int
    distributions: FittedDistributions
    limit: int = DEFAULT_LIMIT

    @classmethod
    def fit(
        cls,
        graph: TemporalGraph,
        walked: NDArray[np.bool_],
        max_length: int,
        *,
        facts: NDArray[np.int64] | None = None,
        limit: int = DEFAULT_LIMIT,
        workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> PaperFeatures:
        """Fit the distributions to training facts in both directions, each with its own answer.

        Args:
            graph: its train split is learned from.
            walked: for each head, which directed relations are walked along.
            max_length: of walks.
            facts: to learn from; by default all of train.
            limit: edges that are read at the most, see `Gatherer`.
            workers: do not change the result.
            progress: called with the share that is done.
        """
        gather = Gatherer(graph, walked, max_length, limit)
        queries, evidence = _for_answers(graph, facts, gather, workers, progress)
        fitted = FittedDistributions.fit(2 * len(graph.relations), queries, evidence)
        return cls(graph, walked, max_length, fitted, limit)

    def observed(
        self,
        *,
        facts: NDArray[np.int64] | None = None,
        workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> DatedEvidence:
        """What order and pair interval are fitted to: the dated evidence for answers.

        Args:
            facts: that were learned from; by default all of train.
            workers: do not change the result.
            progress: called with the share that is done.
        """
        queries, evidence = _for_answers(self.graph, facts, self._gatherer, workers, progress)
        return evidence.dated(queries)

    def __getstate__(self) -> dict[str, Any]:
        self._gatherer  # noqa: B018 - made once, here, for all that it travels to
        return vars(self)

    @cached_property
    def _gatherer(self) -> Gatherer:
        return Gatherer(self.graph, self.walked, self.max_length, self.limit)

    def gather(
        self,
        queries: QueryTable,
        offsets: NDArray[np.int64],
        candidate: NDArray[np.int32],
        workers: Workers | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Evidence:
        """The evidence for the candidates of queries.

        Args:
            queries: the queries.
            offsets: where the candidates of each query begin, and where the last end.
            candidate: these.
            workers: do not change the result.
            progress: called with the share that is done.
        """
        return self._gatherer(queries, offsets, candidate, workers or Workers(), progress=progress)

    def contributions(
        self,
        weights: FeatureWeights,
        queries: QueryTable,
        evidence: Evidence,
        phi: NDArray[np.float64],
    ) -> dict[str, NDArray[np.float64]]:
        """What rules and each feature add to the score of each listed candidate, by name."""
        return score_terms(
            weights, evidence_probabilities(self.distributions, queries, evidence), phi
        )

    def piece_contributions(
        self, weights: FeatureWeights, queries: QueryTable, evidence: Evidence
    ) -> tuple[DatedEvidence, dict[str, NDArray[np.float64]]]:
        """The dated evidence, and what each piece of it adds to order and pair."""
        of_pieces = score_pieces(
            weights, evidence_probabilities(self.distributions, queries, evidence)
        )
        return evidence.dated(queries), of_pieces

    def score(
        self,
        weights: FeatureWeights,
        queries: QueryTable,
        evidence: Evidence,
        phi: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """φ_TILP of each listed candidate (eq. 16): the sum of its terms.

        Args:
            weights: what was learned.
            queries: the queries.
            evidence: for their candidates.
            phi: φ_TLR of each candidate.
        """
        terms = self.contributions(weights, queries, evidence, phi)
        score: NDArray[np.float64] = np.sum(list(terms.values()), axis=0)
        return score

    def score_without_evidence(self, weights: FeatureWeights) -> NDArray[np.float64]:
        """γ_tfm φ_tfm of a candidate without any evidence, for each head."""
        never = np.exp(self.distributions.recurrence.log_density(np.zeros(1, np.bool_)))
        of_kind = weights.recurrence_weight * never + weights.recurrence_bias
        share = weights.evidence * weights.mixing[:, FEATURES.index("recurrence")]
        of_head: NDArray[np.float64] = weights.features * (share[: len(of_kind)] @ of_kind)
        return of_head

    def with_graph(self, graph: TemporalGraph) -> PaperFeatures:
        """The same with another graph of the same relations as evidence."""
        return replace(self, graph=graph)

    def remap(self, heads: NDArray[np.int64]) -> tuple[PaperFeatures, NDArray[np.int64]]:
        """The same for other numbers of relations; and for each new pair the old one.

        Args:
            heads: for each new head the old one; -1: none.
        """
        fitted, place = self.distributions.remap(heads)
        known = heads >= 0
        walked = self.walked[np.ix_(heads, heads)] & known[:, None] & known
        return replace(self, walked=walked, distributions=fitted), place

    def table(self) -> pl.DataFrame:
        """Every distribution that was fitted, with its parameters, in words."""
        return self.distributions.table(self.graph.relations)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All but the graph, as arrays by name."""
        return {
            "walked": self.walked,
            "bounds": np.array([self.max_length, self.limit]),
            **self.distributions.to_arrays(),
        }

    @classmethod
    def from_arrays(cls, graph: TemporalGraph, arrays: dict[str, NDArray[Any]]) -> PaperFeatures:
        """What `to_arrays` gave, for the same relations.

        Raises:
            TilpError: an array is missing, or the graph has other relations.
        """
        fitted = FittedDistributions.from_arrays(arrays)
        if fitted.n_directed != 2 * len(graph.relations):
            raise TilpError(
                f"features were fitted for {fitted.n_directed // 2} relations, and the graph has "
                f"{len(graph.relations)}; give them a graph with the same relations"
            )
        if "walked" not in arrays or "bounds" not in arrays:
            raise TilpError("features lack what is walked along; fit the model anew")
        max_length, limit = (int(one) for one in arrays["bounds"])
        return cls(graph, arrays["walked"].astype(np.bool_), max_length, fitted, limit)


def _for_answers(
    graph: TemporalGraph,
    facts: NDArray[np.int64] | None,
    gather: Gatherer,
    workers: Workers | None,
    progress: Callable[[float], None] | None,
) -> tuple[QueryTable, Evidence]:
    """Facts asked in both directions, and the evidence for their answers alone."""
    if facts is None:
        facts = np.asarray(graph.rows("train"), np.int64)
    queries = QueryTable.of_facts(graph, facts, walked=True)
    offsets = np.arange(len(queries) + 1)
    evidence = gather(queries, offsets, queries.answer, workers or Workers(), progress=progress)
    return queries, evidence


@dataclass(frozen=True)
class FittedPaper:
    """The paper's features with the weights that phase two learned."""

    features: PaperFeatures
    weights: FeatureWeights

    def remap(self, relations: NDArray[np.int64], rules: NDArray[np.int64]) -> FittedPaper:
        """Return the same for other relation ids; `rules` do not matter.

        Args:
            relations: Old id of each new directed relation; -1 for a new one.
            rules: Old index of each new rule.
        """
        del rules
        features, pairs = self.features.remap(relations)
        return FittedPaper(features, self.weights.remap(relations, pairs))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return distributions and weights as arrays by name."""
        return {**self.features.to_arrays(), **self.weights.to_arrays()}

    @classmethod
    def from_arrays(cls, graph: TemporalGraph, arrays: dict[str, NDArray[Any]]) -> FittedPaper:
        """Read what `to_arrays` returned, for a graph with its missing dates filled."""
        return cls(PaperFeatures.from_arrays(graph, arrays), FeatureWeights.from_arrays(arrays))


def walked_relations(graph: TemporalGraph, rules: RuleSet) -> NDArray[np.bool_]:
    """Return a mask: for each directed relation, the relations in the bodies of its rules."""
    size = len(graph.relations)
    ids = {name: index for index, name in enumerate(graph.relations)}
    walked = np.zeros((2 * size, 2 * size), np.bool_)
    for mined in rules:
        head, *body = (
            ids[atom.relation] + size * atom.inverse for atom in (mined.rule.head, *mined.rule.body)
        )
        walked[head, body] = True
    return walked

"""The paper's temporal features: recurrence, order and pair interval (eq. 14, 16-21)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.arrays import Floats, Ids, Indices, Mask
from tilp._utils.files import check_arrays
from tilp.errors import TilpError
from tilp.features.paper.distributions import Bernoulli, FittedDistributions, recurs
from tilp.features.paper.evidence import EVIDENCE_KINDS, LIMIT, DatedEvidence, Evidence, Gatherer
from tilp.graph import QueryTable, TemporalGraph
from tilp.parallel import Workers
from tilp.rules import RuleSet

FEATURES = ("recurrence", "order", "pair")  # walks have no recurrence
_PARTS = [f"{feature}_{kind}" for kind in EVIDENCE_KINDS for feature in FEATURES]
CONTRIBUTIONS = ("rules", *(part for part in _PARTS if part != "recurrence_walks"))  # to a score


@dataclass(frozen=True)
class FeatureWeights:
    """Weights of the temporal features."""

    recurrence_weight: Floats  # w of eq. 18, for facts with the subject and for others, by relation
    recurrence_bias: Floats  # b of eq. 18, likewise
    order_weight: Floats  # w of eq. 17 for the order, for each pair of `FittedDistributions`
    order_bias: Floats  # b of eq. 17 for the order, for each pair
    pair_weight: Floats  # w of eq. 17 for the pair interval, for each pair
    pair_bias: Floats  # b of eq. 17 for the pair interval, for each pair
    mixing: Floats  # γ of eq. 19-21, by kind of evidence and feature; those of a kind add up to 1
    evidence: Floats  # γ_1, γ_2, γ_3 of eq. 14
    rules: float  # γ_TLR of eq. 16
    features: float  # γ_tfm of eq. 16
    temperature: float  # divisor of scores in training; ranks do not depend on it

    @property
    def factors(self) -> Floats:
        """Product of all γ of each kind of evidence and feature (eq. 14, 16, 19-21)."""
        return self.features * self.evidence[:, None] * self.mixing

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights as arrays by name."""
        return {name: np.asarray(value, np.float64) for name, value in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> FeatureWeights:
        """Read what `to_arrays` returned."""
        names = [field.name for field in fields(cls)]
        relation, n_kinds = (2, np.size(arrays.get("asked", ()))), len(EVIDENCE_KINDS)
        pairs = (np.size(arrays.get("seen", ())),)
        shapes = (*2 * (relation,), *4 * (pairs,), (n_kinds, 3), (n_kinds,), (), (), ())
        check_arrays(arrays, {n: ("f8", s) for n, s in zip(names, shapes, strict=True)})
        saved = (arrays[name] for name in names)
        values: list[Any] = [value if value.ndim else float(value) for value in saved]
        return cls(*values)

    def remap(self, relations: Indices, pairs: Indices) -> FeatureWeights:
        """Return the weights for new relations and pairs, given their old ids; -1 gets any."""
        by_relation = ("recurrence_weight", "recurrence_bias")
        by_pair = ("order_weight", "order_bias", "pair_weight", "pair_bias")
        changed = {name: getattr(self, name)[:, relations] for name in by_relation}
        return replace(self, **changed, **{name: getattr(self, name)[pairs] for name in by_pair})


@dataclass(frozen=True)
class EvidenceProbabilities:
    """The probabilities h of the evidence for candidates: all that scores need but the weights."""

    relation: Ids  # directed relation of the query of each candidate
    recurrence: Floats  # h_rec of each candidate, in its facts with the subject and in its others
    group: Indices  # candidate and kind of each dated piece of evidence: row · 3 + kind, ascending
    pair: Indices  # index of its pair in `FittedDistributions`
    order: Floats  # its h_order
    interval: Floats  # its h_pair


def evidence_probabilities(
    fitted: FittedDistributions, queries: QueryTable, evidence: Evidence
) -> EvidenceProbabilities:
    """Return the probabilities of the evidence for the candidates of queries."""
    relation = queries.directed_relation[evidence.query]
    recurrence = Bernoulli(fitted.recurrence.probability[:, relation].T)
    dated = evidence.dated(queries)
    pair = fitted.indices(dated.kind, dated.query_relation, dated.relation)
    return EvidenceProbabilities(
        relation=relation,
        recurrence=np.exp(recurrence.log_density(recurs(queries, evidence))),
        group=dated.row * len(EVIDENCE_KINDS) + dated.kind,
        pair=pair,
        order=np.exp(fitted.order[pair].log_density(dated.difference > 0)),
        interval=np.exp(fitted.interval[pair].log_density(dated.distance)),
    )


def _by_kind(weight: Floats, bias: Floats, measured: EvidenceProbabilities, h: Floats) -> Floats:
    """Return φ of eq. 17 for each candidate and kind; 0 without evidence."""
    size = len(measured.relation) * len(EVIDENCE_KINDS)
    mass = np.exp(weight[measured.pair])
    above = np.bincount(measured.group, mass * (h + bias[measured.pair]), size)
    below = np.bincount(measured.group, mass, size)
    mean = np.divide(above, below, out=np.zeros(size), where=below > 0)
    return mean.reshape(-1, len(EVIDENCE_KINDS))


@dataclass(frozen=True)
class PaperFeatures:
    """The temporal features of a graph, as in the paper."""

    graph: TemporalGraph  # its train split is the evidence
    walked: Mask  # of each directed relation, those that walks may use, see `walked_relations`
    max_length: int  # of walks
    distributions: FittedDistributions
    limit: int = LIMIT  # most edges to read, see `Gatherer`

    @classmethod
    def fit(
        cls, graph: TemporalGraph, walked: Mask, max_length: int, *, workers: Workers | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> PaperFeatures:  # fmt: skip
        """Fit the distributions to the facts of train in both directions."""
        gatherer = Gatherer(graph, walked, max_length)
        queries, evidence = _answer_evidence(graph, gatherer, workers, progress)
        fitted = FittedDistributions.fit(2 * len(graph.relations), queries, evidence)
        return cls(graph, walked, max_length, fitted)

    def __getstate__(self) -> dict[str, Any]:
        self._gatherer  # noqa: B018 - made once, for all processes that it is sent to
        return vars(self)

    @cached_property
    def _gatherer(self) -> Gatherer:
        return Gatherer(self.graph, self.walked, self.max_length, self.limit)

    def gather(
        self, queries: QueryTable, offsets: Indices, candidate: Ids, workers: Workers | None = None
    ) -> Evidence:
        """Gather the evidence for the candidates of queries, which begin at `offsets`."""
        return self._gatherer(queries, offsets, candidate, workers or Workers())

    def contributions(
        self, weights: FeatureWeights, queries: QueryTable, evidence: Evidence, phi: Floats
    ) -> dict[str, Floats]:
        """Return each of `CONTRIBUTIONS` to the score of each candidate (eq. 14, 16, 19-21)."""
        measured = evidence_probabilities(self.distributions, queries, evidence)
        values = {
            "recurrence": weights.recurrence_weight[:, measured.relation].T * measured.recurrence
            + weights.recurrence_bias[:, measured.relation].T,  # eq. 18
            "order": _by_kind(weights.order_weight, weights.order_bias, measured, measured.order),
            "pair": _by_kind(weights.pair_weight, weights.pair_bias, measured, measured.interval),
        }
        contributions = {"rules": weights.rules * phi}
        for row, kind in enumerate(EVIDENCE_KINDS):
            for column, feature in enumerate(FEATURES):
                name = f"{feature}_{kind}"
                if name in CONTRIBUTIONS:
                    share = weights.mixing[row, column] * weights.evidence[row]
                    contributions[name] = weights.features * share * values[feature][:, row]
        return contributions

    def piece_contributions(
        self, weights: FeatureWeights, queries: QueryTable, evidence: Evidence
    ) -> tuple[DatedEvidence, dict[str, Floats]]:
        """Return the dated evidence, and what each piece of it adds to order and pair."""
        measured = evidence_probabilities(self.distributions, queries, evidence)
        kind = measured.group % len(EVIDENCE_KINDS)
        contributions = {}
        for feature, weight, bias, h in (
            ("order", weights.order_weight, weights.order_bias, measured.order),
            ("pair", weights.pair_weight, weights.pair_bias, measured.interval),
        ):
            mass = np.exp(weight[measured.pair])
            share = mass / np.bincount(measured.group, mass)[measured.group]
            mixing = weights.mixing[kind, FEATURES.index(feature)] * weights.evidence[kind]
            contributions[feature] = weights.features * mixing * share * (h + bias[measured.pair])
        return evidence.dated(queries), contributions

    def score(
        self, weights: FeatureWeights, queries: QueryTable, evidence: Evidence, phi: Floats
    ) -> Floats:
        """Return φ_TILP of each candidate (eq. 16), from φ_TLR and the evidence."""
        contributions = self.contributions(weights, queries, evidence, phi)
        return np.asarray(np.sum(list(contributions.values()), axis=0))

    def score_without_evidence(self, weights: FeatureWeights) -> Floats:
        """Return γ_tfm φ_tfm of a candidate without evidence, for each directed relation."""
        never = np.exp(self.distributions.recurrence.log_density(np.zeros(1, np.bool_)))
        by_kind = weights.recurrence_weight * never + weights.recurrence_bias
        share = weights.evidence * weights.mixing[:, FEATURES.index("recurrence")]
        return np.asarray(weights.features * (share[: len(by_kind)] @ by_kind))


def _answer_evidence(
    graph: TemporalGraph, gather: Gatherer, workers: Workers | None,
    progress: Callable[[float], None] | None,
) -> tuple[QueryTable, Evidence]:  # fmt: skip
    """Return train as queries in both directions, and the evidence for their answers alone."""
    queries = QueryTable.of_facts(graph, np.asarray(graph.rows("train"), np.int64), walked=True)
    offsets = np.arange(len(queries) + 1)
    evidence = gather(queries, offsets, queries.answer, workers or Workers(), progress=progress)
    return queries, evidence


@dataclass(frozen=True)
class FittedPaper:
    """The paper's features with the weights that phase two learned."""

    features: PaperFeatures
    weights: FeatureWeights

    def remap(self, relations: Indices, rules: Indices) -> FittedPaper:
        """Return the same for other relation ids, as `LogLinearWeights.remap`."""
        del rules
        distributions, pairs = self.features.distributions.remap(relations)
        known = relations >= 0
        walked = self.features.walked[np.ix_(relations, relations)] & known[:, None] & known
        features = replace(self.features, walked=walked, distributions=distributions)
        return FittedPaper(features, self.weights.remap(relations, pairs))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all but the graph as arrays by name."""
        features = self.features
        bounds = np.array([features.max_length, features.limit])
        kept = {"walked": features.walked, "bounds": bounds, **features.distributions.to_arrays()}
        return {**kept, **self.weights.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], graph: TemporalGraph) -> FittedPaper:
        """Read what `to_arrays` returned, for a graph of the same relations with dates filled."""
        fitted = FittedDistributions.from_arrays(arrays)
        if fitted.n_directed != 2 * len(graph.relations):
            raise TilpError(
                f"features were fitted for {fitted.n_directed // 2} relations, and the graph has "
                f"{len(graph.relations)}; give them a graph with the same relations"
            )
        shapes = {"walked": ("b1", 2 * (fitted.n_directed,)), "bounds": ("i8", (2,))}
        check_arrays(arrays, shapes)
        walked, (max_length, limit) = arrays["walked"], arrays["bounds"].tolist()
        features = PaperFeatures(graph, walked, max_length, fitted, limit)
        return cls(features, FeatureWeights.from_arrays(arrays))

    def refresh(
        self, graph: TemporalGraph, rules: RuleSet, max_length: int, workers: Workers,
        progress: Callable[[float], None],
    ) -> FittedPaper:  # fmt: skip
        """Fit the distributions again; keep the weights, new pairs get those of unseen ones."""
        walked = walked_relations(graph, rules)
        features = PaperFeatures.fit(graph, walked, max_length, workers=workers, progress=progress)
        new, old = features.distributions, self.features.distributions
        pairs = old.indices(*new.pairs())
        groups = len(old.key) + np.arange(len(new) - len(pairs))
        weights = self.weights.remap(np.arange(new.n_directed), np.concatenate([pairs, groups]))
        return FittedPaper(features, weights)


def walked_relations(graph: TemporalGraph, rules: RuleSet) -> Mask:
    """Return a mask: for each directed relation, the relations in the bodies of its rules."""
    size = len(graph.relations)
    ids = {name: index for index, name in enumerate(graph.relations)}
    walked = np.zeros((2 * size, 2 * size), np.bool_)
    for mined in rules:
        atoms = (mined.rule.head, *mined.rule.body)
        head, *body = (ids[atom.relation] + size * atom.inverse for atom in atoms)
        walked[head, body] = True
    return walked

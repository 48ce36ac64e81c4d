"""Tables for reading temporal features: distributions of training facts, and learned weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats
from tilp._utils.text import percent
from tilp.errors import TilpError
from tilp.features.candidate_counts import COUNT_FEATURES, DEGREE, KIND, POPULARITY
from tilp.features.candidate_history import HISTORY_KINDS, CandidateHistory, fact_edges
from tilp.features.log_linear import DENSE_FEATURES, TERMS, LogLinearWeights
from tilp.features.paper import features as paper
from tilp.features.paper.evidence import EVIDENCE_KINDS
from tilp.features.paper.scorer import in_units
from tilp.graph import TemporalGraph
from tilp.learning import KNOWN_KINDS
from tilp.model.config import ModelSettings
from tilp.model.fitted_model import FittedModel
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.time.durations import Durations, observed_lengths
from tilp.time.imputation import MissingDates
from tilp.types import EvidenceKind, Features, Unit, choose

_PAIR = ("evidence", "query", "other")
_COLUMNS = {
    **dict.fromkeys(
        ("feature", "evidence", "query", "relation", "other", "distribution"), pl.String
    ),
    **dict.fromkeys(("probability", "mean", "deviation", "rate", "mu", "sigma"), pl.Float64),
    "seen": pl.Int64,
    "pooled": pl.Boolean,
    "sentence": pl.String,
}


@dataclass(frozen=True)
class Distributions:
    """Recurrence, TemporalOrder, RelationPairInterval (`features`) and Duration of facts."""

    graph: TemporalGraph
    features: paper.PaperFeatures
    durations: Durations

    @classmethod
    def of(
        cls, graph: TemporalGraph, settings: ModelSettings, fitted: FittedModel, workers: Workers,
        progress: Callable[[float], None] | None = None,
    ) -> Distributions:  # fmt: skip
        """Return those of a model, or those it would have with the paper's features."""
        dated = MissingDates.fit(graph, settings.missing, settings.seed).fill_graph(graph)
        if isinstance(fitted.features, paper.FittedPaper):
            features = replace(fitted.features.features, graph=dated)
        else:
            walked, length = paper.walked_relations(dated, fitted.rules), settings.mining.max_length
            features = paper.PaperFeatures.fit(
                dated, walked, length, workers=workers, progress=progress
            )
        return cls(graph, features, Durations.fit(graph))

    def frame(self) -> pl.DataFrame:
        """Return a row for each distribution, the most often seen of each feature first.

        Columns:
            feature: `recurrence`, `order`, `pair` or `duration`.
            evidence: Where it was seen: in facts `between` the same two entities, in `others` of
                the candidate, or on `walks` to it.
            query: The relation of the query.
            relation: The same, read from the entity that both relations are of: from the
                candidate, and from the subject where walks are the evidence; likewise `other`.
            distribution: Its name.
            probability: Of recurring; of `other` starting after `relation`.
            mean: Of the time between the starts, or of the length; likewise `deviation`.
            rate: Of an exponential; `mu` and `sigma`: of a Gaussian before it is truncated.
            seen: How many facts, pairs or intervals it is fitted to.
            pooled: Whether these were too few, so that those of other relations joined them.
            sentence: All of it in words.
        """
        table = pl.concat([self._pairs_and_recurrence(), self._durations()], how="diagonal")
        order = {"recurrence": 0, "order": 1, "pair": 2, "duration": 3}
        feature = pl.col("feature").replace_strict(order, return_dtype=pl.Int8)
        table = table.sort(feature, -pl.col("seen"), maintain_order=True)
        sentences = pl.Series("sentence", self._sentences(table), dtype=pl.String)
        return table.with_columns(sentences).select(
            pl.col(name).cast(kind) for name, kind in _COLUMNS.items()
        )

    def observed(
        self, *, workers: Workers | None = None, progress: Callable[[float], None] | None = None
    ) -> pl.DataFrame:
        """Return the differences of starts that order and pair interval are fitted to."""
        dated = self.features.observed(workers=workers, progress=progress)
        labels = pl.Series(_directed_labels(self.graph))
        return pl.DataFrame(
            {
                "evidence": pl.Series(EVIDENCE_KINDS).gather(dated.kind),
                "query": labels.gather(dated.query_relation),
                "other": labels.gather(dated.relation),
                "difference": dated.difference,
            }
        )

    def lengths(self, relation: str) -> Floats:
        """Return the lengths of the complete intervals of a relation."""
        relation_ids, lengths = observed_lengths(self.graph)
        selected: Floats = lengths[relation_ids == self.graph.relations.find(relation)]
        return selected

    def _pairs_and_recurrence(self) -> pl.DataFrame:
        table = self.features.distributions.table(self.graph.relations).rename(
            {"relation": "query"}
        )
        labels = _directed_labels(self.graph)
        half = len(labels) // 2
        inverse = dict(zip(labels, labels[half:] + labels[:half], strict=True))
        query, by_walks = pl.col("query"), pl.col("evidence") == EvidenceKind.WALKS.value
        return table.with_columns(
            relation=pl.when(by_walks).then(query).otherwise(query.replace_strict(inverse)),
            mean=pl.coalesce("mean", 1.0 / pl.col("rate")),
            deviation=pl.coalesce("deviation", 1.0 / pl.col("rate")),
        )

    def _durations(self) -> pl.DataFrame:
        table = self.durations.frame().with_columns(deviation=self.durations.deviation)
        return table.filter(pl.col("intervals") > 0).select(
            pl.lit("duration").alias("feature"),
            pl.lit("truncated Gaussian").alias("distribution"),
            pl.col("intervals").alias("seen"),
            *("relation", "mean", "deviation", "mu", "sigma", "pooled"),
        )

    def _sentences(self, table: pl.DataFrame) -> list[str]:
        orders = table.filter(feature="order")
        later = dict(zip(orders.select(_PAIR).iter_rows(), orders["probability"], strict=True))
        return [
            distribution_sentence(
                row, later.get(tuple(row[name] for name in _PAIR)), self.graph.unit
            )
            for row in table.iter_rows(named=True)
        ]


_ALWAYS = 0.9  # from this share of pairs on, only one order is named
_BESIDE = {
    EvidenceKind.BETWEEN.value: " between the same two",
    EvidenceKind.WALKS.value: " on walks to the answer",
}
_COUNTED = {"recurrence": "fact", "order": "pair", "pair": "pair", "duration": "interval"}


def distribution_sentence(row: dict[str, Any], later: float | None, unit: Unit) -> str:
    """Say in words what a distribution is, and what it is fitted to.

    `later` is how often the other relation of a pair starts later.

    >>> row = {"feature": "duration", "evidence": None, "relation": "playsFor", "other": None}
    >>> row |= {"mean": 3.4, "deviation": 2.2, "distribution": "truncated Gaussian"}
    >>> distribution_sentence(row | {"seen": 512, "pooled": False}, None, Unit.YEAR)
    'playsFor lasts 3.4 ± 2.2 years; 512 intervals'
    """
    feature, evidence, relation, other = (
        row[name] for name in ("feature", "evidence", "relation", "other")
    )
    mean, deviation, gaussian = row["mean"], row["deviation"], row["distribution"] != "exponential"
    length = ""
    if mean is not None:
        size = f"{mean:,.1f} ± {deviation:,.1f}" if gaussian else f"on average {mean:,.1f}"
        length = in_units(size, unit)
    other = f"another {other}" if relation == other else other
    where = _BESIDE.get(evidence, "")
    match feature:
        case "recurrence":
            whom = "the same" if evidence == EvidenceKind.BETWEEN else "another"
            share = percent(row["probability"])
            text = f"{relation} recurs, with {whom} entity, in {share} of cases"
        case "order":
            share = percent(row["probability"])
            text = f"{other} starts after {relation}{where} in {share} of cases"
        case "pair":
            assert later is not None
            # Never later, but at the same time perhaps.
            side = "before" if gaussian and mean > 2 * deviation else "at or before"
            if later > 1 - _ALWAYS:
                side = "after" if later >= _ALWAYS else "before or after"
            text = f"{other} starts {length} {side} {relation}{where}"
        case _:
            least = "1" if unit is Unit.INTEGER else f"a {unit.value}"
            lasts = f"less than {least}" if mean < 0.5 else length
            text = f"{relation} lasts {lasts}"
    text += f"; {row['seen']:,} {_COUNTED[feature]}{'' if row['seen'] == 1 else 's'}"
    return f"{text}, too few: pooled with other relations" if row["pooled"] else text


def select_features(
    table: pl.DataFrame, graph: TemporalGraph, relation: str | None, other: str | None,
    evidence: EvidenceKind | str | None, min_seen: int,
) -> pl.DataFrame:  # fmt: skip
    """Select rows of `Distributions.frame`; the arguments are those of `TILP.feature_table`."""
    relations = graph.relations
    if relation is not None:
        directed = relations.find_directed(relation)
        undirected = pl.lit(relations.label(directed % len(relations)))
        is_duration = pl.col("feature") == "duration"
        label = pl.when(is_duration).then(undirected).otherwise(pl.lit(relations.label(directed)))
        table = table.filter(pl.col("relation") == label)
    if other is not None:
        table = table.filter(other=relations.label(relations.find_directed(other)))
    if evidence is not None:
        table = table.filter(evidence=choose(EvidenceKind, evidence, "evidence").value)
    return table.filter(pl.col("seen") >= min_seen)


_WEIGHT_COLUMNS = {
    **dict.fromkeys(("query", "part", "of", "words"), pl.String),
    "weight": pl.Float64,
    "sentence": pl.String,
}
_HISTORIES = {
    HISTORY_KINDS[0]: "of the candidate",
    HISTORY_KINDS[1]: "of the candidate with the subject",
}
_EVIDENCE = {
    EvidenceKind.BETWEEN: "in facts between candidate and subject",
    EvidenceKind.OTHERS: "in the candidate's other facts",
    EvidenceKind.WALKS: "on walks to the candidate",
}
_MEANING = {
    DENSE_FEATURES[0]: "the logarithm of what the rules say together",
    DENSE_FEATURES[1]: "walks of any facts, longer than rules, nearer in time likelier",
    DEGREE: "the logarithm of how many facts the candidate has, against the median",
    POPULARITY: "the logarithm of how often it is an answer of the relation",
    **{f"known {kind}": f"it is a known answer {kind} the query's time" for kind in KNOWN_KINDS},
    KIND: "it is of a kind that the relation never has as an answer",
}


def weight_table(graph: TemporalGraph, fitted: FittedModel, features: Features) -> pl.DataFrame:
    """Return the weights of phase two that are not 0, relation by relation, the strongest first.

    Columns:
        query: The directed relation of the query; null where weights are for all.
        part: Contribution that the weight belongs to; `factor`: what the weights of the part in
            `of` were multiplied by, and already are.
        of: The rule, or the candidate's relation.
        words: The temporal feature of the candidate's fact, such as "starts 3 years before".
        weight: Amount added to the score for each unit of evidence.
        sentence: The row in words.
    """
    if fitted.features is None:
        raise TilpError(
            "the model has rules alone, and learned nothing of features; fit one with "
            "--features full (features='full')"
        )
    return (_paper_table if features is Features.PAPER else _log_linear_table)(graph, fitted)


def _log_linear_table(graph: TemporalGraph, fitted: FittedModel) -> pl.DataFrame:
    weights = cast(LogLinearWeights, fitted.features)
    labels = _directed_labels(graph)
    rows = _column_weights(labels, weights) + _rule_weights(fitted.rules, weights)
    rows += _history_weights(graph, labels, weights)
    order = {label: index for index, label in enumerate(labels)}
    query = pl.col("query").replace_strict(order, return_dtype=pl.Int64)
    return pl.DataFrame(rows, _WEIGHT_COLUMNS, orient="row").sort(query, maintain_order=True)


def _directed_labels(graph: TemporalGraph) -> list[str]:
    return [graph.relations.label(index) for index in range(2 * len(graph.relations))]


def _column_weights(labels: list[str], weights: LogLinearWeights) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for relation, label in enumerate(labels):
        values = [*weights.dense[relation].tolist(), *weights.counts[relation].tolist()]
        for name, weight in zip((*DENSE_FEATURES, *COUNT_FEATURES), values, strict=True):
            if weight:
                sentence = f"{name} ({_MEANING[name]}): {weight:+.2f}"
                rows.append((label, name, None, None, weight, sentence))
        for name, factor in zip(TERMS, weights.terms[relation].tolist(), strict=True):
            sentence = f"{name}: learned weights × {factor:.2f}"
            rows.append((label, "factor", name, None, factor, sentence))
    return rows


def _rule_weights(rules: RuleSet, weights: LogLinearWeights) -> list[tuple[Any, ...]]:
    order = np.argsort(-np.abs(weights.rule), kind="stable")
    rows = []
    for index in order[weights.rule[order] != 0].tolist():
        rule, weight = rules[index].rule, float(weights.rule[index])
        sentence = f"{rule}: {weight:+.2f}"
        rows.append((str(rule.head), "rule evidence", str(rule), None, weight, sentence))
    return rows


def _history_weights(
    graph: TemporalGraph, labels: list[str], weights: LogLinearWeights
) -> list[tuple[Any, ...]]:
    history = CandidateHistory(fact_edges(graph), len(labels), weights.distance_bounds)
    texts = [history.describe(feature, graph.unit) for feature in range(history.n_features)]
    query, group = np.nonzero(weights.history_row >= 0)
    by_row = weights.history[weights.history_row[query, group]]
    row, feature = np.nonzero(by_row)
    weight = by_row[row, feature]
    order = np.argsort(-np.abs(weight), kind="stable")
    row, feature = row[order], feature[order]
    kind, relation = np.divmod(group[row], len(labels))
    columns = (query[row], kind, relation, feature, weight[order])
    rows = []
    for query_id, kind_id, other, text, value in zip(*(c.tolist() for c in columns), strict=True):
        part, of, words = HISTORY_KINDS[kind_id], labels[other], texts[text]
        sentence = f"{of} {_HISTORIES[part]}: {words}: {value:+.2f}"
        rows.append((labels[query_id], part, of, words, value, sentence))
    return rows


def _paper_table(_graph: TemporalGraph, fitted: FittedModel) -> pl.DataFrame:
    """Return γ_TLR, and the products of γ that each feature counts by (eq. 14, 16, 19-21)."""
    weights = cast(paper.FittedPaper, fitted.features).weights
    values = {
        f"{feature}_{kind}": float(weights.factors[row, column])
        for row, kind in enumerate(EVIDENCE_KINDS)
        for column, feature in enumerate(paper.FEATURES)
    }
    values["rules"] = weights.rules
    rows = []
    for term in filter(values.get, paper.CONTRIBUTIONS):
        feature, _, kind = term.partition("_")
        sentence = f"{feature} {_EVIDENCE[EvidenceKind(kind)]}" if kind else feature
        rows.append((None, term, None, None, values[term], sentence))
    return pl.DataFrame(rows, _WEIGHT_COLUMNS, orient="row")

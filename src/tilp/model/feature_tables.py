"""Tables for reading temporal features: distributions of training facts, and learned weights."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import polars as pl

from tilp.errors import TilpError
from tilp.features.candidate_counts import COUNT_FEATURES, DEGREE, KIND, POPULARITY
from tilp.features.candidate_history import HISTORY_KINDS, CandidateHistory, fact_edges
from tilp.features.log_linear import DENSE_FEATURES, TERMS, LogLinearWeights
from tilp.features.paper import features as paper
from tilp.features.paper.evidence import EVIDENCE_KINDS
from tilp.graph import TemporalGraph
from tilp.learning import KNOWN_KINDS
from tilp.model.config import ModelSettings
from tilp.model.fitted_model import FittedModel
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.time.imputation import MissingDates
from tilp.types import EvidenceKind, Features


def distribution_table(
    graph: TemporalGraph, settings: ModelSettings, fitted: FittedModel, workers: Workers
) -> pl.DataFrame:
    """Return the distributions of a model, or those it would have with the paper's features."""
    if isinstance(fitted.features, paper.FittedPaper):
        return fitted.features.features.distributions.table(graph.relations)
    dated = MissingDates.fit(graph, settings.missing, settings.seed).fill_graph(graph)
    walked, length = paper.walked_relations(dated, fitted.rules), settings.mining.max_length
    features = paper.PaperFeatures.fit(dated, walked, length, workers=workers)
    return features.distributions.table(graph.relations)


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

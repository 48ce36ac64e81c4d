"""The temporal distributions of a model's training facts, as a table and as what was observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.features.candidate_history import HISTORY_KINDS, CandidateHistory, fact_edges, unit_name
from tilp.features.describe import (
    count_phrase,
    duration_sentence,
    order_sentence,
    pair_sentence,
    recurrence_sentence,
)
from tilp.features.log_linear import DENSE_FEATURES, LogLinearWeights
from tilp.features.paper.evidence import EVIDENCE_KINDS
from tilp.features.paper.evidence import EVIDENCE_KINDS as EVIDENCE
from tilp.features.paper.features import (
    CONTRIBUTIONS,
    FEATURES,
    FeatureWeights,
    FittedPaper,
    PaperFeatures,
    walked_relations,
)
from tilp.graph import TemporalGraph
from tilp.model.config import ModelSettings
from tilp.model.fit import FittedModel
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.time.durations import Durations, observed_lengths
from tilp.time.imputation import MissingDates
from tilp.types import EvidenceKind, choose

_PAIR = ("evidence", "query", "other")
_COLUMNS = {
    "feature": pl.String,
    "evidence": pl.String,
    "query": pl.String,
    "relation": pl.String,
    "other": pl.String,
    "distribution": pl.String,
    "probability": pl.Float64,
    "mean": pl.Float64,
    "deviation": pl.Float64,
    "rate": pl.Float64,
    "mu": pl.Float64,
    "sigma": pl.Float64,
    "seen": pl.Int64,
    "pooled": pl.Boolean,
    "sentence": pl.String,
}


@dataclass(frozen=True)
class Distributions:
    """Recurrence, TemporalOrder, RelationPairInterval and Duration in training facts.

    Attributes:
        graph: the facts.
        features: the first three.
        durations: the last.
    """

    graph: TemporalGraph
    features: PaperFeatures
    durations: Durations

    @classmethod
    def of(
        cls,
        graph: TemporalGraph,
        settings: ModelSettings,
        fitted: FittedModel,
        workers: Workers,
        progress: Callable[[float], None] | None = None,
    ) -> Distributions:
        """Those that a model has, or else those that it would have with the paper's features.

        Args:
            graph: what the model was fitted to.
            settings: of the model.
            fitted: what was learned.
            workers: do not change the result.
            progress: called with the share that is done.
        """
        settled = MissingDates.fit(graph, settings.missing, settings.seed).fill_graph(graph)
        if isinstance(fitted.features, FittedPaper):
            features = fitted.features.features.with_graph(settled)
        else:
            features = PaperFeatures.fit(
                settled,
                walked_relations(settled, fitted.rules),
                settings.mining.max_length,
                workers=workers,
                progress=progress,
            )
        return cls(graph, features, Durations.fit(graph))

    def frame(self) -> pl.DataFrame:
        """A row for each distribution, the most often seen of each feature first.

        Columns:
            feature: `recurrence`, `order`, `pair` or `duration`.
            evidence: where it was seen: in facts `between` the same two entities, in `others` of
                the candidate, or on `walks` to it.
            query: the relation as it is asked for.
            relation: the same, read from the entity that both relations are of: from the
                candidate, and from the subject where walks are the evidence; likewise `other`.
            distribution: its name.
            probability: of recurring; of `other` starting after `relation`.
            mean: of the time between the starts, or of the length; likewise `deviation`.
            rate: of an exponential; `mu` and `sigma`: of a Gaussian before it is truncated.
            seen: how many facts, pairs or intervals it is fitted to.
            pooled: whether these were too few, and those of other relations were taken as well.
            sentence: all of it in words.
        """
        found = pl.concat([self._pairs_and_recurrence(), self._durations()], how="diagonal")
        place = pl.col("feature").replace_strict(
            {"recurrence": 0, "order": 1, "pair": 2, "duration": 3}, return_dtype=pl.Int8
        )
        found = found.sort(place, -pl.col("seen"), maintain_order=True)
        sentences = pl.Series("sentence", self._sentences(found), dtype=pl.String)
        return found.with_columns(sentences).select(
            pl.col(name).cast(kind) for name, kind in _COLUMNS.items()
        )

    def observed(
        self, *, workers: Workers | None = None, progress: Callable[[float], None] | None = None
    ) -> pl.DataFrame:
        """The differences of starts that order and pair interval are fitted to, one a row.

        Args:
            workers: do not change the result.
            progress: called with the share that is done.
        """
        dated = self.features.observed(workers=workers, progress=progress)
        labels = self._labels()
        return pl.DataFrame(
            {
                "evidence": pl.Series(EVIDENCE_KINDS).gather(dated.kind),
                "query": labels.gather(dated.query_relation),
                "other": labels.gather(dated.relation),
                "difference": dated.difference,
            }
        )

    def lengths(self, relation: str) -> NDArray[np.float64]:
        """The lengths of the complete intervals of a relation."""
        of, length = observed_lengths(self.graph)
        wanted: NDArray[np.float64] = length[of == self.graph.relations.find(relation)]
        return wanted

    def _labels(self) -> pl.Series:
        relations = self.graph.relations
        return pl.Series([relations.label(one) for one in range(2 * len(relations))])

    def _pairs_and_recurrence(self) -> pl.DataFrame:
        table = self.features.table().rename({"relation": "query"})
        labels = self._labels()
        turned = dict(zip(labels, np.roll(labels.to_numpy(), len(labels) // 2), strict=True))
        asked = pl.col("query")
        by_walks = pl.col("evidence") == EvidenceKind.WALKS.value
        return table.with_columns(
            pl.when(by_walks).then(asked).otherwise(asked.replace_strict(turned)).alias("relation"),
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
        unit = self.graph.unit
        found = []
        for row in table.iter_rows(named=True):
            where, both = row["evidence"], (row["relation"], row["other"])
            length = (row["mean"], row["deviation"])
            match row["feature"]:
                case "recurrence":
                    words = recurrence_sentence(where, both[0], row["probability"])
                case "order":
                    words = order_sentence(where, *both, row["probability"])
                case "pair":
                    after = later[where, row["query"], row["other"]]
                    words = pair_sentence(where, *both, after, *length, row["distribution"], unit)
                case _:
                    words = duration_sentence(both[0], *length, unit)
            found.append(f"{words}{count_phrase(row['feature'], row['seen'], row['pooled'])}")
        return found


def select_features(
    table: pl.DataFrame,
    graph: TemporalGraph,
    *,
    relation: str | None = None,
    other: str | None = None,
    evidence: EvidenceKind | str | None = None,
    min_seen: int = 1,
) -> pl.DataFrame:
    """Some rows of `Distributions.frame`.

    Args:
        table: the rows.
        graph: whose relations are named.
        relation: `name`, or `name⁻¹` or `name^-1`; durations have no direction.
        other: likewise; recurrence and duration have none.
        evidence: one kind; durations have none.
        min_seen: how often a distribution was seen at least.

    Raises:
        TilpError: no such relation, with the nearest names, or no such kind of evidence.
    """
    relations = graph.relations
    if relation is not None:
        number = relations.find_directed(relation)
        plain = relations.label(number % len(relations))
        is_duration = pl.col("feature") == "duration"
        wanted = pl.when(is_duration).then(pl.lit(plain)).otherwise(pl.lit(relations.label(number)))
        table = table.filter(pl.col("relation") == wanted)
    if other is not None:
        table = table.filter(other=relations.label(relations.find_directed(other)))
    if evidence is not None:
        table = table.filter(evidence=choose(EvidenceKind, evidence, "evidence").value)
    return table.filter(pl.col("seen") >= min_seen)


_LEARNED_COLUMNS = {
    "query": pl.String,
    "part": pl.String,
    "of": pl.String,
    "words": pl.String,
    "weight": pl.Float64,
    "sentence": pl.String,
}
_WHOSE = {
    HISTORY_KINDS[0]: "of the candidate",
    HISTORY_KINDS[1]: "of the candidate with the subject",
}
_KINDS = {
    EvidenceKind.BETWEEN: "in facts between candidate and subject",
    EvidenceKind.OTHERS: "in the candidate's other facts",
    EvidenceKind.WALKS: "on walks to the candidate",
}
_MEANING = {
    DENSE_FEATURES[0]: "the logarithm of what the rules say together",
    DENSE_FEATURES[1]: "walks of any facts, longer than rules, nearer in time likelier",
}


def learned_weights(graph: TemporalGraph, fitted: FittedModel) -> pl.DataFrame:
    """The weights of phase two that are not 0, relation by relation, the strongest first.

    Columns:
        query: the relation as it is asked for; null where weights hold for all.
        part: of the score that the weight is in; `mixing`: how much of what was learned counts.
        of: the rule, or the candidate's relation, read from it.
        words: what is said of the candidate's fact and the query's time.
        weight: what is added to the score, for each unit of evidence.
        sentence: all of it in words.

    Args:
        graph: what the model was fitted to.
        fitted: what was learned.

    Raises:
        TilpError: the model has no features.
    """
    if fitted.features is None:
        raise TilpError(
            "the model has rules alone, and learned nothing of features; fit one with "
            "--features full (features='full')"
        )
    if isinstance(fitted.features, LogLinearWeights):
        labels = [graph.relations.label(head) for head in range(2 * len(graph.relations))]
        return pl.concat(
            [
                _of_columns(labels, fitted.features),
                _of_rules(fitted.rules, fitted.features),
                _of_facts(graph, labels, fitted.features),
            ]
        ).sort(
            pl.col("query").replace_strict(
                {label: place for place, label in enumerate(labels)}, return_dtype=pl.Int64
            ),
            maintain_order=True,
        )
    return _of_paper(fitted.features.weights)


def _of_columns(labels: list[str], weights: LogLinearWeights) -> pl.DataFrame:
    rows = []
    for head, label in enumerate(labels):
        mixing = float(weights.mixing[head])
        counts = f"{100 * mixing:.0f} %" if mixing else "nothing"
        rows.append((label, "mixing", None, None, mixing, f"{counts} of what was learned counts"))
        for place, name in enumerate(DENSE_FEATURES):
            weight = float(weights.dense[head, place])
            if weight:
                rows.append(
                    (label, name, None, None, weight, f"{name} ({_MEANING[name]}): {weight:+.2f}")
                )
    return pl.DataFrame(rows, _LEARNED_COLUMNS, orient="row")


def _of_rules(rules: RuleSet, weights: LogLinearWeights) -> pl.DataFrame:
    strongest = np.argsort(-np.abs(weights.rule), kind="stable")
    rows = []
    for number in strongest[weights.rule[strongest] != 0].tolist():
        rule, weight = rules[number].rule, float(weights.rule[number])
        words = str(rule)
        rows.append(
            (str(rule.head), "rule evidence", words, None, weight, f"{words}: {weight:+.2f}")
        )
    return pl.DataFrame(rows, _LEARNED_COLUMNS, orient="row")


def _of_facts(graph: TemporalGraph, labels: list[str], weights: LogLinearWeights) -> pl.DataFrame:
    facts = CandidateHistory(fact_edges(graph), len(labels), weights.distance_bounds)
    said = [facts.describe(word, unit_name(graph.unit)) for word in range(facts.n_features)]
    head, group = np.nonzero(weights.history_row >= 0)
    of_row = weights.history[weights.history_row[head, group]]
    row, word = np.nonzero(of_row)
    found = of_row[row, word]
    order = np.argsort(-np.abs(found), kind="stable")
    row, word, found = row[order], word[order], found[order]
    kind, relation = np.divmod(group[row], len(labels))
    names = pl.Series(labels, dtype=pl.String)
    return (
        pl.DataFrame(
            {
                "query": names.gather(head[row]),
                "part": pl.Series(HISTORY_KINDS).gather(kind),
                "of": names.gather(relation),
                "words": pl.Series(said).gather(word),
                "weight": found,
            }
        )
        .with_columns(
            sentence=pl.format(
                "{} {}: {}: {}",
                "of",
                pl.col("part").replace_strict(_WHOSE, return_dtype=pl.String),
                "words",
                pl.Series([f"{one:+.2f}" for one in found], dtype=pl.String),
            )
        )
        .select(pl.col(name).cast(kind) for name, kind in _LEARNED_COLUMNS.items())
    )


def _of_paper(weights: FeatureWeights) -> pl.DataFrame:
    """γ_TLR, and the products of γ that each feature counts by (eq. 14, 16, 19-21)."""
    share = weights.features * weights.evidence[:, None] * weights.mixing
    found = {
        f"{feature}_{kind}": float(share[number, place])
        for number, kind in enumerate(EVIDENCE)
        for place, feature in enumerate(FEATURES)
    }
    found["rules"] = weights.rules
    rows = [
        (None, name, None, None, found[name], _in_words(name))
        for name in CONTRIBUTIONS
        if found[name]
    ]
    return pl.DataFrame(rows, _LEARNED_COLUMNS, orient="row")


def _in_words(term: str) -> str:
    feature, _, kind = term.partition("_")
    return f"{feature} {_KINDS[EvidenceKind(kind)]}" if kind else feature

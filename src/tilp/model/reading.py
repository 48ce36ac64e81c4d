"""The temporal distributions of a model's training facts, as a table and as what was observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.choices import EvidenceKind
from tilp.choosing import choose
from tilp.features.durations import Durations, observed_lengths
from tilp.features.evidence import KINDS
from tilp.features.paper import PaperFeatures
from tilp.features.settling import Settling
from tilp.features.wording import (
    duration_sentence,
    order_sentence,
    pair_sentence,
    recurrence_sentence,
    seen_words,
)
from tilp.graph import TemporalGraph
from tilp.model.fitting import Fitted
from tilp.model.paper_phase import FittedPaper, walked_relations
from tilp.model.settings import ModelSettings
from tilp.parallel import Workers

__all__ = ["Distributions", "select_features"]

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
        fitted: Fitted,
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
        settled = Settling.fit(graph, settings.missing, settings.seed).graph(graph)
        if isinstance(fitted.features, FittedPaper):
            features = fitted.features.features.on(settled)
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
                "evidence": pl.Series(KINDS).gather(dated.kind),
                "query": labels.gather(dated.head),
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
            found.append(f"{words}{seen_words(row['feature'], row['seen'], row['pooled'])}")
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

"""Distributions of the paper's features as a table, to check them by."""

import numpy as np
import polars as pl

from tilp.features.paper import features as paper
from tilp.features.paper.distributions import _MIN_COUNT as MIN_COUNT
from tilp.features.paper.evidence import EVIDENCE_KINDS
from tilp.parallel import Workers
from tilp.time.imputation import MissingDates

COLUMNS = (
    *("feature", "evidence", "relation", "other", "distribution"),
    *("probability", "mean", "deviation", "rate", "seen", "pooled"),
)


def distribution_table(held, relations):
    """Return every fitted distribution, with its parameters and labels.

    Relations are those of queries; others are read from the candidate, or in walking
    direction. Pairs with few observations have the pooled interval.
    """
    labels = pl.Series([relations.label(i) for i in range(held.n_directed)], dtype=pl.String)
    kinds, asked = pl.Series(EVIDENCE_KINDS), np.flatnonzero(held.n_queries)
    recurrence = pl.DataFrame(
        {
            "evidence": kinds.gather(np.repeat([0, 1], len(asked))),
            "relation": labels.gather(np.tile(asked, 2)),
            "probability": held.recurrence.probability[:, asked].reshape(-1),
            "seen": np.tile(held.n_queries[asked], 2),
        }
    )
    kind, query_relation, other = held.pairs()
    interval = held.interval[: len(kind)]
    pairs = pl.DataFrame(
        {
            "evidence": kinds.gather(kind),
            "relation": labels.gather(query_relation),
            "other": labels.gather(other),
            "seen": held.count[: len(kind)],
        }
    )
    order = pairs.with_columns(probability=pl.Series(held.order.probability[: len(kind)]))
    is_gaussian = pl.Series(interval.is_gaussian)
    names = pl.when(is_gaussian).then(pl.lit("Gaussian")).otherwise(pl.lit("exponential"))
    intervals = pairs.with_columns(
        distribution=names,
        mean=pl.when(is_gaussian).then(pl.Series(interval.gaussian.mean)),
        deviation=pl.when(is_gaussian).then(pl.Series(interval.gaussian.deviation)),
        rate=pl.when(~is_gaussian).then(pl.Series(interval.exponential.rate)),
        pooled=pl.col("seen") < MIN_COUNT,
    )
    bernoulli = {"distribution": pl.lit("Bernoulli"), "pooled": pl.lit(False)}
    tables = [
        recurrence.with_columns(feature=pl.lit("recurrence"), **bernoulli),
        order.with_columns(feature=pl.lit("order"), **bernoulli),
        intervals.with_columns(feature=pl.lit("pair")),
    ]
    return pl.concat(tables, how="diagonal").select(COLUMNS)


def table_of_model(model):
    """Return the distributions in a model's training facts, whatever features it uses."""
    if isinstance(model._fitted.features, paper.FittedPaper):
        held = model._fitted.features.features.distributions
        return distribution_table(held, model.graph.relations)
    missing, length = model.settings.missing, model.settings.mining.max_length
    dated = MissingDates.fit(model.graph, missing, model.settings.seed).fill_graph(model.graph)
    walked = paper.walked_relations(dated, model._fitted.rules)
    fitted = paper.PaperFeatures.fit(dated, walked, length, workers=Workers(1))
    return distribution_table(fitted.distributions, dated.relations)

"""Predictions for millions of queries: read, asked and written part by part."""

from tilp.bulk.completing import queries_of
from tilp.bulk.running import BulkSettings, Predicted, predict_to
from tilp.bulk.sources import QueryFile, QueryFrame, QuerySource

__all__ = [
    "BulkSettings",
    "Predicted",
    "QueryFile",
    "QueryFrame",
    "QuerySource",
    "predict_to",
    "queries_of",
]

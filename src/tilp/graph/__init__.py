"""`TemporalGraph`: vocabularies, fact columns, splits and the index that walks read.

Labels become ids here and nowhere else.
"""

from tilp.graph.build import Defect, FactTable, build_graph
from tilp.graph.graph import ESTIMATED, SPLITS, WALKED_ONLY, Fact, StorageLocation, TemporalGraph
from tilp.graph.index import EdgeIndex, PreparedEdges
from tilp.graph.merge import MergedGraph, merge_facts
from tilp.graph.queries import KnownFact, QueryTable, known_facts
from tilp.graph.vocabulary import INVERSE_MARK, Vocabulary

__all__ = [
    "ESTIMATED", "INVERSE_MARK", "SPLITS", "WALKED_ONLY", "Defect", "EdgeIndex", "Fact",
    "FactTable", "KnownFact", "MergedGraph", "PreparedEdges", "QueryTable",
    "StorageLocation", "TemporalGraph", "Vocabulary", "build_graph", "known_facts", "merge_facts",
]  # fmt: skip

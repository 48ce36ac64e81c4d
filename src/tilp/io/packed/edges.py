"""Edges of a packed graph: the training facts in both directions, as walks need them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tilp.io.packed.format import EDGES, PREPARED, ColumnWriter
from tilp.io.packed.workspace import Workspace

_EDGES = """
    SELECT subject AS source, relation, object AS target, fact, start, "end" FROM train UNION ALL
    SELECT object, relation + {n_relations}, subject, fact, start, "end" FROM train
    ORDER BY source, relation, fact
"""
_PAIRS = """
    SELECT any_value(row) FILTER (relation < {n_relations}) AS edge,
        any_value(row) FILTER (relation >= {n_relations}) AS inverse
    FROM edges GROUP BY fact
"""
_INVERSE = """
    SELECT inverse FROM (
        SELECT edge, inverse FROM pairs UNION ALL SELECT inverse, edge FROM pairs
    ) ORDER BY edge
"""


def write_edges(
    workspace: Workspace,
    folder: Path,
    n_entities: int,
    n_relations: int,
    progress: Callable[[float], None],
) -> None:
    """Write the edges of the table `train`, sorted by entity, relation and fact.

    `inverse` is the edge of the same fact in the other direction. `by_rank` has the edges in the
    order of relation, target and edge, and `rank` is where each edge is in it.
    """
    workspace.make("edges", _EDGES.format(n_relations=n_relations))
    workspace.remove("train")
    progress(0.3)
    degrees = np.zeros(n_entities, np.int64)
    files = {name: f"edges.{name}" for name in EDGES} | {name: f"walks.{name}" for name in PREPARED}

    kinds = EDGES | PREPARED
    writers = {
        name: ColumnWriter(folder / f"{file}.npy", kinds[name]) for name, file in files.items()
    }
    for part in workspace.slices("edges"):
        source = part["source"].to_numpy()
        counts = np.bincount(source - source[0])
        degrees[source[0] : source[0] + len(counts)] += counts
        for name in part.columns:
            writers[name].append(part[name].to_numpy())
    writers["offsets"].append(np.append(0, np.cumsum(degrees)))
    progress(0.6)
    workspace.make("pairs", _PAIRS.format(n_relations=n_relations))
    workspace.make("inverse", _INVERSE)
    workspace.make("by_rank", "SELECT row AS by_rank FROM edges ORDER BY relation, target, row")
    workspace.make("rank", "SELECT row AS rank FROM by_rank ORDER BY by_rank")
    for name in ("inverse", "by_rank", "rank"):
        for part in workspace.slices(name):
            writers[name].append(part[name].to_numpy())
    for writer in writers.values():
        writer.close()
    progress(1.0)

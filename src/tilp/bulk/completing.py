"""Queries that ask a relation of everything that has it."""

from __future__ import annotations

import numpy as np
import polars as pl

from tilp.errors import TilpError
from tilp.graph import TemporalGraph, Vocabulary

__all__ = ["queries_of"]


def queries_of(
    graph: TemporalGraph, relation: str, start: str | None = None, end: str | None = None
) -> pl.DataFrame:
    """A query for each subject that train has a fact of a relation of, in the order of entities.

    Of the inverse of a relation, `name⁻¹` or `name^-1`, a query for the subjects of each object.

    Args:
        graph: the facts.
        relation: the name of the relation.
        start: of all queries.
        end: likewise.

    Raises:
        TilpError: no such relation, with the nearest names, or train has no fact of it.
    """
    relations, train = graph.relations, graph.span("train")
    number = relations.find_directed(relation)
    is_inverse = number >= len(relations)
    plain = number % len(relations)
    ends = (graph.object if is_inverse else graph.subject)[train]
    asked = np.unique(ends[graph.relation[train] == plain])
    if not len(asked):
        raise TilpError(
            f"train has no fact of {relations.label(plain)!r}, so there is nothing to ask it of"
        )
    given = _names(graph.entities, asked)
    nothing = pl.repeat(None, len(asked), dtype=pl.String, eager=True)
    return pl.DataFrame(
        {
            "relation": pl.repeat(_names(relations, np.array([plain]))[0], len(asked), eager=True),
            "subject": nothing if is_inverse else given,
            "object": given if is_inverse else nothing,
            "start": pl.repeat(start, len(asked), dtype=pl.String, eager=True),
            "end": pl.repeat(end, len(asked), dtype=pl.String, eager=True),
        }
    )


def _names(names: Vocabulary, numbers: np.ndarray) -> pl.Series:
    """Labels; ids where a label would be taken for something else."""
    labels, ids = names.labels.gather(numbers), names.ids.gather(numbers)
    return labels.zip_with(pl.Series(names.find_all(labels) == numbers), ids)

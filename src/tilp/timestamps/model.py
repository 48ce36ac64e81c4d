"""`TimestampModel`: learned timestamp rules, to be read and to be asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilp._kernels.timestamp_scores import Manner
from tilp.choices import Unit
from tilp.errors import TilpError
from tilp.graph import TemporalGraph, Vocabulary
from tilp.rules import RuleSet
from tilp.timestamps.edges import TimedEdges
from tilp.timestamps.rule_table import RuleTable
from tilp.timestamps.scoring import TimestampScorer

__all__ = ["TimestampModel", "check_relations"]


@dataclass(frozen=True, eq=False, repr=False)
class TimestampModel:
    """What `TimestampRules.fit` found.

    Attributes:
        table: the rules, by head, the most confident first.
        relations: their names.
        unit: what times count.
        facts: of each directed relation, in train, with a date.
        manner: how queries are answered.
    """

    table: RuleTable
    relations: Vocabulary
    unit: Unit
    facts: NDArray[np.int64]
    manner: Manner

    def __repr__(self) -> str:
        lengths, counts = np.unique(self.table.length, return_counts=True)
        listed = ", ".join(
            f"{n:,} of length {length}" for length, n in zip(lengths, counts, strict=True)
        )
        return f"TimestampModel({len(self.table):,} rules: {listed})"

    @cached_property
    def rules(self) -> RuleSet:
        """The rules by relation, the most confident first.

        `fired` counts the distinct bodies that were sampled, `support` those of them whose ends
        the head joins at a later time; `confidence` is their share.
        """
        return self.table.rule_set(self.relations, self.facts)

    def scorer(
        self,
        graph: TemporalGraph,
        evidence: Iterable[str] | str = "train",
        *,
        plain: bool = False,
    ) -> TimestampScorer:
        """What scores the candidates of queries.

        Args:
            graph: the facts; it has the same relations and the same unit of time.
            evidence: the splits whose facts are used, as far as they are dated before a query;
                only train if rules look ahead.
            plain: go through every walk of a rule, as the original does, for comparing times; the
                scores are the same.

        Raises:
            TilpError: the graph has other relations, or another unit of time; or facts that are
                asked for would be evidence of themselves.
        """
        check_relations(graph, self.relations, self.unit)
        edges = TimedEdges.of(graph, evidence)
        if self.manner.ahead and edges.fact.max(initial=0) >= len(graph.rows("train")):
            raise TilpError(
                "rules that look ahead have train alone as evidence: facts of other splits would "
                "be evidence of themselves. Fit with ahead=False to use all that is earlier."
            )
        applied = self.table.applied(2 * len(self.relations), plain=plain)
        return TimestampScorer(edges, applied, self.manner)


def check_relations(graph: TemporalGraph, relations: Vocabulary, unit: Unit) -> None:
    """Refuse a graph that rules were not learned for.

    Raises:
        TilpError: it has other relations, or another unit of time.
    """
    if graph.relations != relations or graph.unit is not unit:
        raise TilpError(
            f"the rules are of {len(relations):,} relations in {unit.value}s, the "
            f"graph has {len(graph.relations):,} in {graph.unit.value}s; use a graph that was "
            "read with the same relations and unit"
        )

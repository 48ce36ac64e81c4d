"""Pictures of groundings: of all in an explanation, or of one that it told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilp.errors import UnknownNameError
from tilp.explanation import Explanation, Grounding, WalkedFact
from tilp.explanation.pictures import draw_grounding
from tilp.graph import TemporalGraph
from tilp.ranking import Query
from tilp.ranking.queries import query_table, read_queries

__all__ = ["add_pictures", "draw_facts"]


def add_pictures(one: Explanation, told: dict[str, Any]) -> None:
    """Give every grounding of an explanation's reasons, and of its fall, a picture, as `svg`.

    Args:
        one: the explanation.
        told: what its `to_json` gave.
    """
    drawn = [
        (grounding, place)
        for reason, shown in zip(one.shown, told["reasons"], strict=True)
        for grounding, place in zip(reason.groundings, shown["groundings"], strict=True)
    ]
    if one.fall is not None:
        drawn.append((one.fall.grounding, told["fall"]["grounding"]))
    for grounding, place in drawn:
        place["svg"] = draw_grounding(grounding, one.query, one.candidate)


def draw_facts(
    graph: TemporalGraph, query: Query, candidate: str, steps: Iterable[tuple[int, bool]]
) -> str:
    """A picture of some facts as the grounding of a candidate.

    Args:
        graph: whose facts.
        query: as it was asked.
        candidate: its name.
        steps: the number of each fact, and whether it is read from object to subject.

    Raises:
        TilpError: an unknown name, a date that cannot be read, or no such fact.
    """
    walked = []
    for number, inverse in steps:
        if number >= len(graph):
            raise UnknownNameError(f"no fact has the number {number}; there are {len(graph):,}")
        walked.append(WalkedFact(number, graph.fact(number), inverse))
    (asked,) = read_queries([query])
    query_table(graph, [asked])  # so that what cannot be asked is not drawn either
    name = graph.entities.label(graph.entities.find(candidate))
    return draw_grounding(Grounding(tuple(walked)), asked, name)

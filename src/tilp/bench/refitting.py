"""Models of data in which a relation became rare: only what that touches is learned anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.bench.jobs import Place, digest_of
from tilp.bench.settings import Case, Rare
from tilp.errors import NoRulesError
from tilp.graph import QueryTable, TemporalGraph
from tilp.model import TILP, load
from tilp.model.update import touched_relations
from tilp.scoring import Scores
from tilp.scoring.scores import ScoreFunction
from tilp.splits.reassign import set_aside
from tilp.types import Walked

__all__ = ["Routed", "kept_model", "refit"]

Make = Callable[[], TILP]
"""Gives the estimator, not fitted yet."""


def kept_model(make: Make, graph: TemporalGraph, place: Place) -> tuple[TILP, Mapping[str, float]]:
    """The model of a graph that several jobs need: as an earlier one left it, or fitted now.

    Returns:
        The model, and the seconds of its stages when it was fitted.
    """
    decided = {"graph": graph.fingerprint(), "settings": make().settings.to_json()}
    digest = digest_of(decided)[:16]
    folder, noted = place.shared / digest, place.shared / f"{digest}.json"
    if folder.exists():
        return load(folder), json.loads(noted.read_text(encoding="utf-8"))
    model = make().fit(graph, folder=place.folder / "whole", progress=place.advance)
    place.shared.mkdir(parents=True, exist_ok=True)
    noted.write_text(json.dumps(model.seconds), encoding="utf-8")
    model.save(folder)
    return model, model.seconds


def refit(
    make: Make, case: Case, rare: Rare, place: Place, scorer: Callable[[TILP], ScoreFunction]
) -> tuple[TILP, ScoreFunction]:
    """A model of what is touched, and a scorer that has the whole's for all else.

    Args:
        make: gives the estimator.
        case: the graphs.
        rare: what was made rare in them.
        place: where the model of the whole is kept.
        scorer: of a model.
    """
    whole, _ = kept_model(make, case.known, place)
    names = [whole.graph.relations.label(one) for one in range(len(whole.graph.relations))]
    wanted = touched_relations(whole.rules(), {names[rare.relation]}, rare.least)
    relations = np.flatnonzero([name in wanted for name in names])
    train = case.learned.span("train")
    others = np.flatnonzero(~np.isin(case.learned.relation[train], relations))
    thinned = set_aside(case.learned, others, Walked.KEPT)
    try:
        model = make().fit(thinned, folder=place.folder / "touched", progress=place.advance)
    except NoRulesError:  # what is left of the touched ones has none: then all is learned anew
        model = make().fit(case.learned, folder=place.folder / "all", progress=place.advance)
        relations = np.arange(len(names))
    heads = np.concatenate([relations, relations + len(names)])
    return model, Routed(heads, scorer(model), scorer(whole))


@dataclass(frozen=True)
class Routed:
    """Queries for some heads are scored by one scorer, those for all others by another.

    Attributes:
        heads: the former, past the last relation the inverse ones.
        theirs: scores them.
        others: scores the others.
    """

    heads: NDArray[np.int64]
    theirs: ScoreFunction
    others: ScoreFunction

    def __call__(self, queries: QueryTable) -> Scores:
        """The scores, in the order of the queries; shares of different queries do not compare."""
        mine = np.isin(queries.directed_relation, self.heads)
        parts = [(self.theirs, np.flatnonzero(mine)), (self.others, np.flatnonzero(~mine))]
        asked = [(scorer, part) for scorer, part in parts if len(part)]
        found = _joined([scorer(queries[part]) for scorer, part in asked])
        return found.take(np.argsort(np.concatenate([part for _, part in asked])))


def _joined(parts: Sequence[Scores]) -> Scores:
    """The scores of several batches as those of one."""

    def both(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    known = all(part.reached is not None for part in parts)
    return Scores(
        np.append(0, np.cumsum(counts)),
        both("candidate"),
        both("score"),
        both("defaults"),
        both("reached") if known else None,
    )

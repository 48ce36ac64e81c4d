"""Models that runs share, and refits of those relations that a rare relation affects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp.bench.jobs import Workspace, digest_of
from tilp.bench.settings import Case, Rare
from tilp.errors import NoRulesError
from tilp.graph import QueryTable, TemporalGraph
from tilp.model import TILP, load
from tilp.model.update import touched_relations
from tilp.scoring import Scores
from tilp.scoring.scores import ScoreFunction
from tilp.splits.reassign import set_aside
from tilp.types import Walked

MakeModel = Callable[[], TILP]  # returns the estimator, not fitted yet


def shared_model(
    make: MakeModel, graph: TemporalGraph, workspace: Workspace
) -> tuple[TILP, Mapping[str, float]]:
    """Return the model of a graph as an earlier job left it, or fit it now.

    Returns:
        The model, and the seconds of each stage when it was fitted.
    """
    decisive = {"graph": graph.fingerprint(), "settings": make().settings.to_json()}
    digest = digest_of(decisive)[:16]
    folder, note = workspace.shared / digest, workspace.shared / f"{digest}.json"
    if folder.exists():
        return load(folder), json.loads(note.read_text(encoding="utf-8"))
    model = make().fit(graph, folder=workspace.folder / "whole", progress=workspace.advance)
    workspace.shared.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps(model.seconds), encoding="utf-8")
    model.save(folder)
    return model, model.seconds


def refit(
    make: MakeModel,
    case: Case,
    rare: Rare,
    workspace: Workspace,
    scorer_of: Callable[[TILP], ScoreFunction],
) -> tuple[TILP, ScoreFunction]:
    """Refit the relations that a rare one affects; score all others with the whole model."""
    whole, _ = shared_model(make, case.known, workspace)
    vocabulary = whole.graph.relations
    names = [vocabulary.label(relation) for relation in range(len(vocabulary))]
    affected = touched_relations(whole.rules(), {names[rare.relation]}, rare.least)
    relations = np.flatnonzero([name in affected for name in names])
    train = case.learned.span("train")
    others = np.flatnonzero(~np.isin(case.learned.relation[train], relations))
    thinned = set_aside(case.learned, others, Walked.KEPT)
    folder, progress = workspace.folder, workspace.advance
    try:
        model = make().fit(thinned, folder=folder / "touched", progress=progress)
    except NoRulesError:  # the affected relations have no rules left: refit everything
        model = make().fit(case.learned, folder=folder / "all", progress=progress)
        relations = np.arange(len(names))
    directed = np.concatenate([relations, relations + len(names)])
    return model, RoutedScorer(directed, scorer_of(model), scorer_of(whole))


@dataclass(frozen=True)
class RoutedScorer:
    """Scores queries for some directed relations by one scorer, and all others by another."""

    relations: NDArray[np.int64]
    theirs: ScoreFunction
    others: ScoreFunction

    def __call__(self, queries: QueryTable) -> Scores:
        """Return the scores in the order of the queries."""
        mask = np.isin(queries.directed_relation, self.relations)
        parts = [(self.theirs, np.flatnonzero(mask)), (self.others, np.flatnonzero(~mask))]
        used = [(scorer, rows) for scorer, rows in parts if len(rows)]
        scores = _join([scorer(queries[rows]) for scorer, rows in used])
        return scores.take(np.argsort(np.concatenate([rows for _, rows in used])))


def _join(parts: Sequence[Scores]) -> Scores:
    """Return the scores of several batches as those of one."""

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    all_reached = all(part.reached is not None for part in parts)
    return Scores(
        np.append(0, np.cumsum(counts)),
        column("candidate"),
        column("score"),
        column("defaults"),
        column("reached") if all_reached else None,
    )

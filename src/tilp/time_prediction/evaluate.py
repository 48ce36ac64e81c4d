"""Measure predicted times: overlap with the true intervals, errors of dates, calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats, Ints
from tilp._utils.random import keyed_sample, keyed_uniform
from tilp.errors import TilpError
from tilp.evaluation.result import resampled_bounds
from tilp.graph import TemporalGraph
from tilp.parallel import Workers
from tilp.time import Interval
from tilp.time_prediction.answers import CREDIBLE, TimePredictor
from tilp.time_prediction.evidence import DateTarget, finite
from tilp.time_prediction.model import Dates, aeiou

_CHUNK = 50  # facts
_DECILES = np.arange(1, 10) / 10
_PITS = ("pit_start", "pit_end")


def interval_metrics(start: int, end: int, true_start: int, true_end: int) -> dict[str, float]:
    """Return gIOU, gaeIOU, TAC and the errors of a predicted interval.

    With inter = min(e, e') - max(s, s') + 1, hull = max(e, e') - min(s, s') + 1 and
    gap = max(0, -inter): gIOU = (1 + IOU - gap / hull) / 2; gaeIOU = inter / hull if they
    overlap, else 1 / ((gap + 1) hull); TAC = (1 / (1 + |Δs|) + 1 / (1 + |Δe|)) / 2.
    """
    inter = min(end, true_end) - max(start, true_start) + 1
    hull = max(end, true_end) - min(start, true_start) + 1
    gap, shared = max(0, -inter), max(0, inter)
    union = (end - start + 1) + (true_end - true_start + 1) - shared
    errors = abs(start - true_start), abs(end - true_end)
    return {
        "giou": (1 + shared / union - gap / hull) / 2,
        "gaeiou": inter / hull if inter > 0 else 1 / ((gap + 1) * hull),
        "tac": (1 / (1 + errors[0]) + 1 / (1 + errors[1])) / 2,
        "mae_start": errors[0],
        "mae_end": errors[1],
        "exact_start": float(errors[0] == 0),
        "exact_end": float(errors[1] == 0),
    }


@dataclass(frozen=True)
class TimeEvaluation:
    """Measures of the predicted times of a split's facts, a row for each."""

    split: str
    rows: pl.DataFrame  # relation, and a column for each metric

    def metrics(self, rows: pl.DataFrame | None = None) -> dict[str, float]:
        """Return the means of all metrics, of all facts or of some."""
        frame = self.rows if rows is None else rows
        means = frame.drop("relation", *_PITS).mean().row(0, named=True)
        for name, shares in _calibration(frame).items():
            means[f"{name}_deviation"] = float(np.abs(shares - _DECILES).max())
        return means

    def to_json(self, *, resamples: int = 1_000, seed: int = 0) -> dict[str, Any]:
        """Return metrics, bootstrap intervals, deciles of the PIT, and metrics by relation."""
        names = [name for name in self.rows.columns if name not in ("relation", *_PITS)]
        low, high = resampled_bounds(self.rows.select(names).to_numpy(), resamples, seed, 0.95)
        groups = self.rows.group_by("relation", maintain_order=True)
        return {
            "split": self.split,
            "facts": len(self.rows),
            "metrics": self.metrics(),
            "intervals": {n: [float(low[i]), float(high[i])] for i, n in enumerate(names)},
            "pit": {name: shares.tolist() for name, shares in _calibration(self.rows).items()},
            "relations": [
                {"relation": name, "facts": len(rows), **self.metrics(rows)}
                for (name,), rows in groups
            ],
        }


def _calibration(rows: pl.DataFrame) -> dict[str, Floats]:
    """Return the shares of facts whose PIT lies below each decile."""
    return {name: (rows[name].to_numpy()[:, None] < _DECILES).mean(axis=0) for name in _PITS}


@dataclass(frozen=True)
class _Measure:
    """Measures the predicted times of facts."""

    predictor: TimePredictor
    known: TemporalGraph
    seed: int

    def __call__(self, rows: Ints) -> list[dict[str, Any]]:
        """Return a row of metrics for each fact."""
        return [self._measure(row) for row in rows.tolist()]

    def _measure(self, row: int) -> dict[str, Any]:
        graph, predictor = self.known, self.predictor
        ids = [int(c[row]) for c in (graph.subject, graph.relation, graph.object)]
        start, end = int(graph.start[row]), int(graph.end[row])
        target = DateTarget.single(*ids)
        joint = predictor.joint(target, Interval())
        chosen = joint.intervals(10)
        starts, ends = np.array([interval[:2] for interval in chosen]).T
        overlap = aeiou(starts, ends, start, end)
        values: dict[str, Any] = {"relation": graph.relations.label(ids[1])}
        values |= {f"aeiou@{k}": float(overlap[:k].max()) for k in (1, 5, 10)}
        values |= interval_metrics(*chosen[0][:2], start, end)
        given = replace(target, start=np.array([start]))
        for side, of, date in (("start", target, start), ("end", given, end)):
            dates, prior = (
                predictor.dates.distributions(of, side == "end", prior=prior)[0]
                for prior in (False, True)
            )
            values |= self._calibration(side, date, dates, prior, row)
        values["aeiou@1_median_interval"] = float(aeiou(*self._median(ids[1]), start, end))
        values["aeiou@1_subject_fact"] = float(aeiou(*self._of_subject(*ids[:2]), start, end))
        return values

    def _calibration(
        self, side: str, date: int, dates: Dates, prior: Dates, row: int
    ) -> dict[str, float]:
        uniform = float(keyed_uniform(self.seed, np.array([row]), np.array([len(side)]))[0])
        values = {f"pit_{side}": dates.below(date) + uniform * dates.at(date)}
        for share in CREDIBLE:
            (low, high), of_prior = dates.credible(share), prior.credible(share)
            name = f"{side}_{100 * share:.0f}"
            values[f"covered_{name}"] = float(low <= date <= high)
            values[f"width_{name}"] = high - low + 1
            values[f"prior_width_{name}"] = of_prior[1] - of_prior[0] + 1
        return values

    def _median(self, relation: int) -> tuple[Any, Any]:
        """Return the relation's median start, and the end after its median length."""
        facts, medians = self.predictor.dates.facts, []
        for values in (facts.starts, facts.lengths):
            of = values.value[values.offsets[relation] : values.offsets[relation + 1]]
            medians.append(int(np.median(of)) if len(of) else 0)
        return np.int64(medians[0]), np.int64(sum(medians))

    def _of_subject(self, subject: int, relation: int) -> tuple[Any, Any]:
        """Return the interval of the subject's fact, of the relation if it has one."""
        facts = self.predictor.dates.facts
        mine = (facts.subject == subject) & finite(facts.start) & finite(facts.end)
        same = mine & (facts.relation == relation)
        rows = np.flatnonzero(same if same.any() else mine)
        if not len(rows):
            return self._median(relation)
        row = rows[np.argsort(facts.start[rows], kind="stable")[len(rows) // 2]]
        return facts.start[row], facts.end[row]


def evaluate_times(
    predictor: TimePredictor, known: TemporalGraph, split: str, workers: Workers, *,
    sample: int | None = None, seed: int = 0, progress: Callable[[float], None] | None = None,
) -> TimeEvaluation:  # fmt: skip
    """Predict the times of a split's facts with two known dates, and measure the predictions.

    Credible intervals and the PIT of the end are given the true start.
    """
    rows = np.asarray(known.rows(split), np.int64)
    rows = rows[finite(known.start[rows]) & finite(known.end[rows])]
    if sample is not None:
        rows = rows[keyed_sample(sample, seed, rows)]
    if not len(rows):
        raise TilpError(f"no fact of {split} has two known dates to measure predictions by")
    chunks, found = np.array_split(rows, -(-len(rows) // _CHUNK)), []
    for part in workers.map(_Measure(predictor, known, seed), chunks):
        found += part
        if progress is not None:
            progress(len(found) / len(rows))
    return TimeEvaluation(split, pl.DataFrame(found))

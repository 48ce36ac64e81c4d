"""Answers to "when": the best intervals, the distributions of their dates, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from tilp._kernels.date_evidence import N_KINDS
from tilp._utils.arrays import Floats, Ints
from tilp._utils.text import percent
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.rules import Phrasings
from tilp.time import UNKNOWN, Interval, format_length, format_time
from tilp.time_prediction.evidence import END_FEATURES, START_FEATURES, DateTarget, finite
from tilp.time_prediction.model import Dates, DatePredictor, JointDates, TimeModel
from tilp.types import Unit
from tilp.viz.html import Markup, bar, element, fragment, table

CREDIBLE = (0.5, 0.8)
_N_STARTS = 40  # most likely starts whose ends are looked at
_SHOWN_BARS = 12
_GAUSS = np.polynomial.legendre.leggauss(32)


@dataclass(frozen=True)
class DateReason:
    """What made a date more or less likely than the relation's other facts do."""

    side: str  # start or end
    sentence: str
    contribution: float  # to the logit of the date
    facts: tuple[int, ...] = ()  # rows of the graph that it rests on


@dataclass(frozen=True)
class TimePrediction:
    """When a fact holds: the best intervals first, distributions of the dates, reasons."""

    subject: str
    relation: str
    object: str
    unit: Unit
    given: Interval  # `UNKNOWN` where a date is sought
    intervals: tuple[tuple[Interval, float], ...]  # each with its probability
    joint: JointDates
    prior: dict[str, float] = field(default_factory=dict)  # of the chosen dates, by side
    reasons: tuple[DateReason, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def start(self) -> Dates:
        """The distribution of the start; a single date if it is given."""
        return self.joint.starts

    @property
    def end(self) -> Dates:
        """The distribution of the end; a single date if it is given."""
        return self.joint.end

    def sought(self) -> Iterator[tuple[str, Dates]]:
        """Yield the sides that were not given, and their distributions."""
        for side in ("start", "end"):
            if getattr(self.given, side) == UNKNOWN:
                yield side, getattr(self, side)

    def credible(self, side: str, share: float = 0.8) -> tuple[int, int]:
        """Return the first and last date of a credible interval, as much left out on each side."""
        dates: Dates = getattr(self, side)
        return dates.quantile(0.5 - share / 2), dates.quantile(0.5 + share / 2)

    def frame(self) -> pl.DataFrame:
        """Return the distributions as a table with the columns side, date, time and probability."""
        frames = [
            pl.DataFrame(
                {
                    "side": [side] * len(dates.time),
                    "date": [format_time(time, self.unit) for time in dates.time.tolist()],
                    "time": dates.time,
                    "probability": dates.probability,
                }
            )
            for side, dates in self.sought()
        ]
        return pl.concat(frames)

    def to_json(self, *, distribution: bool = True) -> dict[str, Any]:
        """Return the answer as plain values, dates as text."""

        def say(time: int) -> str:
            return format_time(time, self.unit)

        sides = {
            side: {
                "most_likely": say(dates.mode),
                "probability": dates.at(dates.mode),
                "credible": {
                    f"{share:.0%}": [say(t) for t in self.credible(side, share)]
                    for share in CREDIBLE
                },
                **(
                    {
                        "distribution": [
                            {"date": say(time), "time": time, "probability": share}
                            for time, share in zip(
                                dates.time.tolist(), dates.probability.tolist(), strict=True
                            )
                            if share >= 1e-4
                        ]
                    }
                    if distribution
                    else {}
                ),
            }
            for side, dates in self.sought()
        }
        return {
            "subject": self.subject,
            "relation": self.relation,
            "object": self.object,
            "given": {"start": say(self.given.start) or None, "end": say(self.given.end) or None},
            "intervals": [
                {"start": say(interval.start), "end": say(interval.end), "probability": share}
                for interval, share in self.intervals
            ],
            **sides,
            "reasons": [vars(reason) for reason in self.reasons],
            "prior": self.prior,
            "notes": list(self.notes),
        }

    def lines(self, n_reasons: int = 5) -> list[str]:
        """Return the answer as lines of text."""
        best, share = self.intervals[0]
        claim = f"{self.subject} {self.relation} {self.object}"
        lines = [f"{claim}: {best.words(self.unit)} ({percent(share)})"]
        for side, dates in self.sought():
            parts = [
                f"{share:.0%} between {' and '.join(format_time(t, self.unit) for t in bounds)}"
                for share in CREDIBLE
                for bounds in [self.credible(side, share)]
            ]
            mode = f"{format_time(dates.mode, self.unit)} ({percent(dates.at(dates.mode))})"
            lines.append(f"{side}: most likely {mode}; {', '.join(parts)}")
        lines += self.notes
        for reason in self.reasons[:n_reasons]:
            lines.append(f"{reason.contribution:+.2f}  {reason.sentence}")
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        parts: list[Markup] = [element("p", line) for line in self.lines()]
        for side, dates in self.sought():
            best = np.sort(np.argsort(-dates.probability, kind="stable")[:_SHOWN_BARS])
            high = float(dates.probability.max())
            rows = [
                (format_time(int(dates.time[i]), self.unit), bar(float(dates.probability[i]), 0.0, high), percent(float(dates.probability[i])))
                for i in best
            ]  # fmt: skip
            parts.append(table((side, "", "probability"), rows, 1))
        return fragment(*parts)


class TimePredictor:
    """Answers questions about the times of facts, with the train split of a graph as evidence."""

    def __init__(self, model: TimeModel, graph: TemporalGraph, phrasings: Phrasings) -> None:
        self.graph, self.phrasings = graph, phrasings
        self.dates = DatePredictor(model, graph)

    def predict(
        self, subject: int, relation: int, object: int, given: Interval, k: int = 10, *,
        reasons: bool = True,
    ) -> TimePrediction:  # fmt: skip
        """Return when a fact holds, its names as ids."""
        if given.start != UNKNOWN and given.end != UNKNOWN:
            raise TilpError("start and end are both given; leave out the one to predict")
        if not len(self.dates.facts.dates):
            raise TilpError("no training fact has a date, so no date can be predicted")
        target = _target(subject, relation, object)
        joint = self.joint(target, given)
        intervals = tuple((Interval(a, b), share) for a, b, share in joint.intervals(k))
        labels = self.graph.entities.label, self.graph.relations.label
        names = labels[0](subject), labels[1](relation), labels[0](object)
        prior, found = {}, []
        best = intervals[0][0]
        for side in ("start", "end") if reasons else ():
            if getattr(given, side) == UNKNOWN:
                prior[side], of_side = self._reasons(target, side, best)
                found += of_side
        return TimePrediction(
            *names, self.graph.unit, given, intervals, joint, prior,
            tuple(sorted(found, key=lambda reason: -abs(reason.contribution))),
            tuple(self._notes(subject, relation, object)),
        )  # fmt: skip

    def joint(self, target: DateTarget, given: Interval, *, prior: bool = False) -> JointDates:
        """Return the distribution over intervals of one fact."""
        dates = self.dates
        if finite(np.array([given.start]))[0]:
            starts = Dates(np.array([given.start]), np.ones(1))
        else:
            starts = dates.starts(target, prior=prior)[0]
        if given.end != UNKNOWN:
            mask = starts.time <= given.end
            if not mask.any():
                mask = starts.time == starts.time.min()
            starts = Dates(starts.time[mask], starts.probability[mask])
        order = np.argsort(-starts.probability, kind="stable")
        if given.end != UNKNOWN:  # the length matters as much as the start: take near ones too
            near = np.argsort(given.end - starts.time, kind="stable")[:_N_STARTS]
            order = np.union1d(order[:_N_STARTS], near)
        best = np.sort(order[:_N_STARTS] if given.end == UNKNOWN else order)
        share = starts.probability[best]
        of_starts = target[np.zeros(len(best), np.int64)].with_starts(starts.time[best])
        also = given.end if finite(np.array([given.end]))[0] else None
        ends = dates.ends(of_starts, prior=prior, also=also)
        if given.end != UNKNOWN:
            likely = np.array([1 - e.below(dates.facts.now) if also is None else e.at(also) for e in ends])
            share = share * np.maximum(likely, 1e-300)
            if also is not None:
                ends = [Dates(np.array([also]), np.ones(1))] * len(ends)
        return JointDates(Dates(starts.time[best], share / share.sum()), tuple(ends))

    def _notes(self, subject: int, relation: int, object: int) -> Iterator[str]:
        facts, name = self.dates.facts, self.graph.relations.label(relation)
        for entity in dict.fromkeys((subject, object)):
            if facts.runs[0].offsets[entity] == facts.runs[0].offsets[entity + 1]:
                label = self.graph.entities.label(entity)
                yield f"No dated fact of {label} is known: it adds nothing to the other evidence."
        n_starts = int(np.diff(facts.starts.offsets)[relation])
        if not len(self.dates.model.start[relation].group):
            yield (
                f"{name} has {n_starts:,} dated facts in train, too few to learn from: its dates "
                "follow those of its few facts and of all relations together."
            )

    def _reasons(
        self, target: DateTarget, side: str, best: Interval
    ) -> tuple[float, list[DateReason]]:
        """Return the prior of the chosen date, and what adds up from its logit to the answer's.

        The evidence is faded in evenly, and each part gets what it adds to the logit on the way
        (Aumann-Shapley), so that the order of the parts does not matter.
        """
        of_end = side == "end"
        if of_end:
            target = target.with_starts(np.array([best.start]))
        chosen = best.end if of_end else best.start
        times = self.dates.candidates(target, of_end)[0]
        at = int(np.searchsorted(times, chosen))
        offsets = np.array([0, len(times)])
        parts, weights = self.dates.table(target, offsets, times, of_end)
        n_groups = len(parts.row)
        bins = parts.bins.reshape(len(times), n_groups)
        change = weights.dense - np.eye(1, len(weights.dense))[0]
        columns = np.column_stack([parts.dense * change, weights.sparse[parts.row, bins]])
        prior = parts.dense[:, 0]
        amounts = np.zeros(columns.shape[1])
        total = columns.sum(axis=1)
        for node, share in zip(*_GAUSS, strict=True):
            score = prior + (node + 1) / 2 * total
            others = np.exp(score - score.max())
            others[at] = 0.0
            mean = others @ columns / max(others.sum(), 1e-300)
            amounts += share / 2 * (columns[at] - mean)
        likely = np.exp(prior - prior.max())
        names = END_FEATURES if of_end else START_FEATURES
        found = [
            DateReason(side, f"How the {name} spread.", float(amount))
            for name, amount in zip(names, amounts, strict=False)
        ]
        n_directed = self.dates.facts.n_directed
        kind, directed = np.divmod(weights.group, n_directed)
        sources = kind // N_KINDS
        amounts = amounts[len(names) :]
        for source, relation in dict.fromkeys(zip(sources.tolist(), directed.tolist(), strict=True)):
            of_run = (sources == source) & (directed == relation)
            found.append(
                self._run_reason(target, side, chosen, source, relation, float(amounts[of_run].sum()))
            )
        return float(likely[at] / likely.sum()), found

    def _run_reason(
        self, target: DateTarget, side: str, chosen: int, source: int, relation: int, amount: float
    ) -> DateReason:
        """Word the evidence of the facts of one relation by the nearest of them."""
        facts, graph = self.dates.facts, self.graph
        row, what, distance = facts.nearest(target, source, relation, chosen)
        fact = graph.fact(row)
        said = self.phrasings.clause(fact.relation, fact.subject, fact.object)
        when = fact.interval.words(graph.unit)
        lies = "the same time as"
        if distance:
            lies = f"{format_length(abs(distance), graph.unit)} {'after' if distance > 0 else 'before'}"
        date = format_time(chosen, graph.unit)
        sentence = f"{said} {when}: the {side} {date} is {lies} its {what}."
        return DateReason(side, sentence, amount, (row,))


def _target(subject: int, relation: int, object: int) -> DateTarget:
    ids = (np.array([value], np.int64) for value in (subject, relation, object))
    none = np.array([UNKNOWN])
    return DateTarget(*ids, np.array([-1]), none, none)

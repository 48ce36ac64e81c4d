"""Answers to "when": the best intervals, the distributions of their dates, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import logit

from tilp._kernels.date_evidence import N_KINDS
from tilp._utils.text import percent
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.rules import Phrasings
from tilp.scoring import Query
from tilp.scoring.queries import QueryColumns
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, Interval, format_length, format_time
from tilp.time.imputation import with_estimates
from tilp.time_prediction.evidence import END_FEATURES, START_FEATURES, DateTarget, finite
from tilp.time_prediction.model import DatePredictor, Dates, JointDates, TimeModel
from tilp.types import Unit
from tilp.viz.html import bar, element, fragment, table

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
    prior: dict[str, float]  # of the chosen dates, by side
    reasons: tuple[DateReason, ...]  # the strongest first
    notes: tuple[str, ...]

    @property
    def distributions(self) -> dict[str, Dates]:
        """The distributions of the dates that are sought, by side."""
        both = {"start": self.joint.starts, "end": self.joint.end}
        return {side: dates for side, dates in both.items() if getattr(self.given, side) == UNKNOWN}

    def frame(self) -> pl.DataFrame:
        """Return the distributions as a table with the columns side, date, time and probability."""
        rows = [
            (side, format_time(time, self.unit), time, share)
            for side, dates in self.distributions.items()
            for time, share in zip(dates.time.tolist(), dates.probability.tolist(), strict=True)
        ]
        return pl.DataFrame(rows, ["side", "date", "time", "probability"], orient="row")

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain values, dates as text."""
        sides = {}
        for side, dates in self.distributions.items():
            bounds = {f"{share:.0%}": self._say(*dates.credible(share)) for share in CREDIBLE}
            rows = self.frame().filter((pl.col("side") == side) & (pl.col("probability") >= 1e-4))
            sides[side] = {
                "most_likely": format_time(dates.mode, self.unit), "credible": bounds,
                "distribution": rows.drop("side").to_dicts(),
            }  # fmt: skip
        intervals = [(*self.dates(interval), share) for interval, share in self.intervals]
        keys = ("start", "end", "probability")
        return {
            **{name: getattr(self, name) for name in ("subject", "relation", "object", "prior")},
            "given": dict(zip(keys, self.dates(self.given), strict=False)),
            "intervals": [dict(zip(keys, row, strict=True)) for row in intervals],
            **sides,
            "reasons": [asdict(reason) for reason in self.reasons],
            "notes": list(self.notes),
        }

    def dates(self, interval: Interval) -> list[str]:
        """Return start and end of an interval as text."""
        return self._say(interval.start, interval.end)

    def _say(self, *times: int) -> list[str]:
        return [format_time(time, self.unit) for time in times]

    def lines(self, n_reasons: int = 5) -> list[str]:
        """Return the answer as lines of text, with the strongest reasons."""
        best, share = self.intervals[0]
        claim = f"{self.subject} {self.relation} {self.object}"
        lines = [f"{claim}: {best.words(self.unit)} ({percent(share)})"]
        for side, dates in self.distributions.items():
            bounds = [
                f"{share:.0%} between {' and '.join(self._say(*dates.credible(share)))}"
                for share in CREDIBLE
            ]
            mode = f"{self._say(dates.mode)[0]} ({percent(dates.at(dates.mode))})"
            lines.append(f"{side}: most likely {mode}; {', '.join(bounds)}")
        strongest = self.reasons[:n_reasons]
        return [*lines, *self.notes, *(f"{r.contribution:+.2f}  {r.sentence}" for r in strongest)]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        parts = [element("p", line) for line in self.lines()]
        for (side,), rows in self.frame().group_by("side", maintain_order=True):
            best = rows.top_k(_SHOWN_BARS, by="probability").sort("time")
            high = float(best["probability"].max() or 1.0)  # type: ignore[arg-type]
            cells = [
                (row["date"], bar(row["probability"], 0.0, high), percent(row["probability"]))
                for row in best.iter_rows(named=True)
            ]
            parts.append(table((str(side), "", "probability"), cells, 1))
        return fragment(*parts)


class TimePredictor:
    """Answers questions about the times of facts, with the train split of a graph as evidence."""

    def __init__(self, model: TimeModel, graph: TemporalGraph, phrasings: Phrasings) -> None:
        self.graph, self.phrasings = graph, phrasings
        self.dates = DatePredictor(model, graph)

    def ask(self, query: Query, k: int = 10, *, reasons: bool = True) -> TimePrediction:
        """Return when a fact holds, given by name with a start or an end or none."""
        graph = self.graph
        if not query.subject or not query.object or k < 1:
            raise TilpError("a question about time has a subject, an object, and k of at least 1")
        given = query.interval(graph.unit)
        subject, object_ = (graph.entities.find(name) for name in (query.subject, query.object))
        relation = graph.relations.find(str(query.relation))
        return self.predict(subject, relation, object_, given, k, reasons=reasons)

    def holds(self, query: Query, at: str | int) -> float:
        """Return the probability that a fact holds at some time of a date."""
        span = Query(query.relation, start=at, end=at).interval(self.graph.unit)
        if UNKNOWN in (span.start, span.end):
            raise TilpError("give the date that the fact may hold at")
        given = query.interval(self.graph.unit)
        if given.is_known:
            return float(given.start <= span.end and span.start <= given.end)
        return self.ask(query, 1, reasons=False).joint.holds(span.start, span.end)

    def table(self, queries: QueryColumns, k: int, *, skip: bool, first: int = 0) -> pl.DataFrame:
        """Return a row for each question and interval, with its credible bounds.

        An invalid question is an error, or if they are to be skipped, a row with the reason.
        """
        bounds = [
            f"{side}_{share:.0%}_{edge}".replace("%", "")
            for side in ("start", "end")
            for share in CREDIBLE
            for edge in ("from", "to")
        ]
        rows = []
        for row in range(len(queries)):
            query = queries.query(row)
            asked = {"query": first + row, **queries.text.row(row, named=True)}
            try:
                answer = self.ask(query, k, reasons=False)
            except TilpError as error:
                if not skip:
                    raise TilpError(f"query {first + row + 1}, {query}: {error}") from error
                rows.append({**asked, "note": str(error)})
                continue
            both = (answer.joint.starts, answer.joint.end)
            times = [t for dates in both for share in CREDIBLE for t in dates.credible(share)]
            said = dict(zip(bounds, answer._say(*times), strict=True))
            note = " ".join(answer.notes)
            for rank, (interval, share) in enumerate(answer.intervals, start=1):
                dates = dict(zip(("start", "end"), answer.dates(interval), strict=True))
                found = {"rank": rank, **dates, "probability": share}
                rows.append({**asked, **found, **said, "note": note})
        texts = ("subject", "relation", "object", "start", "end", *bounds, "note")
        schema = {"query": pl.Int64, "rank": pl.Int64, "probability": pl.Float64}
        return pl.DataFrame(rows, {**schema, **dict.fromkeys(texts, pl.String)})

    def impute(self, graph: TemporalGraph) -> tuple[TemporalGraph, pl.DataFrame]:
        """Return a graph with lone missing dates predicted, and each with its 80 % interval.

        A date stays missing where train has no fact of the relation with a known length.
        """
        start, end = graph.start.copy(), graph.end.copy()
        entities = self.graph.entities.find_all(graph.entities.ids)
        relations = self.graph.relations.find_all(graph.relations.ids)
        n_lengths = np.diff(self.dates.facts.lengths.offsets)
        rows = []
        for row in np.flatnonzero(finite(start) != finite(end)).tolist():
            given = Interval(int(start[row]), int(end[row]))
            ids = entities[graph.subject[row]], entities[graph.object[row]]
            relation = relations[graph.relation[row]]
            if given.is_known or min(*ids, relation) < 0 or not n_lengths[relation]:
                continue
            subject, object_ = map(int, ids)
            answer = self.predict(subject, int(relation), object_, given, 1, reasons=False)
            ((side, dates),) = answer.distributions.items()
            time = getattr(answer.intervals[0][0], side)
            (start if side == "start" else end)[row] = time
            rows.append((row, side, *answer._say(time, *dates.credible(0.8))))
        schema = ["fact", "side", "date", "from", "to"]
        return with_estimates(graph, start, end), pl.DataFrame(rows, schema, orient="row")

    def predict(
        self, subject: int, relation: int, object: int, given: Interval, k: int = 10, *,
        reasons: bool = True,
    ) -> TimePrediction:  # fmt: skip
        """Return when a fact holds, its names as ids."""
        if given.is_known:
            raise TilpError("start and end are both given; leave out the one to predict")
        if not len(self.dates.facts.dates):
            raise TilpError("no training fact has a date, so no date can be predicted")
        target = DateTarget.single(subject, relation, object)
        joint = self.joint(target, given)
        intervals = tuple((Interval(a, b), share) for a, b, share in joint.intervals(k))
        label = self.graph.entities.label
        names = label(subject), self.graph.relations.label(relation), label(object)
        prior, found = {}, []
        for side in ("start", "end") if reasons else ():
            if getattr(given, side) == UNKNOWN:
                prior[side], of_side = self._reasons(target, side, intervals[0][0])
                found += of_side
        if reasons and given.end != UNKNOWN:  # the reasons so far are for the start alone
            chosen = intervals[0][0].start
            without = self.dates.distributions(target, of_end=False)[0].at(chosen)
            amount = float(logit(joint.starts.at(chosen)) - logit(without))
            end = format_time(given.end, self.graph.unit)
            found.append(
                DateReason("start", f"The given end {end}: so long do facts last.", amount)
            )
        strongest = tuple(sorted(found, key=lambda reason: -abs(reason.contribution)))
        notes = tuple(self._notes(subject, relation, object))
        unit = self.graph.unit
        return TimePrediction(*names, unit, given, intervals, joint, prior, strongest, notes)

    def joint(self, target: DateTarget, given: Interval, *, prior: bool = False) -> JointDates:
        """Return the distribution over intervals of one fact."""
        dates, has_end = self.dates, given.end != UNKNOWN
        also = None if given.end in (UNKNOWN, OPEN_END) else given.end
        if given.start not in (UNKNOWN, OPEN_START):
            starts = Dates(np.array([given.start]), np.ones(1))
        else:
            starts = dates.distributions(target, of_end=False, prior=prior)[0]
        best = np.argsort(-starts.probability, kind="stable")[:_N_STARTS]
        if also is not None:  # the length matters as much as the start: take near ones, too
            latest = int(np.searchsorted(starts.time, also, side="right"))
            best = np.union1d(best[best < latest], np.arange(max(latest - _N_STARTS, 0), latest))
            best = best if len(best) else np.zeros(1, np.int64)
        best = np.sort(best)
        share = starts.probability[best]
        of_starts = replace(target[np.zeros(len(best), np.int64)], start=starts.time[best])
        ends = dates.distributions(of_starts, of_end=True, prior=prior, also=also)
        if has_end:
            now = dates.facts.now
            likely = [1 - each.below(now) if also is None else each.at(also) for each in ends]
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
            target = replace(target, start=np.array([best.start]))
        chosen = best.end if of_end else best.start
        times = self.dates.candidates(target, of_end)[0]
        at = int(np.searchsorted(times, chosen))
        parts, weights = self.dates.table(target, (np.array([0, len(times)]), times), of_end)
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
        for source, relation in np.unique(np.stack([sources, directed], axis=1), axis=0).tolist():
            amount = float(amounts[(sources == source) & (directed == relation)].sum())
            found.append(self._run_reason(target, side, chosen, source, relation, amount))
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
            side_of = "after" if distance > 0 else "before"
            lies = f"{format_length(abs(distance), graph.unit)} {side_of}"
        date = format_time(chosen, graph.unit)
        sentence = f"{said} {when}: the {side} {date} is {lies} its {what}."
        return DateReason(side, sentence, amount, (row,))

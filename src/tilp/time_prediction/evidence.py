"""Evidence for dates: dated facts of subject, object and both, and how dates spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilp._kernels import date_evidence as kernels
from tilp._utils.arrays import ColumnTable, Floats, Ints, Mask
from tilp.graph import TemporalGraph
from tilp.time import OPEN_END, OPEN_START, UNKNOWN

START_FEATURES = ("relation's starts", "object's starts", "subject's starts")
END_FEATURES = ("relation's lengths", "relation's ends", "object's lengths", "subject's lengths")
_DENSE_SPAN = 1_000  # time points of the usual range that are all candidates
_MAX_DATES, _MAX_LENGTHS = 4_096, 256
_STRENGTH = 4.0  # facts that a coarser estimate of a density counts for
_TIME_SPANS = np.array([0.0, 1 / 400, 1 / 60])  # widths of windows, as shares of the usual range
_LENGTH_BASE, _LENGTH_RATE = np.array([0, 1, 2]), np.array([0.0, 0.02, 0.2])


def finite(time: Ints) -> Mask:
    """Return which dates are known and not open."""
    return (time > OPEN_START) & (time < OPEN_END)


@dataclass(frozen=True)
class DateTarget(ColumnTable):
    """Facts whose date is sought: names as ids, the fact to leave out (-1: none), its dates."""

    subject: Ints
    relation: Ints
    object: Ints
    fact: Ints
    start: Ints  # the given one, if the end is sought
    end: Ints

    @classmethod
    def single(cls, subject: int, relation: int, object: int) -> DateTarget:
        """Return the target of one fact without dates."""
        values = (subject, relation, object, -1, UNKNOWN, UNKNOWN)
        return cls(*(np.array([value], np.int64) for value in values))


@dataclass(frozen=True)
class Values:
    """Values by code, ascending within each."""

    offsets: Ints
    value: Ints

    @classmethod
    def of(cls, code: Ints, n_codes: int, value: Ints) -> Values:
        """Sort values by their codes."""
        order = np.lexsort((value, code))
        return cls(np.append(0, np.cumsum(np.bincount(code, minlength=n_codes))), value[order])

    def log_density(
        self, code: Ints, at: tuple[Ints, Ints], own: Ints, has_own: Mask, base: Ints,
        rate: Floats, background: Floats,
    ) -> Floats:  # fmt: skip
        """Return the log density of each query's values at wanted ones, smoothed step by step.

        `at` holds the offsets of each query's wanted values, and these. The estimate of a window
        falls back on that of the next wider one, the widest on the background. Code -1 has no
        values. A query's own value does not count.
        """
        begin, end = (np.where(code >= 0, self.offsets[code + i], 0) for i in (0, 1))
        counts = kernels.count_near(self.value, begin, end, *at, own, has_own, base, rate)
        total = np.repeat(end - begin - (has_own & (code >= 0)), np.diff(at[0]))
        density = background
        for index in reversed(range(len(base))):
            size = 2 * (base[index] + (rate[index] * np.abs(at[1])).astype(np.int64)) + 1
            density = (counts[:, index] / size + _STRENGTH * density) / (total + _STRENGTH)
        return np.log(density)


class DatedFacts:
    """The dated facts of a graph's train split, as evidence for other dates."""

    def __init__(self, graph: TemporalGraph) -> None:
        train, estimated = graph.span("train"), graph.estimated[graph.span("train")]
        self.graph, self.n_relations = graph, len(graph.relations)
        self.n_directed, n_entities = 2 * self.n_relations, len(graph.entities)
        columns = (graph.subject, graph.relation, graph.object)
        subject, self.relation, object_ = (c[train].astype(np.int64) for c in columns)
        self.subject, self.object, relation = subject, object_, self.relation
        self.start = np.where(estimated & 1, UNKNOWN, graph.start[train])
        self.end = np.where(estimated & 2, UNKNOWN, graph.end[train])
        both = [np.tile(c, 2) for c in (np.arange(len(relation)), self.start, self.end)]
        directed = np.concatenate([relation, relation + self.n_relations])
        ends = np.concatenate([subject, object_])
        entity, self._codes = self._make_runs(ends, n_entities, directed, both)
        pairs = ends * n_entities + np.concatenate([object_, subject])
        self._pairs, key = np.unique(pairs, return_inverse=True)
        pair, _ = self._make_runs(key, len(self._pairs), directed, both)
        self.runs = (entity, entity, pair)
        has_start, has_end = finite(self.start), finite(self.end)
        whole, size = has_start & has_end, self.n_relations
        self.starts = Values.of(relation[has_start], size, self.start[has_start])
        self.ends = Values.of(relation[has_end], size, self.end[has_end])
        length = self.end[whole] - self.start[whole]
        self.lengths = Values.of(relation[whole], size, length)
        run = np.searchsorted(self._codes, (ends * self.n_directed + directed)[np.tile(whole, 2)])
        self._run_lengths = Values.of(run, len(self._codes), np.tile(length, 2))
        self.now = int(self.start[has_start].max(initial=0))
        times = np.concatenate([self.start[has_start], self.end[has_end]])
        self.dates = _candidate_dates(times)
        low, high = _quantiles(times, 0.05, 0.95)
        self.span = float(max(high - low, 1))
        self.widths = np.ceil(_TIME_SPANS * self.span).astype(np.int64)

    def _make_runs(
        self, key: Ints, n_keys: int, relation: Ints, facts: Sequence[Ints]
    ) -> tuple[kernels.DateRuns, Ints]:
        """Sort dates by key and relation; return also the code of each run, ascending."""
        fact, *dates = facts
        code = key * self.n_directed + relation
        codes = np.unique(code[finite(dates[0]) | finite(dates[1])])
        columns = []
        for time in dates:
            rows = np.flatnonzero(finite(time))
            rows = rows[np.lexsort((fact[rows], time[rows], code[rows]))]
            bounds = np.append(np.searchsorted(code[rows], codes), len(rows))
            columns += [bounds, time[rows], fact[rows]]
        offsets = np.searchsorted(codes, np.arange(n_keys + 1) * self.n_directed)
        return kernels.DateRuns(offsets, codes % self.n_directed, *columns), codes

    def keys(self, target: DateTarget) -> Ints:
        """Return the keys of subject, object and both in the runs, -1 for none."""
        known = (target.subject >= 0) & (target.object >= 0)
        pair = np.where(known, target.subject * len(self.graph.entities) + target.object, -1)
        return np.stack([target.subject, target.object, _find(self._pairs, pair)], axis=1)

    def bins(
        self, target: DateTarget, at: tuple[Ints, Ints], edges: Ints, of_end: bool, drop: Mask
    ) -> tuple[Ints, Ints, Ints]:
        """Bin the distances of candidate dates to dated facts, as `fill_bins` does."""
        end = np.where(finite(target.end), target.end, OPEN_END)
        queries = kernels.DateQueries(
            self.keys(target), target.relation, target.fact, target.start, end, drop, *at
        )
        return kernels.fill_bins(queries, self.runs, self.n_directed, edges, of_end, self.start)

    def nearest(
        self, target: DateTarget, source: int, relation: int, time: int
    ) -> tuple[int, str, int]:
        """Return the fact of a run with the date nearest to a time, which date, and how far."""
        key, runs = int(self.keys(target)[0, source]), self.runs[source]
        low, high = runs.offsets[key : key + 2]
        run = low + np.searchsorted(runs.relation[low:high], relation)
        found = []
        for what in ("start", "end"):
            rows = slice(*getattr(runs, f"{what}_offsets")[run : run + 2])
            dates, facts = getattr(runs, what)[rows], getattr(runs, f"{what}_fact")[rows]
            if len(dates):
                at = int(np.abs(dates - time).argmin())
                found.append((int(facts[at]), what, time - int(dates[at])))
        return min(found, key=lambda each: abs(each[2]))

    def features(self, target: DateTarget, at: tuple[Ints, Ints], of_end: bool) -> Floats:
        """Return the dense features of candidates: `START_FEATURES` or `END_FEATURES`.

        Densities of the object's and the subject's facts are relative to the relation's.
        """
        time, entity = at[1], self.runs[0]
        flat = np.full(len(time), 1 / self.span)
        windows = self.widths, np.zeros(len(self.widths))
        has_own = target.fact >= 0
        if not of_end:
            shared, values = (at, target.start, has_own, *windows), self.starts
            of_runs, others = Values(entity.start_offsets, entity.start), []
        else:
            has_own &= finite(target.end)
            length = time - np.repeat(target.start, np.diff(at[0]))
            own, widths = target.end - target.start, (_LENGTH_BASE, _LENGTH_RATE)
            others = [
                self.ends.log_density(target.relation, at, target.end, has_own, *windows, flat)
            ]
            shared, values = ((at[0], length), own, has_own, *widths), self.lengths
            of_runs, flat = self._run_lengths, 0.1 / (1.0 + np.abs(length))
        base = values.log_density(target.relation, *shared, flat)
        for of, inverse in ((target.object, self.n_relations), (target.subject, 0)):
            code = np.where(of >= 0, of * self.n_directed + target.relation + inverse, -1)
            run = _find(self._codes, code)
            others.append(of_runs.log_density(run, *shared, np.exp(base)) - base)
        return np.stack([base, *others], axis=1)

    def support(self, relation: int, of_end: bool) -> tuple[Ints, Floats, int]:
        """Return usual dates of a relation, or lengths, their shares, and the longest length."""
        support, horizon = self.dates, 0
        if of_end:
            bounds = self.lengths.offsets[relation : relation + 2]
            lengths = self.lengths.value[slice(*bounds)]
            horizon = int(1.2 * lengths.max(initial=0)) + 1
            support = np.append(np.unique(lengths), horizon)
            if horizon <= 2 * _MAX_LENGTHS:
                support = np.arange(horizon + 1)
            elif len(support) > _MAX_LENGTHS:
                shares = np.linspace(0, 1, _MAX_LENGTHS)
                support = np.unique(np.quantile(lengths, shares, method="nearest"))
        blank = replace(DateTarget.single(-1, relation, -1), start=np.zeros(1, np.int64))
        density = np.exp(self.features(blank, (np.array([0, len(support)]), support), of_end)[:, 0])
        return support, density / density.sum(), horizon


def _find(values: Ints, wanted: Ints) -> Ints:
    """Return the index of each wanted value among ascending ones, -1 for none."""
    if not len(values):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return np.where(values[at] == wanted, at, -1)


def _candidate_dates(times: Ints) -> Ints:
    """Return the distinct dates, with all time points of their usual range if these are few."""
    dates, count = np.unique(times, return_counts=True)
    if not len(dates):
        return dates
    if len(dates) > _MAX_DATES:
        dates = np.sort(dates[np.argsort(-count, kind="stable")[:_MAX_DATES]])
    low, high = _quantiles(times, 0.05, 0.995)
    return np.union1d(dates, np.arange(low, high + 1)) if high - low <= _DENSE_SPAN else dates


def _quantiles(times: Ints, *shares: float) -> list[int]:
    """Return quantiles that are times themselves: a mean of two may be no whole number."""
    found: list[int] = np.quantile(times, shares, method="nearest").tolist() if len(times) else []
    return found or [0] * len(shares)

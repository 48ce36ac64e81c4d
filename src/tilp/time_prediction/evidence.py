"""Evidence for dates: dated facts of subject, object and both, and how dates spread."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilp._kernels import date_evidence as kernels
from tilp._utils.arrays import Floats, Ids, Ints, Mask
from tilp.graph import TemporalGraph
from tilp.time import OPEN_END, OPEN_START, UNKNOWN

START_FEATURES = ("relation's starts", "object's starts", "subject's starts")
END_FEATURES = ("relation's durations", "relation's ends", "object's durations", "subject's durations")
_DENSE_SPAN = 1_000  # time points of the usual range that are all candidates
_MAX_DATES = 4_096
_MAX_LENGTHS = 256
_STRENGTH = 4.0  # facts that a coarser estimate of a density counts for
_TIME_SPANS = (0.0, 1 / 400, 1 / 60)  # widths of windows, as shares of the usual range
_LENGTH_BASE, _LENGTH_RATE = np.array([0, 1, 2]), np.array([0.0, 0.02, 0.2])


def finite(time: Ints) -> Mask:
    """Return which dates are known and not open."""
    return (time > OPEN_START) & (time < OPEN_END)


@dataclass(frozen=True)
class Values:
    """Values by code, ascending within each."""

    offsets: Ints
    value: Ints

    @classmethod
    def of(cls, code: Ints | Ids, n_codes: int, value: Ints) -> Values:
        """Sort values by their codes."""
        order = np.lexsort((value, code))
        return cls(np.append(0, np.cumsum(np.bincount(code, minlength=n_codes))), value[order])

    def log_density(
        self, code: Ints, offsets: Ints, wanted: Ints, own: Ints, has_own: Mask, base: Ints,
        rate: Floats, background: Floats,
    ) -> Floats:  # fmt: skip
        """Return the log density of each query's values at wanted ones, smoothed step by step.

        Each window's estimate falls back on that of the next wider one, the widest on the
        background. Code -1 has no values.
        """
        begin = np.where(code >= 0, self.offsets[code], 0)
        end = np.where(code >= 0, self.offsets[code + 1], 0)
        counts = kernels.count_near(
            self.value, begin, end, offsets, wanted, own, has_own, base, rate
        )
        total = np.repeat(end - begin - (has_own & (code >= 0)), np.diff(offsets))
        density = background
        for index in reversed(range(len(base))):
            size = 2 * (base[index] + (rate[index] * np.abs(wanted)).astype(np.int64)) + 1
            density = (counts[:, index] / size + _STRENGTH * density) / (total + _STRENGTH)
        return np.log(density)


def _make_runs(
    key: Ints, n_keys: int, relation: Ids, n_directed: int, facts: tuple[Ids, Ints, Ints]
) -> tuple[kernels.DateRuns, Ints]:
    """Sort dates by key and relation; return also the code of each run, ascending."""
    fact, start, end = facts
    code = key * n_directed + relation
    codes = np.unique(code[finite(start) | finite(end)])
    columns: list[Ints] = []
    for time in (start, end):
        rows = np.flatnonzero(finite(time))
        rows = rows[np.lexsort((fact[rows], time[rows], code[rows]))]
        bounds = np.append(np.searchsorted(code[rows], codes), len(rows))
        columns += [bounds, time[rows], fact[rows]]
    offsets = np.searchsorted(codes, np.arange(n_keys + 1) * n_directed)
    return kernels.DateRuns(offsets, codes % n_directed, *columns), codes


@dataclass(frozen=True)
class DateTarget:
    """Facts whose date is sought: names as ids, the fact to leave out, its or the given dates."""

    subject: Ints
    relation: Ints
    object: Ints
    fact: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.fact)

    def __getitem__(self, rows: Ints | slice) -> DateTarget:
        return DateTarget(*(column[rows] for column in vars(self).values()))

    def with_starts(self, start: Ints) -> DateTarget:
        """Return the same with given starts."""
        return replace(self, start=start)


class DatedFacts:
    """The dated facts of a graph's train split, as evidence for other dates."""

    def __init__(self, graph: TemporalGraph) -> None:
        self.graph = graph
        train = graph.span("train")
        relation = graph.relation[train].astype(np.int64)
        subject, object_ = (c[train].astype(np.int64) for c in (graph.subject, graph.object))
        self.start, self.end = graph.start[train], graph.end[train]
        known = graph.estimated[train]
        self.start = np.where(known & 1, UNKNOWN, self.start)
        self.end = np.where(known & 2, UNKNOWN, self.end)
        self.n_relations, n_entities = len(graph.relations), len(graph.entities)
        self.n_directed = 2 * self.n_relations
        fact = np.arange(len(relation), dtype=np.int32)
        both = tuple(np.concatenate([c, c]) for c in (fact, self.start, self.end))
        directed = np.concatenate([relation, relation + self.n_relations])
        ends = np.concatenate([subject, object_])
        entity, self._codes = _make_runs(ends, n_entities, directed, self.n_directed, both)
        pairs = ends * n_entities + np.concatenate([object_, subject])
        self._pairs, key = np.unique(pairs, return_inverse=True)
        pair, _ = _make_runs(key, len(self._pairs), directed, self.n_directed, both)
        self.runs = (entity, entity, pair)
        has_start, has_end = finite(self.start), finite(self.end)
        whole = has_start & has_end
        size, length = self.n_relations, self.end - self.start
        self.starts = Values.of(relation[has_start], size, self.start[has_start])
        self.ends = Values.of(relation[has_end], size, self.end[has_end])
        self.lengths = Values.of(relation[whole], size, length[whole])
        code = ends * self.n_directed + directed
        run = np.searchsorted(self._codes, code)
        twice = np.concatenate([whole, whole])
        lengths = np.concatenate([length, length])
        self._run_lengths = Values.of(run[twice], len(self._codes), lengths[twice])
        times = np.concatenate([self.start[has_start], self.end[has_end]])
        self.dates = _candidate_dates(times)
        low, high = (int(t) for t in np.quantile(times, (0.05, 0.95))) if len(times) else (0, 1)
        self.now = int(self.start[has_start].max(initial=0))
        self.widths = np.ceil(np.array(_TIME_SPANS) * (high - low)).astype(np.int64)
        self.span = float(max(high - low, 1))

    def _run(self, entity: Ints, directed: Ints) -> Ints:
        """Return the run of entities and relations, -1 for none."""
        code = np.where(entity >= 0, entity * self.n_directed + directed, -1)
        run = np.minimum(np.searchsorted(self._codes, code), len(self._codes) - 1)
        return np.where(self._codes[run] == code, run, -1) if len(self._codes) else code * 0 - 1

    def queries(self, target: DateTarget, offsets: Ints, time: Ints, drop: Mask) -> kernels.DateQueries:
        """Return the queries of a kernel for candidate dates."""
        known = (target.subject >= 0) & (target.object >= 0)
        pair = target.subject * len(self.graph.entities) + target.object
        at = np.minimum(np.searchsorted(self._pairs, pair), max(len(self._pairs) - 1, 0))
        pair = np.where(known & (self._pairs[at] == pair), at, -1) if len(self._pairs) else pair * 0 - 1
        key = np.stack([target.subject, target.object, pair], axis=1)
        end = np.where(finite(target.end), target.end, OPEN_END)
        return kernels.DateQueries(
            key, target.relation, target.fact, target.start, end, target.start, drop, offsets, time
        )

    def nearest(
        self, target: DateTarget, source: int, relation: int, time: int
    ) -> tuple[int, str, int]:
        """Return the fact of a run with the date nearest to a time, which date, and how far."""
        key = int(self.queries(target, np.zeros(2, np.int64), np.empty(0), np.zeros(1)).key[0, source])
        runs = self.runs[source]
        run = runs.offsets[key] + np.searchsorted(
            runs.relation[runs.offsets[key] : runs.offsets[key + 1]], relation
        )
        found = []
        for what in ("start", "end"):
            bounds = getattr(runs, f"{what}_offsets")[run : run + 2]
            dates, facts = (getattr(runs, name)[slice(*bounds)] for name in (what, f"{what}_fact"))
            if len(dates):
                at = int(np.abs(dates - time).argmin())
                found.append((int(facts[at]), what, time - int(dates[at])))
        return min(found, key=lambda each: abs(each[2]))

    def bins(self, queries: kernels.DateQueries, edges: Ints, of_end: bool) -> tuple[Ints, Ids, Ids]:
        """Bin the distances of candidates to dated facts."""
        return kernels.fill_bins(queries, self.runs, self.n_directed, edges, of_end, self.start)

    def start_features(self, target: DateTarget, offsets: Ints, time: Ints) -> Floats:
        """Return the dense features of candidate starts."""
        entity = self.runs[0]
        starts = Values(entity.start_offsets, entity.start)
        has_own = target.fact >= 0
        rate, flat = np.zeros(len(self.widths)), np.full(len(time), 1 / self.span)
        shared = offsets, time, target.start, has_own, self.widths, rate
        base = self.starts.log_density(target.relation, *shared, flat)
        columns = [base]
        for of, directed in ((target.object, self.n_relations), (target.subject, 0)):
            run = self._run(of, target.relation + directed)
            columns.append(starts.log_density(run, *shared, np.exp(base)) - base)
        return np.stack(columns, axis=1)

    def end_features(self, target: DateTarget, offsets: Ints, time: Ints) -> Floats:
        """Return the dense features of candidate ends, given the starts."""
        own, has_own = target.end - target.start, (target.fact >= 0) & finite(target.end)
        length = time - np.repeat(target.start, np.diff(offsets))
        flat = 1.0 / (1.0 + np.abs(length)) / 10
        shared = offsets, length, own, has_own, _LENGTH_BASE, _LENGTH_RATE
        base = self.lengths.log_density(target.relation, *shared, flat)
        rate, flat = np.zeros(len(self.widths)), np.full(len(time), 1 / self.span)
        ends = self.ends.log_density(
            target.relation, offsets, time, target.end, has_own, self.widths, rate, flat
        )
        columns = [base, ends]
        for of, directed in ((target.object, self.n_relations), (target.subject, 0)):
            run = self._run(of, target.relation + directed)
            columns.append(self._run_lengths.log_density(run, *shared, np.exp(base)) - base)
        return np.stack(columns, axis=1)

    def support(self, relation: int, of_end: bool) -> tuple[Ints, Floats, int]:
        """Return usual dates of a relation, or lengths, their shares, and the longest length."""
        none = np.full(1, -1)
        blank = DateTarget(none, np.full(1, relation), none, none, none * 0, none)
        if not of_end:
            offsets = np.array([0, len(self.dates)])
            density = np.exp(self.start_features(blank, offsets, self.dates)[:, 0])
            return self.dates, density / density.sum(), 0
        bounds = self.lengths.offsets[relation : relation + 2]
        lengths = self.lengths.value[slice(*bounds)]
        horizon = int(1.2 * lengths.max(initial=0)) + 1
        support = np.append(np.unique(lengths), horizon)
        if horizon <= 2 * _MAX_LENGTHS:
            support = np.arange(horizon + 1)
        elif len(support) > _MAX_LENGTHS:
            shares = np.linspace(0, 1, _MAX_LENGTHS)
            support = np.unique(np.quantile(lengths, shares, method="nearest"))
        offsets = np.array([0, len(support)])
        density = np.exp(self.end_features(blank, offsets, support)[:, 0])
        return support, density / density.sum(), horizon


def _candidate_dates(times: Ints) -> Ints:
    """Return the distinct dates, with all time points of their usual range if these are few."""
    dates, count = np.unique(times, return_counts=True)
    if len(times):
        low, high = (int(t) for t in np.quantile(times, (0.05, 0.995)))
        if high - low <= _DENSE_SPAN:
            return np.union1d(dates, np.arange(low, high + 1))
    if len(dates) > _MAX_DATES:
        dates = np.sort(dates[np.argsort(-count, kind="stable")[:_MAX_DATES]])
    return dates

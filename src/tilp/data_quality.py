"""Data quality of a graph: `inspect` counts facts and defects; facts over time."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.arrays import Ids, Ints
from tilp.errors import TilpError
from tilp.graph import SPLITS, Defect, TemporalGraph
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, format_time, parse_date
from tilp.types import Unit

PLAUSIBLE_YEARS = (1000, 2100)
"""Years outside are reported; they are mostly errors of whoever wrote the dates."""


@dataclass(frozen=True, slots=True)
class DateSummary:
    """Which dates of some facts are known; an open date is known to be open."""

    both: int
    start_only: int
    end_only: int
    none: int
    first: str
    last: str
    timestamps: int
    intervals: int


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """Counts of a split, or of all facts."""

    facts: int
    entities: int
    relations: int
    dates: DateSummary


@dataclass(frozen=True, slots=True)
class RelationSummary:
    """Counts of a relation: facts by split, distinct subjects and objects, dates."""

    name: str
    facts: Mapping[str, int]
    subjects: int
    objects: int
    dates: DateSummary


@dataclass(frozen=True, slots=True)
class YearCount:
    """A year outside `PLAUSIBLE_YEARS`, and the count of starts and ends in it."""

    year: int
    dates: int


@dataclass(frozen=True, slots=True)
class Defects:
    """Defects that spoil results: counts of rows by split, or by 'later in earlier split'."""

    start_after_end: Mapping[str, int]
    malformed_dates: Mapping[str, int]  # with a date that could not be read
    empty_names: Mapping[str, int]  # without a subject, relation or object; they are left out
    estimated: Mapping[str, int]  # with a date that is an estimate
    walked_only: Mapping[str, int]  # that walks use, but that are no training examples
    duplicates: Mapping[str, int]  # that repeat an earlier row of their split, dates and all
    same_fact: Mapping[str, int]  # that are, dates and all, in another split
    same_triple: Mapping[str, int]  # whose subject, relation and object are in another split
    reversed: Mapping[str, int]  # whose triple, subject and object swapped, is in another split
    reversed_by_relation: Mapping[str, Mapping[str, int]]  # for each relation that has any
    unseen_entities: Mapping[str, int]  # with an entity that is not in train
    unseen: Mapping[str, int]  # with an entity or a relation that is not in train
    absurd_years: tuple[YearCount, ...]  # most frequent first


@dataclass(frozen=True, slots=True)
class Inspection:
    """Result of `inspect`: counts by split and relation, and defects."""

    unit: str
    splits: Mapping[str, SplitSummary]
    relations: tuple[RelationSummary, ...]
    defects: Defects

    def to_json(self) -> dict[str, Any]:
        """Return the same as plain mappings, lists and numbers."""
        return asdict(self)


def inspect(graph: TemporalGraph) -> Inspection:
    """Summarise a graph and count its defects.

    >>> import tilp
    >>> tilp.inspect(tilp.datasets.world(seed=0, size=1_000).graph).defects.start_after_end
    {'train': 0, 'valid': 0, 'test': 0}
    """
    spans = {split: graph.span(split) for split in SPLITS if len(graph.rows(split))}
    splits = {}
    for name, rows in {**spans, "all": slice(0, len(graph))}.items():
        n_entities = len(np.union1d(*(np.unique(c[rows]) for c in (graph.subject, graph.object))))
        n_relations, dates = len(np.unique(graph.relation[rows])), _summarise_dates(graph, rows)
        splits[name] = SplitSummary(rows.stop - rows.start, n_entities, n_relations, dates)
    relations = _summarise_relations(graph)
    return Inspection(graph.unit.value, splits, relations, _find_defects(graph, spans))


def _summarise_dates(graph: TemporalGraph, rows: slice | Ints) -> DateSummary:
    start, end = graph.start[rows], graph.end[rows]
    known = 2 * (start != UNKNOWN) + (end != UNKNOWN)
    none, end_only, start_only, both = np.bincount(known, minlength=4).tolist()
    times = np.union1d(np.unique(start), np.unique(end))
    times = times[~np.isin(times, (UNKNOWN, OPEN_START, OPEN_END))]
    first, last = (
        format_time(int(t[0]), graph.unit) if len(t) else "" for t in (times, times[-1:])
    )
    intervals = pl.DataFrame({"start": start, "end": end}).n_unique() if len(start) else 0
    return DateSummary(both, start_only, end_only, none, first, last, len(times), intervals)


def _summarise_relations(graph: TemporalGraph) -> tuple[RelationSummary, ...]:
    order = np.argsort(graph.relation, kind="stable")
    ends = np.cumsum(np.bincount(graph.relation, minlength=len(graph.relations)))
    summaries = []
    for relation, rows in enumerate(np.split(order, ends[:-1]) if len(ends) else []):
        in_split = np.diff(np.searchsorted(rows, graph.bounds)).tolist()
        facts = dict(zip(SPLITS, in_split, strict=True))
        n_subjects, n_objects = (len(np.unique(c[rows])) for c in (graph.subject, graph.object))
        name, dates = graph.relations.label(relation), _summarise_dates(graph, rows)
        summaries.append(RelationSummary(name, facts, n_subjects, n_objects, dates))
    return tuple(sorted(summaries, key=lambda relation: -sum(relation.facts.values())))


def _find_defects(graph: TemporalGraph, spans: Mapping[str, slice]) -> Defects:
    counts = Counter(graph.defects.select("split", "defect").iter_rows())
    empty = graph.defects["defect"] == Defect.EMPTY_NAME
    is_malformed = graph.defects["defect"].is_in([Defect.MALFORMED_START, Defect.MALFORMED_END])
    rows_of = graph.defects.filter(is_malformed).select("split", "file", "line").unique()
    malformed = Counter(rows_of["split"])
    forward = _triple_keys(graph, graph.subject, graph.object)
    swapped = _triple_keys(graph, graph.object, graph.subject)
    # A fact from an entity to itself is its own reverse, which is no defect.
    swapped = np.where(graph.subject == graph.object, -1, swapped)
    malformed_text = np.array([parse_date(t).span(graph.unit) is None for t in graph.texts], bool)
    dates: dict[str, Any] = {"start": graph.start, "end": graph.end}
    for name in ("start_text", "end_text"):  # two malformed dates are not the same date
        text = getattr(graph, name)
        dates[name] = np.where(malformed_text[text], text, -1)
    facts = pl.DataFrame({"triple": forward, **dates})
    same_fact, same_triple, reversed_, reversed_by_relation = {}, {}, {}, {}
    for earlier, later in combinations(spans, 2):
        name, rows, earlier_rows = f"{later} in {earlier}", spans[later], spans[earlier]
        same_fact[name] = len(facts[rows].join(facts[earlier_rows], on=facts.columns, how="semi"))
        same_triple[name] = int(np.isin(forward[rows], forward[earlier_rows]).sum())
        is_reversed = np.isin(swapped[rows], forward[earlier_rows])
        reversed_[name] = int(is_reversed.sum())
        found = sorted(Counter(graph.relation[rows][is_reversed].tolist()).items())
        reversed_by_relation[name] = {graph.relations.label(r): count for r, count in found}
    train, unseen_entities, unseen = graph.span("train"), {}, {}
    seen = np.union1d(*(np.unique(c[train]) for c in (graph.subject, graph.object)))
    for split, rows in spans.items():
        if split != "train":
            is_seen = np.isin(graph.subject[rows], seen) & np.isin(graph.object[rows], seen)
            unseen_entities[split] = int((~is_seen).sum())
            is_seen &= np.isin(graph.relation[rows], graph.relation[train])
            unseen[split] = int((~is_seen).sum())
    return Defects(
        start_after_end={split: counts[split, Defect.START_AFTER_END] for split in spans},
        malformed_dates={s: malformed[s] for s in spans},
        empty_names=dict(Counter(graph.defects.filter(empty)["split"])),
        estimated={s: int(np.count_nonzero(graph.estimated[r])) for s, r in spans.items()},
        walked_only={s: int(np.count_nonzero(graph.walked_only[r])) for s, r in spans.items()},
        duplicates={s: r.stop - r.start - facts[r].n_unique() for s, r in spans.items()},
        same_fact=same_fact,
        same_triple=same_triple,
        reversed=reversed_,
        reversed_by_relation=reversed_by_relation,
        unseen_entities=unseen_entities,
        unseen=unseen,
        absurd_years=_find_absurd_years(graph),
    )


def _triple_keys(graph: TemporalGraph, subject: Ids, object: Ids) -> Ints:
    key = subject.astype(np.int64) * len(graph.relations) + graph.relation
    return key * len(graph.entities) + object


def _find_absurd_years(graph: TemporalGraph) -> tuple[YearCount, ...]:
    if graph.unit is Unit.INTEGER:
        return ()
    counts = np.bincount(graph.start_text, minlength=len(graph.texts))
    counts += np.bincount(graph.end_text, minlength=len(graph.texts))
    years: Counter[int] = Counter()
    for text, count in zip(graph.texts, counts.tolist(), strict=True):
        date = parse_date(text)
        plausible = PLAUSIBLE_YEARS[0] <= date.first_year <= PLAUSIBLE_YEARS[1]
        if date.is_complete(Unit.YEAR) and count and not plausible:
            years[date.first_year] += count
    listed = sorted(years.items(), key=lambda item: (-item[1], item[0]))
    return tuple(YearCount(year, count) for year, count in listed)


_OUTLIER_SHARE = 0.005  # on either side
_BARS = 80


@dataclass(frozen=True, slots=True)
class FactsOverTime:
    """Counts of facts by their start."""

    bins: tuple[int, ...]  # where the bars begin, and where the last ends
    splits: dict[str, tuple[int, ...]]  # counts of each bar, for each split with dated facts
    unknown: int  # facts without a start
    outside: int  # outliers, which start before the first bar or after the last


def facts_over_time(graph: TemporalGraph) -> FactsOverTime:
    """Count facts by their start and split."""
    starts = {split: graph.start[graph.span(split)] for split in SPLITS}
    known = {split: times[times > OPEN_START] for split, times in starts.items()}
    all_times = np.concatenate(list(known.values()))
    if not len(all_times):
        raise TilpError("no fact has a known start, so there is nothing to count over time")
    low, high = (int(t) for t in np.quantile(all_times, [_OUTLIER_SHARE, 1 - _OUTLIER_SHARE]))
    width = -(-(high - low + 1) // _BARS)  # whole times in each bar, or it would look ragged
    bins = np.arange(low, high + width + 1, width)
    counts = {s: np.histogram(times, bins)[0] for s, times in known.items() if len(times)}
    return FactsOverTime(
        bins=tuple(bins.tolist()),
        splits={split: tuple(bars.tolist()) for split, bars in counts.items()},
        unknown=int((graph.start == UNKNOWN).sum()),
        outside=len(all_times) - sum(int(bars.sum()) for bars in counts.values()),
    )

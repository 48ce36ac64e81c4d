"""Estimate the time and memory of a fit: fit small samples, extrapolate each stage.

Every sample is a real fit. It learns from a few facts, but walks on all of them, so that a query
takes as long as in the full fit. Each stage then grows with a power of the number of facts.
"""

import contextlib
import ctypes
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.memory import forget_peak, peak_megabytes
from tilp._utils.progress import Stages
from tilp.datasets import world
from tilp.errors import NoRulesError, TilpError
from tilp.features.log_linear_training import LogLinearSettings
from tilp.graph import TemporalGraph
from tilp.model import FitContext, ModelSettings
from tilp.model.fit import SELECTION_STEPS, fit_model
from tilp.parallel import Workers
from tilp.types import Weights
from tilp.walks.mining import MiningSettings, target_facts

Rows = NDArray[np.int64]

_MEGABYTE = 1024.0**2
_RATIO = 3  # each sample has this many times the facts of the one before
_SAMPLES = 3
_FEWEST_FACTS = 40
_FACT_SECONDS, _WALK_SECONDS = 2e-3, 3e-7  # rough costs; they only decide how large samples are
_LONG_FIT = 600.0  # seconds

# Powers of the number of facts that time, peak memory and the number of rules typically grow with.
# What the samples show is shrunk towards them, because a few short fits are noisy.
_TIME_POWERS = {"mine": 0.55, "apply": 0.8, "select": 0.9, "choose": 0.9, "features": 1.1}
_MEMORY_POWERS = {"mine": 0.5, "choose": 0.8, "features": 0.8}
_RULES_POWER = 0.5
_EXAMPLES_POWER = 0.9  # of training examples; samples show more than 1, but growth slows down
_SHRINKAGE = 4.0

# Training examples dominate large fits, but not small ones; so their costs are typical figures.
_EXAMPLE_SECONDS = 3e-10  # for each byte of them, in each gradient
_EXAMPLE_COPIES = {"apply": 3.5, "select": 2.2, "train": 2.2, "fold": 2.4}  # at the peak of a stage

_LEAST_MEMORY = 4.0 * _MEGABYTE  # smaller differences are noise


@dataclass(frozen=True)
class StageCost:
    """Estimated work, time and memory of one stage."""

    name: str  # as `fit` reports it
    amount: float
    unit: str  # what is counted in `amount`
    cpu: float  # CPU seconds in all
    serial: float = 0.0  # CPU seconds that only one thread can do
    longest: float = 0.0  # CPU seconds of the largest part that cannot be divided
    peak: float = 0.0  # peak memory in bytes, beside what was in use before the first stage

    def seconds(self, threads: int = 1) -> float:
        """Return the run time with this many threads, each on a core of its own.

        >>> StageCost("x", 1, "y", cpu=10.0, serial=2.0, longest=3.0).seconds(threads=4)
        5.0
        """
        return self.serial + max((self.cpu - self.serial) / threads, self.longest)


@dataclass(frozen=True)
class CostEstimate:
    """Estimated time and memory of a fit."""

    stages: tuple[StageCost, ...]
    threads: int
    before: float  # bytes in use before the first stage: the program, the facts and their index
    walks: tuple[float, float]  # from one entity: mean over training queries, and maximum
    limited: int  # number of entities with more walks of one length than the limit
    sample: tuple[int, int]  # number of facts in the largest sample, and in the full fit
    rules: int
    advice: tuple[str, ...] = ()  # options that shorten a long fit
    warnings: tuple[str, ...] = ()  # reasons why the fit would fail

    @property
    def cpu(self) -> float:
        """CPU seconds of all stages."""
        return sum(stage.cpu for stage in self.stages)

    @property
    def seconds(self) -> float:
        """Run time with `threads` threads, each on a core of its own."""
        return sum(stage.seconds(self.threads) for stage in self.stages)

    @property
    def peak(self) -> float:
        """Peak memory in bytes."""
        return self.before + max(stage.peak for stage in self.stages)

    @property
    def longest(self) -> StageCost:
        """The stage with the longest run time."""
        return max(self.stages, key=lambda stage: stage.seconds(self.threads))

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        stages = [asdict(each) | {"seconds": each.seconds(self.threads)} for each in self.stages]
        return {
            **asdict(self),
            "stages": stages,
            "cpu": self.cpu,
            "seconds": self.seconds,
            "peak": self.peak,
            "longest": self.longest.name,
            "walks": {"mean": self.walks[0], "most": self.walks[1]},
            "sample": {"facts": self.sample[0], "of": self.sample[1]},
        }


def estimate_cost(
    graph: TemporalGraph,
    settings: ModelSettings,
    *,
    threads: int = 1,
    reading: float = 0.0,
    budget: float = 12.0,
    long_fit: float = _LONG_FIT,
    progress: Callable[[float], None] | None = None,
) -> CostEstimate:
    """Estimate the time and memory of a fit from fits of small samples; nothing is written.

    Which facts are sampled depends on the data, the settings and the budget, not on the machine.

    Args:
        graph: The facts to fit.
        settings: Settings of the fit, `TILP(...).settings_for(graph)`.
        threads: Number of threads of the fit. Default 1.
        reading: CPU seconds that reading the facts took. Default 0.
        budget: CPU seconds to spend on the largest sample, roughly. Default 12. Raise it for a
            better estimate; all samples together take about twice as long.
        long_fit: Run time in seconds from which on there is advice. Default 600.
        progress: Called with the share of the work that is done.

    Raises:
        TilpError: There is nothing to learn from.
        NoRulesError: No sample has a rule.

    >>> import tilp
    >>> model = tilp.TILP(max_length=1, features="none")
    >>> graph = tilp.datasets.world(size=1_000).graph
    >>> cost = estimate_cost(graph, model.settings_for(graph), budget=0.5)
    >>> [stage.name for stage in cost.stages]
    ['read', 'prepare', 'mine', 'apply', 'select', 'train', 'choose', 'fold']
    """
    if not len(graph.rows("train")):
        raise TilpError("there are no training facts to learn from")
    mining = settings.mining
    rows = target_facts(graph, mining)
    if not len(rows):
        raise TilpError(
            f"no training fact would be asked: share is {mining.share:g} of "
            f"{len(graph.targets):,}; choose a greater one"
        )
    report = progress or (lambda _share: None)
    rows = np.random.default_rng([settings.seed, len(rows)]).permutation(rows)
    walks = count_walks(graph, mining.max_length, mining.limit)
    walks_from = walks.sum(axis=0)
    ends = np.concatenate([graph.subject[rows], graph.object[rows]])
    seconds_per_fact = _FACT_SECONDS + _WALK_SECONDS * 2 * float(walks_from[ends].mean())
    largest = min(max(int(budget / seconds_per_fact), _FEWEST_FACTS), len(rows))
    # Compile all loops, or load them, on bundled facts.
    bundled = world(size=1_000).graph
    short = replace(settings, mining=replace(mining, max_length=1))
    _fit_sample(bundled, bundled.targets, short, threads, 200)
    fit = partial(_fit_sample, graph, rows, settings, threads)
    samples, prepare = _fit_samples(fit, len(rows), largest, report)
    walked = float(walks_from[ends].sum())
    counts = [(float(sample.facts), float(sample.rules)) for sample in samples]
    most_rules = 2 * len(graph.relations) * settings.max_rules
    rules = min(round(extrapolate(counts, len(rows), _RULES_POWER)), most_rules)
    work = {
        "mine": (walked, f"walks of {2 * len(rows):,} queries, about {rules:,} rules"),
        "apply": (walked, f"walks of {2 * len(rows):,} queries"),
        "select": (SELECTION_STEPS, "gradients at most"),
        "train": (settings.training.steps, "gradients at most"),
        "choose": (2.0 * _held_out(graph, rows, settings), "held-out queries"),
        "fold": (settings.training.steps, "gradients of each fold at most"),
        "features": (2.0 * _stage_size("features", graph, rows, settings), "queries"),
    }
    stages = [
        StageCost("read", len(graph), "facts", cpu=reading, serial=reading),
        StageCost("prepare", len(graph), "facts indexed", cpu=prepare, serial=prepare),
    ]
    for name in samples[-1].cpu:
        stage = _extrapolate_stage(name, *work[name], samples, graph, rows, settings, rules)
        stages.append(stage)
    _forget_memory()
    estimate = CostEstimate(
        stages=tuple(stages),
        threads=threads,
        before=_peak_bytes(),
        walks=(float(walks_from[ends].mean()), float(walks_from.max())),
        limited=int((walks >= mining.limit).any(axis=0).sum()),
        sample=(samples[-1].facts, len(rows)),
        rules=rules,
    )
    by_length = walks[:, ends].sum(axis=1)
    advice = _advice(estimate, mining, by_length, long_fit, len(graph.relations))
    return replace(estimate, advice=advice, warnings=_warnings(estimate))


def count_walks(graph: TemporalGraph, max_length: int, limit: float) -> NDArray[np.float64]:
    """Return the number of walks of each length from each entity, each at most `limit`."""
    index = graph.index()
    degree = np.diff(index.offsets)
    source = np.repeat(np.arange(len(degree)), degree)
    # Walks may use a fact twice here, so these are slightly more than a fit makes.
    counts: list[NDArray[Any]] = [degree.astype(np.float64)]
    for _ in range(1, max_length):
        counts.append(np.bincount(source, counts[-1][index.target], len(degree)))
    return np.minimum(counts, float(limit))


def extrapolate(points: Sequence[tuple[float, float]], size: float, power: float) -> float:
    """Return the value at `size` by the power law through the last pair of size and value.

    The power is fitted to the points by ridge regression that shrinks it towards `power`.

    >>> extrapolate([(100.0, 10.0)], 400.0, power=0.5)
    20.0
    >>> round(extrapolate([(100.0, 10.0), (200.0, 20.0)], 400.0, power=1.0), 6)
    40.0
    """
    last_size, last = points[-1]
    if last <= 0 or size <= 0:
        return 0.0
    x = np.log([max(point[0], 1e-9) / last_size for point in points])
    y = np.log([max(point[1], 1e-9) / last for point in points])
    fitted = (float(x @ y) + _SHRINKAGE * power) / (float(x @ x) + _SHRINKAGE)
    return float(last * (size / last_size) ** fitted)


@dataclass
class _Sample:
    """A measured fit; CPU seconds of all threads and of the main one, peak bytes, by stage."""

    facts: int
    cpu: dict[str, float] = field(default_factory=dict)
    serial: dict[str, float] = field(default_factory=dict)
    peak: dict[str, float] = field(default_factory=dict)
    rules: int = 0
    gradients: int = 0
    example_bytes: int = 0


class _MinedError(Exception):
    """Ends a fit after its first stage."""


def _fit_samples(
    fit: Callable[..., _Sample], facts: int, largest: int, report: Callable[[float], None]
) -> tuple[list[_Sample], float]:
    """Fit nested samples; return those with rules, and the seconds before the first stage."""
    report(0.1)
    prepare = fit(1, mine_only=True).cpu["mine"]
    fewest = min(largest, _FEWEST_FACTS)
    sizes = {max(largest // _RATIO**number, fewest) for number in range(_SAMPLES)}
    samples: list[_Sample] = []
    for size in sorted(sizes):
        samples.append(fit(size))
        report(0.1 + 0.9 * size / sum(sizes))
    while not samples[-1].rules and samples[-1].facts < facts:
        samples.append(fit(min(_RATIO * samples[-1].facts, facts)))
    samples = [sample for sample in samples if sample.rules]
    if not samples:
        raise NoRulesError(
            f"no rule was found in {facts:,} facts: no fact's ends are joined by other facts "
            "often enough; a smaller min_support or a greater max_length may find some"
        )
    for sample in samples:
        sample.cpu["mine"] = max(sample.cpu["mine"] - prepare, 1e-3)
    report(1.0)
    return samples, prepare


def _fit_sample(
    graph: TemporalGraph,
    rows: Rows,
    settings: ModelSettings,
    threads: int,
    size: int,
    *,
    mine_only: bool = False,
) -> _Sample:
    """Fit the first `size` of the rows, and a like share of the held-out facts; measure stages."""
    walked_only = np.zeros(len(graph), np.bool_)
    walked_only[graph.span("train")] = True
    walked_only[rows[:size]] = False
    held_out = max(1, round(_held_out(graph, rows, settings) * size / len(rows)))
    settings = replace(settings, mining=replace(settings.mining, share=1.0), held_out=held_out)
    sample, main_thread = _Sample(size), threading.get_ident()
    _forget_memory()
    before = _peak_bytes()
    clock = [time.process_time(), time.thread_time()]

    def note(stage: str, share: float) -> None:
        if threading.get_ident() != main_thread:
            return
        now = [time.process_time(), time.thread_time()]
        for taken, begin, end in zip((sample.cpu, sample.serial), clock, now, strict=True):
            taken[stage] = taken.get(stage, 0.0) + end - begin
        if share == 1.0:
            sample.peak[stage] = max(sample.peak.get(stage, 0.0), _peak_bytes() - before)
            if stage == "apply":  # the checkpoint holds the training examples
                files = Path(folder).rglob("*.npz")
                sample.example_bytes = sum(file.stat().st_size for file in files)
            _forget_memory()
            if mine_only:
                raise _MinedError
        clock[:] = time.process_time(), time.thread_time()

    ended = contextlib.suppress(NoRulesError, _MinedError)
    with tempfile.TemporaryDirectory() as folder, Workers(threads) as workers, ended:
        context = FitContext(settings, workers, Path(folder) / "fit", Stages(note))
        fitted = fit_model(replace(graph, walked_only=walked_only), context)
        sample.rules, sample.gradients = len(fitted.rules), len(fitted.curve.train)
    return sample


def _held_out(graph: TemporalGraph, rows: Rows, settings: ModelSettings) -> int:
    return min(settings.held_out, len(graph.rows("valid")) or len(rows) // 10 + 1)


def _extrapolate_stage(
    name: str,
    amount: float,
    unit: str,
    samples: list[_Sample],
    graph: TemporalGraph,
    rows: Rows,
    settings: ModelSettings,
    rules: int,
) -> StageCost:
    last = samples[-1]
    size = _stage_size(name, graph, rows, settings)
    sizes = [_stage_size(name, graph, rows[: sample.facts], settings) for sample in samples]

    def grow(values: Sequence[float], power: float) -> float:
        return extrapolate(list(zip(sizes, values, strict=True)), size, power)

    example_bytes = grow([sample.example_bytes for sample in samples], _EXAMPLES_POWER)
    if name in _TIME_POWERS:
        cpu = grow([sample.cpu[name] for sample in samples], _TIME_POWERS[name])
    else:  # train; the folds, each without a part of the queries, take as long as all queries
        gradient = last.cpu["train"] / last.gradients
        if settings.training.weights is not Weights.FREE:  # the net scores each rule
            gradient *= rules / last.rules
        gradient += _EXAMPLE_SECONDS * (example_bytes - last.example_bytes)
        cpu = settings.training.steps * gradient
    if name in _MEMORY_POWERS:
        peaks = [max(sample.peak[name], _LEAST_MEMORY) for sample in samples]
        peak = grow(peaks, _MEMORY_POWERS[name])
    else:
        peak = last.peak[name] + _EXAMPLE_COPIES[name] * (example_bytes - last.example_bytes)
    serial = cpu * min(last.serial[name] / max(last.cpu[name], 1e-9), 1.0)
    longest = 0.0
    if name == "features":  # relations and directions are learned side by side
        most = float(np.bincount(graph.relation[rows]).max())
        longest = (cpu - serial) * most / (2 * len(rows))
    return StageCost(name, float(amount), unit, cpu, serial, longest, peak)


def _stage_size(name: str, graph: TemporalGraph, rows: Rows, settings: ModelSettings) -> float:
    """Return the number of facts that a stage handles; some take a limited number per relation."""
    limit = {"mine": settings.mining.sample, "features": LogLinearSettings.max_queries}.get(name)
    counts = np.bincount(graph.relation[rows])
    return float((counts if limit is None else np.minimum(counts, limit)).sum())


def _peak_bytes() -> float:
    return (peak_megabytes() or 0.0) * _MEGABYTE


def _forget_memory() -> None:
    """Give freed memory back to the system, where it takes it, and measure the peak anew."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    forget_peak()


def _warnings(estimate: CostEstimate) -> tuple[str, ...]:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system says
        return ()
    if estimate.peak < memory:
        return ()
    return (
        f"the fit needs {estimate.peak / 1e9:,.1f} GB of memory, and this machine has "
        f"{memory / 1e9:,.1f} GB; a smaller --share or --max-length needs less",
    )


def _advice(
    estimate: CostEstimate,
    mining: MiningSettings,
    walks: NDArray[np.float64],
    long_fit: float,
    relations: int,
) -> tuple[str, ...]:
    """Return options that make a long fit shorter, the most useful first."""
    if estimate.seconds < long_fit:
        return ()
    advice = []
    if mining.max_length > 1:
        left = walks[:-1].sum() / max(walks.sum(), 1.0)
        advice.append(f"--max-length {mining.max_length - 1}: {left:.1%} of the walks")
    share = max(0.01, round(long_fit / estimate.seconds, 2))
    if share < 0.5:
        learned = f"learn from {share:.0%} of the facts, and walk on all of them"
        advice.append(f"--share {share * mining.share:.2g}: {learned}")
    if estimate.longest.name == "mine":
        facts = max(1, int(estimate.sample[1] * share / relations))
        advice.append(f"--sample {facts}: mine rules from so many facts of each relation")
    if estimate.limited:
        above = f"{estimate.limited:,} have more than the limit now"
        limit = max(1, mining.limit // 10)
        advice.append(f"--limit {limit}: sample the walks of more entities; {above}")
    if estimate.longest.name == "features":
        advice.append("--features none: rules alone")
    return tuple(advice)

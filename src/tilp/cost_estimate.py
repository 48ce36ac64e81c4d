"""Estimate the time and memory of a fit: fit small samples, extrapolate each stage.

Every sample is a real fit. It learns from a few facts, but walks on all of them, so that a query
takes as long as in the full fit. Each stage then grows linearly with the facts learned from.
"""

import contextlib
import ctypes
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.arrays import Floats, Ints
from tilp._utils.memory import forget_peak, memory_budget, peak_megabytes
from tilp._utils.progress import Stages
from tilp.datasets import world
from tilp.errors import NoRulesError, TilpError
from tilp.features.term_weights import count_removed
from tilp.graph import TemporalGraph
from tilp.model import FitContext, ModelSettings
from tilp.model.fit import SELECTION_STEPS, fit_model, held_out_facts
from tilp.parallel import Workers
from tilp.time.imputation import MissingDates
from tilp.walks.mining import mining_walker, target_facts

_RATIO = 4  # the large sample has this many times the facts of the small one
_FEWEST_FACTS = 40
_FACT_SECONDS = 4e-3  # rough cost of a fact; it only decides how large samples are


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
    walks: tuple[float, float]  # steps from one entity: mean over training queries, and maximum
    limited: int  # number of entities from which walks may take more steps than the limit
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
        totals = {"cpu": self.cpu, "seconds": self.seconds, "peak": self.peak}
        walks = {"mean": self.walks[0], "most": self.walks[1]}
        sample = {"facts": self.sample[0], "of": self.sample[1]}
        parts = {"stages": stages, "longest": self.longest.name, "walks": walks, "sample": sample}
        return asdict(self) | totals | parts


def estimate_cost(
    graph: TemporalGraph, settings: ModelSettings, *, threads: int = 1,
    memory: int | str | None = None, reading: float = 0.0, budget: float = 12.0,
    long_fit: float = 600.0, progress: Callable[[float], None] | None = None,
) -> CostEstimate:  # fmt: skip
    """Estimate the time and memory of a fit from fits of small samples; nothing is written.

    Which facts are sampled depends on the data, the settings and the budget, not on the machine.

    Args:
        graph: The facts to fit.
        settings: Settings of the fit, `TILP(...).settings_for(graph)`.
        threads: Number of threads of the fit. Default 1.
        memory: What the fit may take, as in `TILP`.
        reading: CPU seconds that reading the facts took. Default 0.
        budget: CPU seconds to spend on the largest sample, roughly. Default 12. Raise it for a
            better estimate.
        long_fit: Run time in seconds from which on there is advice. Default 600.
        progress: Called with the share of the work that is done.

    >>> import tilp
    >>> model = tilp.TILP(max_length=1, features="none")
    >>> graph = tilp.datasets.world(size=1_000).graph
    >>> cost = estimate_cost(graph, model.settings_for(graph), budget=0.5)
    >>> [stage.name for stage in cost.stages]
    ['read', 'prepare', 'mine', 'apply', 'select', 'train', 'time']
    """
    if not len(graph.rows("train")):
        raise TilpError("there are no training facts to learn from")
    mining, report = settings.mining, progress or (lambda _share: None)
    rows = target_facts(graph, mining)
    if not len(rows):
        raise TilpError(
            f"no training fact would be asked: share is {mining.share:g} of "
            f"{len(graph.targets):,}; choose a greater one"
        )
    # Compile all loops, or load them, on bundled facts.
    bundled = world(size=1_000).graph
    short = replace(settings, mining=replace(mining, max_length=1))
    _fit_sample(bundled, bundled.targets, short, threads, 200)
    report(0.1)
    began = time.process_time()
    dated = MissingDates.fit(graph, settings.missing, settings.seed).fill_graph(graph)
    steps = mining_walker(dated, mining).steps_from
    prepare = time.process_time() - began
    rows = np.random.default_rng([settings.seed, len(rows)]).permutation(rows)
    size = min(max(int(budget / _FACT_SECONDS), _FEWEST_FACTS), len(rows))
    samples = [_fit_sample(graph, rows, settings, threads, max(1, size // _RATIO))]
    report(0.3)
    while not samples[-1].rules or samples[-1].facts < size:
        larger = min(max(size, _RATIO * samples[-1].facts), len(rows))
        samples.append(_fit_sample(graph, rows, settings, threads, larger))
    growth = (len(rows) / samples[-1].facts) ** 0.5  # typically, of the number of rules
    rules = min(round(samples[-1].rules * growth), 2 * len(graph.relations) * settings.max_rules)
    ends = steps[np.concatenate([graph.subject[rows], graph.object[rows]])]
    walks, gradients = float(ends.sum()), float(settings.training.steps)
    held_out = len(held_out_facts(graph, settings)[0])

    def stacked(size: int) -> int:
        """Return how many facts the last stage queries if `size` of the rows are learned from."""
        return count_removed(graph, rows[:size]) + round(held_out * size / len(rows)) + 1

    work = {
        "mine": (walks, f"steps of {len(ends):,} queries, about {rules:,} rules"),
        "apply": (walks, f"steps of {len(ends):,} queries"),
        "select": (float(SELECTION_STEPS), "gradients at most"),
        "train": (gradients, "gradients at most"),
        "features": (float(len(ends)), "queries"),
        "stack": (2.0 * stacked(len(rows)), "queries"),
        "time": (float(len(graph.rows("train"))), "facts"),
    }
    stages = [
        StageCost("read", len(graph), "facts", reading, reading),
        StageCost("prepare", len(graph), "facts indexed", prepare, prepare),
    ]
    for name in samples[-1].taken:
        measure = stacked if name == "stack" else int
        taken = [(measure(each.facts), each.taken[name]) for each in samples if name in each.taken]
        if name == "time":  # every sample learns it from all facts
            taken = [(len(rows), samples[-1].taken[name])]
        cpu, serial, peak = (float(value) for value in extrapolate(taken, measure(len(rows))))
        cpu -= min(prepare, cpu / 2) if name == "mine" else 0.0  # a fit prepares before it mines
        serial, longest = min(serial, cpu), 0.0
        if name == "features":  # relations and directions are learned side by side
            longest = (cpu - serial) * float(np.bincount(graph.relation[rows]).max()) / len(ends)
        stages.append(StageCost(name, *work[name], cpu, serial, longest, peak))
    before, of_one = samples[0].before, (float(ends.mean()), float(steps.max()))
    limited, sizes = int((steps >= mining.limit).sum()), (samples[-1].facts, len(rows))
    estimate = CostEstimate(tuple(stages), threads, before, of_one, limited, sizes, rules)
    report(1.0)
    advice = _advice(estimate, settings, long_fit) if estimate.seconds >= long_fit else ()
    peak, allowed = estimate.peak / 1e9, memory_budget(memory) / 1e9
    warning = (
        f"the fit needs {peak:,.1f} GB of memory, and may take {allowed:,.1f} GB; allow more "
        "(--memory), or use a smaller --share or --max-length"
    )
    return replace(estimate, advice=advice, warnings=(warning,) if peak >= allowed else ())


def extrapolate(points: Sequence[tuple[int, Any]], size: float) -> Any:
    """Return values at `size`, on the line through the last two pairs of size and values.

    One pair is on a line through the origin. Values never fall, nor grow faster than the size.

    >>> float(extrapolate([(100, 10.0), (200, 15.0)], 400))
    25.0
    """
    (small, first), (large, last) = [(0, 0.0), *points][-2:]
    slope = np.clip((last - first) / (large - small), 0.0, last / large)
    return last + slope * (size - large)


@dataclass
class _Sample:
    """A measured fit: for each stage CPU seconds of all threads and of the main one, peak bytes."""

    facts: int
    before: float  # bytes in use before the fit
    rules: int = 0
    taken: dict[str, Floats] = field(default_factory=dict)


def _fit_sample(
    graph: TemporalGraph, rows: Ints, settings: ModelSettings, threads: int, size: int
) -> _Sample:
    """Fit the first `size` of the rows, and a like share of the held-out facts; measure stages."""
    walked_only = np.zeros(len(graph), np.bool_)
    walked_only[graph.span("train")] = True
    walked_only[rows[:size]] = False
    held_out = max(1, round(len(held_out_facts(graph, settings)[0]) * size / len(rows)))
    settings = replace(settings, mining=replace(settings.mining, share=1.0), held_out=held_out)
    _take_peak()
    sample, main_thread = _Sample(size, before=_take_peak()), threading.get_ident()
    clock = np.array([time.process_time(), time.thread_time()])

    def note(stage: str, share: float) -> None:
        if share < 1.0 or threading.get_ident() != main_thread:
            return
        taken = sample.taken.setdefault(stage, np.zeros(3))
        taken[:2] += np.array([time.process_time(), time.thread_time()]) - clock
        taken[2] = max(taken[2], _take_peak() - sample.before)
        clock[:] = time.process_time(), time.thread_time()

    expected = (NoRulesError,) if size < len(rows) else ()  # a larger sample may have rules
    ended = contextlib.suppress(*expected)
    with tempfile.TemporaryDirectory() as folder, Workers(threads) as workers, ended:
        context = FitContext(settings, workers, Path(folder) / "fit", Stages(note))
        fitted = fit_model(replace(graph, walked_only=walked_only), context)
        sample.rules = len(fitted.rules)
        train = sample.taken["train"]  # the fit may need every gradient
        train[:2] *= settings.training.steps / max(len(fitted.curve.train), 1)
    return sample


def _take_peak() -> float:
    """Return the peak in bytes; give freed memory back to the system, and measure anew."""
    peak = (peak_megabytes() or 0.0) * 1024.0**2
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    forget_peak()
    return peak


def _advice(estimate: CostEstimate, settings: ModelSettings, long_fit: float) -> tuple[str, ...]:
    """Return options that make a long fit shorter."""
    mining, share = settings.mining, max(0.01, round(long_fit / estimate.seconds, 2))
    length, limit = mining.max_length - 1, max(1, mining.limit // 10)
    limited = f"{estimate.limited:,} may pass the limit now"
    choices = {
        f"--max-length {length}: shorter rules": length > 0,
        f"--share {share * mining.share:.2g}: learn from {share:.0%} of the facts, and walk on all "
        "of them": share < 0.5,
        f"--limit {limit}: sample the walks of more entities; {limited}": estimate.limited > 0,
        "--features none: rules alone": estimate.longest.name == "features",
    }
    return tuple(text for text, helps in choices.items() if helps)

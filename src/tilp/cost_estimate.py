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
from tilp.model.fit import fit_model, held_out_facts
from tilp.parallel import Workers
from tilp.walks.mining import target_facts

_RATIO = 4  # the large sample has this many times the facts of the small one
_FEWEST_FACTS = 40
_FACT_SECONDS = 4e-3  # rough cost of a fact; it only decides how large samples are


@dataclass(frozen=True)
class StageCost:
    """Estimated time and memory of one stage."""

    name: str  # as `fit` reports it
    cpu: float  # CPU seconds
    peak: float = 0.0  # peak memory in bytes, beside what was in use before the first stage


@dataclass(frozen=True)
class CostEstimate:
    """Estimated time and memory of a fit."""

    stages: tuple[StageCost, ...]
    before: float  # bytes in use before the first stage: the program, the facts and their index
    sample: tuple[int, int]  # number of facts in the largest sample, and in the full fit
    warnings: tuple[str, ...] = ()  # reasons why the fit would fail

    @property
    def cpu(self) -> float:
        """CPU seconds of all stages."""
        return sum(stage.cpu for stage in self.stages)

    @property
    def peak(self) -> float:
        """Peak memory in bytes."""
        return self.before + max(stage.peak for stage in self.stages)

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        sample = {"facts": self.sample[0], "of": self.sample[1]}
        return asdict(self) | {"cpu": self.cpu, "peak": self.peak, "sample": sample}


def estimate_cost(
    graph: TemporalGraph, settings: ModelSettings, *, threads: int = 1,
    memory: int | str | None = None, reading: float = 0.0, budget: float = 12.0,
    progress: Callable[[float], None] | None = None,
) -> CostEstimate:  # fmt: skip
    """Estimate the time and memory of a fit from fits of small samples; nothing is written.

    Which facts are sampled depends on the data, the settings and the budget, not on the machine.

    Args:
        graph: The facts to fit.
        settings: Settings of the fit, `TILP(...).settings_for(graph)`.
        threads: Number of threads of the fit. Default 1. More take more memory.
        memory: What the fit may take, as in `TILP`.
        reading: CPU seconds that reading the facts took. Default 0.
        budget: CPU seconds to spend on the largest sample, roughly. Default 12. Raise it for a
            better estimate.
        progress: Called with the share of the work that is done.

    >>> import tilp
    >>> model = tilp.TILP(max_length=1, features="none")
    >>> graph = tilp.datasets.world(size=1_000).graph
    >>> cost = estimate_cost(graph, model.settings_for(graph), budget=0.5)
    >>> [stage.name for stage in cost.stages]
    ['read', 'mine', 'apply', 'select', 'train', 'time']
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
    rows = np.random.default_rng([settings.seed, len(rows)]).permutation(rows)
    size = min(max(int(budget / _FACT_SECONDS), _FEWEST_FACTS), len(rows))
    samples = [_fit_sample(graph, rows, settings, threads, max(1, size // _RATIO))]
    report(0.3)
    while not samples[-1].found_rules or samples[-1].facts < size:
        larger = min(max(size, _RATIO * samples[-1].facts), len(rows))
        samples.append(_fit_sample(graph, rows, settings, threads, larger))
    held_out = len(held_out_facts(graph, settings)[0])

    def stacked(size: int) -> int:
        """Return how many facts the last stage queries if `size` of the rows are learned from."""
        return count_removed(graph, rows[:size]) + round(held_out * size / len(rows)) + 1

    stages = [StageCost("read", reading)]
    for name in samples[-1].taken:
        measure = stacked if name == "stack" else int
        taken = [(measure(each.facts), each.taken[name]) for each in samples if name in each.taken]
        if name == "time":  # every sample learns it from all facts
            taken = [(len(rows), samples[-1].taken[name])]
        values = (float(value) for value in extrapolate(taken, measure(len(rows))))
        stages.append(StageCost(name, *values))
    report(1.0)
    sizes = samples[-1].facts, len(rows)
    estimate = CostEstimate(tuple(stages), samples[0].before, sizes)
    peak, allowed = estimate.peak / 1e9, memory_budget(memory) / 1e9
    warning = (
        f"the fit needs {peak:,.1f} GB of memory, and may take {allowed:,.1f} GB; allow more "
        "(--memory), learn from fewer facts (--effort quick), or find shorter rules (--max-length)"
    )
    return replace(estimate, warnings=(warning,)) if peak >= allowed else estimate


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
    """A measured fit: CPU seconds and peak bytes of each stage."""

    facts: int
    before: float  # bytes in use before the fit
    found_rules: bool = False
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
    clock = time.process_time()

    def note(stage: str, share: float) -> None:
        nonlocal clock
        if share < 1.0 or threading.get_ident() != main_thread:
            return
        taken = sample.taken.setdefault(stage, np.zeros(2))
        taken[0] += time.process_time() - clock
        taken[1] = max(taken[1], _take_peak() - sample.before)
        clock = time.process_time()

    expected = (NoRulesError,) if size < len(rows) else ()  # a larger sample may have rules
    ended = contextlib.suppress(*expected)
    with tempfile.TemporaryDirectory() as folder, Workers(threads) as workers, ended:
        context = FitContext(settings, workers, Path(folder) / "fit", Stages(note))
        fit_model(replace(graph, walked_only=walked_only), context)
        sample.found_rules = True
    return sample


def _take_peak() -> float:
    """Return the peak in bytes; give freed memory back to the system, and measure anew."""
    peak = (peak_megabytes() or 0.0) * 1024.0**2
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    forget_peak()
    return peak

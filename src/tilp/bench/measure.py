"""Measure the seconds and the memory of a fit's stages, in a process of its own."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.files import unique_file_name
from tilp.bench.jobs import Job, Workspace
from tilp.bench.memory import forget_peak, peak_megabytes
from tilp.bench.methods import Method
from tilp.bench.sources import Source
from tilp.datasets import world
from tilp.errors import TilpError, TilpWarning
from tilp.features.paper.features import PaperFeatures, walked_relations
from tilp.graph import QueryTable, TemporalGraph
from tilp.model import TILP
from tilp.parallel import Workers
from tilp.splits import few
from tilp.time.imputation import MissingDates
from tilp.types import Walked
from tilp.walks.mining import target_facts

STAGES = {
    "search": "rule search",
    "arriving": "rules applied to train",
    "training": "training of rule weights",
    "distributions": "temporal distributions",
    "features": "training of features",
    "application": "rules applied to valid",
    "scoring": "feature scoring on valid",
}
_OF_FIT = {
    "mine": "search",
    "apply": "arriving",
    "train": "training",
    "choose": "training",
    "fold": "features",
    "features": "features",
}
_BATCH = 512
_WARM_SIZE = 1_000  # facts of the world on which everything runs once before
_WARM_LENGTH = 2


@dataclass(frozen=True)
class MeasurementJob(Job):
    """One fit of a form of TILP to a share of the facts, and its model applied to valid."""

    source: Source
    method: Method
    length: int
    threads: int
    share: float = 1.0
    seed: int = 0

    alone = True

    @property
    def name(self) -> str:
        """Data set, share, method, length and threads."""
        parts = (
            "cost",
            unique_file_name(self.source.name),
            f"{self.share:g}-of-train",
            unique_file_name(self.method.name),
            f"length-{self.length}",
            f"threads-{self.threads}",
        )
        return ".".join(parts)

    def identity(self) -> dict[str, Any]:
        """Return all that decides what is measured; the result depends on the machine."""
        return {
            "data": self.source.fingerprint,
            "method": self._method.identity(self.seed),
            "threads": self.threads,
            "share": self.share,
        }

    @property
    def _method(self) -> Method:
        return self.method.with_choices(max_length=self.length)

    def run(self, workspace: Workspace) -> dict[str, Any]:
        """Measure in a new process, whose peak memory is that of the stages alone."""
        del workspace
        try:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                measured = pool.submit(_measure, self).result()
        except BrokenProcessPool as failure:
            raise TilpError(
                f"{self.name} could not be measured: its process ended, perhaps for lack of memory"
            ) from failure
        return {
            "data": {"name": self.source.name, "fingerprint": self.source.fingerprint},
            "method": {"name": self.method.name, **self._method.identity(self.seed)},
            "length": self.length,
            "threads": self.threads,
            "share": self.share,
            "seed": self.seed,
            **measured,
        }


class _Watch:
    """Records the seconds and the peak memory of stages."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.megabytes: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Record a stage."""
        forget_peak()
        began = time.perf_counter()
        yield
        self.seconds[stage] += time.perf_counter() - began
        self.record_peak(stage)

    def record_peak(self, stage: str) -> None:
        """Record the peak since the last record as a stage's."""
        self.megabytes[stage] = max(self.megabytes.get(stage, 0.0), peak_megabytes() or 0.0)
        forget_peak()


def _measure(job: MeasurementJob) -> dict[str, Any]:
    """Do the work of the new process."""
    warnings.simplefilter("ignore", TilpWarning)  # they came when the plan began
    method, graph = job._method, job.source.graph
    if job.share < 1.0:
        graph = few(graph, job.share, seed=job.seed, walked=Walked.REDUCED)
    warm = method.with_choices(max_length=min(job.length, _WARM_LENGTH))
    _stages(warm, world(0, _WARM_SIZE).graph, job.threads, job.seed)
    forget_peak()
    before = peak_megabytes()
    watch, model = _stages(method, graph, job.threads, job.seed)
    heads = Counter(str(mined.rule.head) for mined in model.rules())
    return {
        "seconds": dict(watch.seconds),
        "megabytes": watch.megabytes,
        "megabytes_before": before,
        "facts": len(graph.rows("train")),
        "positives": 2 * len(target_facts(graph, model.settings.mining)),
        "queries": 2 * len(graph.rows("valid")),
        "relations": len(graph.relations),
        "rules": len(model.rules()),
        "rules_of_one_head": max(heads.values()),
    }


def _stages(method: Method, graph: TemporalGraph, threads: int, seed: int) -> tuple[_Watch, TILP]:
    """Fit a graph and score its valid split, and record each stage."""
    watch = _Watch()
    model = method.tilp(seed, threads)
    forget_peak()

    def record(stage: str, share: float) -> None:
        if share >= 1.0:
            watch.record_peak(_OF_FIT[stage])

    with tempfile.TemporaryDirectory() as folder:
        model.fit(graph, folder=Path(folder) / "fit", progress=record)
    for stage, seconds in model.seconds.items():
        watch.seconds[_OF_FIT[stage]] += seconds
    settings = model.settings
    filled = MissingDates.fit(graph, settings.missing, settings.seed).fill_graph(graph)
    with watch("distributions"), Workers(threads) as workers:
        relations = walked_relations(filled, model.rules())
        PaperFeatures.fit(filled, relations, settings.mining.max_length, workers=workers)
    _score(model, graph, threads, watch)
    return watch, model


def _score(model: TILP, graph: TemporalGraph, threads: int, watch: _Watch) -> None:
    """Apply the rules to the queries of valid, and then score them."""
    rows = np.asarray(graph.rows("valid"), np.int64)
    queries = QueryTable.of_facts(graph, rows, walked=False)
    order = np.argsort(queries.subject, kind="stable")
    parts = [queries[order[begin : begin + _BATCH]] for begin in range(0, len(order), _BATCH)]
    scorer = model.scorer()
    rules = scorer.rule_scorer
    with Workers(threads) as workers:
        with watch("application"):
            for _ in workers.map(rules.apply_rules, parts):
                pass
        with watch("scoring"):
            for _ in workers.map(scorer, parts):
                pass
    # Scoring applies the rules too; the rest of its time is that of the features.
    watch.seconds["scoring"] = max(watch.seconds["scoring"] - watch.seconds["application"], 0.0)

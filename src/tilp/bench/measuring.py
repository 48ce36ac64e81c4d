"""`Measurement`: what the stages of one fit take, in a process of its own.

Run as a program, it is that process: it reads what to measure from standard input, and writes what
it found to the file that is named.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.files import unique_file_name
from tilp.bench.jobs import Job, Place
from tilp.bench.memory import forget_peak, peak_megabytes
from tilp.bench.methods import Method
from tilp.bench.sources import Source
from tilp.datasets import world
from tilp.errors import TilpError
from tilp.features.paper.features import PaperFeatures
from tilp.features.paper.fit import walked_relations
from tilp.graph import QueryTable, TemporalGraph
from tilp.model import TILP
from tilp.parallel import Workers
from tilp.splits import few
from tilp.time.imputation import MissingDates
from tilp.types import BaseMethod, Walked
from tilp.walks.mining import target_facts

__all__ = ["STAGES", "Measurement"]

STAGES = {
    "search": "rule search",
    "arriving": "rules applied to train",
    "training": "training of rule weights",
    "distributions": "temporal distributions",
    "features": "training of features",
    "application": "rules applied to valid",
    "scoring": "feature scoring on valid",
}
"""What is measured, in words."""

_OF_FIT = {
    "mine": "search",
    "apply": "arriving",
    "train": "training",
    "choose": "training",
    "fold": "features",
    "features": "features",
}
_BATCH = 512
_WARM_SIZE = 1_000  # facts of a world on which everything runs once before it is measured
_WARM_LENGTH = 2


@dataclass(frozen=True)
class Measurement(Job):
    """One fit, and rules and features applied to valid.

    Attributes:
        source: the data set.
        method: a form of TILP.
        length: of its rules at the most.
        threads: that it may use.
        share: of the training facts that there are at all.
        seed: for everything that is drawn.
    """

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
        words = (
            unique_file_name(self.source.name),
            f"{self.share:g}-of-train",
            unique_file_name(self.method.name),
            f"length-{self.length}",
            f"threads-{self.threads}",
        )
        return ".".join(("cost", *words))

    def identity(self) -> dict[str, Any]:
        """All that decides what is measured; a machine decides what comes out."""
        return {
            "data": self.source.fingerprint,
            "method": self._method.identity(self.seed),
            "threads": self.threads,
            "share": self.share,
        }

    @property
    def _method(self) -> Method:
        return self.method.with_choices(max_length=self.length)

    def run(self, place: Place) -> dict[str, Any]:
        """Measure in a child process."""
        spec = {
            "source": self.source.to_json(),
            "base": self.method.base.value,
            "choices": dict(self._method.choices),
            "threads": self.threads,
            "share": self.share,
            "seed": self.seed,
        }
        place.folder.mkdir(parents=True, exist_ok=True)
        out = place.folder / "measured.json"
        done = subprocess.run(
            [sys.executable, "-m", "tilp.bench.measuring", str(out)],
            input=json.dumps(spec, default=list),
            text=True,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["nothing was said"]
            raise TilpError(f"{self.name} could not be measured: {last[0]}")
        found = json.loads(out.read_text(encoding="utf-8"))
        return {
            "data": {"name": self.source.name, "fingerprint": self.source.fingerprint},
            "method": {"name": self.method.name, **self._method.identity(self.seed)},
            "length": self.length,
            "threads": self.threads,
            "share": self.share,
            "seed": self.seed,
            **found,
        }


class _Watch:
    """Times stages, and the memory that each takes at the most."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.megabytes: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """What is done meanwhile is the stage's."""
        forget_peak()
        began = time.perf_counter()
        yield
        self.seconds[stage] += time.perf_counter() - began
        self.note(stage)

    def note(self, stage: str) -> None:
        """The peak since the last look is a stage's."""
        self.megabytes[stage] = max(self.megabytes.get(stage, 0.0), peak_megabytes() or 0.0)
        forget_peak()


def _measure(spec: dict[str, Any]) -> dict[str, Any]:
    """What a child process does."""
    method = Method("measured", BaseMethod(spec["base"]), spec["choices"])
    graph = Source.from_json(spec["source"]).graph
    if spec["share"] < 1.0:
        graph = few(graph, spec["share"], seed=spec["seed"], walked=Walked.REDUCED)
    warm = method.with_choices(max_length=min(method.choices["max_length"], _WARM_LENGTH))
    _stages(warm, world(0, _WARM_SIZE).graph, spec["threads"], spec["seed"])
    forget_peak()
    before = peak_megabytes()
    watch, model = _stages(method, graph, spec["threads"], spec["seed"])
    heads = Counter(str(one.rule.head) for one in model.rules())
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
    """Fit a graph and ask its valid split, watched."""
    watch = _Watch()
    model = method.tilp(seed, threads)
    forget_peak()

    def note(stage: str, share: float) -> None:
        if share >= 1.0:
            watch.note(_OF_FIT[stage])

    with tempfile.TemporaryDirectory() as folder:
        model.fit(graph, folder=Path(folder) / "fit", progress=note)
    for stage, seconds in model.seconds.items():
        watch.seconds[_OF_FIT[stage]] += seconds
    settings = model.settings
    settled = MissingDates.fit(graph, settings.missing, settings.seed).fill_graph(graph)
    with watch("distributions"), Workers(threads) as workers:
        relations = walked_relations(settled, model.rules())
        PaperFeatures.fit(settled, relations, settings.mining.max_length, workers=workers)
    _ask(model, graph, threads, watch)
    return watch, model


def _ask(model: TILP, graph: TemporalGraph, threads: int, watch: _Watch) -> None:
    """The queries of valid: rules applied to them, and then all else."""
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
    # Rules are applied to be scored: what that takes more is the features'.
    watch.seconds["scoring"] = max(watch.seconds["scoring"] - watch.seconds["application"], 0.0)


if __name__ == "__main__":
    _spec = json.loads(sys.stdin.read())
    Path(sys.argv[1]).write_text(json.dumps(_measure(_spec)), encoding="utf-8")

"""Jobs of a plan, the files of their results, and running them several at a time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from tilp._utils.files import write_text
from tilp._utils.progress import Progress
from tilp._version import __version__, code_versions
from tilp.errors import TilpError, TilpWarning

Result = dict[str, Any]


@dataclass(frozen=True)
class Workspace:
    """Where and how a job is run; a job that was killed continues from what `folder` holds."""

    folder: Path
    threads: int  # results do not depend on it
    advance: Progress


class Job(ABC):
    """One run: the same name and key give the same result."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A readable name, unique within a plan."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return all that decides the result, apart from the code."""

    @abstractmethod
    def run(self, workspace: Workspace) -> Result:
        """Run it, and return plain values."""

    def key(self) -> str:
        """Return the digest of what decides the result, and of the code that computes it."""
        text = json.dumps({**code_versions(), **self.identity()}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def merge_jobs(jobs: Iterable[Job]) -> list[Job]:
    """Return each job once, in the order of their first appearance."""
    merged: dict[str, Job] = {}
    for job in jobs:
        if merged.setdefault(job.name, job) != job:
            raise TilpError(
                f"two different runs of the plan have the name {job.name}; give data sets, "
                "methods and folders names that differ in letters and digits"
            )
    return list(merged.values())


@dataclass
class Results:
    """Results of jobs by their names, and why others failed."""

    done: dict[str, Result] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def of_all(self, jobs: Iterable[Job]) -> list[Result]:
        """Return the results of the jobs that did not fail."""
        return [self.done[job.name] for job in jobs if job.name in self.done]


class Store:
    """The results in the folder of a report: one JSON file per job, complete or not there."""

    def __init__(self, folder: Path) -> None:
        self._runs, self.work = folder / "runs", folder / "unfinished"

    def clear(self, work: Path) -> None:
        """Remove a working folder, and the folder around it if it was the last."""
        shutil.rmtree(work, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.work.rmdir()

    def load(self, job: Job, key: str) -> Result | None:
        """Return the result of an earlier run, or None if there is none of this key."""
        path = self._runs / f"{job.name}.json"
        try:
            result: Result = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as failure:
            message = f"{path} cannot be read ({failure}); remove it to run it again"
            raise TilpError(message) from failure
        return result if isinstance(result, dict) and result.get("key") == key else None

    def save(self, job: Job, key: str, result: Result) -> Result:
        """Write the result of a job, and return it as it will be read."""
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        record = {"format": "tilp bench run", "tilp": __version__, "key": key, "finished": finished}
        text = json.dumps(record | result, indent=1, ensure_ascii=False, default=str)
        self._runs.mkdir(parents=True, exist_ok=True)
        write_text(self._runs / f"{job.name}.json", text + "\n")
        return dict(json.loads(text))


class Watcher(Protocol):
    """Receives the progress of a plan."""

    def begins(self, job: Job) -> None:
        """A job begins."""

    def advances(self, stage: str, share: float) -> None:
        """A share of a stage is done."""

    def ends(self, job: Job, outcome: str, position: int, count: int) -> None:
        """Job `position` of `count` ended: `run` now, `reused` from before, or why it failed."""


Ended = tuple[Job, Result | str, bool]  # a job, its result or why it failed, whether run now


def run_jobs(
    jobs: Sequence[Job], store: Store, threads: int, processes: int, watcher: Watcher | None = None
) -> Iterator[Ended]:
    """Yield each job with its result as it ends; with several processes, that many at a time."""
    if processes > 1:
        yield from _run_pooled(jobs, store, threads, processes)
        return
    for job in jobs:
        if watcher:
            watcher.begins(job)
        yield _run_job(job, store, threads, watcher)


def _run_pooled(jobs: Sequence[Job], store: Store, threads: int, processes: int) -> Iterator[Ended]:
    threads = max(1, threads // processes)
    quiet = partial(warnings.simplefilter, "ignore", TilpWarning)  # they came when the plan began
    with ProcessPoolExecutor(processes, get_context("spawn"), quiet) as pool:
        runs = [pool.submit(_run_job, job, store, threads) for job in jobs]
        try:
            for done in as_completed(runs):
                yield done.result()
        except BrokenProcessPool as failure:
            remedy = "run the same command again with fewer runs at a time: finished runs are kept"
            ended = "the process of a run ended by itself, perhaps for lack of memory"
            raise TilpError(f"{ended}; {remedy}") from failure
        finally:
            pool.shutdown(cancel_futures=True)


def _run_job(job: Job, store: Store, threads: int, watcher: Watcher | None = None) -> Ended:
    advance: Progress = watcher.advances if watcher else lambda _stage, _share: None
    try:
        key = job.key()
        if (result := store.load(job, key)) is not None:
            return job, result, False
        folder = store.work / f"{job.name}-{key[:12]}"
        result = store.save(job, key, job.run(Workspace(folder, threads, advance)))
        store.clear(folder)
    except TilpError as failure:
        return job, str(failure), False
    return job, result, True

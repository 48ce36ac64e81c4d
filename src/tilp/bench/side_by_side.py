"""`Runner`: jobs one after the other, or several at a time, each in a process of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import groupby, islice
from multiprocessing import get_context
from typing import Any, Protocol

from tilp.bench.jobs import Advance, Failed, Job, Place, Store
from tilp.errors import TilpError, TilpWarning

__all__ = ["Done", "Runner", "Watcher"]


class Watcher(Protocol):
    """Is told how far a plan is."""

    def begins(self, job: Job) -> None:
        """A job begins."""

    def advances(self, stage: str, share: float) -> None:
        """A stage of the job is so far."""

    def ends(self, job: Job, outcome: str, number: int, count: int) -> None:
        """A job has ended, the so many-th of so many: `run`, `kept` from before, or why not."""


@dataclass(frozen=True)
class Done:
    """What was done for a job.

    Attributes:
        found: its result.
        now: whether it was run now.
    """

    found: dict[str, Any] | Failed
    now: bool = False

    @property
    def words(self) -> str:
        """In a word, or why it failed."""
        if isinstance(self.found, Failed):
            return self.found.reason
        return "run" if self.now else "kept"


@dataclass(frozen=True)
class Runner:
    """Sees that the results of jobs are there.

    Attributes:
        store: of results.
        threads: for all of them.
        processes: jobs at a time, but for those that run alone.
    """

    store: Store
    threads: int
    processes: int = 1

    def run(self, jobs: Sequence[Job], watcher: Watcher | None) -> Iterator[tuple[Job, Done]]:
        """What was done for each job, as they end.

        Raises:
            TilpError: a process ended before its job did.
        """
        if self.processes > 1:
            yield from self._in_processes(job for job in jobs if not job.alone)
        for job in jobs:
            if job.alone or self.processes == 1:
                if watcher is not None:
                    watcher.begins(job)
                advance = _nothing if watcher is None else watcher.advances
                yield job, _done(job, self.store, self.threads, advance)

    def _in_processes(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Done]]:
        threads = max(1, self.threads // self.processes)
        ordered = sorted(jobs, key=lambda job: job.group)
        # What jobs of a group share is made by the first: each waits for the one before it.
        groups = (list(group) for _, group in groupby(ordered, lambda job: job.group))
        with ProcessPoolExecutor(self.processes, get_context("spawn")) as pool:
            under_way: dict[Future[Done], list[Job]] = {}

            def begin(group: list[Job]) -> None:
                under_way[pool.submit(_quietly_done, group[0], self.store, threads)] = group

            for group in islice(groups, self.processes):
                begin(group)
            try:
                while under_way:
                    for one in wait(under_way, return_when=FIRST_COMPLETED).done:
                        job, *left = under_way.pop(one)
                        if left := left or next(groups, []):
                            begin(left)
                        yield job, one.result()
            except BrokenProcessPool as failure:
                raise TilpError(
                    "the process of a run ended by itself, perhaps for want of memory; run the "
                    "same again, with fewer at a time: what is done is kept"
                ) from failure
            finally:
                pool.shutdown(cancel_futures=True)


def _quietly_done(job: Job, store: Store, threads: int) -> Done:
    with warnings.catch_warnings():
        # What is wrong with the data was told when the plan began.
        warnings.simplefilter("ignore", TilpWarning)
        return _done(job, store, threads, _nothing)


def _nothing(_stage: str, _share: float) -> None:
    """Makes nothing of how far a job is."""


def _done(job: Job, store: Store, threads: int, advance: Advance) -> Done:
    """See that the result of a job is there."""
    try:
        key = job.key()
        found = store.load(job, key)
        if found is not None:
            return Done(found)
        work = store.work(job, key)
        found = store.save(job, key, job.run(Place(work, store.shared, threads, advance)))
        store.clear(work)
    except TilpError as failure:
        return Done(Failed(job.name, str(failure)))
    return Done(found, now=True)

"""`Job`: one run of a plan, and the file that its result is kept in."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from tilp._utils.files import new_file
from tilp._utils.versions import code_versions
from tilp._version import __version__
from tilp.errors import TilpError

__all__ = ["Advance", "Failed", "Job", "Place", "Results", "Store", "digest_of", "merged"]

Advance = Callable[[str, float], None]
"""Called with the name of a stage and the share of it that is done."""

Result = dict[str, Any]

_FORMAT = "tilp bench run"


@dataclass(frozen=True)
class Place:
    """Where and how a job is run.

    Attributes:
        folder: to work in; what a run that was killed left there is used.
        shared: a folder for what several jobs of a plan need.
        threads: do not change results.
        advance: told how far each stage is.
    """

    folder: Path
    shared: Path
    threads: int
    advance: Advance


class Job(ABC):
    """One run: same name and same key, same result.

    Attributes:
        alone: whether it says something only where nothing runs beside it.
    """

    alone: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """Readable, and of one plan alone this job's."""

    @property
    def group(self) -> str:
        """Jobs of one group use the same model, and run one after the other."""
        return self.name

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """All that decides the result, but the code.

        Raises:
            TilpError: the data set does not allow the job.
        """

    @abstractmethod
    def run(self, place: Place) -> Result:
        """Do it, and tell as plain values.

        Raises:
            TilpError: it cannot be done.
        """

    def satisfied_by(self, result: Result) -> bool:
        """Whether a result of the same key has all that is asked for."""
        del result
        return True

    def merged_with(self, other: Job) -> Job:
        """One job for what this one and another of the same name ask for.

        Raises:
            TilpError: they are different jobs.
        """
        if other != self:
            raise TilpError(
                f"two different runs of the plan have the name {self.name}; give data sets, "
                "methods and folders names that differ in letters and digits"
            )
        return self

    def key(self) -> str:
        """The digest of all that decides the result."""
        return digest_of(self.identity())


def digest_of(decided: Mapping[str, Any]) -> str:
    """The digest of what decides a result, and of the code that makes it."""
    text = json.dumps({**code_versions(), **decided}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def merged(jobs: Iterable[Job]) -> list[Job]:
    """Each job once, in the order in which they are first asked for."""
    found: dict[str, Job] = {}
    for job in jobs:
        found[job.name] = found[job.name].merged_with(job) if job.name in found else job
    return list(found.values())


@dataclass(frozen=True)
class Failed:
    """A job that could not be done.

    Attributes:
        job: its name.
        reason: why.
    """

    job: str
    reason: str


class Results:
    """What came of jobs, by their names."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}
        self.failed: dict[str, Failed] = {}

    def add(self, job: Job, result: Result | Failed) -> None:
        """Keep what came of a job."""
        if isinstance(result, Failed):
            self.failed[job.name] = result
        else:
            self._results[job.name] = result

    def of(self, job: Job) -> Result | None:
        """The result of a job; None where it failed."""
        return self._results.get(job.name)

    def reasons(self, jobs: Iterable[Job]) -> list[str]:
        """Why some of the jobs failed, each reason once."""
        found = (self.failed[job.name].reason for job in jobs if job.name in self.failed)
        return list(dict.fromkeys(found))

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def __len__(self) -> int:
        return len(self._results)


class Store:
    """The folder of results, one JSON file a job, each whole or not there.

    Args:
        folder: of the report.
    """

    def __init__(self, folder: Path) -> None:
        self._runs, self._work = folder / "runs", folder / "unfinished"

    def path(self, job: Job) -> Path:
        """The file of a job's result."""
        return self._runs / f"{job.name}.json"

    def work(self, job: Job, key: str) -> Path:
        """The folder that a job works in."""
        return self._work / f"{job.name}-{key[:12]}"

    @property
    def shared(self) -> Path:
        """The folder for what several jobs need."""
        return self._work / "shared"

    def clear(self, work: Path) -> None:
        """Remove what was worked with; and the folder of such, when it was the last."""
        shutil.rmtree(work, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._work.rmdir()

    def load(self, job: Job, key: str) -> Result | None:
        """The result of a job that was run before; None where it is another's, or not there."""
        try:
            result: Result = json.loads(self.path(job).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as failure:
            raise TilpError(
                f"{self.path(job)} cannot be read ({failure}); remove it to run it again"
            ) from failure
        same = isinstance(result, dict) and result.get("key") == key
        return result if same and job.satisfied_by(result) else None

    def save(self, job: Job, key: str, result: Result) -> Result:
        """Write the result of a job."""
        noted = {
            "format": _FORMAT,
            "tilp": __version__,
            "key": key,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            **result,
        }
        self._runs.mkdir(parents=True, exist_ok=True)
        with new_file(self.path(job)) as partial:
            text = json.dumps(noted, indent=1, ensure_ascii=False, default=str)
            partial.write_text(text + "\n", encoding="utf-8")
        # As it is read back: the same, whether it was run now or before.
        return dict(json.loads(self.path(job).read_text(encoding="utf-8")))

"""Data of experiments: where it comes from, and how a setting changes it."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

from tilp._utils.files import unique_file_name
from tilp.bench.report import TEXTS
from tilp.bench.schema import Count, Date, Seed, Share
from tilp.datasets import PUBLISHED, get, world
from tilp.errors import TilpError
from tilp.graph import SPLITS, TemporalGraph
from tilp.io import read
from tilp.splits import balanced, biased, few, released, time_shift
from tilp.types import LateEnds, WalkGraph


@dataclass(frozen=True)
class WorldSize:
    """Which bundled world: about how many facts, and its seed."""

    size: Count = 10_000
    seed: Seed = 0


@dataclass(frozen=True)
class Source:
    """A data set, read when it is first used."""

    name: str  # in reports and in the files of runs
    location: Path | WorldSize

    def __reduce__(self) -> tuple[Any, ...]:
        return _cached_source, (self.name, self.location)  # another process reads the data, once

    @cached_property
    def graph(self) -> TemporalGraph:
        if isinstance(self.location, WorldSize):
            return world(self.location.seed, self.location.size).graph
        return read(self.location)

    @cached_property
    def fingerprint(self) -> str:
        return self.graph.fingerprint()

    def within(self, folder: str) -> Path:
        """Return a folder within the data set's folder."""
        if isinstance(self.location, WorldSize) or not self.location.is_dir():
            raise TilpError(f"{self.name} is not a folder and has no {folder} in it")
        return self.location / folder


@lru_cache(2)
def _cached_source(name: str, location: Path | WorldSize) -> Source:
    return Source(name, location)  # the same every time, so that its data stay in memory


def find_source(data: str) -> Source:
    """Return the data set of a file, a folder or a published set, downloaded if it is not there."""
    path = Path(data).expanduser()
    if path.exists():
        path = path.resolve()
        return Source(path.name if path.is_dir() else path.name.split(".")[0], path)
    if data in PUBLISHED:
        return Source(data, get(data))
    missing = f"{data}: there is no such file or folder, and no published set of that name"
    raise TilpError(f"{missing}; there are {', '.join(PUBLISHED)}")


def world_source(which: WorldSize) -> Source:
    """Return a bundled world as a data set.

    >>> world_source(WorldSize(2_000)).name
    'world-2000'
    """
    seed = f"-{which.seed}" if which.seed else ""
    return Source(f"world-{which.size}{seed}", which)


@dataclass(frozen=True)
class Case:
    """The graphs of one run."""

    learned: TemporalGraph
    applied: TemporalGraph  # evidence of the queries
    known: TemporalGraph  # with the queries' split, and the known answers to filter
    # Splits whose facts before a query are its evidence; None for train, whatever the dates.
    evidence: tuple[str, ...] | None = None

    @classmethod
    def of(cls, graph: TemporalGraph, **more: Any) -> Self:
        return cls(graph, graph, graph, **more)


@dataclass(frozen=True)
class Setting(ABC):
    """How a data set is changed before a method sees it; its fields are keys of a plan."""

    kind: ClassVar[str]
    seeded: ClassVar[bool] = False  # whether another seed gives other graphs

    @property
    def name(self) -> str:
        """The name in the files of runs."""
        return "-".join([self.kind, *(str(value) for value in astuple(self) if value)])

    @property
    def description(self) -> str:
        about = str(TEXTS["settings"][self.kind])
        parameters = [f"{key} = {value}" for key, value in asdict(self).items() if value]
        return f"{about} ({', '.join(parameters)})" if parameters else about

    @abstractmethod
    def case(self, source: Source, seed: int) -> Case:
        """Return the graphs, or raise a `TilpError` if the data set does not allow it."""

    def identity(self, source: Source) -> dict[str, Any]:  # noqa: ARG002
        """Return all that decides the graphs, apart from the facts and the seed."""
        return {"kind": self.kind, **asdict(self)}


class Whole(Setting):
    """The data set as it is."""

    kind, name = "none", "whole"

    def case(self, source: Source, seed: int) -> Case:  # noqa: ARG002
        return Case.of(source.graph)


class Forecast(Setting):
    """Forecasting: every fact before the query is evidence, of any split."""

    kind = "forecast"

    def case(self, source: Source, seed: int) -> Case:  # noqa: ARG002
        return Case.of(source.graph, evidence=SPLITS)


class Balanced(Setting):
    """As many test facts of each relation: what biased data are compared with."""

    kind, seeded = "balanced", True

    def case(self, source: Source, seed: int) -> Case:
        return Case.of(balanced(source.graph, seed=seed))


@dataclass(frozen=True)
class Few(Setting):
    """A share of the training facts; the others stay in the graph (`kept`) or go (`reduced`)."""

    share: Share
    walked: WalkGraph = field(default=WalkGraph.FULL, metadata={"key": "graph"})

    kind, seeded = "few", True

    def case(self, source: Source, seed: int) -> Case:
        sample = few(source.graph, self.share, seed=seed, walked=self.walked)
        return Case(sample, sample, source.graph)  # answers of the other facts stay known


@dataclass(frozen=True)
class Biased(Setting):
    """`Balanced`, with a share of one relation's training facts removed."""

    relation: str  # id
    removed: float = 0.5
    walked: WalkGraph = field(default=WalkGraph.REDUCED, metadata={"key": "graph"})
    label: str = field(default="", metadata={"key": None})  # of the relation, for names of files

    kind, seeded = "biased", True

    @property
    def name(self) -> str:
        names = dict.fromkeys(filter(None, (self.relation, self.label)))
        relation = "-".join(unique_file_name(name) for name in names)
        return f"biased-{self.removed}-{self.walked.value}-{relation}"

    def case(self, source: Source, seed: int) -> Case:
        whole = balanced(source.graph, seed=seed)
        reduced = biased(whole, self.relation, removed=self.removed, seed=seed, walked=self.walked)
        return Case(reduced, reduced, whole)  # removed facts are known answers


@dataclass(frozen=True)
class TimeShifted(Setting):
    """All facts split again by their start; later starts than `latest` count as unknown."""

    latest: Date | None = None
    ends: LateEnds = LateEnds.MASK

    kind = "time-shift"

    def case(self, source: Source, seed: int) -> Case:  # noqa: ARG002
        return Case.of(time_shift(source.graph, latest=self.latest, ends=self.ends).graph)


@dataclass(frozen=True)
class Release(Setting):
    """Splits in a folder of the data set, with `background` as the graph of test queries."""

    folder: str
    background: str | None = None

    kind = "release"

    @property
    def name(self) -> str:
        walked = "" if self.background is None else f"-on-{unique_file_name(self.background)}"
        return f"release-{unique_file_name(self.folder)}{walked}"

    def case(self, source: Source, seed: int) -> Case:  # noqa: ARG002
        splits = released(source.graph, source.within(self.folder), self.background)
        return Case(splits.learned, splits.applied, splits.graph)

    def identity(self, source: Source) -> dict[str, Any]:
        folder, digest = source.within(self.folder), hashlib.sha256()
        walked = [] if self.background is None else [folder / self.background]
        for path in [*sorted(folder.glob("*")), *walked]:
            if path.is_file():
                digest.update(path.name.encode() + path.read_bytes())
        return {**super().identity(source), "files": digest.hexdigest()}


SETTINGS: Mapping[str, type[Setting]] = {
    cls.kind: cls for cls in (Whole, Few, Balanced, Biased, TimeShifted, Release, Forecast)
}

"""Data sets that a plan is run on: files, published sets by name, or the bundled world."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from tilp.bench.schema import Count, Seed
from tilp.datasets import PUBLISHED, get, world
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.io import read


@dataclass(frozen=True)
class WorldSize:
    """Which bundled world.

    Attributes:
        size: About how many facts. Default 10,000.
        seed: Another seed gives another world. Default 0.
    """

    size: Count = 10_000
    seed: Seed = 0


@dataclass(frozen=True)
class Source:
    """A data set, read when it is first used.

    Attributes:
        name: Name in reports and in the files of runs.
        location: Its file or folder, or which world it is.
    """

    name: str
    location: Path | WorldSize

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process reads the data itself, once.
        return _source, (self.name, self.location)

    @cached_property
    def graph(self) -> TemporalGraph:
        """The facts."""
        if isinstance(self.location, WorldSize):
            return world(self.location.seed, self.location.size).graph
        return read(self.location)

    @cached_property
    def fingerprint(self) -> str:
        """The digest of the facts."""
        return self.graph.fingerprint()

    def within(self, folder: str) -> Path:
        """Return a folder within the data set's folder."""
        if isinstance(self.location, WorldSize) or not self.location.is_dir():
            raise TilpError(f"{self.name} is not a folder and has no {folder} in it")
        return self.location / folder


@lru_cache(2)
def _source(name: str, location: Path | WorldSize) -> Source:
    """Return the same source every time, so that its data stay in memory."""
    return Source(name, location)


def find_source(data: str) -> Source:
    """Return the data set of a file, a folder or the name of a published set.

    A published set is downloaded if it is not there yet.

    Args:
        data: Path or name.

    Raises:
        TilpError: There is neither such a file nor such a set.
    """
    path = Path(data).expanduser()
    if path.exists():
        path = path.resolve()
        return Source(path.name if path.is_dir() else path.name.split(".")[0], path)
    if data in PUBLISHED:
        return Source(data, get(data))
    raise TilpError(
        f"{data}: there is no such file or folder, and no published set of that name; there are "
        f"{', '.join(PUBLISHED)}"
    )


def world_source(which: WorldSize) -> Source:
    """Return a bundled world as a data set.

    >>> world_source(WorldSize(2_000)).name
    'world-2000'

    Args:
        which: Its size and seed.
    """
    seed = f"-{which.seed}" if which.seed else ""
    return Source(f"world-{which.size}{seed}", which)

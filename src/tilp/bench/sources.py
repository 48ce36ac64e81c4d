"""`Source`: a data set that a plan is run on: files, a published set by its name, or the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from tilp.datasets import PUBLISHED, get, world
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.io import read

__all__ = ["Source", "WorldSize", "find_source", "world_source"]


@dataclass(frozen=True)
class WorldSize:
    """Which bundled world.

    Attributes:
        size: about how many facts.
        seed: another one, another world.
    """

    size: int = 10_000
    seed: int = 0


@dataclass(frozen=True)
class Source:
    """A data set, read when it is first looked at.

    Attributes:
        name: as reports and files of runs have it.
        place: its file or folder, or which world it is.
    """

    name: str
    place: Path | WorldSize

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process reads the data itself, once.
        return _source, (self.name, self.place)

    @cached_property
    def graph(self) -> TemporalGraph:
        """Its facts."""
        if isinstance(self.place, WorldSize):
            return world(self.place.seed, self.place.size).graph
        return read(self.place)

    @cached_property
    def fingerprint(self) -> str:
        """Of its facts."""
        return self.graph.fingerprint()

    def within(self, folder: str) -> Path:
        """A folder within the data set's own.

        Raises:
            TilpError: the data set is no folder.
        """
        if isinstance(self.place, WorldSize) or not self.place.is_dir():
            raise TilpError(f"{self.name} is no folder, and holds no {folder}")
        return self.place / folder

    def to_json(self) -> dict[str, Any]:
        """As plain values, from which a child process makes it again."""
        if isinstance(self.place, WorldSize):
            return {"name": self.name, "size": self.place.size, "seed": self.place.seed}
        return {"name": self.name, "path": str(self.place)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Source:
        """From what `to_json` gave."""
        if "path" in values:
            return cls(values["name"], Path(values["path"]))
        return cls(values["name"], WorldSize(values["size"], values["seed"]))


@lru_cache(2)
def _source(name: str, place: Path | WorldSize) -> Source:
    """The same one every time, so that what was read stays."""
    return Source(name, place)


def find_source(data: str) -> Source:
    """A file or folder, or a published set by its name, which is fetched where it must be.

    Raises:
        TilpError: there is neither.
    """
    path = Path(data).expanduser()
    if path.exists():
        path = path.resolve()
        return Source(path.name if path.is_dir() else path.name.split(".")[0], path)
    if data in PUBLISHED:
        return Source(data, get(data))
    raise TilpError(
        f"{data}: no such file or folder, and no published set of that name; there are "
        f"{', '.join(PUBLISHED)}"
    )


def world_source(which: WorldSize) -> Source:
    """The bundled world."""
    seed = f"-{which.seed}" if which.seed else ""
    return Source(f"world-{which.size}{seed}", which)

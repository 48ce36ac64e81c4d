"""Ids, keys and labels, written as they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from tilp.io.packing.format import ColumnWriter, NamesWriter
from tilp.io.packing.runs import Run, merged, write_run

__all__ = ["NameColumns"]


class NameColumns:
    """The names of entities in files; columns that are the same are written once.

    Args:
        stem: what the files are named by.
        work: for what is kept on the way.
        several: whether keys and labels may be other than ids.

    Attributes:
        ordered: whether the ids are in the order of their numbers.
        same: of keys and labels those that are the same as an earlier column, and which.
    """

    def __init__(self, stem: Path, work: Path, several: bool) -> None:
        self.ordered = False
        self.same = {"key": "id", "label": "id"}
        self._label_as_key = True
        self._stem, self._work = stem, work
        kinds = ("id", "key", "label") if several else ("id",)
        self._writers = {kind: NamesWriter(self._file(kind)) for kind in kinds}
        self._runs: dict[str, list[Run]] = {kind: [] for kind in kinds[1:]}

    def _file(self, kind: str, ending: str = "") -> Path:
        return self._stem.with_name(f"{self._stem.name}.{kind}{ending}")

    def append(self, frame: pl.DataFrame, number: pl.Series) -> None:
        """Put names behind those before."""
        for kind, runs in self._runs.items():
            if self.same.get(kind) and not (frame[kind] == frame["id"]).all():
                del self.same[kind]
            run = pl.DataFrame({"name": frame[kind], "number": number}).sort("name")
            runs.append(write_run(self._work / f"{kind}-{len(runs)}", run))
        self._label_as_key &= bool((frame["label"] == frame["key"]).all())
        for kind, writer in self._writers.items():
            writer.append(frame[kind])

    def close(self, rows: int) -> None:
        """Finish the files, and write in which order names that are no ids are looked up."""
        if "label" not in self.same and self._label_as_key:
            self.same["label"] = "key"
        for kind, writer in self._writers.items():
            writer.close()
            if kind in self.same:
                for path in writer.files:
                    path.unlink()
            elif kind != "id":
                with ColumnWriter(self._file(kind, ".order.npy"), np.int32) as order:
                    for part in merged(self._runs[kind], rows):
                        both = pl.concat([table for _, table in part]).sort("name")
                        order.append(both["number"].to_numpy())

"""Ids, keys and labels, written as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import DataError, TilpError
from tilp.graph.build import are_numbers
from tilp.io.packed.external_sort import Run, blocks, merged, write_run
from tilp.io.packed.format import ColumnWriter, NamesWriter
from tilp.io.side_files import label_batches, repeated_id


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


_MOST = 2**31 - 1


class Numbering:
    """Names gathered in runs, and the number of each when all are there.

    Names of a label file come first, in its order; then those that only facts have, sorted.

    Args:
        stem: what the files of names are named by.
        work: for what is kept on the way.
        rows: how many names are held in memory.
        labels: the label file, if there is one.
        size: how many bytes of it are read at once.
    """

    def __init__(self, stem: Path, work: Path, rows: int, labels: Path | None, size: int) -> None:
        self.columns = NameColumns(stem, work, labels is not None)
        self._stem, self._work, self._rows, self._labels = stem, work, rows, labels
        self._runs: dict[str, list[Run]] = {"known": [], "used": [], "asked": []}
        self._twice: dict[str, tuple[int, str]] = {}
        self._n_known = self._n_extra = 0
        self._all_numbers = True
        self._place_of_extra: NDArray[np.int64] | None = None
        if labels is not None:
            self._read_labels(labels, size)

    def __len__(self) -> int:
        return self._n_known + self._n_extra

    def _read_labels(self, path: Path, size: int) -> None:
        for frame, table in label_batches(path, size):
            number = pl.int_range(self._n_known, self._n_known + len(frame), eager=True)
            self._add_rows("known", frame["id"], table.lines, number)
            self.columns.append(frame, number)
            self._n_known += len(frame)

    def _add_rows(
        self, kind: str, names: pl.Series, lines: Sequence[int], number: pl.Series
    ) -> None:
        """Take names that may stand in one line of a file each."""
        line = pl.Series(lines, dtype=pl.Int64)
        run = pl.DataFrame({"name": names, "number": number, "line": line}).sort("name", "line")
        self._note_repeated(kind, run)
        run = run.unique("name", keep="first", maintain_order=True)
        runs = self._runs[kind]
        runs.append(write_run(self._work / f"{kind}-{len(runs)}", run))

    def _note_repeated(self, kind: str, table: pl.DataFrame) -> None:
        """Remember the first line whose name stands in another line too."""
        again = table.filter(pl.col("name").is_duplicated()).sort("line").head(1)
        for line, name in again.select("line", "name").iter_rows():
            self._twice[kind] = min(self._twice.get(kind, (line, name)), (line, name))

    def use(self, columns: Sequence[pl.Series]) -> tuple[int, list[NDArray[np.uint32]]]:
        """Take the names of columns; gives the number of their run, and their places in it."""
        distinct = pl.concat([column.alias("name") for column in columns]).unique().sort()
        names = pl.Enum(distinct)
        places = [column.cast(names).to_physical().to_numpy() for column in columns]
        runs = self._runs["used"]
        runs.append(write_run(self._work / f"used-{len(runs)}", distinct.to_frame()))
        return len(runs) - 1, places

    def ask(self, names: pl.Series, lines: Sequence[int]) -> int:
        """Take names whose number is wanted, but which need not be there.

        Args:
            names: those of one run, whose number is given back.
            lines: where each stands in its file.
        """
        self._add_rows("asked", names, lines, pl.int_range(len(names), eager=True))
        return len(self._runs["asked"]) - 1

    def finish(self, asked: Path | None = None) -> None:
        """Number all names, and write them.

        Args:
            asked: the file that names were asked from.

        Raises:
            DataError: a file has two rows of an id.
        """
        extras = self._merge()
        for kind, path in (("known", self._labels), ("asked", asked)):
            if kind in self._twice and path is not None:
                raise repeated_id(path, *self._twice[kind])
        if len(self) > _MOST:
            raise TilpError(f"{len(self):,} entities are more than the {_MOST:,} that there can be")
        if self._n_extra and self._all_numbers:
            extras = self._ordered_by_number(extras)
        elif not self._n_known:
            self.columns.ordered = True
        for names, number in self._numbered(extras):
            frame = pl.DataFrame(dict.fromkeys(("id", "key", "label"), names))
            self.columns.append(frame, number)
        self.columns.close(self._rows)
        if not self.columns.ordered:
            self._write_order()

    def numbers_of_used(self, run: int) -> NDArray[np.int64]:
        """The number of each name of a run."""
        return self._final(np.fromfile(self._mapping("used", run), np.int64))

    def numbers_of_asked(self, run: int) -> NDArray[np.int64]:
        """The number of each name, as they were given.

        Raises:
            DataError: there is no such name.
        """
        table = pl.read_parquet(self._runs["asked"][run].path, glob=False)
        numbers = np.empty(len(table), np.int64)
        place = table["number"].to_numpy()
        numbers[place] = self._final(np.fromfile(self._mapping("asked", run), np.int64))
        if (numbers < 0).any():
            first = table["name"].gather(np.argsort(place))[int(np.argmax(numbers < 0))]
            raise DataError(f"no entity has the id {first!r}")
        return numbers

    def _mapping(self, kind: str, run: int) -> Path:
        return self._work / f"{kind}-{run}.numbers"

    def _merge(self) -> list[Path]:
        """Number the names of each run, and write those that only facts have.

        These are numbered as they sort as texts, which may not be the last word.
        """
        owner = [(kind, run) for kind, runs in self._runs.items() for run in range(len(runs))]
        for one in owner:
            self._mapping(*one).touch()  # also of a run without names
        extras: list[Path] = []
        with ColumnWriter(self._work / "order.npy", np.int64) as order:
            for part in merged([run for runs in self._runs.values() for run in runs], self._rows):
                tables = [(owner[run], table) for run, table in part]
                distinct = pl.concat([table["name"] for _, table in tables]).unique().sort()
                number = self._number(distinct, tables, extras)
                order.append(number[number >= 0])
        return extras

    def _number(
        self,
        distinct: pl.Series,
        tables: Sequence[tuple[tuple[str, int], pl.DataFrame]],
        extras: list[Path],
    ) -> NDArray[np.int64]:
        """The numbers of names that come after all those before; -1 where there is no such."""
        places = pl.Enum(distinct)
        number = np.full(len(distinct), -1, np.int64)
        used = np.zeros(len(distinct), np.bool_)
        at = [table["name"].cast(places).to_physical().to_numpy() for _, table in tables]
        for kind in ("known", "asked"):
            ours = [table for owner, table in tables if owner[0] == kind]
            if len(ours) > 1:
                self._note_repeated(kind, pl.concat(ours))
        for (owner, table), place in zip(tables, at, strict=True):
            if owner[0] == "known":
                number[place] = table["number"].to_numpy()
            elif owner[0] == "used":
                used[place] = True
        extra = np.flatnonzero(used & (number < 0))
        number[extra] = self._n_known + self._n_extra + np.arange(len(extra))
        self._n_extra += len(extra)
        if len(extra):
            names = distinct.gather(extra).alias("name")
            self._all_numbers = self._all_numbers and are_numbers(names)
            extras.append(self._work / f"extra-{len(extras)}")
            names.to_frame().write_parquet(extras[-1])
        for (owner, _), place in zip(tables, at, strict=True):
            if owner[0] != "known":
                with self._mapping(*owner).open("ab") as file:
                    file.write(number[place].data)
        return number

    def _ordered_by_number(self, extras: Sequence[Path]) -> list[Path]:
        """Names that are all whole numbers, numbered by these; the files that then have them."""
        # A name of digits is its number and its length.
        value, length = np.empty(self._n_extra, np.int64), np.empty(self._n_extra, np.uint8)
        for names, number in self._numbered(extras):
            place = number.to_numpy() - self._n_known
            value[place] = names.cast(pl.Int64).to_numpy()
            length[place] = names.str.len_bytes().to_numpy()
        order = np.argsort(value, kind="stable")  # those of one number as their names sort
        self._place_of_extra = np.empty(len(order), np.int64)
        self._place_of_extra[order] = np.arange(len(order))
        written = []
        for count, part in enumerate(blocks(len(order), self._rows)):
            wanted = order[part]
            digits = pl.DataFrame({"value": value[wanted], "length": length[wanted]})
            name = pl.col("value").cast(pl.String).str.zfill(pl.col("length"))
            written.append(self._work / f"ordered-{count}")
            digits.select(name=name).write_parquet(written[-1])
        return written

    def _numbered(self, extras: Sequence[Path]) -> Iterator[tuple[pl.Series, pl.Series]]:
        """The names that only facts have, with their numbers."""
        begin = self._n_known
        for path in extras:
            names = pl.read_parquet(path, glob=False)["name"]
            yield names, pl.int_range(begin, begin + len(names), eager=True)
            begin += len(names)

    def _final(self, number: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers as they are after names that are numbers were put into their order."""
        if self._place_of_extra is None:
            return number
        number = number.copy()
        extra = number >= self._n_known
        number[extra] = self._n_known + self._place_of_extra[number[extra] - self._n_known]
        return number

    def _write_order(self) -> None:
        """Numbers in the order of the ids, for looking names up."""
        order: NDArray[Any] = np.load(self._work / "order.npy", mmap_mode="r")
        with ColumnWriter(
            self._stem.with_name(f"{self._stem.name}.id.order.npy"), np.int32
        ) as file:
            for part in blocks(len(order), self._rows):
                file.append(self._final(np.asarray(order[part])))

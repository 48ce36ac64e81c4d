"""Names of entities: their indices, computed and written in bounded memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.arrays import Ints
from tilp.errors import DataError, TilpError
from tilp.graph.build import all_integers
from tilp.io.packed.external_sort import blocks, merge_runs, write_run
from tilp.io.packed.format import ColumnWriter, names_files, order_file
from tilp.io.tables import duplicate_id_error, label_batches


class NamesWriter:
    """Names that are written part by part, as their bytes and where each begins."""

    def __init__(self, stem: Path) -> None:
        self.files = names_files(stem)
        self._bytes = ColumnWriter(self.files[0], np.uint8)
        self._begin = ColumnWriter(self.files[1], np.int64)
        self._begin.append(np.zeros(1, np.int64))

    def append(self, names: pl.Series) -> None:
        """Append names."""
        if len(names):
            ends = names.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy()
            self._begin.append(len(self._bytes) + ends)
            self._bytes.append(np.frombuffer(names.str.join("").item().encode(), np.uint8))

    def close(self) -> None:
        """Finish both files."""
        self._bytes.close()
        self._begin.close()


class NameColumns:
    """Ids, keys and labels of entities in files; equal columns are written once."""

    def __init__(self, stem: Path, work: Path, only_ids: bool) -> None:
        self.ordered = False  # whether the ids are sorted
        self.same = {"key": "id", "label": "id"}  # columns that equal an earlier one, and which
        self._labels_are_keys = True
        self._stem, self._work = stem, work
        kinds = ("id",) if only_ids else ("id", "key", "label")
        self._writers = {kind: NamesWriter(self.file(kind)) for kind in kinds}
        self._runs: dict[str, list[Path]] = {kind: [] for kind in kinds[1:]}

    def file(self, kind: str) -> Path:
        """Return the stem of the files of ids, keys or labels."""
        return self._stem.with_name(f"{self._stem.name}.{kind}")

    def append(self, frame: pl.DataFrame, index: pl.Series) -> None:
        """Append names with their indices."""
        for kind, runs in self._runs.items():
            if self.same.get(kind) and not (frame[kind] == frame["id"]).all():
                del self.same[kind]
            run = pl.DataFrame({"name": frame[kind], "index": index}).sort("name")
            runs.append(write_run(self._work / f"{kind}-{len(runs)}", run))
        self._labels_are_keys &= bool((frame["label"] == frame["key"]).all())
        for kind, writer in self._writers.items():
            writer.append(frame[kind])

    def close(self, rows: int) -> None:
        """Finish the files, and write the sorted order of keys and labels, for lookups."""
        if "label" not in self.same and self._labels_are_keys:
            self.same["label"] = "key"
        for kind, writer in self._writers.items():
            writer.close()
            if kind in self.same:
                for path in writer.files:
                    path.unlink()
            elif kind != "id":
                with ColumnWriter(order_file(self.file(kind)), np.int32) as order:
                    for part in merge_runs(self._runs[kind], rows):
                        names = pl.concat([table for _, table in part]).sort("name")
                        order.append(names["index"].to_numpy())


_MAX_ENTITIES = 2**31 - 1


class EntityIndexer:
    """Collects names in sorted runs, and gives each its index once all are there.

    Names of the label file come first, in its order; then sorted those that only facts have.
    """

    def __init__(self, stem: Path, work: Path, rows: int, labels: Path | None, size: int) -> None:
        self.columns = NameColumns(stem, work, only_ids=labels is None)
        self._work, self._rows, self._labels = work, rows, labels
        # Names of the label file, names of facts, and names of attributes, which may be unknown.
        self._runs: dict[str, list[Path]] = {"labelled": [], "used": [], "requested": []}
        self._duplicate: dict[str, tuple[int, str]] = {}  # first line of a duplicate, and its name
        self._n_labelled = self._n_extra = 0
        self._all_integers = True
        self._extra_order: Ints | None = None
        if labels is not None:
            for frame, table in label_batches(labels, size):
                index = pl.int_range(self._n_labelled, self._n_labelled + len(frame), eager=True)
                self._add_run("labelled", frame["id"], table.lines, index)
                self.columns.append(frame, index)
                self._n_labelled += len(frame)

    def __len__(self) -> int:
        return self._n_labelled + self._n_extra

    def _add_run(self, kind: str, names: pl.Series, lines: Sequence[int], index: pl.Series) -> int:
        line = pl.Series(lines, dtype=pl.Int64)
        run = pl.DataFrame({"name": names, "index": index, "line": line}).sort("name", "line")
        self._find_duplicate(kind, run)
        return self._write_run(kind, run.unique("name", keep="first", maintain_order=True))

    def _write_run(self, kind: str, run: pl.DataFrame) -> int:
        runs = self._runs[kind]
        runs.append(write_run(self._work / f"{kind}-{len(runs)}", run))
        return len(runs) - 1

    def _find_duplicate(self, kind: str, table: pl.DataFrame) -> None:
        """Remember the first line whose name is in another line too."""
        duplicate = table.filter(pl.col("name").is_duplicated()).sort("line").head(1)
        for line, name in duplicate.select("line", "name").iter_rows():
            self._duplicate[kind] = min(self._duplicate.get(kind, (line, name)), (line, name))

    def add_used(self, columns: Sequence[pl.Series]) -> tuple[int, list[NDArray[np.uint32]]]:
        """Add the names of columns; returns their run, and the columns as rows of the run."""
        distinct = pl.concat([column.alias("name") for column in columns]).unique().sort()
        names = pl.Enum(distinct)
        codes = [column.cast(names).to_physical().to_numpy() for column in columns]
        return self._write_run("used", distinct.to_frame()), codes

    def request(self, names: pl.Series, lines: Sequence[int]) -> int:
        """Add names whose index is needed, but which may be unknown; returns their run."""
        return self._add_run("requested", names, lines, pl.int_range(len(names), eager=True))

    def finish(self, requested_from: Path | None = None) -> None:
        """Give all names their index, and write them."""
        extras = self._merge()
        for kind, path in (("labelled", self._labels), ("requested", requested_from)):
            if kind in self._duplicate and path is not None:
                raise duplicate_id_error(path, *self._duplicate[kind])
        if len(self) > _MAX_ENTITIES:
            limit = f"the {_MAX_ENTITIES:,} that there can be"
            raise TilpError(f"{len(self):,} entities are more than {limit}")
        if self._n_extra and self._all_integers:
            extras = self._sort_as_integers(extras)
        elif not self._n_labelled:
            self.columns.ordered = True
        for names, index in self._read_extras(extras):
            self.columns.append(pl.DataFrame({"id": names, "key": names, "label": names}), index)
        self.columns.close(self._rows)
        if not self.columns.ordered:
            order: NDArray[Any] = np.load(self._work / "order.npy", mmap_mode="r")
            with ColumnWriter(order_file(self.columns.file("id")), np.int32) as column:
                for part in blocks(len(order), self._rows):
                    column.append(self._final(np.asarray(order[part])))

    def used_indices(self, run: int) -> Ints:
        """Return the index of each name of a run of used names."""
        return self._final(np.fromfile(self._index_file("used", run), np.int64))

    def requested_indices(self, run: int) -> Ints:
        """Return the index of each requested name, in the order of the request."""
        table = pl.read_parquet(self._runs["requested"][run], glob=False)
        indices = np.empty(len(table), np.int64)
        row = table["index"].to_numpy()
        indices[row] = self._final(np.fromfile(self._index_file("requested", run), np.int64))
        if (indices < 0).any():
            unknown = table["name"].gather(np.argsort(row))[int(np.argmax(indices < 0))]
            raise DataError(f"no entity has the id {unknown!r}")
        return indices

    def _index_file(self, kind: str, run: int) -> Path:
        return self._work / f"{kind}-{run}.indices"

    def _merge(self) -> list[Path]:
        """Index the names of each run, and write those that only facts have, sorted as text."""
        owners = [(kind, run) for kind, runs in self._runs.items() for run in range(len(runs))]
        for owner in owners:
            self._index_file(*owner).touch()  # also of a run without names
        extras: list[Path] = []
        runs = [run for kind_runs in self._runs.values() for run in kind_runs]
        with ColumnWriter(self._work / "order.npy", np.int64) as order:
            for part in merge_runs(runs, self._rows):
                index = self._index_names([(owners[run], table) for run, table in part], extras)
                order.append(index[index >= 0])
        return extras

    def _index_names(
        self, tables: Sequence[tuple[tuple[str, int], pl.DataFrame]], extras: list[Path]
    ) -> Ints:
        """Return the indices of names that are after all those before; -1 for unknown ones."""
        distinct = pl.concat([table["name"] for _, table in tables]).unique().sort()
        names = pl.Enum(distinct)
        index = np.full(len(distinct), -1, np.int64)
        used = np.zeros(len(distinct), np.bool_)
        codes = [table["name"].cast(names).to_physical().to_numpy() for _, table in tables]
        for kind in ("labelled", "requested"):
            of_kind = [table for owner, table in tables if owner[0] == kind]
            if len(of_kind) > 1:
                self._find_duplicate(kind, pl.concat(of_kind))
        for ((kind, _), table), code in zip(tables, codes, strict=True):
            if kind == "labelled":
                index[code] = table["index"].to_numpy()
            used[code] |= kind == "used"
        extra = np.flatnonzero(used & (index < 0))
        index[extra] = len(self) + np.arange(len(extra))
        self._n_extra += len(extra)
        if len(extra):
            extra_names = distinct.gather(extra).alias("name")
            self._all_integers = self._all_integers and all_integers(extra_names)
            extras.append(self._work / f"extra-{len(extras)}")
            extra_names.to_frame().write_parquet(extras[-1])
        for (owner, _), code in zip(tables, codes, strict=True):
            if owner[0] != "labelled":
                with self._index_file(*owner).open("ab") as file:
                    file.write(index[code].data)
        return index

    def _sort_as_integers(self, extras: Sequence[Path]) -> list[Path]:
        """Sort names that are all integers by value; returns the files that then have them."""
        # A name of digits is its value and its length.
        value, length = np.empty(self._n_extra, np.int64), np.empty(self._n_extra, np.uint8)
        for names, index in self._read_extras(extras):
            row = index.to_numpy() - self._n_labelled
            value[row] = names.cast(pl.Int64).to_numpy()
            length[row] = names.str.len_bytes().to_numpy()
        order = np.argsort(value, kind="stable")  # equal values stay sorted as text
        self._extra_order = np.argsort(order)
        written = []
        for count, part in enumerate(blocks(len(order), self._rows)):
            rows = order[part]
            digits = pl.DataFrame({"value": value[rows], "length": length[rows]})
            name = pl.col("value").cast(pl.String).str.zfill(pl.col("length"))
            written.append(self._work / f"ordered-{count}")
            digits.select(name=name).write_parquet(written[-1])
        return written

    def _read_extras(self, extras: Sequence[Path]) -> Iterator[tuple[pl.Series, pl.Series]]:
        begin = self._n_labelled
        for path in extras:
            names = pl.read_parquet(path, glob=False)["name"]
            yield names, pl.int_range(begin, begin + len(names), eager=True)
            begin += len(names)

    def _final(self, index: Ints) -> Ints:
        """Return indices as they are after sorting names that are integers."""
        if self._extra_order is None:
            return index
        index = index.copy()
        extra = index >= self._n_labelled
        index[extra] = self._n_labelled + self._extra_order[index[extra] - self._n_labelled]
        return index

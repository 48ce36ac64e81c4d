"""Names and attributes of entities in a packed graph."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tilp.errors import DataError, TilpError
from tilp.io.packed.format import ColumnWriter, names_files, order_file
from tilp.io.packed.workspace import Workspace
from tilp.io.tables import attribute_batches, duplicate_id_error, label_batches

_MAX_ENTITIES = 2**31 - 1
_BYTES_PER_ENTITY = 40  # for DuckDB, beside the memory it has
_LABELLED = dict.fromkeys(("id", "key", "label"), pl.String) | {"line": pl.Int64}


class NamesWriter:
    """Names that are written part by part, as their bytes and where each begins."""

    def __init__(self, stem: Path) -> None:
        files = names_files(stem)
        self._bytes = ColumnWriter(files[0], np.uint8)
        self._begin = ColumnWriter(files[1], np.int64)
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


def index_names(workspace: Workspace, labels: Path | None, size: int) -> bool:
    """Make the table `entities`, whose rows are the indices of the names in the table `facts`.

    Names of the label file come first, in its order; then sorted those that only facts have, by
    value if all of them are integers, without key and label, which are as the id. Return whether
    all names are in the order of their text.
    """
    workspace.add("labelled", pl.DataFrame(schema=_LABELLED))
    for frame, table in label_batches(labels, size) if labels else ():
        workspace.add("labelled", frame.with_columns(line=pl.Series(table.lines, dtype=pl.Int64)))
    _refuse_duplicates(workspace, "labelled", labels)
    workspace.make("used", "SELECT subject AS id FROM facts UNION SELECT object FROM facts")
    workspace.make("extra", "SELECT id FROM used ANTI JOIN labelled USING (id)")
    are_integers = "coalesce(bool_and(regexp_full_match(id, '[0-9]{1,18}')), false)"
    [(n_extra, by_value, n_labelled)] = workspace.rows(
        f"SELECT count(*), {are_integers}, (SELECT count(*) FROM labelled) FROM extra"
    )
    if (count := n_labelled + n_extra) > _MAX_ENTITIES:
        limit = f"the {_MAX_ENTITIES:,} that there can be"
        raise TilpError(f"{count:,} entities are more than {limit}")
    workspace.raise_memory(count * _BYTES_PER_ENTITY)
    value = "id::BIGINT" if by_value else "0"
    workspace.make(
        "entities",
        "SELECT id, key, label FROM (SELECT *, 0 AS value FROM labelled UNION ALL "
        f"SELECT id, NULL, NULL, NULL, {value} FROM extra) ORDER BY line NULLS LAST, value, id",
    )
    workspace.remove("labelled", "used", "extra")
    return not by_value and not n_labelled


def write_names(workspace: Workspace, folder: Path, *, ordered: bool) -> dict[str, Any]:
    """Write ids, keys and labels of entities; equal columns are written once. Return metadata."""
    equal = (f"coalesce(bool_and({pair}), true)" for pair in ("key = id", "label = id"))
    [(count, key_is_id, label_is_id, label_is_key)] = workspace.rows(
        f"SELECT count(*), {', '.join(equal)}, bool_and(label = key) FROM entities"
    )
    same = {"key": "id"} if key_is_id else {}
    if label_is_id or label_is_key:
        same["label"] = "id" if label_is_id else "key"
    stems = {k: folder / f"entities.{k}" for k in ("id", "key", "label") if k not in same}
    writers = {kind: NamesWriter(stem) for kind, stem in stems.items()}
    for names in workspace.slices("entities"):
        for kind, writer in writers.items():
            writer.append(names[kind].fill_null(names["id"]))
    for kind, writer in writers.items():
        writer.close()
        if kind == "id" and ordered:
            continue
        table = f"by_{kind}"
        workspace.make(
            table, f"SELECT row AS entity FROM entities ORDER BY coalesce({kind}, id), row"
        )
        with ColumnWriter(order_file(stems[kind]), np.int32) as order:
            for part in workspace.slices(table):
                order.append(part["entity"].to_numpy())
    return {"count": count, "ordered": ordered, "same": same}


def write_attributes(workspace: Workspace, folder: Path, path: Path | None, size: int) -> list[str]:
    """Write the attributes of entities from a file, if there is one; return their names."""
    names: list[str] = []
    for ids, values, table in attribute_batches(path, size) if path else ():
        names = list(values)
        if ids.null_count() and names:
            raise _owner_error(names[0], None)
        numbers = {f"value_{index}": column for index, column in enumerate(values.values())}
        line = pl.Series(table.lines, dtype=pl.Int64)
        workspace.add("attributes", pl.DataFrame({"id": ids, "line": line, **numbers}))
    if not names:
        return []
    _refuse_duplicates(workspace, "attributes", path)
    unknown = "FROM attributes ANTI JOIN entities USING (id) ORDER BY line LIMIT 1"
    for (name,) in workspace.rows(f"SELECT id {unknown}"):
        raise _owner_error(names[0], name)
    columns = ", ".join(
        f"coalesce(value_{i}, 'nan'::DOUBLE) AS value_{i}" for i in range(len(names))
    )
    owners = "entities LEFT JOIN attributes USING (id)"
    workspace.make("owned", f"SELECT {columns} FROM {owners} ORDER BY row")
    paths = [folder / f"attribute-{index}.npy" for index in range(len(names))]
    writers = [ColumnWriter(path, np.float64) for path in paths]
    for part in workspace.slices("owned"):
        for writer, column in zip(writers, part, strict=True):
            writer.append(column.to_numpy())
    for writer in writers:
        writer.close()
    return names


def _refuse_duplicates(workspace: Workspace, table: str, path: Path | None) -> None:
    duplicate = f"FROM {table} GROUP BY id HAVING count(*) > 1 ORDER BY line LIMIT 1"
    for line, name in workspace.rows(f"SELECT min(line) AS line, id {duplicate}"):
        raise duplicate_id_error(path or Path(), line, name)


def _owner_error(attribute: str, name: str | None) -> DataError:
    reason = f"no entity has the id {name!r}, so its number has no owner"
    return DataError(f"attribute {attribute}: {reason}")

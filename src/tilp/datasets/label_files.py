"""Names of published sets: from the id files that come with them to tables of labels."""

from pathlib import Path

from tilp.errors import DataError

__all__ = ["label_table", "unwritten_labels", "write_labels"]

_LABELS = {"entity2id.txt": "entities.tsv", "relation2id.txt": "relations.tsv"}


def write_labels(folder: Path) -> None:
    """Write `entities.tsv` and `relations.tsv` (id, key, label) from the published id files.

    Tables that are there already stay as they are: they may hold better labels.

    Raises:
        DataError: An id file is malformed; names the line.
    """
    for source, target in unwritten_labels(folder):
        rows = ["id\tkey\tlabel", *("\t".join(row) for row in label_table(source))]
        part = target.with_name(target.name + ".part")
        part.write_bytes(("\n".join(rows) + "\n").encode())
        part.replace(target)


def unwritten_labels(folder: Path) -> list[tuple[Path, Path]]:
    """The id files of a folder whose label tables are not there yet, each with its table."""
    pairs = [(folder / source, folder / target) for source, target in _LABELS.items()]
    return [(s, t) for s, t in pairs if s.exists() and not t.exists()]


def label_table(path: Path) -> list[tuple[str, str, str]]:
    """The (id, key, label) rows of an id file, by id.

    Such files name the key and the id in either order, may begin with a count, and may go on
    with other columns: a third is taken for a label only where every line has just that.
    """
    rows: dict[int, list[str]] = {}
    columns = [1, 0]  # which may still hold the id, the likelier first
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        try:
            row = line.decode().strip("\r\ufeff").split("\t")
        except UnicodeDecodeError as error:
            raise _malformed(path, number, "is not UTF-8") from error
        if row == [""] or (number == 1 and len(row) == 1 and _is_id(row[0])):
            continue
        columns = [c for c in columns if c < len(row) and _is_id(row[c])]
        if len(row) < 2 or not columns or "" in row[:2]:
            raise _malformed(path, number, f"is not a key and an id with a tab between: {row}")
        rows[number] = row
    labelled = all(len(row) == 3 and row[2] for row in rows.values())
    table: dict[int, tuple[str, str, str]] = {}
    for number, row in rows.items():
        at = columns[0]
        key = row[1 - at]
        if key.startswith("<") and key.endswith(">"):
            key = key[1:-1]
        if int(row[at]) in table:
            raise _malformed(path, number, f"repeats the id {row[at]}")
        table[int(row[at])] = (row[at], key, row[2] if labelled else key)
    return [table[i] for i in sorted(table)]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _malformed(path: Path, line: int, what: str) -> DataError:
    return DataError(f"{path}, line {line} {what}. Delete the file and get the set again.")

"""Published data sets: where their files are, and labels from their id files."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tilp._utils.files import cache_folder
from tilp.datasets.download import (
    DownloadSettings,
    Progress,
    RemoteFile,
    TransferError,
    download,
    file_digest,
    locked,
)
from tilp.errors import DataError, TilpError


@dataclass(frozen=True)
class PublishedSet:
    """Data set that others published as files at fixed addresses."""

    name: str
    description: str
    licence: str
    files: tuple[RemoteFile, ...]


def _github(repository: str, commit: str, folder: str, **digests: str) -> tuple[RemoteFile, ...]:
    root = f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}"
    return tuple(
        RemoteFile(f"{stem}.txt", f"{root}/{stem}.txt", sha256) for stem, sha256 in digests.items()
    )


# Dates as first published; names are only in a later release.
_ATISE = ("soledad921/ATISE", "711e2136e10b54acbdd7a69ad7822837ce5c44c8")
_TILP = ("xiongsiheng/TILP", "4c3587d69e2760c42e9d273afd5ecc023bf2eee1")
_TLOGIC = ("liu-yushan/TLogic", "9f6ffa3cc5c112226dc2537983b6bb33d4ef295e")
_MIT = "facts: MIT (soledad921/ATISE); names: MIT (xiongsiheng/TILP)"

_SETS = (
    PublishedSet(
        "WIKIDATA12k",
        "Wikidata, 40,621 facts with intervals in years, 12,554 entities, 24 relations",
        _MIT,
        _github(
            *_ATISE,
            "wikidata",
            train="90b42097c9741fada0f81fc5f1be1cb3c0eb0f8bfcf3f5de833dd252b98d069b",
            valid="ade5b9c50b985fcf4948b7edde69c65ff8b7c993ea545cd40dc62fc70b5e2e52",
            test="f9d6b1bbeba58e94298a5655485b7ca3d1d449ba310b8755b32abafc5ec1da6f",
        )
        + _github(
            *_TILP,
            "data/WIKIDATA12k",
            entity2id="307628d198b9369b650d46bb88980b38ed0957a9e8148227c94907f9b2804f01",
            relation2id="fef14b3c161de028344d90be2e53a94d7fdb4cc18b5aa5622ab58051c8887582",
        ),
    ),
    PublishedSet(
        "YAGO11k",
        "YAGO, 20,509 facts with intervals in dates, 10,623 entities, 10 relations",
        _MIT,
        _github(
            *_ATISE,
            "yago",
            train="e709ff0e8eced3ec9332dba5c5da95c0db403f8eddda52f3b100486b63c4e580",
            valid="f3a3946235b078070e6bac0cd2bf6f51bd9cedc394c406873a21141a447730c7",
            test="cc94fd96f8fbacb97cb3e75e3aa8cf2c753acd0ee4e2ae56632f7495278f1b7f",
        )
        + _github(
            *_TILP,
            "data/YAGO11k",
            entity2id="3a5482d19f80b3936ca735ea105db799f5c500b170c57f7a59f0ea2650231789",
            relation2id="83e460205fa11720980c814aa99d70b4ec42ff9571f7ce9915390e262fc8dc34",
        ),
    ),
    PublishedSet(
        "ICEWS14",
        "political events of 2014, 90,730 facts at days, 7,128 entities, 230 relations, "
        "split in time order",
        "files: Apache-2.0 (liu-yushan/TLogic); "
        "ICEWS itself: terms of the Harvard Dataverse, doi:10.7910/DVN/28075",
        _github(
            *_TLOGIC,
            "data/icews14",
            train="e66100f4d1a11198fad0120e3596981494dfe0c3f930211608a10377a7af3a1a",
            valid="ce4862c7bc517f322b33742909a1e1e893a950b2ce290c6e14348611736ed9a2",
            test="7ecf0f159445aadacddd03198a8aa363c9b803671ae7f38edd32ee5520a925f6",
        ),
    ),
)

PUBLISHED: Mapping[str, PublishedSet] = MappingProxyType({s.name: s for s in _SETS})
"""All published sets by name."""


def get(name: str, folder: Path | None = None, *, progress: Progress | None = None) -> Path:
    """Download a published set where it is not complete yet, and return its folder.

    Files with the right checksum stay as they are, and an interrupted download is resumed. Several
    processes may request the same set at once.

    Args:
        name: name in `PUBLISHED`.
        folder: folder of the files; `cache_folder() / name` by default.
        progress: called with the name of a file, the bytes received so far and, if the server
            announces it, the size of the file.

    Raises:
        TilpError: the name is unknown, there is no connection, a checksum is wrong, or the folder
            cannot be written.

    >>> get("wikidata12")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tilp.errors.TilpError: No published set is named 'wikidata12'; ... Did you mean WIKIDATA12k?
    """
    return fetch_set(_find(name), folder, progress=progress)


def fetch_set(
    published: PublishedSet,
    folder: Path | None = None,
    *,
    progress: Progress | None = None,
    settings: DownloadSettings | None = None,
) -> Path:
    """Download the missing files of a set, and write its label tables."""
    name, settings = published.name, settings or DownloadSettings()
    folder = cache_folder() / name if folder is None else Path(folder)
    try:
        # Check before locking, so that a complete set in a read-only folder is enough.
        if _missing(published, folder) or unwritten_labels(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with locked(folder, settings.lock_wait):
                missing = _missing(published, folder)
                for i, file in enumerate(missing):
                    try:
                        download(file, folder, progress, settings)
                    except TransferError as error:
                        raise TilpError(_advice(name, folder, missing[i:], error)) from error
                write_labels(folder)
    except OSError as error:
        raise TilpError(
            f"Cannot store {name} in {folder}: {error}. Free space there or give permission to "
            "write, or name another folder with the environment variable TILP_CACHE."
        ) from error
    return folder


def _find(name: str) -> PublishedSet:
    if name in PUBLISHED:
        return PUBLISHED[name]
    folded = {known.casefold(): known for known in PUBLISHED}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    hint = f" Did you mean {folded[near[0]]}?" if near else ""
    raise TilpError(f"No published set is named {name!r}; known: {', '.join(PUBLISHED)}.{hint}")


def _missing(published: PublishedSet, folder: Path) -> list[RemoteFile]:
    return [f for f in published.files if file_digest(folder / f.name) != f.sha256]


def _advice(name: str, folder: Path, missing: list[RemoteFile], error: Exception) -> str:
    """Say how to get missing files with and without a connection."""
    addresses = ", ".join(f"{file.name} ({file.url})" for file in missing)
    return (
        f"Cannot download {missing[0].name} of {name} from {missing[0].url}: {error}. "
        "With a connection (through a proxy if HTTPS_PROXY names one), the same call resumes the "
        "download. Without one, put the missing files by hand into "
        f"{folder.absolute()} under these names, and repeat the call: {addresses}."
    )


_LABELS = {"entity2id.txt": "entities.tsv", "relation2id.txt": "relations.tsv"}


def write_labels(folder: Path) -> None:
    """Write `entities.tsv` and `relations.tsv` (id, key, label) from the published id files.

    Existing tables stay as they are: they may have better labels.
    """
    for source, target in unwritten_labels(folder):
        rows = ["id\tkey\tlabel", *("\t".join(row) for row in label_table(source))]
        part = target.with_name(target.name + ".part")
        part.write_bytes(("\n".join(rows) + "\n").encode())
        part.replace(target)


def unwritten_labels(folder: Path) -> list[tuple[Path, Path]]:
    """Return the id files of a folder without label tables, each with the path of its table."""
    pairs = [(folder / source, folder / target) for source, target in _LABELS.items()]
    return [(s, t) for s, t in pairs if s.exists() and not t.exists()]


def label_table(path: Path) -> list[tuple[str, str, str]]:
    """Return the rows (id, key, label) of an id file, by id.

    Key and id come in either order, the first line may be a count, and more columns may follow. A
    third column is the label only if every line has exactly three.
    """
    rows: dict[int, list[str]] = {}
    columns = [1, 0]  # those that may hold the id, the likelier first
    for line_number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        try:
            row = line.decode().strip("\r\ufeff").split("\t")
        except UnicodeDecodeError as error:
            raise _malformed(path, line_number, "is not UTF-8") from error
        if row == [""] or (line_number == 1 and len(row) == 1 and _is_id(row[0])):
            continue
        columns = [c for c in columns if c < len(row) and _is_id(row[c])]
        if len(row) < 2 or not columns or "" in row[:2]:
            raise _malformed(path, line_number, f"has no key and id with a tab between: {row}")
        rows[line_number] = row
    labelled = all(len(row) == 3 and row[2] for row in rows.values())
    table: dict[int, tuple[str, str, str]] = {}
    for line_number, row in rows.items():
        column = columns[0]
        key = row[1 - column]
        if key.startswith("<") and key.endswith(">"):
            key = key[1:-1]
        if int(row[column]) in table:
            raise _malformed(path, line_number, f"repeats the id {row[column]}")
        table[int(row[column])] = (row[column], key, row[2] if labelled else key)
    return [table[i] for i in sorted(table)]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _malformed(path: Path, line: int, problem: str) -> DataError:
    return DataError(f"{path}, line {line} {problem}. Delete the file and get the set again.")

"""Published data sets: download and verify their files, and write labels from their id files."""

import difflib
import http.client
import logging
import socket
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from urllib import error as url_error
from urllib import request

from tilp._utils.files import cache_folder, file_digest, locked, write_text
from tilp.errors import DataError, TilpError

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes received so far, and its size if known."""

_BLOCK_SIZE = 1 << 16
_HANDLERS = (
    request.ProxyHandler, request.HTTPHandler, request.HTTPSHandler, request.HTTPRedirectHandler,
    request.HTTPDefaultErrorHandler, request.HTTPErrorProcessor, request.UnknownHandler,
)  # fmt: skip

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DownloadSettings:
    """Limits of a download; waits in seconds."""

    attempts: int = 4  # for each file
    retry_wait: float = 1.0  # before the second attempt, doubled before each further one
    timeout: float = 20.0  # of each socket operation
    lock_wait: float = 0.1  # between two attempts to lock a folder that another process uses


@dataclass(frozen=True)
class RemoteFile:
    """File of a published set: local name, address, and SHA-256 of its bytes."""

    name: str
    url: str
    sha256: str


def _is_intact(path: Path, file: RemoteFile) -> bool:
    return path.exists() and file_digest(path) == file.sha256


class TransferError(Exception):
    """Failed transfer; `retry` is False if another attempt would fail too."""

    def __init__(self, reason: str, retry: bool = True) -> None:
        super().__init__(reason)
        self.retry = retry


def download(
    file: RemoteFile, folder: Path, progress: Progress | None, settings: DownloadSettings
) -> None:
    """Download a file; it appears under its final name only when its checksum is right."""
    final, part = folder / file.name, folder / f"{file.name}.part"
    if final.exists():
        logger.warning(
            "%s does not have the published SHA-256 (expected %s, got %s): downloading it "
            "again; it will be replaced once the new one is verified",
            *(final, file.sha256, file_digest(final)),
        )
    for left in reversed(range(settings.attempts)):
        # A part can be complete: the process was stopped, or the server announced too many bytes.
        if _is_intact(part, file):
            break
        try:
            _transfer(file, part, progress, settings.timeout)
            break
        except TransferError as error:
            if not error.retry or not left:
                raise
            logger.info("%s: %s; attempts left: %d", file.url, error, left)
            time.sleep(settings.retry_wait * 2 ** (settings.attempts - 1 - left))
    if (digest := file_digest(part)) != file.sha256:
        part.unlink(missing_ok=True)
        raise TilpError(
            f"{file.name}, downloaded from {file.url}, does not have the published SHA-256: "
            f"expected {file.sha256}, got {digest}. The download was removed. Try again; if it "
            "fails again, a proxy or a login page may have replaced the file: get it in another "
            f"way and put it into {folder.absolute()}."
        )
    part.replace(final)


def _transfer(file: RemoteFile, part: Path, progress: Progress | None, timeout: float) -> None:
    """Request the bytes that `part` lacks, and append them as they arrive."""
    done = part.stat().st_size if part.exists() else 0
    with _open(file.url, part, done, timeout) as response:
        resumed = response.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        if response.status == http.client.PARTIAL_CONTENT and not resumed:
            part.unlink(missing_ok=True)
            raise TransferError("the server resumed at another position than requested")
        if not resumed:
            done = 0
        total = None if response.length is None else done + response.length
        with part.open("ab" if resumed else "wb") as sink:
            if progress:
                progress(file.name, done, total)
            for block in _blocks(response):
                sink.write(block)
                done += len(block)
                if progress:
                    progress(file.name, done, total)
    if total is not None and done < total:
        raise TransferError(f"cut off after {done:,} of {total:,} bytes")


def _open(url: str, part: Path, start: int, timeout: float) -> http.client.HTTPResponse:
    if not url.lower().startswith(("http://", "https://")):
        raise TransferError("only http and https addresses are fetched", retry=False)
    # urlopen would follow a redirection to ftp.
    opener = request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    opener.addheaders = [("User-Agent", "tilp")]
    wanted = request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response: http.client.HTTPResponse = opener.open(wanted, timeout=timeout)
    except url_error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)
        temporary = error.code >= 500 or error.code in (408, 416, 429)
        raise TransferError(f"HTTP {error.code} {error.reason}", retry=temporary) from error
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, url_error.URLError) else error
        raise TransferError(_text(reason), retry=not isinstance(reason, socket.gaierror)) from error
    return response


def _blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        # read would lose the start of a block that is cut off.
        while block := response.read1(_BLOCK_SIZE):
            yield block
    except (OSError, http.client.HTTPException) as error:
        raise TransferError(_text(error)) from error


def _text(reason: object) -> str:
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__


@dataclass(frozen=True)
class PublishedSet:
    """Data set that others published as files at fixed addresses."""

    name: str
    description: str
    licence: str
    files: tuple[RemoteFile, ...]


def _read_sets() -> dict[str, PublishedSet]:
    text = resources.files("tilp.datasets").joinpath("published.toml").read_text("utf-8")
    sets = {}
    for name, table in tomllib.loads(text).items():
        files = []
        for part in table["files"]:
            url = part.pop("folder")
            files += [RemoteFile(file, f"{url}/{file}", digest) for file, digest in part.items()]
        sets[name] = PublishedSet(name, table["description"], table["licence"], tuple(files))
    return sets


PUBLISHED: Mapping[str, PublishedSet] = MappingProxyType(_read_sets())
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

    >>> get("wikidata12")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tilp.errors.TilpError: No published set is named 'wikidata12'; ... Did you mean WIKIDATA12k?
    """
    if name not in PUBLISHED:
        folded = {known.casefold(): known for known in PUBLISHED}
        near = difflib.get_close_matches(name.casefold(), folded, n=1)
        hint = f" Did you mean {folded[near[0]]}?" if near else ""
        raise TilpError(f"No published set is named {name!r}; known: {', '.join(PUBLISHED)}.{hint}")
    return fetch_set(PUBLISHED[name], folder, progress=progress)


def fetch_set(
    published: PublishedSet, folder: Path | None = None, *, progress: Progress | None = None,
    settings: DownloadSettings | None = None,
) -> Path:  # fmt: skip
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


def _missing(published: PublishedSet, folder: Path) -> list[RemoteFile]:
    return [file for file in published.files if not _is_intact(folder / file.name, file)]


def _advice(name: str, folder: Path, missing: list[RemoteFile], error: Exception) -> str:
    addresses = ", ".join(f"{file.name} ({file.url})" for file in missing)
    return (
        f"Cannot download {missing[0].name} of {name} from {missing[0].url}: {error}. "
        "With a connection (through a proxy if HTTPS_PROXY names one), the same call resumes the "
        "download. Without one, put the missing files by hand into "
        f"{folder.absolute()} under these names, and repeat the call: {addresses}."
    )


_LABELS = {"entity2id.txt": "entities.tsv", "relation2id.txt": "relations.tsv"}


def write_labels(folder: Path) -> None:
    """Write missing `entities.tsv` and `relations.tsv` (id, key, label) from the id files."""
    for source, target in unwritten_labels(folder):
        rows = ["id\tkey\tlabel", *("\t".join(row) for row in label_table(source))]
        write_text(target, "\n".join(rows) + "\n")


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
        number, key = row[columns[0]], row[1 - columns[0]]
        if key.startswith("<") and key.endswith(">"):
            key = key[1:-1]
        if int(number) in table:
            raise _malformed(path, line_number, f"repeats the id {number}")
        table[int(number)] = (number, key, row[2] if labelled else key)
    return [table[i] for i in sorted(table)]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _malformed(path: Path, line: int, problem: str) -> DataError:
    return DataError(f"{path}, line {line} {problem}. Delete the file and get the set again.")

"""Names of published sets: from the id files that come with them to tables of labels."""

import contextlib
import difflib
import errno
import hashlib
import http.client
import logging
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tilp._utils.files import cache_folder
from tilp.errors import DataError, TilpError

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


Progress = Callable[[str, int, int | None], None]

ATTEMPTS = 4
RETRY_WAIT = 1.0  # seconds before the second attempt, doubled before each further one
TIMEOUT = 20.0  # seconds, for each socket operation
LOCK_WAIT = 0.1  # seconds between two looks at a lock that another process holds
BLOCK = 1 << 16

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RemoteFile:
    """One file of a published set: its local name, its address, and the SHA-256 of its bytes."""

    name: str
    url: str
    sha256: str


@dataclass(frozen=True)
class PublishedSet:
    """A data set that others published, as files at fixed addresses."""

    name: str
    description: str
    licence: str
    files: tuple[RemoteFile, ...]


def _github(repository: str, commit: str, folder: str, **digests: str) -> tuple[RemoteFile, ...]:
    root = f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}"
    return tuple(
        RemoteFile(f"{stem}.txt", f"{root}/{stem}.txt", sha256) for stem, sha256 in digests.items()
    )


# The dates as first published, and the names, which only a later release carries.
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

#: Every published set that `get` knows, by name.
PUBLISHED: Mapping[str, PublishedSet] = MappingProxyType({s.name: s for s in _SETS})


def get(name: str, folder: Path | None = None, *, progress: Progress | None = None) -> Path:
    """The folder that holds a whole published set, after downloading what is not there yet.

    A file with the right checksum is kept as it is, and a download that was cut off goes on
    where it stopped. Several processes may ask for the same set at once.

    Args:
        name: A name in `PUBLISHED`.
        folder: Where the files are or go; `cache_folder() / name` unless given.
        progress: Called with a file's name, the bytes received so far and, where the server
            tells it, the file's size.

    Raises:
        TilpError: Unknown name, no connection, wrong bytes, or a folder that cannot be written.
    """
    published = _find(name)
    folder = cache_folder() / name if folder is None else Path(folder)
    try:
        # Without the lock first, so that a whole set in a read-only folder will do.
        if _missing(published, folder) or unwritten_labels(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder):
                missing = _missing(published, folder)
                for i, file in enumerate(missing):
                    try:
                        _fetch(file, folder, progress)
                    except _TransferError as error:
                        raise TilpError(_by_hand(name, folder, missing[i:], error)) from error
                write_labels(folder)
    except OSError as error:
        raise TilpError(
            f"Cannot keep {name} in {folder}: {error}. Make room there or give permission to "
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
    return [f for f in published.files if _digest(folder / f.name) != f.sha256]


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _by_hand(name: str, folder: Path, missing: list[RemoteFile], why: Exception) -> str:
    addresses = ", ".join(f"{file.name} ({file.url})" for file in missing)
    return (
        f"Cannot download {missing[0].name} of {name} from {missing[0].url}: {why}. "
        "With a connection (a proxy is taken from the environment, as in HTTPS_PROXY), the same "
        "call goes on where this one stopped. Without one, put the missing files by hand into "
        f"{folder.absolute()} under these names, and repeat the call: {addresses}."
    )


class _TransferError(Exception):
    """Why an address did not yield its bytes, and whether another attempt may."""

    def __init__(self, why: str, again: bool = True) -> None:
        super().__init__(why)
        self.again = again


def _fetch(file: RemoteFile, folder: Path, progress: Progress | None) -> None:
    """Download one file under its final name, which never holds anything but the right bytes."""
    final, part = folder / file.name, folder / f"{file.name}.part"
    if final.exists():
        logger.warning(
            "%s does not have the published SHA-256 (expected %s, found %s): downloading it "
            "again; it will be replaced once the new one is verified",
            *(final, file.sha256, _digest(final)),
        )
    for left in reversed(range(ATTEMPTS)):
        # A part can be whole: its process ended early, or its server announced too many bytes.
        if _digest(part) == file.sha256:
            break
        try:
            _transfer(file, part, progress)
            break
        except _TransferError as error:
            if not error.again or not left:
                raise
            logger.info("%s: %s; attempts left: %d", file.url, error, left)
            time.sleep(RETRY_WAIT * 2 ** (ATTEMPTS - 1 - left))
    if (found := _digest(part)) != file.sha256:
        part.unlink(missing_ok=True)
        raise TilpError(
            f"{file.name}, downloaded from {file.url}, does not have the published SHA-256: "
            f"expected {file.sha256}, found {found}. The download was removed. Try again; if it "
            "comes out the same, a proxy or a login page may stand in for the file: get it in "
            f"another way and put it into {folder.absolute()}."
        )
    part.replace(final)


def _transfer(file: RemoteFile, part: Path, progress: Progress | None) -> None:
    """One request for what `part` still lacks, appended to it as it arrives."""
    done = part.stat().st_size if part.exists() else 0
    with _open(file.url, part, done) as response:
        resumed = response.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        if response.status == http.client.PARTIAL_CONTENT and not resumed:
            part.unlink(missing_ok=True)
            raise _TransferError("the server resumed at another place than asked")
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
        raise _TransferError(f"cut off after {done:,} of {total:,} bytes")


def _open(url: str, part: Path, start: int) -> http.client.HTTPResponse:
    if not url.lower().startswith(("http://", "https://")):
        raise _TransferError("only http and https addresses are fetched", again=False)
    # Not urlopen: its opener would follow a redirection to ftp.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    opener.addheaders = [("User-Agent", "tilp")]
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response: http.client.HTTPResponse = opener.open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)
        passing = error.code >= 500 or error.code in (408, 416, 429)
        raise _TransferError(f"HTTP {error.code} {error.reason}", again=passing) from error
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        unknown_host = isinstance(reason, socket.gaierror)
        raise _TransferError(_text(reason), again=not unknown_host) from error
    return response


def _blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        # read1, since read would lose the beginning of a block whose end never comes.
        while block := response.read1(BLOCK):
            yield block
    except (OSError, http.client.HTTPException) as error:
        raise _TransferError(_text(error)) from error


def _text(reason: object) -> str:
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    return str(reason) or type(reason).__name__


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes and threads out, with a lock that the system drops if this one dies."""
    with (folder / ".lock").open("ab") as file:
        waiting = False
        while not _try_lock(file.fileno()):
            if not waiting:
                logger.info("waiting for another process to finish with %s", folder)
            waiting = True
            time.sleep(LOCK_WAIT)
        yield


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

"""Download files: resume after interruptions, verify checksums, lock folders."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import logging
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tilp.errors import TilpError

Progress = Callable[[str, int, int | None], None]
"""Called with the name of a file, the bytes received so far, and its size if known."""

_BLOCK_SIZE = 1 << 16
_HANDLERS = (
    urllib.request.ProxyHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPRedirectHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.UnknownHandler,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DownloadSettings:
    """Limits of a download.

    Attributes:
        attempts: number of attempts for each file.
        retry_wait: seconds before the second attempt, doubled before each further one.
        timeout: seconds for each socket operation.
        lock_wait: seconds between two attempts to lock a folder that another process uses.
    """

    attempts: int = 4
    retry_wait: float = 1.0
    timeout: float = 20.0
    lock_wait: float = 0.1


@dataclass(frozen=True)
class RemoteFile:
    """File of a published set: local name, address, and SHA-256 of its bytes."""

    name: str
    url: str
    sha256: str


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if there is no such file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


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
        if file_digest(part) == file.sha256:
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
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    opener.addheaders = [("User-Agent", "tilp")]
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response: http.client.HTTPResponse = opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)
        temporary = error.code >= 500 or error.code in (408, 416, 429)
        raise TransferError(f"HTTP {error.code} {error.reason}", retry=temporary) from error
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        unknown_host = isinstance(reason, socket.gaierror)
        raise TransferError(_text(reason), retry=not unknown_host) from error
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


@contextlib.contextmanager
def locked(folder: Path, wait: float) -> Iterator[None]:
    """Lock a folder against other processes and threads; the system unlocks if this one dies."""
    with (folder / ".lock").open("ab") as file:
        waiting = False
        while not _try_lock(file.fileno()):
            if not waiting:
                logger.info("waiting for another process to finish with %s", folder)
            waiting = True
            time.sleep(wait)
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

"""Files and folders that appear whole or not at all, array files, and the cache folder."""

import errno
import hashlib
import json
import logging
import math
import os
import platform
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from glob import escape
from itertools import count
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._version import __version__
from tilp.errors import DataError, TilpError, WriteError


def cache_folder() -> Path:
    """Return `TILP_CACHE`, or `tilp` in the user's cache folder: downloads and compiled loops."""
    if chosen := os.environ.get("TILP_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "tilp"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tilp"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))  # its specification ignores relative ones
    return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "tilp"


_log = logging.getLogger(__name__)


def file_name_part(name: str) -> str:
    """Return a name as it can be part of a file name, cut if it is long.

    >>> file_name_part("member of: sports team")
    'member-of-sports-team'
    """
    return re.sub(r"\W+", "-", name).strip("-")[:60]


def unique_file_name(name: str) -> str:
    """Return such a part, with a few digits of a digest where it leaves out characters.

    >>> unique_file_name("livesIn"), unique_file_name("C++") == unique_file_name("C#")
    ('livesIn', False)
    """
    part = file_name_part(name)
    if part == name:
        return part
    return "-".join(filter(None, (part, hashlib.sha256(name.encode()).hexdigest()[:6])))


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside a file; it replaces the file when all of it is written."""
    if path.exists() and not path.is_file():  # a pipe or a device
        yield path
        return
    path = path.resolve()  # a link stays one
    partial = path.with_name(f".{path.name}.partial")
    with _write_errors(path, partial):
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


_FULL, _NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}, "there is no room"
_CUT_OFF = " requested and ", "Invalid thrift: transport error"  # of NumPy, of polars


@contextmanager
def _write_errors(path: Path, partial: Path) -> Iterator[None]:
    """Turn a failure to write a file or folder, by way of another, into an error about it."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError, WriteError) as failure:
        read = getattr(failure, "filename", None)
        if read is not None and not Path(read).absolute().is_relative_to(partial.parent.absolute()):
            raise  # it is about another file
        text = re.search(r"os error (\d+)", str(failure))  # of polars
        number = int(text[1]) if text else getattr(failure, "errno", None)
        is_full = number in _FULL or any(part in str(failure) for part in _CUT_OFF)
        if isinstance(failure, pl.exceptions.PolarsError) and not is_full:
            raise
        cause = failure.__cause__ if isinstance(failure, WriteError) else failure
        reason = f"{cause or failure}. Choose another path"
        if is_full or _NO_ROOM in str(failure):
            place = next(parent for parent in path.absolute().parents if parent.exists())
            free = f"{shutil.disk_usage(place).free / 1e6:,.1f} MB"
            reason = f"{_NO_ROOM} for it, {free} are free. Make room, or choose another path"
        kept = "what was there is as it was" if path.exists() else "nothing is left there"
        raise WriteError(f"{path} cannot be written: {reason}; {kept}.") from cause


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with new_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def new_folder(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary folder that gets its final name when all of it is written.

    With `replace`, it takes the place of a folder that has the name, which stays as it is until
    then. For a moment that one is called `backup_folder(folder)`; `locked` puts it back if the
    writer was killed in that moment.
    """
    with _write_errors(folder, folder), locked(folder, beside=True) as is_locked:
        in_use = folder.exists() and any(folder.iterdir())
        if in_use and not replace:
            raise TilpError(f"{folder} is not empty: choose another folder or empty it")
        folder.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{folder.name}.partial-"
        for left in folder.parent.glob(f"{escape(prefix)}*") if is_locked else ():
            shutil.rmtree(left, ignore_errors=True)  # of a writer that was killed
        partial = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
        try:
            yield partial
            umask = os.umask(0)
            os.umask(umask)
            partial.chmod(0o777 & ~umask)
            if in_use:
                _swap(partial, folder)
            else:
                if folder.exists():
                    folder.rmdir()
                partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())  # lock files


@contextmanager
def locked(path: Path, wait: float | None = None, *, beside: bool = False) -> Iterator[bool]:
    """Lock a folder against other writers, and yield whether it is: some systems have no locks.

    The lock is held on the file `.lock` in the folder; with `beside`, for what is replaced as a
    whole, on `.NAME.lock` beside it. It names process and host, and ends with the process, even
    with a killed one. If another has it, try again every `wait` seconds; by default raise an error.
    """
    place = path.resolve()
    lock = place.with_name(f".{place.name}.lock") if beside else place / ".lock"
    if beside and lock in _held.get():  # by a caller
        yield True
        return
    try:
        import fcntl
    except ImportError:
        yield False
        return
    is_locked = True
    for attempt in count():
        with _write_errors(path, path):
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(handle, 300).decode(errors="replace").strip() or "it has no name yet"
            os.close(handle)
            busy = f"another process is at work in {path} ({owner})"
            if wait is None:
                raise TilpError(f"{busy}; wait until it is done, or end it") from None
            if not attempt:
                _log.info("%s; waiting for it", busy)
            time.sleep(wait)
            continue
        except OSError as failure:  # a file system without locks
            _log.info("%s cannot be locked: %s", path, failure)
            is_locked = False
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), lock.stat()):
                break
        os.close(handle)  # of a lock that was removed meanwhile
    try:
        with suppress(OSError):  # a full disk has no room for the name; the lock holds
            os.truncate(handle, 0)  # what a killed process left
            os.write(handle, f"process {os.getpid()} on {platform.node()}\n".encode())
        _held.set(_held.get() | {lock})
        backup = backup_folder(place)
        if is_locked and beside and backup.exists():  # of a writer that was killed
            shutil.rmtree(backup) if place.exists() else backup.rename(place)
        yield is_locked
    finally:
        _held.set(_held.get() - {lock})
        lock.unlink(missing_ok=True)
        os.close(handle)


def backup_folder(folder: Path) -> Path:
    """Return the name of a folder while another takes its place."""
    return folder.with_name(f".{folder.name}.before")


def _swap(partial: Path, folder: Path) -> None:
    """Give one folder the name of another, which is removed; each is whole all the time."""
    backup = backup_folder(folder)
    try:
        folder.rename(backup)
        partial.rename(folder)
    except BaseException:  # an interrupt as well
        if not folder.exists():
            backup.rename(folder)
        raise
    shutil.rmtree(backup)


Note = dict[str, Any]
Value = TypeVar("Value")


def load_or_compute(
    path: Path,
    compute: Callable[[], Value],
    to_arrays: Callable[[Value], dict[str, Any]],
    from_arrays: Callable[[dict[str, NDArray[Any]]], Value],
) -> Value:
    """Return what the file holds; without the file, compute it and write it there."""
    if path.exists():
        arrays = read_arrays(path)
        try:
            return from_arrays(arrays)
        except (KeyError, TypeError):
            raise TilpError(f"{path}: damaged; {_ANEW}") from None
    value = compute()
    write_arrays(path, to_arrays(value))
    return value


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write arrays to a file, whole or not at all."""
    with new_file(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)
        file.flush()
        os.fsync(file.fileno())


# What NumPy raises where a file does not begin as an array does.
NO_ARRAY = (ValueError, AttributeError, SyntaxError, EOFError, OverflowError, TokenError)
_ANEW = "remove it to have it computed again"


def read_arrays(path: Path, remedy: str = _ANEW) -> dict[str, NDArray[Any]]:
    """Read what `write_arrays` wrote; no object is ever unpickled. Errors state the remedy.

    The shapes of all arrays are compared with the size of the file before any is read.
    """
    try:
        if not path.is_file():
            raise OSError("it is missing, or no regular file")
        with zipfile.ZipFile(path) as archive:
            room = path.stat().st_size
            for member in archive.infolist():
                with archive.open(member) as file:
                    np.lib.format.read_magic(file)
                    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                room -= math.prod(shape) * dtype.itemsize
                if min(shape, default=0) < 0 or room < 0:
                    raise ValueError(f"{member.filename} cannot have the shape {shape}")
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except OSError as failure:
        raise _unreadable(path, failure) from failure
    except (*NO_ARRAY, zipfile.BadZipFile) as failure:
        raise TilpError(f"{path}: damaged ({failure}); {remedy}") from None


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], expected: Mapping[str, tuple[str, tuple[int | None, ...]]]
) -> None:
    """Refuse arrays that are missing, or of another type or shape; None is any length."""
    for name, (dtype, shape) in expected.items():
        array = arrays.get(name)
        if array is None:
            raise DataError(f"the array {name} is missing")
        fits = array.ndim == len(shape) and array.dtype == dtype
        if not fits or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
            wanted = f"{np.dtype(dtype)} {shape}".replace("None", "any")
            found = f"{array.dtype} {array.shape}"
            raise DataError(f"the array {name} is {found}, not {wanted}")


def write_note(
    path: Path, format: str, version: int, content: Note, *, sign: bool = True, indent: int = 2
) -> None:
    """Write the JSON note of a folder: its format and version, the content, and a digest."""
    note = {"format": format, "version": version, "tilp": __version__, **content}
    if sign:
        note["sha256"] = note_digest(note)
    write_text(path, json.dumps(note, indent=indent, ensure_ascii=False) + "\n")


def read_note(
    path: Path, format: str, version: int, remedy: str, *, signed: bool = True,
    error: type[TilpError] = TilpError,
) -> Note:  # fmt: skip
    """Read what `write_note` wrote; check format, version and digest; errors state the remedy."""
    try:
        if not path.is_file():  # a pipe would be waited for
            raise OSError("it is missing, or no regular file")
        note = json.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise _unreadable(path, failure, error) from failure
    except (ValueError, RecursionError) as failure:
        raise error(f"{path}: damaged ({failure}); {remedy}") from None
    if not isinstance(note, dict) or note.get("format") != format:
        raise error(f"{path}: not a note of the format {format!r}")
    if note.get("version") != version:
        raise error(
            f"{path}: written in version {note.get('version')} of the format, and this tilp reads "
            f"version {version}; {remedy}, or use the tilp that wrote it ({note.get('tilp')})"
        )
    if signed and note.pop("sha256", None) != note_digest(note):
        raise error(f"{path}: damaged (it is not as it was written); {remedy}")
    return note


def note_digest(note: Note) -> str:
    """Return the digest of a note without its digest."""
    return hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file."""
    try:
        if not path.is_file():
            raise OSError("it is missing, or no regular file")
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as failure:
        raise _unreadable(path, failure) from failure


def _unreadable(path: Path, failure: OSError, error: type[TilpError] = TilpError) -> TilpError:
    return error(f"{path} cannot be read: {failure.strerror or failure}")

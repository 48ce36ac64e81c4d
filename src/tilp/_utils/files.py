"""Files and folders that appear whole or not at all, array files, and the cache folder."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilp._version import __version__
from tilp.errors import TilpError


def cache_folder() -> Path:
    """The folder of downloads and compiled loops: `TILP_CACHE`, or `tilp` in the user's cache."""
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

_LONGEST = 60  # letters of a name


def file_name_part(name: str) -> str:
    """A name as it can stand in that of a file, cut where it is long.

    >>> file_name_part("member of: sports team")
    'member-of-sports-team'
    """
    return re.sub(r"\W+", "-", name).strip("-")[:_LONGEST]


def unique_file_name(name: str) -> str:
    """Such words, with a few signs that tell the name from all others where words leave some out.

    >>> unique_file_name("livesIn"), unique_file_name("C++") == unique_file_name("C#")
    ('livesIn', False)
    """
    words = file_name_part(name)
    if words == name:
        return words
    return "-".join(filter(None, (words, hashlib.sha256(name.encode()).hexdigest()[:6])))


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary name beside a file, which takes its place when all of it is written."""
    partial = path.with_name(f".{path.name}.partial")
    yield partial
    partial.replace(path)


@contextmanager
def new_folder(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """A temporary folder that takes its final name when all of it is written.

    Args:
        folder: the final name.
        replace: whether it takes the place of the folder that has the name, which until then stays
            as it is. For a moment this one is called `before(folder)`.

    Raises:
        TilpError: the final name is in use, or its place cannot be written to.
    """
    try:
        in_use = folder.exists() and any(folder.iterdir())
        if in_use and not replace:
            raise TilpError(f"{folder} is not empty: choose another folder or empty it")
        if in_use and backup_folder(folder).exists():
            raise TilpError(
                f"{backup_folder(folder)} is in the way, left from when {folder} was replaced: "
                "remove it, or give it another name"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            yield place
            place.chmod(0o777 & ~_umask())
            if in_use:
                _exchange(place, folder)
            else:
                if folder.exists():
                    folder.rmdir()
                place.rename(folder)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    except OSError as failure:
        raise TilpError(
            f"{folder} cannot be written: {failure}. Choose another place for it."
        ) from failure


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from working in a folder that is there; a killed one lets go of it.

    Where the system has no such locks, nothing is kept.

    Raises:
        TilpError: another process holds it.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TilpError(
                f"another process is at work in {folder}; wait until it is done, or end it"
            ) from None
        except OSError as failure:  # of a file system without locks
            _log.info("%s cannot be locked: %s", folder, failure)
        yield
    finally:
        os.close(place)


def backup_folder(folder: Path) -> Path:
    """The name of a folder while another takes its place."""
    return folder.with_name(f"{folder.name}.before")


def _exchange(place: Path, folder: Path) -> None:
    """Let one folder take the name of another, which is removed; each is whole all the time."""
    try:
        folder.rename(backup_folder(folder))
        place.rename(folder)
    except BaseException:  # an interrupt as well
        if not folder.exists():
            backup_folder(folder).rename(folder)
        raise
    shutil.rmtree(backup_folder(folder))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


Value = TypeVar("Value")


def load_or_compute(
    path: Path,
    make: Callable[[], Value],
    to_arrays: Callable[[Value], dict[str, Any]],
    from_arrays: Callable[[dict[str, NDArray[Any]]], Value],
) -> Value:
    """What is in the file, or else what is made, and put there.

    Raises:
        TilpError: the file is damaged, or of something else.
    """
    if path.exists():
        held = read_arrays(path)
        try:
            return from_arrays(held)
        except (KeyError, TypeError):
            raise TilpError(f"{path} cannot be read; remove it to have it made anew") from None
    made = make()
    write_arrays(path, to_arrays(made))
    return made


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Put arrays into a file, whole or not at all."""
    with new_file(path) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)
        file.flush()
        os.fsync(file.fileno())


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """What `write_arrays` wrote; no object is ever unpickled.

    Raises:
        TilpError: the file is damaged, or of something else.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (ValueError, AttributeError, OSError, EOFError, zipfile.BadZipFile):
        raise TilpError(f"{path} cannot be read; remove it to have it made anew") from None


def write_note(
    path: Path,
    format: str,
    version: int,
    content: dict[str, Any],
    *,
    sign: bool = True,
    indent: int = 2,
) -> None:
    """Write the JSON note of a folder: its format and version, the content, and a digest."""
    note = {"format": format, "version": version, "tilp": __version__, **content}
    if sign:
        note["sha256"] = note_digest(note)
    with new_file(path) as partial:
        text = json.dumps(note, indent=indent, ensure_ascii=False)
        partial.write_text(text + "\n", encoding="utf-8", newline="\n")


def read_note(
    path: Path,
    format: str,
    version: int,
    remedy: str,
    *,
    signed: bool = True,
    error: type[TilpError] = TilpError,
) -> dict[str, Any]:
    """Read what `write_note` wrote, and check its format, version and digest.

    The remedy is part of the error's message, such as "fit the model again".
    """
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise error(f"{path}: damaged ({failure}); {remedy}") from failure
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


def note_digest(note: dict[str, Any]) -> str:
    """Return the digest of a note without its digest."""
    return hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file.

    Raises:
        TilpError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as failure:
        raise TilpError(f"{path} cannot be read: {failure}") from failure

"""Where an import reads from: a file or a stream, packed or plain, with its damage counted."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

from tilp.errors import DataError, TilpError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tilp.io._importing.intake import Intake

MAX_LINE = 1 << 26  # bytes: several times the largest entity, and memory stays bounded


class _Packed(io.RawIOBase):
    """The bytes of a source as they come, counted."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = b""
        self.count = 0

    def magic(self) -> bytes:
        # A pipe may give fewer bytes than asked for, so it is asked again.
        while len(self._head) < 3 and (data := self._stream.read(3 - len(self._head))):
            self._head += data
        return self._head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head or self._stream.read(len(buffer)) or b""
        self._head = b""
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class Source:
    """A file or stream, unpacked according to its first bytes (gzip, bzip2), read once."""

    UNPACKING_ERRORS = (EOFError, OSError, zlib.error)

    def __init__(
        self, source: Path | IO[bytes], progress: Callable[[int], None] | None = None
    ) -> None:
        self._source = source
        self._progress = progress
        self._told = -1
        named = source if isinstance(source, str | os.PathLike) else getattr(source, "name", None)
        self.name = "<stream>" if named is None else str(named)
        self.stream: IO[bytes]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if isinstance(self._source, str | os.PathLike):
                try:
                    stream: IO[bytes] = stack.enter_context(Path(self._source).open("rb"))
                except OSError as error:
                    raise self.unreadable(error) from error
            else:
                stream = self._source
            self._packed = _Packed(stream)
            self.stream = stack.enter_context(self._unpacked())
            self._open = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def _unpacked(self) -> IO[bytes]:
        try:
            magic = self._packed.magic()
        except OSError as error:
            raise self.unreadable(error) from error
        except TypeError:
            raise TilpError(f"{self.name} is open as text: open it in binary mode") from None
        buffered = io.BufferedReader(self._packed, 1 << 20)
        if magic.startswith(b"\x1f\x8b"):
            return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered))
        if magic.startswith(b"BZh"):
            return bz2.BZ2File(buffered)
        return buffered

    def unreadable(self, error: BaseException) -> TilpError:
        """Say that the source cannot be read (further)."""
        if isinstance(error, OSError) and error.errno is not None:
            return TilpError(f"{self.name} cannot be read: {error.strerror}. Check the path.")
        return DataError(
            f"{self.name}: the packed data is damaged or breaks off ({error}). Get the file again."
        )

    def tick(self) -> None:
        """Tell how many packed bytes have been read, where that has changed."""
        if self._progress is not None and self._packed.count != self._told:
            self._told = self._packed.count
            self._progress(self._told)

    def lines(self, intake: Intake) -> Iterator[tuple[int, bytes]]:
        """Yield lines with their numbers; what cannot be unpacked ends them and is counted."""
        number = 0
        while True:
            number += 1
            try:
                line = self.stream.readline(MAX_LINE)
                if len(line) == MAX_LINE and not line.endswith(b"\n"):
                    while (rest := self.stream.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                        pass
                    intake.malformed(number, f"a line longer than {MAX_LINE} bytes")
                    continue
            except self.UNPACKING_ERRORS as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise self.unreadable(error) from error
                found = f"packed data that is damaged or breaks off ({error})"
                intake.malformed(number, found, "rest of the file left out")
                return
            self.tick()
            if not line:
                return
            yield number, line

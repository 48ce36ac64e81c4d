"""`BoundedProtocol`: connections that clients cannot hold by sending or reading nothing."""

import asyncio
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from tilp.web.state import Limits

_MIN_READ = 2**16  # bytes of a response that a client reads in the time for it, or it is cut off


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 of uvicorn, with limits that it lacks.

    A request must begin, and its headers arrive, in time. Where there are too many connections, the
    one that waited longest for a request, or for its body, is closed for each new one; where too
    much of responses is unread, the one that is read slowest.
    """

    limits = Limits()
    _timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _since = 0.0  # when it began to wait for a request or a reader

    @classmethod
    def of(cls, limits: Limits) -> type["BoundedProtocol"]:
        """Return the protocol with some limits."""
        return type(cls.__name__, (cls,), {"limits": limits})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request; make room for it if there is none."""
        super().connection_made(transport)
        self._wait()
        waiting = [other for other in self._all if other is not self and other._is_waiting]
        too_many = max(len(self._all) - self.limits.connections, 0)
        for other in sorted(waiting, key=lambda other: other._since)[:too_many]:
            other.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel("_timer")

    def on_response_complete(self) -> None:
        """Wait for the next request, or until the client has read the response."""
        self._wait()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to read; cut off the slowest one if too much is unread."""
        super().pause_writing()
        self._wait_for_reader()
        slow = [other for other in self._all if other._read_timer is not None]
        unread = sum(other._unread for other in slow)
        for other in sorted(slow, key=lambda other: other._since):
            if unread <= self.limits.unread:
                break
            unread -= other._unread
            other.transport.abort()

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        self._cancel("_read_timer")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._cancel("_timer")
        self._cancel("_read_timer")
        super().connection_lost(exc)

    @property
    def _all(self) -> set["BoundedProtocol"]:
        return cast("set[BoundedProtocol]", self.connections)

    @property
    def _is_waiting(self) -> bool:
        """Whether it waits for a request or the rest of its body."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    @property
    def _unread(self) -> int:
        return self.transport.get_write_buffer_size()

    def _wait(self) -> None:
        self._cancel("_timer")
        self._since = self.loop.time()
        self._timer = self.loop.call_later(self.limits.head, self.transport.abort)

    def _wait_for_reader(self) -> None:
        self._cancel("_read_timer")
        self._since = self.loop.time()
        unread = self._unread

        def check() -> None:
            if self._unread > unread - _MIN_READ:
                self.transport.abort()
            else:
                self._wait_for_reader()

        self._read_timer = self.loop.call_later(self.limits.arrival, check)

    def _cancel(self, name: str) -> None:
        timer = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)

"""`ServiceState`: the served model, its limits, and the queue of computations."""

import asyncio
import logging
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hmac import compare_digest
from threading import Thread
from typing import Any, TypeVar

from tilp._version import __version__
from tilp.graph import SPLITS
from tilp.model import TILP
from tilp.parallel import thread_count
from tilp.web.errors import Code, ServiceError
from tilp.web.views import DataView, ModelView, RuleView

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a service: bytes of bodies, computations at once, requests that wait, and times."""

    body: int = 2**16
    batch_body: int = 2**21
    computations: int | None = None  # None: as many as there are cores
    waiting: int = 64  # further requests get the error `busy`
    seconds: float = 30.0  # to wait and compute; then the request gets the error `too_slow`
    arrival: float = 15.0  # seconds for a body to arrive, and to read each part of a response
    chunk: int = 16  # queries of a batch to compute before other requests get a turn
    requests: int = 256  # at once; further ones get the error `busy`, but not those for health
    connections: int = 512  # at once; further ones take the place of those that wait longest
    head: float = 15.0  # seconds for the next request to begin and its headers to arrive
    unread: int = 2**25  # bytes of responses that clients have not read, of all connections


@dataclass(frozen=True, slots=True)
class Access:
    """Who gets answers: requests to these hosts (None: any), with this token (None: none)."""

    hosts: frozenset[str] | None = None
    token: str | None = None

    def check(self, host: str, authorization: str) -> None:
        """Raise an error unless a request may be answered, by its headers."""
        name = re.sub(r":\d*$", "", host).lower().rstrip(".")
        if self.hosts is not None and name not in self.hosts:
            message = (
                f"this service is not known as {name[:100]!r}: another site may have sent this "
                "request. Use the address that tilp serve printed, or add --allow-host NAME to it"
            )
            raise ServiceError(Code.WRONG_HOST, message)
        if self.token is None:
            return
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":  # of browsers: any name, and the token as password
            with suppress(ValueError):
                given = b64decode(given).decode().partition(":")[2]
        if not compare_digest(given.strip().encode(), self.token.encode()):
            message = "send the header Authorization: Bearer TOKEN, or the token as password"
            headers = {"WWW-Authenticate": 'Basic realm="tilp", charset="UTF-8"'}
            raise ServiceError(Code.UNAUTHORIZED, message, headers=headers)


class WorkerQueue:
    """Threads that run computations in the order of their requests, with a bounded queue.

    A request gives up a computation that takes too long. The computation still runs to its end,
    which the limit on walks bounds, and occupies its thread until then.
    """

    def __init__(self, limits: Limits) -> None:
        threads = thread_count(limits.computations)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="tilp")
        self._requests, self._capacity = 0, threads + limits.waiting
        self._seconds = limits.seconds

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Occupy a slot of the queue during a request; raise `busy` if there is none."""
        if self._requests >= self._capacity:
            raise ServiceError(Code.BUSY, "too many requests are waiting; try again later")
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    async def run(self, function: Callable[..., Result], *args: Any, **options: Any) -> Result:
        """Run a function in a slot and a thread."""
        with self.slot():
            return await self.compute(function, *args, **options)

    async def compute(self, function: Callable[..., Result], *args: Any, **options: Any) -> Result:
        """Run a function in one of the threads; raise `too_slow` if that takes too long."""
        future = self._threads.submit(function, *args, **options)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError:
            seconds = f"{self._seconds:g} seconds"
            message = f"no answer within {seconds}; ask for less at once, or try again later"
            raise ServiceError(Code.TOO_SLOW, message) from None

    def close(self) -> None:
        """Finish running computations, and start no more."""
        self._threads.shutdown(cancel_futures=True)


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Views:
    """Everything that requests read, built when the service starts."""

    summary: dict[str, Any]
    model: ModelView
    rules: RuleView
    data: DataView


class ServiceState:
    """A fitted model, its views, and the worker queue; `when_ready` is called once it is warm."""

    def __init__(
        self, model: TILP, name: str, limits: Limits, when_ready: Callable[[], None] | None = None
    ) -> None:
        self.limits, self.queue = limits, WorkerQueue(limits)
        self._model, self._name, self._when_ready = model, name, when_ready
        self._views: Views | None = None
        self._failed = False

    @property
    def views(self) -> Views:
        """The views; raises the error `starting` until the model is warm."""
        if self._views is None:
            message = "the service is warming up; try again in a moment"
            if self._failed:
                message = "the service could not warm up, see its log; start it again"
            raise ServiceError(Code.STARTING, message)
        return self._views

    def start(self) -> None:
        """Start to warm up in a thread; stopping the service does not wait for it."""
        Thread(target=self._warm_up, daemon=True).start()

    def _warm_up(self) -> None:
        try:
            self._views = self._build_views()
        except Exception:
            self._failed = True
            logger.exception("warming up failed")
            return
        if self._when_ready is not None:
            self._when_ready()

    def _build_views(self) -> Views:
        """Build and compile all that requests need, so that no request waits for it."""
        graph, forecasts = self._model.graph, self._model.forecasts
        settings = None if forecasts else self._model.settings
        model = ModelView(self._model)
        words = self._model.phrasings, graph.unit
        rules = RuleView(self._model.rules(), graph.relations, *words)
        data = DataView(graph)
        summary = {
            "name": self._name,
            "version": __version__,
            "unit": graph.unit.value,
            "task": "forecast" if forecasts else "complete",
            "evidence": self._model.evidence_note,
            "features": "none" if settings is None else settings.features.value,
            "max_length": 1 if settings is None else settings.mining.max_length,
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "rules": len(rules.rules),
            "words": list(rules.temporal_relations),
            "facts": {split: len(graph.rows(split)) for split in SPLITS},
            "example": asdict(model.warm_up()),
        }
        data.warm_up()
        return Views(summary, model, rules, data)

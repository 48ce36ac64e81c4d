"""`RayWorkers`: chunks given to the worker processes of a Ray cluster, of one machine or many."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, TypeVar

import ray
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayError,
    WorkerCrashedError,
)

from tilp._utils.versions import code_versions
from tilp.errors import TilpError
from tilp.parallel.transfer import Shelf, pack, unpack

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

_RETRIES = 5  # of a chunk whose worker died or whose machine is gone
_AHEAD = 2  # chunks under way for each worker, so that it need not wait for the next
_HELD = 8  # chunks for each worker, under way or done, that wait for one before them
_PATIENCE = 30.0  # seconds for a cluster to answer at all
_LOOK_AGAIN = 5.0  # seconds after which the number of workers may have changed
_NOTHING = object()
_LOST = (WorkerCrashedError, NodeDiedError, OutOfMemoryError, ObjectLostError)


class RayWorkers:
    """Worker processes of Ray, one for each processor that it has.

    Where Ray was not started in this process, it is here, and stopped when the last are closed.

    Args:
        threads: processes to start, where there is no cluster to join.
        address: of a cluster that is running.

    Raises:
        TilpError: it cannot be reached.
    """

    def __init__(self, threads: int, address: str | None) -> None:
        _cluster.enter(threads, address)
        self._session = uuid.uuid4().hex
        self._calls = count()
        self._shelf = Shelf(ray.put)
        self._versions = tuple(code_versions().items())
        self._run = ray.remote(num_cpus=1, max_retries=_RETRIES, scheduling_strategy="SPREAD")(
            _runner()
        )
        self._stopped = False
        self._maps: dict[int, set[Any]] = {}  # the chunks of each that are under way
        self._slots, self._looked = 1, -_LOOK_AGAIN

    @property
    def slots(self) -> int:
        """Chunks that can be done at once."""
        if time.monotonic() - self._looked >= _LOOK_AGAIN:
            self._slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
            self._looked = time.monotonic()
        return self._slots

    def map(self, function: Callable[[Chunk], Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The function's result for each chunk, in order; a bounded number is under way."""
        number = next(self._calls)
        holder = [ray.put(self._shelf.pack(function))]
        left = iter(chunks)
        ordered: deque[Any] = deque()
        under_way: set[Any] = set()
        self._maps[number] = under_way
        try:
            while True:
                while len(under_way) < _AHEAD * self.slots and len(ordered) < _HELD * self.slots:
                    if self._stopped:
                        raise RuntimeError("the workers take no more chunks")
                    chunk = next(left, _NOTHING)
                    if chunk is _NOTHING:
                        break
                    call = (self._session, number, min(self._maps))
                    ref = self._run.remote(self._versions, call, holder, pack(chunk))
                    ordered.append(ref)
                    under_way.add(ref)
                if not ordered:
                    return
                if ordered[0] in under_way:
                    done, _ = ray.wait(list(under_way), num_returns=1, fetch_local=False)
                    under_way.difference_update(done)
                else:
                    yield _result(ordered.popleft())
        finally:
            del self._maps[number]
            _cancel(under_way)

    def stop(self) -> None:
        """Take no more chunks, and end those that are under way, wherever they are."""
        self._stopped = True
        for under_way in list(self._maps.values()):
            _cancel(under_way, force=True)

    def close(self) -> None:
        """Put nothing more into the store, and stop what was started.

        Where Ray stays, workers let go of what they hold with the next chunk of others.
        """
        self.stop()
        self._shelf = Shelf(ray.put)
        _cluster.leave()


def _cancel(under_way: set[Any], *, force: bool = False) -> None:
    """End chunks; loops that are compiled end by force only, with their worker."""
    if ray.is_initialized():
        for ref in list(under_way):
            ray.cancel(ref, force=force)


class _Cluster:
    """Ray as this process has it: started or joined for the first workers, left with the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._ours = False

    def enter(self, threads: int, address: str | None) -> None:
        """Start or join it, unless that was done."""
        with self._lock:
            if ray.is_initialized():
                _check_same(address)
            else:
                _connect(threads, address)
                self._ours = True
            self._users += 1

    def leave(self) -> None:
        """Stop it, where it was started here and nobody is left."""
        with self._lock:
            self._users -= 1
            if self._ours and not self._users:
                self._ours = False
                ray.shutdown()


_cluster = _Cluster()


def _check_same(address: str | None) -> None:
    """Refuse another cluster than the one that this process works on."""
    joined = ray.get_runtime_context().gcs_address
    if address not in (None, "auto") and _numeric(address) != _numeric(joined):
        raise TilpError(
            f"this process works on the Ray cluster at {joined}, and can work on no other at "
            f"{address} until that is left"
        )


def _numeric(address: str) -> str:
    """An address with the host as its number, where it has one."""
    host, colon, port = address.rpartition(":")
    try:
        return f"{socket.gethostbyname(host)}{colon}{port}"
    except OSError:
        return address


def _connect(threads: int, address: str | None) -> None:
    """Start Ray, or join it."""
    if address is not None and address.startswith("ray://"):
        raise TilpError(
            f"{address} is for Ray's remote client; run tilp on a machine of the cluster, and "
            "give host:port or auto"
        )
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    join = address or os.environ.get("RAY_ADDRESS")
    try:
        if join:
            _knock(join)
            ray.init(address=join, **quiet)
        else:
            _start(threads, quiet)
    except Exception as failure:  # Ray raises what it likes
        if join:
            raise TilpError(
                f"no Ray cluster answers at {join} ({failure}); start one with: ray start --head"
            ) from failure
        raise TilpError(f"Ray could not be started here ({failure})") from failure


def _knock(address: str) -> None:
    """Fail soon where there is no cluster; Ray would try again for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((host, int(port)), _PATIENCE).close()
    # What listens may be something else, and `auto` is what was there last.
    command = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address]
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"nothing was heard of it in {_PATIENCE:.0f} seconds") from None
    if asked.returncode:
        raise ConnectionError((asked.stderr.strip() or "it is not there").splitlines()[-1])


def _start(processes: int, quiet: dict[str, Any]) -> None:
    """Start Ray on this machine, for as long as it is needed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked to report anything
    with warnings.catch_warnings():
        # JAX and Python warn of forks beside threads; Ray's do nothing but start its programs.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
        ray.init(address="local", num_cpus=processes, include_dashboard=False, **quiet)


def _runner() -> Callable[..., Any]:
    """What a worker runs; it travels as it is, and so tells of a worker that lacks the rest."""

    def run(
        versions: Any, call: tuple[str, int, int], holder: Sequence[Any], chunk: Any
    ) -> tuple[str, Any]:
        try:
            from tilp.parallel import ray_tasks
        except ImportError as failure:
            return f"a worker cannot load tilp ({failure})", None
        other = ray_tasks.other_versions(versions)
        return other, None if other else ray_tasks.run(call, holder, chunk)

    return run


def _result(ref: Any) -> Any:
    """What a chunk gave: its result, or its own exception."""
    try:
        unlike, done = ray.get(ref)
    except _LOST as failure:
        raise TilpError(
            f"a chunk of work was tried {_RETRIES + 1} times, and its worker failed every time "
            f"({type(failure).__name__}); is there enough memory? fewer workers need less"
        ) from failure
    except RayError as failure:
        raise TilpError(f"Ray failed at a chunk of work: {failure}") from failure
    if unlike:
        raise TilpError(
            f"{unlike}; every machine of the cluster needs the same versions, or results could "
            "differ"
        )
    found, failed, told = done
    for category, message in told:
        warnings.warn(message, category, stacklevel=2)
    if failed:
        raised: Exception = unpack(found)
        raised.add_note(failed)
        raise raised
    return unpack(found)

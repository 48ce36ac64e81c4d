"""`RayWorkers`: chunks run by worker processes of Ray, on one machine or many; their tasks."""

import logging
import os
import platform
import socket
import subprocess
import sys
import threading
import time
import traceback
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar

import ray
from ray import exceptions
from threadpoolctl import threadpool_limits

from tilp._version import code_versions
from tilp.errors import TilpError
from tilp.parallel.transfer import Bytes, PackedValue, SharedPacker, SharedUnpacker, pack, unpack

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

MAX_WAITING = 8  # chunks per worker, in progress or done, that wait for an earlier result
_MAX_RUNNING = 2  # chunks per worker in progress, so that no worker waits for its next chunk
_RETRIES = 5  # of a chunk whose worker or machine died
_CONNECT_SECONDS = 30.0
_REFRESH_SECONDS = 5.0  # how often the number of workers is looked up
_END = object()
_WORKER_LOST = (
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.OutOfMemoryError,
    exceptions.ObjectLostError,
)


class RayWorkers:
    """Worker processes of Ray, one a processor; Ray, if started here, ends with the last ones."""

    def __init__(self, threads: int, address: str | None) -> None:
        _cluster.enter(threads, address)
        self._session = uuid.uuid4().hex
        self._map_ids = count()
        self._packer = SharedPacker(ray.put)
        self._versions = tuple(code_versions().items())
        remote = ray.remote(num_cpus=1, max_retries=_RETRIES, scheduling_strategy="SPREAD")
        self._run = remote(_make_task())
        self._stopped = False
        self._running: dict[int, set[Any]] = {}  # map id -> chunks in progress
        self._slots, self._refreshed = 1, -_REFRESH_SECONDS

    @property
    def slots(self) -> int:
        """Number of chunks that can run at once."""
        if time.monotonic() - self._refreshed >= _REFRESH_SECONDS:
            self._slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
            self._refreshed = time.monotonic()
        return self._slots

    def map(self, function: Callable[[Chunk], Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """Yield the function's result for each chunk, in order, with few chunks in progress."""
        map_id = next(self._map_ids)
        packed_function = [ray.put(self._packer.pack(function))]
        remaining = iter(chunks)
        ordered: deque[Any] = deque()
        running = self._running[map_id] = set()
        try:
            while True:
                slots = self.slots
                while len(running) < _MAX_RUNNING * slots and len(ordered) < MAX_WAITING * slots:
                    if self._stopped:
                        raise RuntimeError("the workers are closed and take no more chunks")
                    chunk = next(remaining, _END)
                    if chunk is _END:
                        break
                    call = (self._session, map_id, min(self._running))
                    ref = self._run.remote(self._versions, call, packed_function, pack(chunk))
                    ordered.append(ref)
                    running.add(ref)
                if not ordered:
                    return
                if ordered[0] in running:
                    done, _ = ray.wait(list(running), num_returns=1, fetch_local=False)
                    running.difference_update(done)
                else:
                    yield _chunk_result(ordered.popleft())
        finally:
            del self._running[map_id]
            _cancel(running)

    def stop(self) -> None:
        """Take no more chunks and cancel those in progress."""
        self._stopped = True
        for running in list(self._running.values()):
            _cancel(running, force=True)

    def close(self) -> None:
        """Release shared objects, and stop Ray if it was started here."""
        self.stop()  # workers that stay release their cache with a chunk of another session
        self._packer = SharedPacker(ray.put)
        _cluster.leave()


def _cancel(refs: set[Any], *, force: bool = False) -> None:
    """Cancel chunks; compiled loops end only by force, together with their worker."""
    if ray.is_initialized():
        for ref in list(refs):
            ray.cancel(ref, force=force)


class _Cluster:
    """Ray in this process: started or joined for the first workers, left with the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._started_here = False

    def enter(self, threads: int, address: str | None) -> None:
        """Start or join Ray, unless this process already did."""
        with self._lock:
            if not ray.is_initialized():
                _connect(threads, address)
                self._started_here = True
            elif address not in (None, "auto"):
                joined = ray.get_runtime_context().gcs_address
                if _resolve(address) != _resolve(joined):
                    raise TilpError(
                        f"this process uses the Ray cluster at {joined}; close its workers before "
                        f"you join another cluster at {address}"
                    )
            self._users += 1

    def leave(self) -> None:
        """Stop Ray if it was started here and nobody uses it any more."""
        with self._lock:
            self._users -= 1
            if self._started_here and not self._users:
                self._started_here = False
                ray.shutdown()


_cluster = _Cluster()


def _resolve(address: str) -> str:
    """Replace the host name of an address by its IP address, where that is known."""
    host, colon, port = address.rpartition(":")
    try:
        return f"{socket.gethostbyname(host)}{colon}{port}"
    except OSError:
        return address


def _connect(threads: int, address: str | None) -> None:
    """Join the cluster at an address or in `RAY_ADDRESS`; else start Ray on this machine."""
    if address is not None and address.startswith("ray://"):
        raise TilpError(
            f"{address} is for Ray's remote client; run tilp on a machine of the cluster, and "
            "give host:port or auto"
        )
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        if address:
            _check_reachable(address)
            ray.init(address=address, **quiet)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            with warnings.catch_warnings():
                # JAX and Python warn of forks beside threads; Ray forks only to start its programs.
                warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
                warnings.filterwarnings(
                    "ignore", ".*multi-threaded, use of fork", DeprecationWarning
                )
                ray.init(address="local", num_cpus=threads, include_dashboard=False, **quiet)
    except Exception as failure:  # Ray raises exceptions of many types
        if address:
            raise TilpError(
                f"no Ray cluster answers at {address} ({failure}); start one with: ray start --head"
            ) from failure
        raise TilpError(f"Ray could not be started here ({failure})") from failure


def _check_reachable(address: str) -> None:
    """Fail soon if there is no cluster; Ray itself would retry for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    # Another program may listen there, and `auto` may name a cluster that has ended.
    command = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": _CONNECT_SECONDS}
    try:
        status = subprocess.run(command, check=False, **options)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"no reply within {_CONNECT_SECONDS:.0f} seconds") from None
    if status.returncode:
        raise ConnectionError((status.stderr.strip() or "it is not running").splitlines()[-1])


def _make_task() -> Callable[..., Any]:
    """Return the task that workers run; it is sent by value, so it can report a missing tilp."""

    def run(versions: Any, call: Any, function: Sequence[Any], chunk: Any) -> tuple[str, Any]:
        try:
            from tilp.parallel import ray_workers
        except ImportError as failure:
            return f"a worker cannot load tilp ({failure})", None
        mismatches = ray_workers.version_mismatches(versions)
        return mismatches, None if mismatches else ray_workers.run_chunk(call, function, chunk)

    return run


def _chunk_result(ref: Any) -> Any:
    try:
        mismatches, result = ray.get(ref)
    except _WORKER_LOST as failure:
        raise TilpError(
            f"a chunk of work was tried {_RETRIES + 1} times, and its worker failed every time "
            f"({type(failure).__name__}); if memory runs out, use fewer workers"
        ) from failure
    except exceptions.RayError as failure:
        raise TilpError(f"Ray failed to run a chunk of work: {failure}") from failure
    if mismatches:
        raise TilpError(
            f"{mismatches}; install the same versions on every machine of the cluster, or results "
            "could differ"
        )
    value, note, caught = result
    for category, message in caught:
        warnings.warn(message, category, stacklevel=2)
    if note:
        error: Exception = unpack(value)
        error.add_note(note)
        raise error
    return unpack(value)


ChunkResult = tuple[Bytes, str, list[tuple[type[Warning], str]]]
"""Packed result or exception, traceback of the exception, category and message of warnings."""

_unpacker = SharedUnpacker(ray.get)
_functions: dict[tuple[str, int], Callable[[Any], Any]] = {}


@lru_cache(1)
def version_mismatches(expected: tuple[tuple[str, str], ...]) -> str:
    """Describe version mismatches with the driver; empty if none."""
    versions = code_versions()
    mismatches = [
        f"{name} {versions.get(name, 'none')[:12]}, not {version[:12]}"
        for name, version in expected
        if versions.get(name) != version
    ]
    return f"a worker on {platform.node()} has {'; '.join(mismatches)}" if mismatches else ""


def run_chunk(call: tuple[str, int, int], function: Sequence[Any], chunk: Bytes) -> ChunkResult:
    """Run a function on a packed chunk.

    `call` holds session id, map id and lowest id of an unfinished map. The reference to the
    function is in a list so that Ray does not fetch it every time.
    """
    error = ""
    with warnings.catch_warnings(record=True) as caught:
        try:
            value = pack(_load_function(call, function)(unpack(chunk)))
        except Exception as failure:  # noqa: BLE001 - raised again by the driver
            error = f"on {platform.node()}:\n{traceback.format_exc()}"
            value = _pack_exception(failure)
    return value, error, [(item.category, str(item.message)) for item in caught]


def _pack_exception(failure: Exception) -> Bytes:
    """Pack an exception; one that cannot be pickled becomes a `TilpError` with its message."""
    try:
        packed = pack(failure)
        unpack(packed)
    except Exception:  # noqa: BLE001 - an exception may hold anything
        return pack(TilpError(f"{type(failure).__name__}: {failure}"))
    return packed


def _load_function(call: tuple[str, int, int], function: Sequence[Any]) -> Callable[[Any], Any]:
    session, map_id, first_unfinished = call
    # Cached functions of finished maps would keep their arrays in the object store.
    for key in [k for k in _functions if k[0] != session or k[1] < first_unfinished]:
        del _functions[key]
    if (session, map_id) not in _functions:
        packed = ray.get(function[0])
        _functions[session, map_id] = _unpacker.unpack(PackedValue(*packed))
        # Sums of linear algebra depend on its threads; its libraries may just have been loaded.
        threadpool_limits(limits=1, user_api="blas")
    return _functions[session, map_id]

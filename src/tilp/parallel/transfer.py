"""Pickling for other processes: large arrays are shared, names and texts are fetched on demand."""

import io
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ray import cloudpickle

from tilp.graph import TemporalGraph, Vocabulary
from tilp.io.packed.open import PackedVocabulary

_PROTOCOL = 5
_LAZY = ("texts", "defects", "source_line", "source_files")  # attributes of a graph

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class LazyAttributes:
    """Attributes of a proxy that are sent separately; `fetch` returns them by name."""

    fetch: Callable[[], dict[str, Any]]


class LazyProxy:
    """Proxy that fetches large attributes lazily."""

    def __getattr__(self, name: str) -> Any:
        attributes = vars(self)
        # Python itself looks for special names, which are never among the lazy attributes.
        if name.startswith("__") or "_lazy" not in attributes:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        attributes.update(attributes["_lazy"].fetch())
        del attributes["_lazy"]
        return getattr(self, name)


class _LazyVocabulary(LazyProxy, Vocabulary):
    """Vocabulary that knows its size only, until a name is needed."""

    def __len__(self) -> int:
        return int(vars(self)["_size"])


class _LazyGraph(LazyProxy, TemporalGraph):
    """Graph without texts of dates and sources of facts; it keeps the indexes that were built."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Send the arrays of a packed graph: its files may not exist on the other machine.
        return object.__reduce_ex__(self, protocol)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "attributes": dict(self.attributes)}


def make_proxy(value: Vocabulary | TemporalGraph) -> LazyProxy:
    """Return the proxy that is sent in place of a vocabulary or graph."""
    defined = {name: getattr(type(value), name, None) for name in vars(value)}
    cached = {name for name, each in defined.items() if isinstance(each, cached_property)}
    attributes = {name: each for name, each in vars(value).items() if name not in cached}
    if isinstance(value, Vocabulary):
        proxy: LazyProxy = _LazyVocabulary.__new__(_LazyVocabulary)
        eager = {"kind": attributes.pop("kind"), "_size": len(value)}
        lazy = attributes
    else:
        proxy = _LazyGraph.__new__(_LazyGraph)
        lazy = {k: attributes.pop(k) for k in _LAZY if k in attributes}
        eager = attributes
    vars(proxy).update(eager, _lazy=LazyAttributes(lambda: lazy))
    return proxy


_PICKLED_WHOLE = (LazyProxy, PackedVocabulary)  # names of the latter are arrays and shared as such


class PackedValue(NamedTuple):
    """Pickled value and references to its parts in the object store."""

    pickled: Bytes  # with indexes into the references in place of the parts
    shared: tuple[Any, ...]
    lazy: tuple[Any, ...]  # attributes that are fetched on first use


def pack(value: Any) -> Bytes:
    """Pickle a value whole, without sharing."""
    return np.frombuffer(cloudpickle.dumps(value, _PROTOCOL), np.uint8)


def unpack(pickled: Bytes) -> Any:
    """Return the value that `pack` was given."""
    return pickle.loads(pickled.data)


class SharedPacker:
    """Pickler that puts large read-only arrays, vocabularies and graphs into the store once."""

    def __init__(self, put: Callable[[Any], Any], min_shared_bytes: int = 1 << 17) -> None:
        self.put = put
        # The object store works better with few, large arrays.
        self._min_shared_bytes = min_shared_bytes
        self._refs: dict[int, tuple[weakref.ref[Any], Any, Any]] = {}
        self._lock = threading.RLock()

    def pack(self, value: Any) -> PackedValue:
        """Pickle a value, with references to its shared parts."""
        with self._lock, io.BytesIO() as file:
            pickler = _Pickler(file, self)
            pickler.dump(value)
            pickled = np.frombuffer(file.getvalue(), np.uint8)
        return PackedValue(pickled, tuple(pickler.shared), tuple(pickler.lazy))

    def shared_ref(self, value: Any) -> Any:
        """Return the reference to a value that is shared; None if it is not."""
        if isinstance(value, np.ndarray):
            large = not value.flags.writeable and value.nbytes >= self._min_shared_bytes
            if not large or not value.flags.forc or value.dtype.hasobject:
                return None
            return self._store(value, None, lambda: np.asarray(value))
        if isinstance(value, Vocabulary | TemporalGraph) and not isinstance(value, _PICKLED_WHOLE):
            # Store a graph again when more of its indexes were built.
            indexes = tuple(getattr(value, "_indexes", ()))
            return self._store(value, indexes, lambda: self.pack(make_proxy(value)))
        return None

    def _store(self, value: Any, version: Any, make: Callable[[], Any]) -> Any:
        """Return the reference to a value; put it into the store if it is new or has changed."""
        key = id(value)
        known, stored_version, ref = self._refs.get(key, (None, None, None))
        if known is None or known() is not value or stored_version != version:
            ref = self.put(make())
            alive = weakref.ref(value, lambda dead: self._forget(key, dead))
            self._refs[key] = (alive, version, ref)
        return ref

    def _forget(self, key: int, dead: weakref.ref[Any]) -> None:
        if key in self._refs and self._refs[key][0] is dead:
            del self._refs[key]


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, packer: SharedPacker) -> None:
        super().__init__(file, protocol=_PROTOCOL)
        self._packer = packer
        self.shared: dict[Any, int] = {}
        self.lazy: list[Any] = []

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        """Return the id of a value that is not pickled itself; None if it is."""
        if isinstance(value, LazyAttributes):
            self.lazy.append(self._packer.put(pack(value.fetch())))
            return "lazy", len(self.lazy) - 1
        if type(value).__module__.startswith("numba."):
            # Send the name of a compiled loop: a copy would be compiled again.
            module, name = getattr(value, "__module__", ""), getattr(value, "__name__", "")
            is_global = getattr(sys.modules.get(module), name, None) is value
            return ("kernel", module, name) if is_global else None
        ref = self._packer.shared_ref(value)
        return None if ref is None else ("shared", self.shared.setdefault(ref, len(self.shared)))


class SharedUnpacker:
    """Unpickler of packed values; it gets a shared part once while any value uses it."""

    def __init__(self, get: Callable[[list[Any]], Sequence[Any]]) -> None:
        self._get = get
        self._cache: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()

    def unpack(self, packed: PackedValue) -> Any:
        """Return the value that `SharedPacker.pack` was given."""
        shared = {ref: self._cache.get(ref) for ref in packed.shared}
        missing = [ref for ref, value in shared.items() if value is None]
        for ref, value in zip(missing, self._get(missing), strict=True):
            shared[ref] = self.unpack(PackedValue(*value)) if isinstance(value, tuple) else value
            self._cache[ref] = shared[ref]
        lazy = [LazyAttributes(partial(self._fetch, ref)) for ref in packed.lazy]
        return _Unpickler(packed.pickled, list(shared.values()), lazy).load()

    def _fetch(self, ref: Any) -> Any:
        return unpack(self._get([ref])[0])


class _Unpickler(pickle.Unpickler):
    def __init__(self, pickled: Bytes, shared: list[Any], lazy: list[LazyAttributes]) -> None:
        super().__init__(io.BytesIO(pickled.data))
        self._shared, self._lazy = shared, lazy

    def persistent_load(self, pid: tuple[Any, ...]) -> Any:
        """Return the value that has an id."""
        match pid:
            case ("shared", index):
                return self._shared[index]
            case ("lazy", index):
                return self._lazy[index]
            case ("kernel", module, name):
                return getattr(import_module(module), name)
        raise pickle.UnpicklingError(f"unknown id {pid} in packed value")

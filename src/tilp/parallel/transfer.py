"""Graphs and names as workers elsewhere have them: what walks never ask for comes when asked for.

Names and texts are many small strings, of which every process would have a copy of its own.
"""

from __future__ import annotations

import io
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ray import cloudpickle

from tilp.graph import TemporalGraph, Vocabulary
from tilp.io.packed.open import PackedVocabulary

_OF_GRAPH = ("texts", "defects")


class Apart:
    """Attributes that travel apart from their object.

    Args:
        fetch: gives them by name.
    """

    def __init__(self, fetch: Callable[[], dict[str, Any]]) -> None:
        self.fetch = fetch


class Far:
    """An object some attributes of which are elsewhere until one of them is asked for."""

    def __getattr__(self, name: str) -> Any:
        held = vars(self)
        # Python itself asks for names with underscores, which are none of its attributes.
        if name.startswith("__") or "_apart" not in held:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        held.update(held["_apart"].fetch())
        del held["_apart"]
        return getattr(self, name)


class _FarVocabulary(Far, Vocabulary):
    """Names that are known by their number alone."""

    def __len__(self) -> int:
        return int(vars(self)["_size"])


class _FarGraph(Far, TemporalGraph):
    """A graph without the texts of its dates; it travels with the indexes that it has."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        # The files of a packed graph need not be there where it goes: its arrays travel.
        return object.__reduce_ex__(self, protocol)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "attributes": dict(self.attributes)}


def far(thing: Vocabulary | TemporalGraph) -> Far:
    """What travels in place of names or a graph."""
    held = {
        name: value
        for name, value in vars(thing).items()
        if not isinstance(getattr(type(thing), name, None), cached_property)
    }
    if isinstance(thing, Vocabulary):
        sent: Far = _FarVocabulary.__new__(_FarVocabulary)
        here = {"kind": held.pop("kind"), "_size": len(thing)}
        apart = held
    else:
        sent = _FarGraph.__new__(_FarGraph)
        apart = {name: held.pop(name) for name in _OF_GRAPH if name in held}
        here = held
    vars(sent).update(here, _apart=Apart(lambda: apart))
    return sent


_LEAST_SHARED = 1 << 17  # bytes of an array; the store does better by fewer, larger ones
_PROTOCOL = 5
_AS_THEY_ARE = (Far, PackedVocabulary)  # the names of the latter are arrays, and shared as such

Bytes = NDArray[np.uint8]


class Parcel(NamedTuple):
    """A value that holds others.

    Attributes:
        pickled: the value, with the numbers of what is in the store in its place.
        shared: the store's references to it.
        apart: the store's references to what is fetched only when it is asked for.
    """

    pickled: Bytes
    shared: tuple[Any, ...]
    apart: tuple[Any, ...]


def pack(value: Any) -> Bytes:
    """A value by itself, nothing of it shared."""
    return np.frombuffer(cloudpickle.dumps(value, _PROTOCOL), np.uint8)


def unpack(pickled: Bytes) -> Any:
    """What `pack` was given."""
    return pickle.loads(pickled.data)


class Shelf:
    """Packs values; what they share is put into the store when it is first met.

    It stays there as long as it is used here: read-only arrays of some size, names, and graphs.

    Args:
        put: puts a value into the store, and gives a reference to it.
    """

    def __init__(self, put: Callable[[Any], Any]) -> None:
        self._put = put
        self._refs: dict[int, tuple[weakref.ref[Any], Any, Any]] = {}
        self._lock = threading.RLock()

    def pack(self, value: Any) -> Parcel:
        """A value, with the references to what it shares."""
        with self._lock, io.BytesIO() as file:
            packer = _Packer(file, self)
            packer.dump(value)
            pickled = np.frombuffer(file.getvalue(), np.uint8)
        return Parcel(pickled, tuple(packer.shared), tuple(packer.apart))

    def array(self, array: NDArray[Any]) -> Any:
        """The reference to an array."""
        return self._kept(array, None, lambda: np.asarray(array))

    def thing(self, thing: Vocabulary | TemporalGraph) -> Any:
        """The reference to names or to a graph, with the indexes that it has by now."""
        indexes = getattr(thing, "_indexes", ())
        return self._kept(thing, tuple(indexes), lambda: self.pack(far(thing)))

    def apart(self, attributes: dict[str, Any]) -> Any:
        """The reference to attributes of something that is put once itself."""
        return self._put(pack(attributes))

    def _kept(self, value: Any, stamp: Any, make: Callable[[], Any]) -> Any:
        number = id(value)
        held, of, ref = self._refs.get(number, (None, None, None))
        if held is None or held() is not value or of != stamp:
            ref = self._put(make())
            gone = weakref.ref(value, lambda one: self._forget(number, one))
            self._refs[number] = (gone, stamp, ref)
        return ref

    def _forget(self, number: int, gone: weakref.ref[Any]) -> None:
        if number in self._refs and self._refs[number][0] is gone:
            del self._refs[number]


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, shelf: Shelf) -> None:
        super().__init__(file, protocol=_PROTOCOL)
        self._shelf = shelf
        self.shared: dict[Any, int] = {}
        self.apart: list[Any] = []

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        """What stands for a value that is not pickled itself; None: it is."""
        if isinstance(value, np.ndarray):
            return self._number(self._shelf.array(value)) if _may_be_shared(value) else None
        if isinstance(value, Vocabulary | TemporalGraph) and not isinstance(value, _AS_THEY_ARE):
            return self._number(self._shelf.thing(value))
        if isinstance(value, Apart):
            self.apart.append(self._shelf.apart(value.fetch()))
            return "apart", len(self.apart) - 1
        if type(value).__module__.startswith("numba."):
            return _name_of_loop(value)
        return None

    def _number(self, ref: Any) -> tuple[str, int]:
        return "shared", self.shared.setdefault(ref, len(self.shared))


def _may_be_shared(array: NDArray[Any]) -> bool:
    """Whether an array is never written to, plain, and large enough to be worth it."""
    return (
        not array.flags.writeable
        and array.flags.forc
        and not array.dtype.hasobject
        and array.nbytes >= _LEAST_SHARED
    )


def _name_of_loop(value: Any) -> tuple[str, str, str] | None:
    """A compiled loop goes by its name: a copy of it would be compiled again."""
    module, name = getattr(value, "__module__", ""), getattr(value, "__name__", "")
    if getattr(sys.modules.get(module), name, None) is not value:
        return None
    return "loop", module, name


class Opener:
    """Opens parcels; what several share is fetched once, and held while any of them is.

    Args:
        get: gives the values that references are to.
    """

    def __init__(self, get: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        self._get = get
        self._open: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()

    def unpack(self, parcel: Parcel) -> Any:
        """What `Shelf.pack` was given."""
        shared = {ref: self._open.get(ref) for ref in parcel.shared}
        missing = [ref for ref, value in shared.items() if value is None]
        for ref, value in zip(missing, self._get(missing), strict=True):
            shared[ref] = self.unpack(Parcel(*value)) if isinstance(value, tuple) else value
            self._open[ref] = shared[ref]
        values = list(shared.values())
        return _Unpacker(parcel, values, self._fetched).load()

    def _fetched(self, ref: Any) -> Callable[[], dict[str, Any]]:
        def fetch() -> dict[str, Any]:
            (pickled,) = self._get([ref])
            found: dict[str, Any] = unpack(pickled)
            return found

        return fetch


class _Unpacker(pickle.Unpickler):
    def __init__(
        self, parcel: Parcel, shared: list[Any], fetched: Callable[[Any], Callable[[], Any]]
    ) -> None:
        super().__init__(io.BytesIO(parcel.pickled.data))
        self._shared, self._apart, self._fetched = shared, parcel.apart, fetched

    def persistent_load(self, pid: tuple[Any, ...]) -> Any:
        """The value that something stands for."""
        match pid:
            case ("shared", number):
                return self._shared[number]
            case ("apart", number):
                return Apart(self._fetched(self._apart[number]))
            case (_, module, name):
                __import__(module)
                return getattr(sys.modules[module], name)
        raise pickle.UnpicklingError(f"{pid} stands for nothing")

"""What travels between processes: values pickled, with what is shared put into a store once.

Arrays keep their kind: what is read-only here is read-only there, what can be written to can be
written to there. So loops that were compiled for the one serve for the other.
"""

from __future__ import annotations

import io
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ray import cloudpickle

from tilp.graph import TemporalGraph, Vocabulary
from tilp.io.packing.vocabulary import PackedVocabulary
from tilp.parallel.far import Apart, Far, far

__all__ = ["Opener", "Parcel", "Shelf", "pack", "unpack"]

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

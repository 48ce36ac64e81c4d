"""Workers: order, bounds and failures; and values packed for other processes."""

import shutil
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import tilp
from tilp._kernels.arrays import sort_edges
from tilp._utils.arrays import read_only, read_only_tuple
from tilp.errors import TilpError
from tilp.parallel import Workers, split_by_cost, use_workers
from tilp.walks import Walker, mine


class StoppedError(Exception):
    pass


@given(st.lists(st.floats(0.1, 100), max_size=50), st.integers(1, 10))
def test_slices_cover_everything_once(costs, max_slices):
    parts = split_by_cost(np.array(costs), max_slices)
    assert len(parts) <= max_slices
    indices = [index for part in parts for index in range(*part.indices(len(costs)))]
    assert indices == list(range(len(costs)))


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_the_order_of_chunks(threads):
    with Workers(threads) as workers:
        assert list(workers.map(lambda n: n * n, range(20))) == [n * n for n in range(20)]
        with pytest.raises(ZeroDivisionError):
            list(workers.map(lambda n: 1 // n, [1, 0, 2]))


@pytest.mark.parametrize("threads", [1, 3])
def test_concurrent_tasks_share_the_workers(threads):
    with Workers(threads) as workers:

        def task(size):
            return sum(workers.map(lambda n: n * n, range(size)))

        assert list(workers.map_tasks(task, range(12))) == [
            sum(n * n for n in range(size)) for size in range(12)
        ]


@pytest.mark.parametrize("threads", [1, 3])
def test_tasks_end_when_one_fails_or_the_caller_stops(threads):
    begun = []

    def task(index):
        begun.append(index)
        if index == 2:
            raise StoppedError
        return sum(workers.map(lambda n: n, range(10)))

    with Workers(threads) as workers, pytest.raises(StoppedError):
        list(workers.map_tasks(task, range(1000)))
    with Workers(threads) as workers:
        results = workers.map_tasks(task, [0, 1, *[3] * 1000])
        next(results)
        results.close()
    assert len(begun) < 50


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_bounded_number_of_chunks_is_in_progress(threads):
    drawn = []

    def chunks():
        for chunk in range(100):
            drawn.append(chunk)
            yield chunk

    with Workers(threads) as workers:
        for done, _ in enumerate(workers.map(lambda chunk: chunk, chunks())):
            assert len(drawn) - done <= 2 * threads + 1


def test_a_late_result_keeps_its_order():
    began = threading.Event()

    def run(chunk):
        if chunk == 0:
            assert began.wait(60)
        if chunk == 3:
            began.set()
        return chunk

    with Workers(2) as workers:
        assert list(workers.map(run, range(6))) == list(range(6))


def test_serial_is_this_thread_alone():
    with Workers(4, "serial") as workers:
        assert workers.threads == 1
        here = threading.get_ident()
        assert set(workers.map(lambda _: threading.get_ident(), range(9))) == {here}
        assert set(workers.map_in_threads(lambda _: threading.get_ident(), range(9))) == {here}


def test_given_workers_stay_open():
    with Workers(2) as workers:
        with use_workers(workers) as same:
            assert same is workers
        assert list(workers.map(abs, [-1, -2])) == [1, 2]
    with use_workers(None, 3) as new_workers:
        assert new_workers.threads == 3


def test_unknown_backends_are_refused():
    with pytest.raises(TilpError, match="serial, threads, ray"):
        Workers(1, "many")
    with pytest.raises(TilpError, match="choose the backend ray"):
        Workers(1, "threads", "auto")
    with pytest.raises(TilpError, match="serial, threads, ray"):
        tilp.TILP(backend="many")


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    for module in ("ray_workers", "transfer"):
        monkeypatch.delitem(sys.modules, f"tilp.parallel.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(TilpError, match=r'pip install "tilp\[ray\]"'):
        Workers(1, "ray")


def test_ray_is_left_when_the_last_workers_are_closed(monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'tilp[ray]'")
    from tilp.parallel import ray_workers

    up = []
    monkeypatch.setattr(ray_workers.ray, "is_initialized", lambda: bool(up))
    monkeypatch.setattr(ray_workers.ray, "shutdown", up.clear)
    monkeypatch.setattr(ray_workers, "_connect", lambda threads, _address: up.append(threads))
    cluster = ray_workers._Cluster()
    for _ in range(2):
        cluster.enter(2, None)
        cluster.enter(3, None)
        cluster.leave()
        assert up == [2]
        cluster.leave()
        assert not up
    up.append(5)  # started by another
    cluster.enter(1, None)
    cluster.leave()
    assert up == [5]


def test_read_only_arrays_share_memory_and_are_not_writeable():
    array = np.arange(3)
    other = read_only(array)
    assert np.shares_memory(array, other)
    assert array.flags.writeable and not other.flags.writeable
    assert read_only(other) is other
    edges = Walker(tilp.datasets.world(0, 1000).graph).edges
    assert not any(column.flags.writeable for column in edges)
    assert type(read_only_tuple(edges)) is type(edges)
    assert all(a is b for a, b in zip(read_only_tuple(edges), edges, strict=True))


# Values packed for other processes.


class Store:
    """Object store in this process, in place of Ray's."""

    def __init__(self):
        self.values, self.fetched = {}, []

    def put(self, value):
        self.values[len(self.values)] = value
        return len(self.values) - 1

    def get(self, refs):
        self.fetched += refs
        return [self.values[ref] for ref in refs]

    def arrays(self):
        """Return the arrays that were put as they are; pickled values are bytes."""
        stored = (value for value in self.values.values() if isinstance(value, np.ndarray))
        return [array for array in stored if array.dtype != np.uint8]


@pytest.fixture(scope="module")
def transfer():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'tilp[ray]'")
    from tilp.parallel import transfer

    return transfer


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def packer(transfer, store):
    return transfer.SharedPacker(store.put, min_shared_bytes=100)


@pytest.fixture
def unpacker(transfer, store):
    return transfer.SharedUnpacker(store.get)


@pytest.fixture(scope="module")
def graph():
    return tilp.datasets.world(0, 1000).graph


def shared(array):
    return read_only(np.array(array))


def test_read_only_arrays_are_stored_once(store, packer, unpacker):
    large, small, writeable = shared(np.arange(100)), shared([1, 2]), np.arange(100)
    first = packer.pack({"a": large, "b": (large, small), "c": writeable})
    second = packer.pack([large, lambda: large.sum()])
    assert len(store.values) == 1
    found, (again, summed) = unpacker.unpack(first), unpacker.unpack(second)
    assert found["a"] is found["b"][0] is again
    assert len(store.fetched) == 1
    assert summed() == large.sum()
    assert not found["b"][1].flags.writeable
    assert found["c"].flags.writeable
    found["c"][0] = 7
    assert writeable[0] == 0


def test_references_to_deleted_arrays_are_dropped(transfer):
    packer = transfer.SharedPacker(lambda _: "stored elsewhere", min_shared_bytes=100)
    large = shared(np.arange(100))
    packer.pack(large)
    assert len(packer._refs) == 1
    del large
    assert not packer._refs


@given(
    arrays(st.sampled_from(["i4", "i8", "f8", "?"]), array_shapes(max_dims=2, max_side=20)),
    st.booleans(),
    st.booleans(),
)
def test_arrays_keep_type_and_flags(transfer, array, writeable, columns_first):
    array = np.array(array, order="F" if columns_first else "C")
    array.flags.writeable = writeable
    store = Store()
    for found in (
        transfer.SharedUnpacker(store.get).unpack(
            transfer.SharedPacker(store.put, min_shared_bytes=100).pack(array)
        ),
        transfer.unpack(transfer.pack(array)),
    ):
        assert found.dtype == array.dtype
        assert found.flags.writeable == writeable
        assert found.flags.f_contiguous == array.flags.f_contiguous
        assert found.flags.c_contiguous == array.flags.c_contiguous
        np.testing.assert_array_equal(found, array)


def test_compiled_loops_are_sent_by_name(packer, unpacker):
    def call():
        return sort_edges

    found = unpacker.unpack(packer.pack(call))
    assert found is not call
    assert found() is sort_edges


def test_a_graph_is_sent_with_its_indexes_and_without_its_names(store, packer, unpacker, graph):
    index = graph.index("train")
    found = unpacker.unpack(packer.pack(graph))
    assert unpacker.unpack(packer.pack([graph]))[0] is found
    assert found._indexes[("train",)].target is index.target
    assert len(found.entities) == len(graph.entities)
    before = set(store.fetched)
    assert "ids" not in vars(found.entities) and "texts" not in vars(found)
    assert found == graph
    assert found.fingerprint() == graph.fingerprint()
    assert found.entities.label(3) == graph.entities.label(3)
    assert set(store.fetched) > before
    with pytest.raises(AttributeError, match="colour"):
        found.colour  # noqa: B018


def test_a_packed_graph_is_sent_as_its_arrays(store, packer, unpacker, graph, tmp_path):
    packed = tilp.pack(tilp.write(graph, tmp_path / "facts"), tmp_path / "packed")
    walker = Walker(packed, max_length=2)
    found, edges = unpacker.unpack(packer.pack((packed, walker.edges)))
    shutil.rmtree(tmp_path / "packed")
    assert found.subject is packed.subject
    assert found.index("train").target is packed.index("train").target
    assert all(a is b for a, b in zip(edges, walker.edges, strict=True))
    assert not {"ids", "keys", "labels"} & vars(found.entities).keys()
    assert found.entities.find(packed.entities.label(7)) == 7
    assert unpacker.unpack(packer.pack(packed.entities)) == packed.entities == graph.entities
    assert found == graph.canonical()
    assert len({id(array) for array in store.arrays()}) == len(store.arrays())


def test_an_index_built_later_is_sent_too(store, packer, unpacker, graph):
    other = graph.without([0])
    packer.pack(other)
    before = len(store.arrays())
    index = other.index(("train", "valid"))
    found = unpacker.unpack(packer.pack(other))
    assert found._indexes[("train", "valid")].fact is index.fact
    assert len(store.arrays()) == before + 4


def test_a_walker_is_sent_with_its_edges_and_the_same_graph(store, packer, unpacker, graph):
    walker = Walker(graph, max_length=2)
    found = unpacker.unpack(packer.pack(walker))
    assert "edges" in vars(found) and "steps_from" not in vars(found)
    assert all(a is b for a, b in zip(found.edges, walker.edges, strict=True))
    assert len({id(array) for array in store.arrays()}) == len(store.arrays())
    assert mine(found.graph, ["diedIn"]) == mine(graph, ["diedIn"])


def test_a_scorer_is_sent_without_its_rules_and_rebuilds_them(packer, unpacker, world_model):
    scorer = world_model.scorer()
    found = unpacker.unpack(packer.pack(scorer))
    assert "rules" not in vars(found.rule_scorer)
    assert found.rule_scorer.rules == scorer.rule_scorer.rules
    expected, ranks = (
        tilp.evaluate(scores, world_model.graph, "valid", protocols=["exact"]).ranks
        for scores in (scorer, found)
    )
    assert ranks.equals(expected)

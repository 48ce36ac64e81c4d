"""The door to parallel work: order, bounds, failures; and what travels to other processes."""

import re
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import tilp
from tilp._kernels.edges import sort_edges
from tilp._utils.arrays import read_only, read_only_tuple
from tilp.errors import TilpError
from tilp.parallel import Workers, cut_by_cost, opened
from tilp.walks import Walker, mine


class StoppedError(Exception):
    pass


@given(st.lists(st.floats(0.1, 100), max_size=50), st.integers(1, 10))
def test_chunks_cover_everything_once(costs, most):
    parts = cut_by_cost(np.array(costs), most)
    assert len(parts) <= most
    assert [place for part in parts for place in range(*part.indices(len(costs)))] == list(
        range(len(costs))
    )


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_the_order_of_chunks(threads):
    with Workers(threads) as workers:
        assert list(workers.map(lambda n: n * n, range(20))) == [n * n for n in range(20)]
        with pytest.raises(ZeroDivisionError):
            list(workers.map(lambda n: 1 // n, [1, 0, 2]))


@pytest.mark.parametrize("threads", [1, 3])
def test_tasks_side_by_side_share_the_workers(threads):
    with Workers(threads) as workers:

        def task(size):
            return sum(workers.map(lambda n: n * n, range(size)))

        assert list(workers.side_by_side(task, range(12))) == [
            sum(n * n for n in range(size)) for size in range(12)
        ]


@pytest.mark.parametrize("threads", [1, 3])
def test_tasks_end_when_one_fails_or_the_results_are_not_wanted(threads):
    begun = []

    def task(number):
        begun.append(number)
        if number == 2:
            raise StoppedError
        return sum(workers.map(lambda n: n, range(10)))

    with Workers(threads) as workers, pytest.raises(StoppedError):
        list(workers.side_by_side(task, range(1000)))
    with Workers(threads) as workers:
        results = workers.side_by_side(task, [0, 1, *[3] * 1000])
        next(results)
        results.close()
    assert len(begun) < 50


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_bounded_number_of_chunks_is_under_way(threads):
    drawn = []

    def chunks():
        for number in range(100):
            drawn.append(number)
            yield number

    with Workers(threads) as workers:
        for number, _ in enumerate(workers.map(lambda one: one, chunks())):
            assert len(drawn) - number <= 2 * threads + 1


def test_a_late_chunk_comes_in_its_place():
    began = threading.Event()

    def one(number):
        if number == 0:
            assert began.wait(60)
        if number == 3:
            began.set()
        return number

    with Workers(2) as workers:
        assert list(workers.map(one, range(6))) == list(range(6))


def test_serial_is_this_thread_alone():
    with Workers(4, "serial") as workers:
        assert workers.threads == 1
        here = threading.get_ident()
        assert set(workers.map(lambda _: threading.get_ident(), range(9))) == {here}
        assert set(workers.map_here(lambda _: threading.get_ident(), range(9))) == {here}


def test_workers_that_were_given_stay_open():
    with Workers(2) as workers:
        with opened(workers) as same:
            assert same is workers
        assert list(workers.map(abs, [-1, -2])) == [1, 2]
    with opened(None, 3) as own:
        assert own.threads == 3


def test_what_cannot_be_chosen_is_refused():
    with pytest.raises(TilpError, match="serial, threads, ray"):
        Workers(1, "many")
    with pytest.raises(TilpError, match="choose the backend ray"):
        Workers(1, "threads", "auto")
    with pytest.raises(TilpError, match="serial, threads, ray"):
        tilp.TILP(backend="many")


def test_without_ray_it_is_said_what_to_install(monkeypatch):
    for module in ("on_ray", "parcels"):
        monkeypatch.delitem(sys.modules, f"tilp.parallel.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(TilpError, match=r'pip install "tilp\[ray\]"'):
        Workers(1, "ray")


def test_ray_is_left_when_the_last_workers_are_closed(monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'tilp[ray]'")
    from tilp.parallel import ray_workers as on_ray

    up = []
    monkeypatch.setattr(on_ray.ray, "is_initialized", lambda: bool(up))
    monkeypatch.setattr(on_ray.ray, "shutdown", up.clear)
    monkeypatch.setattr(on_ray, "_connect", lambda threads, _address: up.append(threads))
    monkeypatch.setattr(on_ray, "_check_same", lambda _address: None)
    cluster = on_ray._Cluster()
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


def test_what_is_frozen_is_not_written_to():
    array = np.arange(3)
    other = read_only(array)
    assert np.shares_memory(array, other)
    assert array.flags.writeable and not other.flags.writeable
    assert read_only(other) is other
    edges = Walker(tilp.datasets.world(0, 1000).graph).edges
    assert not any(one.flags.writeable for one in edges)
    assert type(read_only_tuple(edges)) is type(edges)
    assert all(a is b for a, b in zip(read_only_tuple(edges), edges, strict=True))


def test_the_examples_of_the_documentation_run():
    text = (Path(__file__).parents[1] / "docs" / "parallel.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block, names)
    assert len(names["rules"])


# What travels.


class Store:
    """A store in this process, in place of Ray's."""

    def __init__(self):
        self.values, self.fetched = {}, []

    def put(self, value):
        self.values[len(self.values)] = value
        return len(self.values) - 1

    def get(self, refs):
        self.fetched += refs
        return [self.values[ref] for ref in refs]

    def arrays(self):
        """Those that were put as they are; what is pickled is bytes."""
        found = (one for one in self.values.values() if isinstance(one, np.ndarray))
        return [one for one in found if one.dtype != np.uint8]


@pytest.fixture(scope="module")
def parcels():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'tilp[ray]'")
    from tilp.parallel import transfer as parcels

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parcels, "_LEAST_SHARED", 100)
        yield parcels


@pytest.fixture(scope="module")
def graph():
    return tilp.datasets.world(0, 1000).graph


def shared(array):
    return read_only(np.array(array))


def test_read_only_arrays_are_put_once_whatever_holds_them(parcels):
    store = Store()
    shelf, opener = parcels.Shelf(store.put), parcels.Opener(store.get)
    large, small, written = shared(np.arange(100)), shared([1, 2]), np.arange(100)
    first = shelf.pack({"a": large, "b": (large, small), "c": written})
    second = shelf.pack([large, lambda: large.sum()])
    assert len(store.values) == 1
    found, (again, summed) = opener.unpack(first), opener.unpack(second)
    assert found["a"] is found["b"][0] is again
    assert len(store.fetched) == 1
    assert summed() == large.sum()
    assert not found["b"][1].flags.writeable
    assert found["c"].flags.writeable
    found["c"][0] = 7
    assert written[0] == 0


def test_what_is_no_longer_used_here_is_let_go(parcels):
    shelf = parcels.Shelf(lambda _: "elsewhere")
    large = shared(np.arange(100))
    shelf.pack(large)
    assert len(shelf._refs) == 1
    del large
    assert not shelf._refs


@given(
    arrays(st.sampled_from(["i4", "i8", "f8", "?"]), array_shapes(max_dims=2, max_side=20)),
    st.booleans(),
    st.booleans(),
)
def test_arrays_keep_their_kind(parcels, array, written, columns_first):
    array = np.array(array, order="F" if columns_first else "C")
    array.flags.writeable = written
    store = Store()
    for found in (
        parcels.Opener(store.get).unpack(parcels.Shelf(store.put).pack(array)),
        parcels.unpack(parcels.pack(array)),
    ):
        assert found.dtype == array.dtype
        assert found.flags.writeable == written
        assert found.flags.f_contiguous == array.flags.f_contiguous
        assert found.flags.c_contiguous == array.flags.c_contiguous
        np.testing.assert_array_equal(found, array)


def test_compiled_loops_go_by_their_name(parcels):
    def call():
        return sort_edges

    store = Store()
    found = parcels.Opener(store.get).unpack(parcels.Shelf(store.put).pack(call))
    assert found is not call
    assert found() is sort_edges


def test_a_graph_travels_with_its_indexes_and_without_its_names(parcels, graph):
    store = Store()
    shelf, opener = parcels.Shelf(store.put), parcels.Opener(store.get)
    index = graph.index("train")
    found = opener.unpack(shelf.pack(graph))
    assert opener.unpack(shelf.pack([graph]))[0] is found
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


def test_a_packed_graph_travels_as_its_arrays(parcels, graph, tmp_path):
    store = Store()
    shelf, opener = parcels.Shelf(store.put), parcels.Opener(store.get)
    packed = tilp.pack(tilp.write(graph, tmp_path / "facts"), tmp_path / "packed")
    walker = Walker(packed, max_length=2)
    found, edges = opener.unpack(shelf.pack((packed, walker.edges)))
    shutil.rmtree(tmp_path / "packed")
    assert found.subject is packed.subject
    assert found.index("train").target is packed.index("train").target
    assert all(a is b for a, b in zip(edges, walker.edges, strict=True))
    assert not {"ids", "keys", "labels"} & vars(found.entities).keys()
    assert found.entities.find(packed.entities.label(7)) == 7
    assert opener.unpack(shelf.pack(packed.entities)) == packed.entities == graph.entities
    assert found == graph
    held = {id(one) for one in store.arrays()}
    assert len(held) == len(store.arrays())


def test_an_index_that_is_made_later_travels_too(parcels, graph):
    store = Store()
    shelf, opener = parcels.Shelf(store.put), parcels.Opener(store.get)
    other = graph.without([0])
    shelf.pack(other)
    before = len(store.arrays())
    index = other.index(("train", "valid"))
    found = opener.unpack(shelf.pack(other))
    assert found._indexes[("train", "valid")].fact is index.fact
    assert len(store.arrays()) == before + 4


def test_a_walker_travels_with_its_edges_and_its_graph_is_the_same(parcels, graph):
    store = Store()
    shelf, opener = parcels.Shelf(store.put), parcels.Opener(store.get)
    walker = Walker(graph, max_length=2)
    found = opener.unpack(shelf.pack(walker))
    assert "edges" in vars(found) and "steps_from" not in vars(found)
    assert all(a is b for a, b in zip(found.edges, walker.edges, strict=True))
    held = {id(one) for one in store.arrays()}
    assert len(held) == len(store.arrays())
    assert mine(found.graph, ["diedIn"]) == mine(graph, ["diedIn"])


def test_a_scorer_travels_without_its_rules_and_lifts_them_when_asked(parcels, world_model):

    store = Store()
    scorer = world_model.scorer()
    packed = parcels.Shelf(store.put).pack(scorer)
    found = parcels.Opener(store.get).unpack(packed)
    assert "rules" not in vars(found.rule_scorer)
    assert found.rule_scorer.rules == scorer.rule_scorer.rules
    evaluated = [
        tilp.evaluate(one, world_model.graph, "valid", protocols=["exact"])
        for one in (scorer, found)
    ]
    assert evaluated[0].ranks.equals(evaluated[1].ranks)

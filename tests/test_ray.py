"""Ray with several nodes on this machine: results equal serial ones, even if workers die."""

import os
import shutil
import signal
import socket
import sys
import threading
import time
import warnings
from functools import partial

import numpy as np
import polars as pl
import pytest

import tilp
from tilp.errors import TilpError
from tilp.features.paper.fit import FeatureTrainingSettings
from tilp.graph import QueryTable
from tilp.learning.rule_weights import TrainingSettings
from tilp.parallel import Workers
from tilp.splits.kinds import LEFT_OUT, TRAIN, reassign_splits
from tilp.walks import Walker, mine

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'tilp[ray]'")
SharedPacker = pytest.importorskip("tilp.parallel.transfer").SharedPacker
pytestmark = pytest.mark.slow
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not look here

FAST = {
    "max_length": 2,
    "max_rules": 60,
    "temporal_detail": ["pairs"],
    "config": tilp.TILPConfig(sample=30, training=TrainingSettings(steps=10)),
}


@pytest.fixture(scope="module")
def cluster():
    """Three nodes of one processor each, of which this process is on the first."""
    from ray.cluster_utils import Cluster

    with warnings.catch_warnings():
        # JAX warns of forks, which here do nothing but start Ray's programs.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
        head = {"num_cpus": 1, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=head)
        nodes = [made.add_node(num_cpus=1) for _ in range(2)]
    with Workers(1, "ray", made.address):  # it was joined here, and is left when this is done
        yield made, nodes
    assert not ray.is_initialized()
    made.shutdown()


@pytest.fixture
def workers(cluster):
    with Workers(1, "ray") as workers:
        yield workers
    assert ray.is_initialized()


@pytest.fixture(scope="module")
def graph():
    return tilp.datasets.world(0, 1000).graph


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def compiled_loops(_):
    """For which types each loop of this process was compiled, or loaded."""
    return {
        f"{module}.{name}": {str(types) for types in loop.signatures}
        for module, held in list(sys.modules.items())
        if module.startswith("tilp._kernels.")
        for name, loop in list(vars(held).items())
        if hasattr(loop, "py_func")
    }


@pytest.mark.parametrize("choice", [{}, {"features": "paper"}, {"only_earlier": True}], ids=str)
def test_a_model_and_its_answers_are_those_of_one_thread(
    workers, graph, tmp_path, monkeypatch, choice
):
    # Gradients are taken here, not by workers.
    quick = partial(FeatureTrainingSettings, steps=10)
    monkeypatch.setattr("tilp.features.paper.fit.FeatureTrainingSettings", quick)
    asked = graph.frame("valid").select("relation", "subject", "start").to_dicts() * 6
    found = {}
    for backend in ("serial", "ray"):
        model = tilp.TILP(**FAST, **choice, n_jobs=1, backend=backend).fit(graph)
        evaluation = tilp.evaluate(
            model.scorer(), graph, batch=32, workers=None if backend == "serial" else workers
        )
        found[backend] = (
            contents(model.save(tmp_path / backend)),
            evaluation.ranks,
            model.evaluate("valid").ranks,
            model.predict(asked, 3),
        )
        if backend == "serial":
            here = compiled_loops(None)
    assert len(asked) > 512  # more than one chunk
    assert found["ray"][0] == found["serial"][0]
    for ours, theirs in zip(found["ray"][1:], found["serial"][1:], strict=True):
        assert ours.equals(theirs)
    # Workers see arrays of the same types, so that nothing is compiled for them.
    for there in workers.map(compiled_loops, range(9)):
        for name, types in there.items():
            assert types <= here.get(name, set()), name


@pytest.mark.parametrize("earlier", [False, True])
def test_predictions_in_parts_and_updates_are_those_of_one_thread(
    workers, graph, tmp_path, earlier
):
    rows = np.flatnonzero(graph.relation == graph.relations.find("livesIn"))[::4]
    place = np.full(len(graph), LEFT_OUT)
    place[rows] = TRAIN
    new = reassign_splits(graph, place)
    queries = graph.frame("valid").select("relation", "subject", "start").cast(pl.String)
    measured = {}
    for backend in ("serial", "ray"):
        folder = tmp_path / backend
        choice = {"n_jobs": 1, "backend": backend, "only_earlier": earlier}
        model = tilp.TILP(**FAST, **choice).fit(graph.without(rows))
        model.update(new).save(folder / "updated")
        model.predict_to(folder / "parts", queries, 3, explain=1, part_size=50)
        if not earlier:
            times = graph.frame("valid").select("subject", "relation", "object").head(40)
            model.predict_times(times, 3, folder=folder / "times", part_size=10)
            measured[backend] = model.evaluate_times("valid", sample=60).rows
    if not earlier:
        assert measured["ray"].equals(measured["serial"])
    found, expected = contents(tmp_path / "ray"), contents(tmp_path / "serial")
    assert len(found) > 10
    assert found == expected


def test_a_forecaster_and_its_answers_are_those_of_one_thread(workers, graph, tmp_path):
    queries = graph.frame("valid").select("relation", "subject", "start").cast(pl.String)
    asked = [*(queries.to_dicts() * 6), {"relation": "livesIn", "subject": queries["subject"][0]}]
    rows = np.flatnonzero(graph.relation == graph.relations.find("livesIn"))[::4]
    place = np.full(len(graph), LEFT_OUT)
    place[rows] = TRAIN
    new = reassign_splits(graph, place)
    found = {}
    for backend in ("serial", "threads", "ray"):
        folder = tmp_path / backend
        model = tilp.ForecastRules(n_jobs=2, backend=backend).fit(graph.without(rows))
        model.save(folder / "model")
        model.update(new).save(folder / "updated")
        model.predict_to(folder / "parts", queries, 3, explain=1, part_size=50)
        ranks = model.evaluate("valid").ranks
        found[backend] = contents(folder), ranks, model.predict(asked, 3), model.forecast(20)
    assert len(asked) > 512  # more than one chunk
    for backend in ("threads", "ray"):
        assert found[backend][0] == found["serial"][0]
        for ours, theirs in zip(found[backend][1:], found["serial"][1:], strict=True):
            assert ours.equals(theirs)


def test_a_packed_graph_travels_to_where_its_files_are_not(workers, graph, tmp_path):
    tilp.write(graph, tmp_path / "facts")
    packed = tilp.pack(tmp_path / "facts", tmp_path / "packed")
    expected = mine(packed, ["livesIn", "playsFor"])
    shutil.rmtree(tmp_path / "packed")  # what is mapped here stays so
    assert mine(packed, ["livesIn", "playsFor"], workers=workers) == expected
    names = [packed.entities.label(number) for number in range(12)]
    assert list(workers.map(packed.entities.label, range(12))) == names
    few = packed.without([0, 5])
    assert list(workers.map(partial(fact_of, few), range(12))) == [few.fact(n) for n in range(12)]


def fact_of(graph, number):
    return graph.fact(number)


def test_rules_come_in_the_same_order_with_several_relations_under_way(
    cluster, graph, tmp_path, run
):
    graph_file = tmp_path / "facts"
    tilp.write(graph, graph_file)
    address = cluster[0].address
    for name, options in (("a", ["serial"]), ("b", ["ray", "--address", address])):
        command = [
            "mine",
            graph_file,
            "--out",
            tmp_path / name,
            "--max-length",
            2,
            "--grain",
            "pairs",
        ]
        code, _, error = run(*command, "--backend", *options)
        assert code == 0, error
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def walks_of(graph):
    """A walker and chunks of queries, and what one thread counts in them."""
    walker = Walker(graph, max_length=2)
    queries = QueryTable.of_facts(graph, np.asarray(graph.rows("train")), walked=True)
    parts = np.array_split(np.argsort(queries.subject, kind="stable"), 24)
    chunks = list(enumerate(queries[part] for part in parts))
    return walker, chunks, [walker.count(chunk)[0].sum(axis=0).tolist() for _, chunk in chunks]


def killed_once(walker, mark, asked):
    number, chunk = asked
    if number == 7 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return walker.count(chunk)[0].sum(axis=0).tolist()


def test_a_chunk_whose_worker_is_killed_is_tried_again(workers, graph, tmp_path):
    walker, chunks, expected = walks_of(graph)
    mark = tmp_path / "killed"
    assert list(workers.map(partial(killed_once, walker, mark), chunks)) == expected
    assert mark.exists()


def slow_and_large(walker, asked):
    """Counts, and enough beside them to stay in the store of the node that made it."""
    _, chunk = asked
    time.sleep(0.1)
    node = ray.get_runtime_context().get_node_id()
    return walker.count(chunk)[0].sum(axis=0).tolist(), np.zeros(50_000), node


def test_chunks_of_a_node_that_is_removed_are_done_by_others(cluster, workers, graph):
    walker, chunks, expected = walks_of(graph)
    made, nodes = cluster
    found, seen = [], []
    for number, (counted, _, node) in enumerate(
        workers.map(partial(slow_and_large, walker), chunks * 2)
    ):
        found.append(counted)
        seen.append(node)
        if number == len(chunks) // 2:
            made.remove_node(nodes[1], allow_graceful=False)
    assert found == expected * 2
    gone = nodes[1].node_id
    assert gone in seen
    assert gone not in seen[-6:]


def where_it_lies(walker, _):
    arrays = [*walker.edges, walker.graph.subject, *vars(walker.graph.index("train")).values()]
    arrays = [one for one in arrays if isinstance(one, np.ndarray)]
    kinds = {(one.flags.owndata, one.flags.writeable) for one in arrays}
    return kinds, {one.ctypes.data for one in arrays}, os.getpid()


def test_the_graph_is_in_the_store_once_and_read_there(workers, graph, monkeypatch):
    put = []
    packer = SharedPacker(lambda value: put.append(value) or ray.put(value), min_shared_bytes=1)
    monkeypatch.setattr(workers._ray, "_packer", packer)
    walker = Walker(graph, max_length=2)
    places = {}
    for _ in range(3):
        for kinds, lies, process in workers.map(partial(where_it_lies, walker), range(8)):
            assert kinds == {(False, False)}
            assert places.setdefault(process, lies) == lies  # not a second copy
    arrays = [one for one in put if isinstance(one, np.ndarray) and one.dtype != np.uint8]
    held = [id(one) for one in arrays]
    assert len(held) == len(set(held))
    assert {id(one) for one in walker.edges} <= set(held)
    assert len(put) < 50


class OwnError(TilpError):
    pass


def failing(folder, number):
    (folder / f"{number}-{time.monotonic_ns()}").touch()
    if number == 3:
        raise OwnError("row 3 is wrong")
    if number == 0:
        warnings.warn(f"chunk {number} is odd", tilp.TilpWarning, stacklevel=1)
    return number


def test_failures_and_warnings_of_chunks_come_out_as_they_are(workers, tmp_path):
    with (
        pytest.warns(tilp.TilpWarning, match="chunk 0 is odd"),
        pytest.raises(OwnError, match="row 3 is wrong"),
    ):
        list(workers.map(partial(failing, tmp_path), range(5)))
    assert len(list(tmp_path.glob("3-*"))) == 1  # not tried again


def noted(folder, number):
    (folder / str(number)).touch()
    time.sleep(0.1)
    return number


def test_what_is_no_longer_wanted_is_not_begun(workers, tmp_path):
    from tilp.parallel.ray_workers import MAX_WAITING

    drawn = []

    def chunks():
        for number in range(1000):
            drawn.append(number)
            yield number

    results = workers.map(partial(noted, tmp_path), chunks())
    assert next(results) == 0
    results.close()
    # Later chunks may be done before the first: their results are held, up to a bound.
    most = 1 + MAX_WAITING * workers._ray.slots
    assert len(drawn) <= most
    assert list(workers.map(abs, [-1, -2, -3, -4])) == [1, 2, 3, 4]
    assert len(list(tmp_path.iterdir())) <= most


def test_concurrent_tasks_share_the_workers(workers):
    def task(size):
        return sum(workers.map(lambda n: n * n, range(size)))

    assert list(workers.map_tasks(task, range(6))) == [
        sum(n * n for n in range(size)) for size in range(6)
    ]


def test_workers_with_other_versions_are_refused(workers, monkeypatch):
    monkeypatch.setattr(workers._ray, "_versions", (("tilp", "0.0"), ("numba", "0.1")))
    with pytest.raises(TilpError, match=r"has tilp .*, not 0\.0; numba .*, not 0\.1"):
        list(workers.map(abs, [1]))


def test_ray_is_reached_from_a_machine_of_the_cluster(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(TilpError, match="on a machine of the cluster"):
        Workers(1, "ray", "ray://here:10001")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(TilpError, match=rf"no Ray cluster answers at {address}.*ray start"):
            Workers(1, "ray", address)


class HoldsLockError(Exception):
    def __init__(self, words):
        super().__init__(words)
        self.lock = threading.Lock()


class OddError(Exception):
    def __init__(self, words, more):
        super().__init__(f"{words} {more}")


@pytest.mark.parametrize(("make", "told"), [
    (lambda: HoldsLockError("held fast"), "HoldsLockError: held fast"),
    (lambda: OddError("three", "four"), "OddError: three four"),
])  # fmt: skip
def test_an_exception_that_cannot_travel_is_told_by_its_words(workers, make, told):
    def fail(_):
        raise make()

    with pytest.raises(TilpError, match=told) as raised:
        list(workers.map(fail, [1]))
    assert "in fail" in raised.value.__notes__[0]


def test_another_cluster_is_refused(workers):
    with pytest.raises(TilpError, match=r"another cluster at 127\.0\.0\.1:1"):
        Workers(1, "ray", "127.0.0.1:1")


def held_here(_):
    from tilp.parallel import ray_workers

    return sorted(map_id for _, map_id in ray_workers._functions)


def test_workers_let_go_of_maps_that_are_done(workers):
    for _ in range(3):
        found = list(workers.map(held_here, range(6)))
    assert all(one == [2] for one in found)

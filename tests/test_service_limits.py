"""How the service starts, waits and gives up; and `tilp serve`."""

import gc
import json
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import httpx
import pytest

from serving import QUERY, log_event, refused, running
from tilp import Query
from tilp.scoring import Prediction, Predictions
from tilp.web.state import Limits, ServiceState
from tilp.web.views import ModelView


def test_ready_answers_200_once_the_model_is_warm(service_model, monkeypatch):
    go_on, warm, build = threading.Event(), threading.Event(), ServiceState._build_views

    def build_later(self):
        assert go_on.wait(60)
        return build(self)

    monkeypatch.setattr(ServiceState, "_build_views", build_later)
    with running(service_model, warm=False, when_ready=warm.set) as address:
        assert httpx.get(f"{address}/health").status_code == 200
        answer = httpx.get(f"{address}/ready")
        refused(answer, 503, "starting")
        assert answer.headers["retry-after"] == "1"
        refused(httpx.get(f"{address}/api/v1/model"), 503, "starting")
        batch = {"queries": [QUERY]}
        refused(httpx.post(f"{address}/api/v1/predict/batch", json=batch), 503, "starting")
        assert "/api/v1/predict" in httpx.get(f"{address}/openapi.json").json()["paths"]
        assert not warm.is_set()
        go_on.set()
        assert warm.wait(60)
        assert httpx.get(f"{address}/ready").status_code == 200


def test_a_failed_start_is_reported(service_model, monkeypatch, caplog):
    def fail(_):
        raise RuntimeError("a secret")

    monkeypatch.setattr(ServiceState, "_build_views", fail)
    with (
        log_event("tilp.web", "warming up failed") as failed,
        running(service_model, warm=False) as address,
    ):
        assert failed.wait(60)
        error = refused(httpx.get(f"{address}/ready"), 503, "starting")
        assert "could not warm up, see its log" in error["message"]
        assert "secret" not in error["message"]
    assert "a secret" in caplog.text


@pytest.fixture
def no_warm_up(monkeypatch):
    """The service starts without answering any query."""
    monkeypatch.setattr(ModelView, "warm_up", lambda self: Query(**QUERY))


@pytest.fixture
def slow(no_warm_up, monkeypatch):
    """Predictions wait for this event."""
    go_on, predict = threading.Event(), ModelView.predict

    def predict_later(self, query, k):
        assert go_on.wait(60)
        return predict(self, query, k)

    monkeypatch.setattr(ModelView, "predict", predict_later)
    yield go_on
    go_on.set()


def test_a_slow_computation_is_given_up(service_model, slow):
    limits = Limits(computations=1, seconds=0.3)
    with running(service_model, limits=limits) as address:
        given_up = httpx.post(f"{address}/api/v1/predict", json=QUERY)
        refused(given_up, 503, "too_slow")
        assert given_up.headers["retry-after"] == "1"
        assert httpx.get(f"{address}/health").status_code == 200
        slow.set()
        for _ in range(100):  # each waits up to 0.3 s for the computation that was given up
            answer = httpx.post(f"{address}/api/v1/predict", json=QUERY)
            if answer.status_code == 200:
                break
            refused(answer, 503, "too_slow")
        assert answer.json()["answers"]


def test_the_queue_is_bounded(service_model, slow):
    limits = Limits(computations=1, waiting=2)
    with (
        running(service_model, limits=limits) as address,
        ThreadPoolExecutor(4) as threads,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        requests = [threads.submit(client.post, "/api/v1/predict", json=QUERY) for _ in range(4)]
        (first,), others = wait(requests, return_when=FIRST_COMPLETED)
        refused(first.result(), 503, "busy")
        assert first.result().headers["retry-after"] == "1"
        assert client.get("/health").status_code == 200
        slow.set()
        assert [request.result().status_code for request in others] == [200] * 3
        assert client.get("/api/v1/entities").status_code == 200


def test_a_body_that_does_not_arrive_times_out(service_model, no_warm_up):
    with running(service_model, limits=Limits(arrival=0.2)) as address:
        port = httpx.URL(address).port
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(
                b"POST /api/v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b'Content-Length: 50\r\n\r\n{"relation":'
            )
            answer = b""
            while part := connection.recv(4_096):
                answer += part
        assert answer.startswith(b"HTTP/1.1 408")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_slow"


def test_a_client_that_does_not_read_loses_its_slot(service_model, no_warm_up, monkeypatch):
    large = Predictions(
        Query(**QUERY), tuple(Prediction(1, "x" * 10**6, "", 0.0, 0.0, False) for _ in "xyz")
    )
    monkeypatch.setattr(ModelView, "predict_each", lambda self, part, k: [large for _ in part])
    # Other requests have these two seconds, too; a loaded machine needs some of them.
    limits = Limits(computations=1, waiting=0, arrival=2)
    with (
        log_event("tilp.web", "did not read its response") as given_up,
        running(service_model, limits=limits) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        batch = {"queries": [QUERY] * 100}
        with client.stream("POST", "/api/v1/predict/batch", json=batch) as answer:
            assert answer.status_code == 200
            refused(client.post("/api/v1/predict", json=QUERY), 503, "busy")
            assert given_up.wait(60)
            for _ in range(100):  # the slot is freed as soon as the server drops the response
                other = client.post("/api/v1/predict", json=QUERY)
                if other.status_code == 200:
                    break
                refused(other, 503, "busy")
            assert other.status_code == 200
            with pytest.raises(httpx.TransportError):
                answer.read()


# The command


@pytest.fixture(scope="module")
def folder(service_model, tmp_path_factory):
    return service_model.save(tmp_path_factory.mktemp("m") / "model")


@pytest.fixture
def served(folder):
    """The command in a process of its own; gives it and its address when it is ready."""
    command = [sys.executable, "-m", "tilp", "serve", str(folder), "--port", "0", "--threads", "1"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        while "ready at " not in (line := process.stdout.readline()):
            assert line, process.stderr.read()
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_requests_under_way_end(served, service_queries, how):
    process, address = served
    many = {"queries": (service_queries * 50)[:600], "k": 1}
    with httpx.stream("POST", f"{address}/api/v1/predict/batch", json=many, timeout=60) as answer:
        lines = answer.iter_lines()
        first = next(lines)
        process.send_signal(how)
        rest = list(lines)
    assert [json.loads(line)["number"] for line in (first, *rest)] == list(range(600))
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    if how is signal.SIGINT:
        assert process.returncode == 0 and "stopped" in out
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/health")


def test_a_port_in_use(run, folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        code, _, err = run("serve", folder, "--port", other.getsockname()[1])
        gc.collect()  # a socket that is left open would be reported
    assert code == 2
    assert "--port" in err and "in use" in err
    code, _, err = run("serve", folder, "--host", "no.such.host.invalid", "--port", 0)
    assert code == 2 and "--host" in err


def test_a_service_without_its_extra(run, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    code, _, err = run("serve", folder)
    assert code == 2
    assert 'pip install "tilp[web]"' in err


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_other_machines_have_access_only_on_request(run, folder, monkeypatch, host, warned):
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    code, out, err = run("serve", folder, "--host", host, "--port", 0)
    assert code == 0, err
    assert f"http://{host}:" in out
    assert ("other machines" in err) is warned

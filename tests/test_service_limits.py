"""How the service starts, waits and gives up; and `tilp serve`."""

import gc
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from serving import QUERY, log_event, refused, running, serve
from tilp import Query
from tilp.scoring import Prediction, Predictions
from tilp.web.app import create_app
from tilp.web.connections import BoundedProtocol
from tilp.web.state import Access, Limits, ServiceState
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


@contextmanager
def bounded(model, **limits):
    """Serve a model with limits on connections; gives its port."""
    limits, ready = Limits(computations=1, **limits), threading.Event()
    app = create_app(model, name="world", limits=limits, when_ready=ready.set)
    with serve(app, http=BoundedProtocol.of(limits)) as address:
        assert ready.wait(120)
        yield httpx.URL(address).port


def is_closed(connection):
    """Whether the other side closes a connection, within a minute."""
    try:
        while connection.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return True


HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET /he", HEAD + b"X: y"])
def test_a_request_must_begin_in_time(service_model, no_warm_up, sent):
    with bounded(service_model, head=0.3) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(sent)
            assert is_closed(connection)
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200


def test_headers_that_drip_are_cut_off(service_model, no_warm_up):
    with (
        bounded(service_model, head=0.5) as port,
        socket.create_connection(("127.0.0.1", port), timeout=60) as connection,
        pytest.raises(OSError),
    ):
        connection.sendall(HEAD + b"X: ")
        for _ in range(1_200):  # more than a minute of them
            connection.sendall(b"y")
            time.sleep(0.05)


def test_silent_connections_lock_nobody_out(service_model, no_warm_up):
    with bounded(service_model, connections=5, head=60) as port, ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            for _ in range(12)
        ]
        for _ in range(3):
            assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
        assert is_closed(silent[0])  # those that wait longest make room


def test_too_many_requests_are_refused_in_the_documented_form_but_not_health(service_model, slow):
    with (
        bounded(service_model, requests=1) as port,
        ThreadPoolExecutor(1) as threads,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        running = threads.submit(client.post, "/api/v1/predict", json=QUERY)
        for _ in range(1_000):
            answer = client.get("/api/v1/model")
            if answer.status_code != 200:
                break
        refused(answer, 503, "busy")
        assert answer.headers["retry-after"] == "1"
        assert client.get("/health").status_code == 200
        slow.set()
        assert running.result().status_code == 200


def test_unread_responses_are_bounded(service_model, no_warm_up, monkeypatch):
    large = Predictions(
        Query(**QUERY), tuple(Prediction(1, "x" * 10**6, "", 0.0, 0.0, False) for _ in range(9))
    )
    monkeypatch.setattr(ModelView, "predict", lambda self, query, k: large)
    body = json.dumps(QUERY).encode()
    request = b"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\n"
    request += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    with bounded(service_model, unread=2 * 10**7, arrival=60) as port, ExitStack() as stack:
        unread = []
        for _ in range(6):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            stack.enter_context(connection).settimeout(60)
            connection.connect(("127.0.0.1", port))
            connection.sendall(request + body)
            unread.append(connection)
            time.sleep(0.5)
        assert is_closed(unread[0])  # read slowest; the last has its response
        whole = b""
        while len(whole) < 9 * 10**6:
            whole += unread[-1].recv(2**20)


@pytest.mark.parametrize(
    ("host", "authorization", "status"),
    [
        ("localhost:8000", "Bearer secret-token", 200),
        ("LOCALHOST", "bearer secret-token", 200),
        ("localhost", f"Basic {b64encode(b'me:secret-token').decode()}", 200),
        ("localhost", "", 401),
        ("localhost", "Bearer other", 401),
        ("localhost", "Basic !", 401),
        ("evil.example", "Bearer secret-token", 421),
    ],
)
def test_hosts_and_tokens(service_model, no_warm_up, host, authorization, status):
    access = Access(frozenset({"localhost", "[::1]"}), "secret-token")
    app = create_app(service_model, name="world", access=access)
    with serve(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        headers = {"host": host, "authorization": authorization}
        answer = client.get("/openapi.json", headers=headers)
        assert answer.status_code == status
        if status == 401:
            refused(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"].startswith("Basic")
            assert client.get("/health", headers={"host": host}).status_code == 200
        elif status == 421:
            assert "--allow-host" in refused(answer, 421, "wrong_host")["message"]
            assert client.get("/health", headers={"host": host}).status_code == 421


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


@pytest.mark.parametrize(
    ("host", "options", "warned"),
    [("127.0.0.1", (), False), ("0.0.0.0", (), True), ("0.0.0.0", ("--token", "secret"), False)],
)
def test_other_machines_have_access_only_on_request(
    run, folder, monkeypatch, host, options, warned
):
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    code, _, err = run("serve", folder, "--token", " ")
    assert code == 2 and "token is empty" in err
    code, out, err = run("serve", folder, "--host", host, "--port", 0, *options)
    assert code == 0, err
    assert f"http://{host}:" in out
    assert ("other machines" in err) is warned

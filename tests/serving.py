"""Helpers for tests of the service: run it, send requests, compare it with its schema."""

import logging
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import uvicorn

import tilp
from tilp.web.app import create_app
from tilp.web.state import Limits

SCRIPT = "<script>alert(1)</script>"
QUERY = {"relation": "livesIn", "subject": SCRIPT}
SMALL_LIMITS = Limits(computations=2, chunk=4)


@contextmanager
def serve(app, **options):
    """Serve an app on a free port in a thread; gives the address, and stops it in the end.

    Requests that are sent before the server accepts connections wait in the queue of the socket.
    """
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(100)
        config = {"log_config": None, "access_log": False, "ws": "none", **options}
        server = uvicorn.Server(uvicorn.Config(app, **config))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def running(model, *, name="world", limits=None, warm=True, when_ready=lambda: None):
    """Serve a model, and wait until it is warm; gives the address."""
    ready = threading.Event()

    def announce():
        when_ready()
        ready.set()

    with serve(create_app(model, name=name, limits=limits, when_ready=announce)) as address:
        assert not warm or ready.wait(120), "the model did not warm up"
        yield address


@contextmanager
def log_event(logger, text):
    """Give an event that is set when a message with a text is logged."""
    event = threading.Event()

    class Watcher(logging.Handler):
        def emit(self, record):
            if text in record.getMessage():
                event.set()

    watched, watcher = logging.getLogger(logger), Watcher()
    level = watched.level
    watched.addHandler(watcher)
    watched.setLevel(logging.INFO)
    try:
        yield event
    finally:
        watched.setLevel(level)
        watched.removeHandler(watcher)


def get(client, path, **parameters):
    answer = client.get(f"/api/v1/{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(client, path, body):
    answer = client.post(f"/api/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer, status, code):
    """Check the form that all errors have; gives the error."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    (error,) = answer.json().values()
    assert set(error) == {"code", "message", "near"}
    assert error["code"] == code
    assert "Traceback" not in answer.text and str(Path(tilp.__file__).parent) not in answer.text
    return error


def groundings_in(explanation):
    """Every grounding in the JSON of an explanation."""
    if isinstance(explanation, dict):
        if "facts" in explanation and isinstance(explanation["facts"], list):
            yield explanation
        for value in explanation.values():
            yield from groundings_in(value)
    elif isinstance(explanation, list):
        for value in explanation:
            yield from groundings_in(value)


def check_schema(address, *, examples):
    """Run schemathesis on a service; the return code is 0 if it keeps its own schema."""
    tool = Path(sys.executable).with_name("schemathesis")
    config = Path(__file__).with_name("schemathesis.toml")
    command = [tool, "--config-file", config, "run", f"{address}/openapi.json", "--seed", "1"]
    with tempfile.TemporaryDirectory() as folder:  # it writes notes where it runs
        return subprocess.run(
            [*command, "--max-examples", str(examples), "--no-color"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=3_600,
            check=False,
        )

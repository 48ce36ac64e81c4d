"""A service that runs in a thread of the tests, on a port of its own; and schemathesis on it."""

import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn


@contextmanager
def running(app, *, warm=True):
    """Serve an app on loopback; gives its address, and stops it in the end."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        config = uvicorn.Config(app, log_config=None, access_log=False, ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_for(f"{address}/{'ready' if warm else 'health'}")
            yield address
        finally:
            server.should_exit = True
            thread.join()


def wait_for(url, seconds=120):
    """Until an address answers with 200."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise TimeoutError(f"{url} did not answer within {seconds} s")


def keeps_schema(address, *, examples):
    """What schemathesis finds when it compares a service with its own description; 0: nothing."""
    tool = Path(sys.executable).with_name("schemathesis")
    config = Path(__file__).with_name("schemathesis.toml")
    command = [tool, "--config-file", config, "run", f"{address}/openapi.json", "--seed", "1"]
    with tempfile.TemporaryDirectory() as folder:  # it keeps notes where it runs
        return subprocess.run(
            [*command, "--max-examples", str(examples), "--no-color"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=3_600,
            check=False,
        )

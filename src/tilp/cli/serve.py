"""The command that serves a model over HTTP."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import output, print_warning
from tilp.cli.options import Model, load_model
from tilp.errors import TilpError

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["serve_command"]

_GRACE = 30
"""Seconds that requests under way have to end when the service is stopped."""
_CONNECTIONS = 256
"""At once, at the most; what more want is refused before it is read."""


def serve_command(
    model: Model,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="The address to listen at; by default only this machine can ask."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="0: any that is free.")
    ] = 8000,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, show_default="all", help="Computations that run at once."),
    ] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve a model: a page with its rules, answers and data, and a JSON API behind it.

    The API is documented at /openapi.json. Ctrl-C stops; requests under way are finished.
    """
    _need_extra()
    from tilp.web.app import create_app
    from tilp.web.limits import Limits

    with _listen(host, port) as listening:
        address = _address(host, listening.getsockname()[1])
        if not _is_loopback(listening):
            print_warning(
                f"{host} can be reached from other machines, and the service asks nobody who they "
                "are: leave --host out, or put it behind a proxy that does"
            )
        console = output()

        def tell() -> None:
            console.print(f"ready at {address}")
            if browse:
                typer.launch(address)

        console.print(f"loading {model}; then {address} will answer")
        app = create_app(
            load_model(model, threads),
            name=model.resolve().name,
            limits=Limits(computations=threads),
            when_ready=tell,
        )
        _run(app, listening)
        console.print("stopped")


def _run(app: FastAPI, listening: socket.socket) -> None:
    """Serve until a signal comes, and then until the requests under way are answered."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        limit_concurrency=_CONNECTIONS,
        ws="none",
    )
    with suppress(KeyboardInterrupt):  # told once more when all is done
        uvicorn.Server(config).run(sockets=[listening])


def _need_extra() -> None:
    try:
        import fastapi
        import uvicorn
    except ImportError as failure:
        raise TilpError('the service needs an extra: pip install "tilp[web]"') from failure
    del fastapi, uvicorn


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens, so that a port that is taken is known before a model is loaded."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as unless_bound:
            listening = unless_bound.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            unless_bound.pop_all()
    except OSError as failure:
        raise TilpError(
            f"cannot listen at {host}, port {port} ({failure.strerror or failure}); choose "
            "another with --port (0: any that is free) or --host"
        ) from failure
    return listening


def _is_loopback(listening: socket.socket) -> bool:
    return ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

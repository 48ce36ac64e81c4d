"""`tilp serve`: a model over HTTP."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Annotated

import typer
from typer import Option

from tilp.cli import options
from tilp.cli.console import output, print_warning
from tilp.errors import TilpError

_SHUTDOWN_SECONDS = 30  # for running requests to finish when the service is stopped
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def serve_command(
    model: options.ModelArgument,
    host: Annotated[str, Option()] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65_535, help="The port; 0 takes any free one.")] = 8000,
    allow_host: Annotated[list[str] | None, Option(show_default="loopback names")] = None,
    token: Annotated[str | None, Option(envvar="TILP_TOKEN", show_default="none")] = None,
    threads: Annotated[int | None, Option(min=1, show_default="all")] = None,
    browse: Annotated[bool, Option("--open", help="Open the page in the browser.")] = False,
    phrasings: options.PhrasingsOption = None,
) -> None:
    """Serve a model: a web page with its rules, answers and data, and the JSON API behind it.

    /openapi.json documents the API. Ctrl-C stops the service after the running requests.

    Args:
        host: The address to listen at; by default only this machine has access.
        allow_host: Answer requests to this host name too, as browsers and programs call the
            service; repeatable. Others are refused, since a site could send them through a
            visitor's browser. * allows all.
        token: Answer only requests with this token: as the header Authorization: Bearer TOKEN, or
            as password in a browser. Better in the environment, where other users do not see it.
        threads: Number of requests computed at once.
    """
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise TilpError('the service needs an extra: pip install "tilp[web]"')
    import uvicorn

    from tilp.web.app import create_app
    from tilp.web.connections import BoundedProtocol
    from tilp.web.state import Access, Limits

    if token is not None and not token.strip():
        raise TilpError("the token is empty; give some 20 random letters, or leave --token out")
    hosts = {*_LOOPBACK, f"[{host}]" if ":" in host else host.lower()}
    hosts |= {name.lower() for name in allow_host or ()}
    access = Access(None if "*" in hosts else frozenset(hosts), token)

    console = output()
    with _listen(host, port) as listening:
        port = listening.getsockname()[1]
        address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        beyond = not ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback
        if beyond and token is None:
            print_warning(
                f"{host} can be reached from other machines, and anybody there may ask: give a "
                "--token, leave --host out, or put it behind a proxy that authenticates"
            )

        def announce() -> None:
            console.print(f"ready at {address}")
            if browse:
                typer.launch(address)

        console.print(f"loading {model}; then {address} will answer")
        fitted, name = (
            options.load_model(model, threads, phrasings=phrasings), model.resolve().name
        )  # fmt: skip
        limits = Limits(computations=threads)
        config = uvicorn.Config(
            create_app(fitted, name=name, limits=limits, access=access, when_ready=announce),
            http=BoundedProtocol.of(limits),
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            ws="none",
        )
        with suppress(KeyboardInterrupt):  # raised again after the running requests are finished
            uvicorn.Server(config).run(sockets=[listening])
        console.print("stopped")


def _listen(host: str, port: int) -> socket.socket:
    """Bind a socket first, so that a port in use is reported before the model is loaded."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as close_on_failure:
            listening = close_on_failure.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            close_on_failure.pop_all()
    except OSError as failure:
        raise TilpError(
            f"cannot listen at {host}, port {port} ({failure.strerror or failure}); choose "
            "another with --port (0: any that is free) or --host"
        ) from failure
    return listening

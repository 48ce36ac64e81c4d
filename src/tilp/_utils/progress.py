"""Stages of a long job: how long each takes, and how far it is."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_log = logging.getLogger(__name__)

Progress = Callable[[str, float], None]  # called with a stage and the share of it that is done
_compile_listeners: list[Callable[[], None]] = []


@contextmanager
def on_compile(listener: Callable[[], None]) -> Iterator[None]:
    """Within the block, call a function before each kernel that is compiled, not loaded."""
    _compile_listeners.append(listener)
    try:
        yield
    finally:
        _compile_listeners.remove(listener)


def report_compile() -> None:
    """Call the functions that listen to compilation."""
    for listener in tuple(_compile_listeners):
        listener()


class Stages:
    """Times stages and reports their progress."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.seconds: dict[str, float] = {}  # run time of each finished stage
        self._progress = progress or (lambda _name, _share: None)

    @contextmanager
    def __call__(self, name: str) -> Iterator[Callable[[float], None]]:
        """Run a stage; yields a function to call with the share that is done."""
        began = time.perf_counter()
        _log.info("%s …", name)
        yield lambda share: self._progress(name, share)
        self.seconds[name] = time.perf_counter() - began
        self._progress(name, 1.0)

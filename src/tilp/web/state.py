"""`ServiceState`: the served model, ready for requests once it is warm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from threading import Thread
from typing import Any

from tilp._version import __version__
from tilp.graph import SPLITS
from tilp.model import TILP
from tilp.web.errors import Code, ServiceError
from tilp.web.limits import Limits, WorkerQueue
from tilp.web.views import DataView, ModelView, RuleView

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Views:
    """Everything that requests read, built when the service starts."""

    summary: dict[str, Any]
    model: ModelView
    rules: RuleView
    data: DataView


class ServiceState:
    """A model, its views, and the worker queue.

    Args:
        model: A fitted model.
        name: Its name on the page.
        limits: Limits of the service.
        when_ready: Called when the model is warm.
    """

    def __init__(
        self, model: TILP, name: str, limits: Limits, when_ready: Callable[[], None] | None = None
    ) -> None:
        self.queue = WorkerQueue(limits)
        self.limits = limits
        self._model, self._name, self._when_ready = model, name, when_ready
        self._views: Views | None = None
        self._failed = False

    @property
    def ready(self) -> bool:
        """Whether the model is warm."""
        return self._views is not None

    @property
    def views(self) -> Views:
        """The views; raises the error `starting` until the model is warm."""
        if self._views is None:
            message = "the service is warming up; try again in a moment"
            if self._failed:
                message = "the service could not warm up, see its log; start it again"
            raise ServiceError(Code.STARTING, message)
        return self._views

    def start(self) -> None:
        """Start to warm up in a thread; stopping the service does not wait for it."""
        Thread(target=self._warm_up, daemon=True).start()

    def _warm_up(self) -> None:
        try:
            self._views = self._build_views()
        except Exception:
            self._failed = True
            logger.exception("warming up failed")
            return
        if self._when_ready is not None:
            self._when_ready()

    def _build_views(self) -> Views:
        """Build and compile all that requests need, so that no request waits for it."""
        graph, settings = self._model.graph, self._model.settings
        model = ModelView(self._model)
        rules = RuleView(self._model.rules(), graph.relations)
        data = DataView(graph)
        summary = {
            "name": self._name,
            "version": __version__,
            "unit": graph.unit.value,
            "features": settings.features.value,
            "max_length": settings.mining.max_length,
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            "rules": len(rules.rules),
            "words": list(rules.temporal_relations),
            "facts": {split: len(graph.rows(split)) for split in SPLITS},
            "example": asdict(model.warm_up()),
        }
        data.warm_up()
        return Views(summary, model, rules, data)

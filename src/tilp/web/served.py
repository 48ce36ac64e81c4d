"""`Served`: a model with all that requests look at, once it is warm."""

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
from tilp.web.limits import Desk, Limits
from tilp.web.views import Asker, DataView, RuleView

__all__ = ["Served", "Views"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Views:
    """What requests look at.

    Attributes:
        summary: of the model.
        asker: that answers queries.
        rules: of the model.
        data: that it was learned from.
    """

    summary: dict[str, Any]
    asker: Asker
    rules: RuleView
    data: DataView


class Served:
    """A model behind a desk.

    Args:
        model: a fitted model.
        name: that it is shown with.
        limits: what is borne.
        when_ready: called when it is warm.
    """

    def __init__(
        self,
        model: TILP,
        name: str,
        limits: Limits,
        when_ready: Callable[[], None] | None = None,
    ) -> None:
        self.desk = Desk(limits)
        self.limits = limits
        self.failed = False
        self._model, self._name, self._when_ready = model, name, when_ready
        self._views: Views | None = None

    @property
    def ready(self) -> bool:
        """Whether queries are answered, and at their usual speed."""
        return self._views is not None

    @property
    def views(self) -> Views:
        """What requests look at.

        Raises:
            ServiceError: it is not ready yet.
        """
        if self._views is None:
            message = "the service is warming up; ask again in a moment"
            if self.failed:
                message = "the service could not warm up, as its log says; start it again"
            raise ServiceError(Code.STARTING, message, headers={"Retry-After": "1"})
        return self._views

    def start(self) -> None:
        """Begin to warm up, beside all else; whoever stops the service does not wait for it."""
        Thread(target=self._warm_up, daemon=True).start()

    def _warm_up(self) -> None:
        """Build and compile all that requests need, so that no request waits for it."""
        try:
            self._views = self._build()
        except Exception:
            self.failed = True
            logger.exception("warming up failed")
            return
        if self._when_ready is not None:
            self._when_ready()

    def _build(self) -> Views:
        graph, settings = self._model.graph, self._model.settings
        asker = Asker(self._model)
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
            "words": list(rules.words),
            "facts": {split: len(graph.rows(split)) for split in SPLITS},
            "example": asdict(asker.warm_up()),
        }
        data.warm_up()
        return Views(summary, asker, rules, data)

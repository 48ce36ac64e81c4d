"""What all kinds of experiments share: their parts, and figures over seeds."""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tilp.bench.cells import Cell
from tilp.bench.jobs import Job, Results
from tilp.bench.keys import Keys
from tilp.bench.plans import Asked, Experiment, Figure
from tilp.bench.report.blocks import Block, Items, Text
from tilp.bench.settings import Setting
from tilp.bench.sources import Source

__all__ = [
    "Kind",
    "Mean",
    "asked_cells",
    "best_of_ours",
    "not_done",
    "over_seeds",
    "plus_minus",
    "share_text",
]


class Kind(ABC):
    """A kind of experiment: what it needs, what it runs, and its part of a report.

    Attributes:
        tilp_only: whether all its methods must be forms of TILP.
        uses: of the keys that experiments have in common, those that mean something to it.
    """

    tilp_only: ClassVar[bool] = False
    uses: ClassVar[frozenset[str]] = frozenset({"seeds", "figures", "split", "published"})

    @abstractmethod
    def read(self, keys: Keys) -> Any:
        """The options that only this kind has, from the keys of an experiment."""

    @abstractmethod
    def jobs(self, experiment: Experiment, source: Source) -> list[Job]:
        """All that is run on a data set."""

    @abstractmethod
    def blocks(
        self, experiment: Experiment, sources: Sequence[Source], results: Results
    ) -> list[Block]:
        """What is reported, below the title."""


@dataclass(frozen=True)
class Mean:
    """A figure over seeds.

    Attributes:
        value: its mean.
        spread: the standard deviation of a run; 0 of a single one.
        runs: how many.
    """

    value: float
    spread: float
    runs: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Mean | None:
        """Of those that there are; None of none."""
        found = [one for one in values if one is not None]
        if not found:
            return None
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        return cls(statistics.fmean(found), spread, len(found))


def share_text(value: float | None) -> str:
    """A share as tables have it.

    >>> share_text(0.4114), share_text(1.0), share_text(-0.02), share_text(None)
    ('.411', '1.000', '-.020', '')
    """
    if value is None:
        return ""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def plus_minus(mean: Mean | None, sign: str = "") -> str:
    """A mean with its spread, where there are several runs.

    Args:
        mean: None for nothing.
        sign: '+' where a gain is to be told from a loss.
    """
    if mean is None:
        return ""
    value = ("+" if sign and mean.value >= 0 else "") + share_text(mean.value)
    return f"{value} ± {share_text(mean.spread)}" if mean.runs > 1 else value


def asked_cells(
    experiment: Experiment, source: Source, setting: Setting, asked: Asked
) -> list[Cell]:
    """The runs of a method: one for each seed, or one where seeds change nothing."""
    seeded = asked.method.seeded or setting.seeded
    return [
        Cell(source, setting, asked.method, seed, experiment.split)
        for seed in range(asked.seeds if seeded else 1)
    ]


def over_seeds(cells: Iterable[Cell], results: Results, figure: Figure, name: str) -> Mean | None:
    """A figure of some runs."""
    found = (results.of(cell) for cell in cells)
    return Mean.of(one["figures"][figure.key][name] for one in found if one is not None)


def best_of_ours(asked: Sequence[Asked], means: Sequence[Mean | None]) -> list[bool]:
    """Which of some methods has the best figure of ours, which are no baselines.

    Where there are none, of all.

    Args:
        asked: the methods.
        means: the figure of each.
    """
    any_ours = any(one.method.is_ours for one in asked)
    ours = [
        None if mean is None or (any_ours and not one.method.is_ours) else mean.value
        for one, mean in zip(asked, means, strict=True)
    ]
    best = max((value for value in ours if value is not None), default=None)
    return [value is not None and value == best for value in ours]


def not_done(jobs: Iterable[Job], results: Results) -> list[Block]:
    """What could not be run, and why."""
    reasons = results.reasons(jobs)
    return [Text("Not run:"), Items(tuple(reasons))] if reasons else []

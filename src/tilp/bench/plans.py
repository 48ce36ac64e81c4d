"""`Plan`: experiments on any data, as they are written down."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilp.bench.methods import Method
from tilp.bench.sources import WorldSize
from tilp.errors import TilpError
from tilp.evaluation import ties_of
from tilp.types import ExperimentKind, Protocol, Ties

__all__ = ["Asked", "Experiment", "Figure", "Plan", "Published"]


@dataclass(frozen=True)
class Figure:
    """A protocol and a tie rule, which a figure is given for.

    >>> Figure.parse("enumerate worst")
    Figure(protocol=<Protocol.ENUMERATE: 'enumerate'>, ties=<Ties.WORST: 'worst'>)
    """

    protocol: Protocol
    ties: Ties

    @property
    def key(self) -> str:
        """As the files of runs have it."""
        return f"{self.protocol.value} {self.ties.value}"

    def __str__(self) -> str:
        return f"{self.protocol.value}, {self.ties.value} ties"

    @classmethod
    def parse(cls, text: object) -> Figure | None:
        """From a protocol and a tie rule in one text; None where they are none."""
        first, _, last = str(text).partition(" ")
        if first not in list(Protocol) or last not in ties_of(Protocol(first)):
            return None
        return cls(Protocol(first), Ties(last))


@dataclass(frozen=True)
class Published:
    """A figure that others published, to stand beside ours.

    Attributes:
        method: whose.
        data: the name of the data set.
        figure: beside which of ours; the first of the experiment where it is not said.
        protocol: how it was measured, in words.
        mrr: as a share, not in per cent; likewise hits.
        hits_at_1: None where it is not given.
        hits_at_10: likewise.
        share: of the training facts, on a curve.
        note: what else is to be known of it.
    """

    method: str
    data: str
    figure: Figure
    protocol: str
    mrr: float
    hits_at_1: float | None = None
    hits_at_10: float | None = None
    share: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Asked:
    """A method of an experiment.

    Attributes:
        method: itself.
        seeds: how many runs, each with a seed of its own.
    """

    method: Method
    seeds: int


@dataclass(frozen=True)
class Experiment:
    """One question of a plan.

    Attributes:
        name: in files and on the command line.
        kind: what is asked.
        title: over its part of the report.
        about: what is asked and how to read it, in words.
        methods: what is compared.
        figures: the protocols and tie rules that figures are given for; the first is drawn.
        split: whose facts are asked.
        published: figures of others.
        options: what only this kind of experiment has.
    """

    name: str
    kind: ExperimentKind
    title: str
    about: str
    methods: tuple[Asked, ...]
    figures: tuple[Figure, ...]
    split: str
    published: tuple[Published, ...]
    options: Any


@dataclass(frozen=True)
class Plan:
    """What is run, and reported together.

    Attributes:
        name: of its file.
        title: of the report.
        about: what it is for, in words.
        world: which bundled one, where no data is given.
        experiments: in their order.
    """

    name: str
    title: str
    about: str
    world: WorldSize
    experiments: tuple[Experiment, ...]

    def narrowed(self, seeds: int | None = None, only: tuple[str, ...] = ()) -> Plan:
        """The plan with another number of seeds, or with some of its experiments.

        Args:
            seeds: of every method; where None, as many as the plan says.
            only: the names of experiments; all by default.

        Raises:
            TilpError: there is no such experiment.
        """
        names = [one.name for one in self.experiments]
        for name in only:
            if name not in names:
                raise TilpError(
                    f"the plan {self.name} has no experiment {name!r}; it has {', '.join(names)}"
                )
        kept = [one for one in self.experiments if not only or one.name in only]
        if seeds is not None:
            kept = [
                replace(one, methods=tuple(Asked(two.method, seeds) for two in one.methods))
                for one in kept
            ]
        return replace(self, experiments=tuple(kept))

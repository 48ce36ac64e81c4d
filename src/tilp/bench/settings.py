"""Settings of experiments: how a data set is changed before a method sees it."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from tilp._utils.files import unique_file_name
from tilp.bench.schema import Date, Share
from tilp.bench.sources import Source
from tilp.graph import SPLITS, TemporalGraph
from tilp.splits import balanced, biased, few, released, time_shift
from tilp.types import LateEnds, SettingKind, Walked


@dataclass(frozen=True)
class Rare:
    """A relation with fewer facts to learn from than are known.

    Attributes:
        relation: Its id.
        least: Refit a relation if at least this share of what predicts it uses the rare one.
    """

    relation: int
    least: float


@dataclass(frozen=True)
class Case:
    """The graphs of one run.

    Attributes:
        learned: Graph to learn from.
        applied: Evidence of the queries.
        known: Graph with the queries' split, and with the known answers to filter.
        shared: Whether other runs use the same model.
        rare: The relation that was made rare, if only part of a model is to be refitted.
        evidence: Splits whose facts before a query are its evidence; None if train is the
            evidence, whatever the dates.
    """

    learned: TemporalGraph
    applied: TemporalGraph
    known: TemporalGraph
    shared: bool = False
    rare: Rare | None = None
    evidence: tuple[str, ...] | None = None

    @classmethod
    def of(cls, graph: TemporalGraph, **more: Any) -> Case:
        """Use one graph for everything."""
        return cls(graph, graph, graph, **more)


@dataclass(frozen=True)
class Setting(ABC):
    """How a data set is changed; its fields are keys of a plan.

    Attributes:
        kind: Its name in a plan.
        words: What it does, for reports.
        seeded: Whether another seed gives other graphs.
        shares_models: Whether several runs use one model.
    """

    kind: ClassVar[SettingKind]
    words: ClassVar[str]
    seeded: ClassVar[bool] = False
    shares_models: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name in the files of runs."""
        return self.kind.value

    @property
    def description(self) -> str:
        """What it does, and its parameters."""
        parameters = [f"{key} = {value}" for key, value in asdict(self).items() if value]
        return f"{self.words} ({', '.join(parameters)})" if parameters else self.words

    @abstractmethod
    def case(self, source: Source, seed: int) -> Case:
        """Return the graphs, or raise a `TilpError` if the data set does not allow it."""

    def identity(self, source: Source) -> dict[str, Any]:
        """Return all that decides the graphs, apart from the facts and the seed."""
        del source
        return {"kind": self.kind.value, **asdict(self)}


@dataclass(frozen=True)
class Whole(Setting):
    """The data set as it is."""

    kind = SettingKind.NONE
    name = "whole"
    words = "the data set as it is"

    def case(self, source: Source, seed: int) -> Case:
        """Return the graph."""
        del seed
        return Case.of(source.graph)


@dataclass(frozen=True)
class Few(Setting):
    """A share of the training facts; the others stay in the graph (`kept`) or go (`reduced`)."""

    share: Share
    walked: Walked = field(default=Walked.KEPT, metadata={"key": "graph"})

    kind = SettingKind.FEW
    words = "the model learns from a share of the training facts"
    seeded = True

    @property
    def name(self) -> str:
        """The name in the files of runs."""
        return f"few-{self.share}-{self.walked.value}"

    def case(self, source: Source, seed: int) -> Case:
        """Return the sample; answers of facts that were set aside stay known."""
        sample = few(source.graph, self.share, seed=seed, walked=self.walked)
        return Case(sample, sample, source.graph)


@dataclass(frozen=True)
class Balanced(Setting):
    """As many test facts of each relation: what biased data are compared with."""

    kind = SettingKind.BALANCED
    words = "all facts split again, with as many test facts of each relation as possible"
    seeded = True
    shares_models = True

    def case(self, source: Source, seed: int) -> Case:
        """Return the new splits."""
        return Case.of(balanced(source.graph, seed=seed), shared=True)


@dataclass(frozen=True)
class Biased(Setting):
    """`Balanced`, with a share of one relation's training facts removed.

    Attributes:
        relation: Its id.
        removed: Share of its training facts to remove.
        walked: Whether removed facts stay in the graph.
        label: Name of the relation, for the names of files.
        refit: Refit only relations of whose rules at least this share uses the rare relation;
            None to refit everything.
    """

    relation: str
    removed: float = 0.5
    walked: Walked = field(default=Walked.REDUCED, metadata={"key": "graph"})
    label: str = field(default="", metadata={"key": None})
    refit: float | None = None

    kind = SettingKind.BIASED
    words = "balanced, with a share of one relation's training facts removed"
    seeded = True
    shares_models = True

    @property
    def name(self) -> str:
        """The name in the files of runs."""
        names = dict.fromkeys(filter(None, (self.relation, self.label)))
        relation = "-".join(unique_file_name(name) for name in names)
        refit = "" if self.refit is None else f"-refit-{self.refit}"
        return f"biased-{self.removed}-{self.walked.value}{refit}-{relation}"

    def case(self, source: Source, seed: int) -> Case:
        """Return the new splits; removed facts are known answers."""
        whole = balanced(source.graph, seed=seed)
        reduced = biased(whole, self.relation, removed=self.removed, seed=seed, walked=self.walked)
        case = Case(reduced, reduced, whole)
        if self.refit is None:
            return case
        return replace(case, rare=Rare(source.graph.relations.find(self.relation), self.refit))


@dataclass(frozen=True)
class TimeShifted(Setting):
    """All facts split again by their start; later starts than `latest` count as unknown."""

    latest: Date | None = None
    ends: LateEnds = LateEnds.MASK

    kind = SettingKind.TIME_SHIFT
    words = "all facts split again by their start, train before valid before test"

    @property
    def name(self) -> str:
        """The name in the files of runs."""
        return "-".join(filter(None, ("time-shift", self.latest, self.ends.value)))

    def case(self, source: Source, seed: int) -> Case:
        """Return the new splits."""
        del seed
        return Case.of(time_shift(source.graph, latest=self.latest, ends=self.ends).graph)


@dataclass(frozen=True)
class Release(Setting):
    """Splits in a folder of the data set, with `background` as the graph of test queries."""

    folder: str
    background: str | None = None

    kind = SettingKind.RELEASE
    words = "the splits that were released beside the data set"
    shares_models = True

    @property
    def name(self) -> str:
        """The name in the files of runs."""
        walked = "" if self.background is None else f"-on-{unique_file_name(self.background)}"
        return f"release-{unique_file_name(self.folder)}{walked}"

    def case(self, source: Source, seed: int) -> Case:
        """Return the released splits."""
        del seed
        splits = released(source.graph, source.within(self.folder), self.background)
        return Case(splits.learned, splits.applied, splits.graph, shared=True)

    def identity(self, source: Source) -> dict[str, Any]:
        """Return all that decides the graphs, with the digest of the folder's files."""
        folder, digest = source.within(self.folder), hashlib.sha256()
        walked = [] if self.background is None else [folder / self.background]
        for path in [*sorted(folder.glob("*")), *walked]:
            if path.is_file():
                digest.update(path.name.encode() + path.read_bytes())
        return {**super().identity(source), "files": digest.hexdigest()}


@dataclass(frozen=True)
class Forecast(Setting):
    """What comes next: every fact before the query is evidence, of any split."""

    kind = SettingKind.FORECAST
    words = "learned from train; every fact before the query is evidence, of valid and test too"

    def case(self, source: Source, seed: int) -> Case:
        """Return the graph."""
        del seed
        return Case.of(source.graph, evidence=SPLITS)


SETTINGS: Mapping[SettingKind, type[Setting]] = {
    cls.kind: cls for cls in (Whole, Few, Balanced, Biased, TimeShifted, Release, Forecast)
}

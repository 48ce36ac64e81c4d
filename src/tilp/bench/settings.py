"""Settings of experiments: what becomes of a data set before a method sees it."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from tilp._utils.files import unique_file_name
from tilp.bench.keys import DATE, NUMBER, SHARE, TEXT, Keys, word_of
from tilp.bench.sources import Source
from tilp.graph import SPLITS, TemporalGraph
from tilp.splits import balanced, biased, few, released, time_shift
from tilp.types import LateEnds, SettingKind, Walked

__all__ = [
    "Balanced",
    "Biased",
    "Case",
    "Few",
    "Forecast",
    "Rare",
    "Setting",
    "TimeShifted",
    "Whole",
    "read_setting",
]


@dataclass(frozen=True)
class Rare:
    """A relation that has fewer facts to learn from than in what is known.

    Attributes:
        relation: its number.
        least: of what predicts a relation, the share that must go through the rare one for it to be
            learned anew.
    """

    relation: int
    least: float


@dataclass(frozen=True)
class Case:
    """The graphs of one run.

    Attributes:
        learned: what is learned from.
        applied: the evidence of what is asked.
        known: whose split is asked, and what other answers are removed by.
        kept: whether the model of it serves other runs too.
        rare: what was made rare, where a model of what is known is to be learned anew in part.
        evidence: the splits that are evidence, where it is all that is dated before a query; None
            where it is train, whatever the dates.
    """

    learned: TemporalGraph
    applied: TemporalGraph
    known: TemporalGraph
    kept: bool = False
    rare: Rare | None = None
    evidence: tuple[str, ...] | None = None

    @classmethod
    def of(cls, graph: TemporalGraph) -> Case:
        """One graph for all."""
        return cls(graph, graph, graph)


class Setting(ABC):
    """What becomes of a data set.

    Attributes:
        kind: its name in a plan.
        seeded: whether another seed makes something else of the data.
        keeps: whether several runs use one model.
    """

    kind: ClassVar[SettingKind]
    seeded: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """As the files of runs have it."""

    @property
    @abstractmethod
    def words(self) -> str:
        """As a report has it."""

    @abstractmethod
    def case(self, source: Source, seed: int) -> Case:
        """The graphs.

        Raises:
            TilpError: the data set does not allow it.
        """

    def identity(self, source: Source) -> dict[str, Any]:
        """All that decides the graphs beside the data set's own facts and the seed."""
        del source
        return {"kind": self.kind.value, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class Whole(Setting):
    """The data set as it is."""

    kind = SettingKind.NONE

    @property
    def name(self) -> str:
        """As the files of runs have it."""
        return "whole"

    @property
    def words(self) -> str:
        """As a report has it."""
        return "the data set as it is"

    def case(self, source: Source, seed: int) -> Case:
        """The graph."""
        del seed
        return Case.of(source.graph)


@dataclass(frozen=True)
class Few(Setting):
    """A share of the training facts to learn from.

    Attributes:
        share: of them.
        walked: whether the others are walked on.
    """

    share: float
    walked: Walked = Walked.KEPT

    kind = SettingKind.FEW
    seeded = True

    @property
    def name(self) -> str:
        """As the files of runs have it."""
        return f"few-{self.share}-{self.walked.value}"

    @property
    def words(self) -> str:
        """As a report has it."""
        others = "walked on" if self.walked is Walked.KEPT else "gone"
        return f"{self.share:.0%} of the training facts are learned from, the others {others}"

    def case(self, source: Source, seed: int) -> Case:
        """The sample; answers that only facts set aside state are known all the same."""
        made = few(source.graph, self.share, seed=seed, walked=self.walked)
        return Case(made, made, source.graph)


@dataclass(frozen=True)
class Balanced(Setting):
    """As many test facts of each relation: what biased data are compared with."""

    kind = SettingKind.BALANCED
    seeded = True
    keeps = True

    @property
    def name(self) -> str:
        """As the files of runs have it."""
        return "balanced"

    @property
    def words(self) -> str:
        """As a report has it."""
        return "all facts split anew, with as many test facts of each relation as can be"

    def case(self, source: Source, seed: int) -> Case:
        """The splits."""
        return replace(Case.of(balanced(source.graph, seed=seed)), kept=True)


@dataclass(frozen=True)
class Biased(Setting):
    """`Balanced`, with a share of one relation's training facts removed.

    Attributes:
        relation: its id.
        removed: the share.
        walked: whether removed facts are walked on.
        label: what the relation is called, for people.
        refit: where TILP learns anew only what the relation touches, the share of what predicts a
            relation that makes it touched; None: all is learned anew.
    """

    relation: str
    removed: float = 0.5
    walked: Walked = Walked.REDUCED
    label: str = ""
    refit: float | None = None

    kind = SettingKind.BIASED
    seeded = True
    keeps = True

    @property
    def name(self) -> str:
        """As the files of runs have it."""
        words = dict.fromkeys(filter(None, (self.relation, self.label)))
        relation = "-".join(unique_file_name(one) for one in words)
        refit = "" if self.refit is None else f"-refit-{self.refit}"
        return f"biased-{self.removed}-{self.walked.value}{refit}-{relation}"

    @property
    def words(self) -> str:
        """As a report has it."""
        return f"balanced, with {self.removed:.0%} of one relation's training facts removed"

    def case(self, source: Source, seed: int) -> Case:
        """The splits; removed facts are known answers."""
        whole = balanced(source.graph, seed=seed)
        made = biased(whole, self.relation, removed=self.removed, seed=seed, walked=self.walked)
        if self.refit is None:
            return Case(made, made, whole)
        rare = Rare(source.graph.relations.find(self.relation), self.refit)
        return Case(made, made, whole, rare=rare)


@dataclass(frozen=True)
class TimeShifted(Setting):
    """All facts split anew by their start.

    Attributes:
        latest: the latest start that is no error.
        ends: what becomes of training facts that end in the time that is asked for.
    """

    latest: str | None = None
    ends: LateEnds = LateEnds.MASK

    kind = SettingKind.TIME_SHIFT

    @property
    def name(self) -> str:
        """As the files of runs have it."""
        return "-".join(filter(None, ("time-shift", self.latest, self.ends.value)))

    @property
    def words(self) -> str:
        """As a report has it."""
        latest = "" if self.latest is None else f", starts after {self.latest} taken for unknown"
        return (
            "all facts split anew by their start, train before valid before test"
            f"{latest}; ends of training facts in that time: {self.ends.value}"
        )

    def case(self, source: Source, seed: int) -> Case:
        """The splits."""
        del seed
        return Case.of(time_shift(source.graph, latest=self.latest, ends=self.ends).graph)


@dataclass(frozen=True)
class Release(Setting):
    """Splits that were released beside the data set.

    Attributes:
        folder: within the data set's own.
        background: the file in it with the graph to walk on, where there is one.
    """

    folder: str
    background: str | None = None

    kind = SettingKind.RELEASE
    keeps = True

    @property
    def name(self) -> str:
        """As the files of runs have it."""
        walked = "" if self.background is None else f"-on-{unique_file_name(self.background)}"
        return f"release-{unique_file_name(self.folder)}{walked}"

    @property
    def words(self) -> str:
        """As a report has it."""
        walked = f", walking on {self.background} where test is asked" if self.background else ""
        return f"the splits in its folder {self.folder}{walked}"

    def case(self, source: Source, seed: int) -> Case:
        """The splits."""
        del seed
        found = released(source.graph, source.within(self.folder), self.background)
        return Case(found.learned, found.applied, found.graph, kept=True)

    def identity(self, source: Source) -> dict[str, Any]:
        """With the digest of the folder's files."""
        folder, digest = source.within(self.folder), hashlib.sha256()
        walked = [] if self.background is None else [folder / self.background]
        for path in [*sorted(folder.glob("*")), *walked]:
            if path.is_file():
                digest.update(path.name.encode() + path.read_bytes())
        return {**super().identity(source), "files": digest.hexdigest()}


@dataclass(frozen=True)
class Forecast(Setting):
    """What comes next: evidence is every fact before the query, of whatever split."""

    kind = SettingKind.FORECAST

    @property
    def name(self) -> str:
        """As the files of runs have it."""
        return "forecast"

    @property
    def words(self) -> str:
        """As a report has it."""
        return (
            "learned from train; evidence is every fact that is dated before the query, of valid "
            "and test too"
        )

    def case(self, source: Source, seed: int) -> Case:
        """The graph."""
        del seed
        return replace(Case.of(source.graph), evidence=SPLITS)


def read_setting(keys: Keys) -> Setting:
    """The setting that an experiment names; what it needs are keys of the experiment too."""
    kind = keys.get("setting", word_of(SettingKind), SettingKind.NONE)
    match kind:
        case SettingKind.FEW:
            share = keys.take("share", SHARE)
            return Few(share, keys.get("graph", word_of(Walked), Walked.KEPT))
        case SettingKind.BALANCED:
            return Balanced()
        case SettingKind.BIASED:
            return Biased(
                keys.take("relation", TEXT),
                keys.get("removed", NUMBER, 0.5),
                keys.get("graph", word_of(Walked), Walked.REDUCED),
                refit=keys.get("refit", NUMBER, None),
            )
        case SettingKind.TIME_SHIFT:
            ends = keys.get("ends", word_of(LateEnds), LateEnds.MASK)
            return TimeShifted(keys.get("latest", DATE, None), ends)
        case SettingKind.RELEASE:
            return Release(keys.take("folder", TEXT), keys.get("background", TEXT, None))
        case SettingKind.FORECAST:
            return Forecast()
        case SettingKind.NONE:
            return Whole()

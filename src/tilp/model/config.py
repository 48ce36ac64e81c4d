"""Configuration of a model: `TILPConfig` for users, `ModelSettings` for the stages of a fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.arrays import Ints
from tilp._utils.params import changed_fields
from tilp._utils.progress import Stages
from tilp.errors import TilpError
from tilp.learning.rule_weights import TrainingSettings
from tilp.parallel import Workers
from tilp.types import MAX_RULES, Effort, Features, Grain, Missing, Part, Preset, Weights, choose
from tilp.walks import MAX_LENGTH, MiningSettings
from tilp.walks.walker import DEFAULT_LIMIT

TEMPORAL_DETAIL = (Grain.STATIC, Grain.PAIRS, Grain.GAP, Grain.ALLEN)
MAX_KEPT = 300
"""Default for the number of rules that a fit keeps for each relation and direction."""

CANDIDATES = 2  # times as many rules are mined as may be kept, for the selection
_MAX_FACTS = {Effort.QUICK: 5_000, Effort.NORMAL: 50_000}  # to learn from; about 20 ms for each
_WALK_LIMIT = {Effort.QUICK: 1_000, Effort.NORMAL: 3_000, Effort.THOROUGH: DEFAULT_LIMIT}


@dataclass(frozen=True, repr=False)
class TILPConfig:
    """Finer choices for `TILP`; most users leave them as they are.

    Args:
        sample: Learn from at most this many facts of each relation (int, default None: as many
            as `effort` allows). Lower it to fit a large graph faster; rare rules are then missed.
        share: Learn from this share of the training facts (float, default 1.0). Walks still use
            all of them. Lower it to see how a model does with few examples.
        walk_limit: Sample the walks from an entity when those of one length take more steps than
            this (int, default None: by `effort`). Lower it if a few entities with very many
            facts make a fit slow.
        walk_length: Most steps of the random walks of `features="full"` (int, 1 to 5, default 5).
        without: Parts of the temporal features to leave out (names of `tilp.types.Part`, default
            none), to measure what each of them adds.
        select: Keep few, distinct rules (bool, default True), not all as in the paper.
        distinct: Let walks visit no entity twice (bool, default True), not only no fact.
        held_out: Use at most this many facts of the valid split to decide when to stop (int,
            default 5,000). Without a valid split, a tenth of train decides.
        training: Gradient steps, learning rates and so on; `weights` and `seed` are of `TILP`.

    Example:
        >>> TILPConfig(sample=200, without="soft-walks")
        TILPConfig(sample=200, without=('soft-walks',))
    """

    sample: int | None = None
    share: float = 1.0
    walk_limit: int | None = None
    walk_length: int = MAX_LENGTH
    without: Part | str | Iterable[Part | str] = ()
    select: bool = True
    distinct: bool = True
    held_out: int = 5_000
    training: TrainingSettings = field(default_factory=TrainingSettings)

    def __post_init__(self) -> None:
        parts = [self.without] if isinstance(self.without, str) else self.without
        chosen = tuple(sorted({choose(Part, part, "without") for part in parts}))
        object.__setattr__(self, "without", chosen)
        check_length("walk_length", self.walk_length)

    __repr__ = changed_fields


def check_length(name: str, length: int) -> None:
    """Raise an error for a length that walks cannot have."""
    if not 1 <= length <= MAX_LENGTH:
        raise TilpError(f"{name} is {length}; it can be 1 to {MAX_LENGTH}")


DEFAULT_CONFIG = TILPConfig()

PRESETS: Mapping[Preset, Mapping[str, Any]] = {
    Preset.DEFAULT: {},
    # Eq. 15 as it stands: walks of a rule count alike, and so do their ends.
    Preset.PAPER: {
        "max_length": 5,
        "temporal_detail": (Grain.PAIRS,),
        "rule_weights": Weights.ATTENTION,
        "features": Features.PAPER,
        "missing": Missing.DURATION,
        "max_rules": MAX_RULES,
        "effort": Effort.THOROUGH,
        "config": TILPConfig(
            select=False,
            distinct=False,
            training=TrainingSettings(walks_power=0.0, ranking_power=0.0, known_factors=False),
        ),
    },
}
"""Arguments of `TILP` that go together."""


def tilp_arguments(preset: Preset | str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `TILP` for flat options; see `TILP.from_options`."""
    given = {name: value for name, value in options.items() if value is not None}
    arguments = {**PRESETS[choose(Preset, preset, "preset")]}
    config = given.pop("config", arguments.get("config", DEFAULT_CONFIG))
    finer = {
        field.name: given.pop(field.name) for field in fields(TILPConfig) if field.name in given
    }
    return {**arguments, **given, "config": replace(config, **finer)}


@dataclass(frozen=True)
class ModelSettings:
    """All that decides a model, by stage: the same settings and data give the same model."""

    mining: MiningSettings = field(
        default_factory=lambda: MiningSettings(
            grains=TEMPORAL_DETAIL, top=CANDIDATES * MAX_KEPT, limit=_WALK_LIMIT[Effort.NORMAL]
        )
    )
    training: TrainingSettings = field(default_factory=TrainingSettings)
    features: Features = Features.FULL
    without: tuple[Part, ...] = ()  # parts of the features to leave out
    walk_length: int = MAX_LENGTH  # steps of random walk scores at most
    missing: Missing = Missing.POINT
    select: bool = True  # keep few, distinct rules
    max_rules: int = MAX_KEPT  # of each directed relation to keep, if they are selected
    held_out: int = 5_000  # facts that decide when to stop, at most
    seed: int = 0
    time_model: bool = True  # learn when facts start and end, too

    def __post_init__(self) -> None:
        object.__setattr__(self, "mining", replace(self.mining, seed=self.seed))
        object.__setattr__(self, "training", replace(self.training, seed=self.seed))

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain values, with the keys of saved models."""
        return _renamed(asdict(self), _SAVED_KEYS)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ModelSettings:
        """Read what `to_json` returned."""
        try:
            values = _renamed(values, {old: new for new, old in _SAVED_KEYS.items()})
            mining, training = dict(values["mining"]), dict(values["training"])
            if "distinct" not in mining:
                raise TilpError("the model is of tilp 0.1: fit it again with this version")
            values = {"time_model": False, **values}
            if set(values) != {option.name for option in fields(cls)}:
                raise ValueError(f"keys {', '.join(sorted(values))}")
            mining["grains"] = tuple(map(Grain, mining["grains"]))
            edges = mining["gap_edges"]
            mining["gap_edges"] = None if edges is None else tuple(edges)
            training["weights"] = Weights(training["weights"])
            values |= {
                "mining": MiningSettings(**mining),
                "training": TrainingSettings(**training),
                "features": Features(values["features"]),
                "without": tuple(map(Part, values["without"])),
                "missing": Missing(values["missing"]),
            }
            return cls(**values)
        except (KeyError, TypeError, ValueError) as failure:
            raise TilpError(f"settings of another tilp, or damaged ones ({failure})") from failure


_SAVED_KEYS = {"walk_length": "soft_length", "l2": "pull"}


def _renamed(values: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {
        names.get(name, name): _renamed(value, names) if isinstance(value, dict) else value
        for name, value in values.items()
    }


def resolve_effort(
    effort: Effort, config: TILPConfig, relation_sizes: Ints
) -> tuple[int | None, int]:
    """Return the facts of each relation to learn from at most, and the limit of walks."""
    limit = _WALK_LIMIT[effort] if config.walk_limit is None else config.walk_limit
    most = _MAX_FACTS.get(effort)
    if config.sample is not None or most is None or relation_sizes.sum() <= most:
        return config.sample, limit
    sizes = np.sort(relation_sizes)
    left = len(sizes) - np.arange(len(sizes))
    # If the relation at an index and all larger ones are cut to its size, this many facts remain.
    facts = np.cumsum(sizes) - sizes + sizes * left
    cut = int(np.searchsorted(facts, most, side="right"))
    return max(1, int((most - sizes[:cut].sum()) // left[cut])), limit


def find_effort(
    mining: MiningSettings, relation_sizes: Ints
) -> tuple[Effort, int | None, int | None]:
    """Return an effort, a sample and a limit of walks that give the settings of a fitted model."""
    for sample in (None, mining.sample):
        for effort in (Effort.NORMAL, Effort.QUICK, Effort.THOROUGH):
            resolved = resolve_effort(effort, TILPConfig(sample=sample), relation_sizes)
            if resolved == (mining.sample, mining.limit):
                return effort, sample, None
    return Effort.NORMAL, mining.sample, mining.limit


@dataclass(frozen=True)
class FitContext:
    """Settings, workers, folder and progress of a fit, for every stage."""

    settings: ModelSettings
    workers: Workers
    folder: Path | None = None  # holds checkpoints, from which a stopped fit resumes
    stages: Stages = field(default_factory=Stages)

    def path(self, name: str) -> Path:
        """Return the path of a checkpoint."""
        if self.folder is None:
            raise ValueError("a fit needs a folder for its checkpoints")
        return self.folder / name

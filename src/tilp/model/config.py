"""Choices that go together, by name."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from tilp.errors import TilpError
from tilp.learning.rule_weights import TrainingSettings
from tilp.types import Features, Grain, Missing, Part, Preset, Weights
from tilp.walks import MiningSettings

DEFAULT_GRAINS = (Grain.PAIRS, Grain.GAP, Grain.ALLEN)


@dataclass(frozen=True)
class Choices:
    """What is chosen where nothing is said.

    Attributes:
        max_length: of rules.
        grains: how finely rules speak of time.
        weights: what a rule's weight is made of.
        features: which temporal features join the rules.
        missing: what unknown ends are taken for.
        training: finer choices for the weights.
    """

    max_length: int = 3
    grains: tuple[Grain, ...] = DEFAULT_GRAINS
    weights: Weights = Weights.FREE
    features: Features = Features.FULL
    missing: Missing = Missing.POINT
    training: TrainingSettings = field(default_factory=TrainingSettings)


PRESETS = {
    Preset.DEFAULT: Choices(),
    # Eq. 15 as it stands: walks of a rule count alike, and so do their ends.
    Preset.PAPER: Choices(
        max_length=5,
        grains=(Grain.PAIRS,),
        weights=Weights.ATTENTION,
        features=Features.PAPER,
        missing=Missing.DURATION,
        training=TrainingSettings(walks_power=0.0, choose_power=False, known_factors=False),
    ),
}


_SAVED_NAMES = {"l2": "pull"}
"""Names of training settings in files, where they are not those of the attributes."""


@dataclass(frozen=True)
class ModelSettings:
    """The same settings and the same data make the same model.

    Attributes:
        mining: which rules are found.
        training: how they are weighted.
        features: which temporal features are used.
        without: parts of them that are left out.
        soft_length: steps of soft walks at the most.
        missing: what unknown ends of facts and queries are taken for; `mining` follows it.
        held_out: facts of valid that are asked at the most to choose by; of train where there is
            no valid, a tenth of it.
        seed: for everything that is drawn.
    """

    mining: MiningSettings = field(default_factory=lambda: MiningSettings(grains=DEFAULT_GRAINS))
    training: TrainingSettings = field(default_factory=TrainingSettings)
    features: Features = Features.FULL
    without: tuple[Part, ...] = ()
    soft_length: int = 5
    missing: Missing = Missing.POINT
    held_out: int = 5_000
    seed: int = 0

    def __post_init__(self) -> None:
        every = self.missing is Missing.UNKNOWN
        object.__setattr__(self, "mining", replace(self.mining, every_reading=every))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        values = asdict(self)
        training = values["training"].items()
        values["training"] = {_SAVED_NAMES.get(name, name): value for name, value in training}
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> ModelSettings:
        """From what `to_json` gave.

        Raises:
            TilpError: values that are of something else.
        """
        try:
            mining, training = dict(values["mining"]), dict(values["training"])
            mining["grains"] = tuple(Grain(grain) for grain in mining["grains"])
            _refuse_removed(training)
            for name, saved in _SAVED_NAMES.items():
                training[name] = training.pop(saved)
            training["weights"] = Weights(training["weights"])
            rest = {name: values[name] for name in ("soft_length", "held_out", "seed")}
            known = {one.name for one in fields(cls)}
            if set(values) != known:
                raise ValueError(f"settings are {', '.join(sorted(known))}")
            return cls(
                mining=MiningSettings(**mining),
                training=TrainingSettings(**training),
                features=Features(values["features"]),
                without=tuple(Part(part) for part in values["without"]),
                missing=Missing(values["missing"]),
                **rest,
            )
        except (KeyError, TypeError, ValueError) as failure:
            raise TilpError(f"settings of another tilp, or damaged ones ({failure})") from failure


def _refuse_removed(training: dict[str, Any]) -> None:
    """Refuse what 0.1 had and 0.2 has not; the cell that is left is no setting any more."""
    if training["weights"] == "hybrid":
        raise TilpError("hybrid weights were removed in 0.2: fit the model again with others")
    cell = training.pop("cell", "lstm")
    if cell != "lstm":
        raise TilpError(f"the cell {cell!r} was removed in 0.2: fit the model again without it")

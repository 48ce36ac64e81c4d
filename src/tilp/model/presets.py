"""Choices that go together, by name."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilp.attention.training import TrainingSettings
from tilp.choices import Features, Grain, Missing, Preset, Weights

__all__ = ["DEFAULT_GRAINS", "PRESETS", "Choices"]

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

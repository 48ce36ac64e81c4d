"""`StageCost`: what one stage of a job takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["StageCost"]


@dataclass(frozen=True)
class StageCost:
    """Predicted work, time and memory of one stage.

    Attributes:
        name: of the stage.
        amount: how much there is to do.
        unit: of what.
        cpu: seconds of one core, in all.
        serial: of these, what one worker does alone.
        longest: of the rest, the largest part that is not divided.
        peak: bytes that it takes at the most, beside what there was before the first stage.
    """

    name: str
    amount: float
    unit: str
    cpu: float
    serial: float = 0.0
    longest: float = 0.0
    peak: float = 0.0

    def seconds(self, workers: int = 1) -> float:
        """What it takes with so many cores of its own.

        >>> StageCost("x", 1, "y", cpu=10.0, serial=2.0, longest=3.0).seconds(4)
        5.0
        """
        return self.serial + max((self.cpu - self.serial) / workers, self.longest)

    def to_json(self, workers: int) -> dict[str, Any]:
        """As plain values, with the seconds of so many workers."""
        return {**asdict(self), "seconds": self.seconds(workers)}

"""`TrainingState`: where training stands, and the file it can go on from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tilp._utils.files import read_arrays, write_arrays
from tilp.errors import TilpError


@dataclass
class LossCurve:
    """The mean loss of training queries before each step, and that of held-out ones after some."""

    train: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    held_out_step: list[int] = field(default_factory=list)


@dataclass
class TrainingState:
    """Everything that the next step depends on.

    Attributes:
        values: the parameters.
        optimiser: the optimiser's own state.
        best: the parameters with the least loss on held-out queries.
        best_loss: that loss.
        best_step: the step after which they were measured.
        step: how many steps were taken.
        curve: of the loss so far.
    """

    values: Any
    optimiser: Any
    best: Any
    best_loss: float = float("inf")
    best_step: int = 0
    step: int = 0
    curve: LossCurve = field(default_factory=LossCurve)

    def measure(self, loss: float) -> None:
        """Take note of the loss on held-out queries."""
        self.curve.held_out.append(loss)
        self.curve.held_out_step.append(self.step)
        if loss < self.best_loss:
            self.best, self.best_loss, self.best_step = self.values, loss, self.step

    def write(self, path: Path) -> None:
        """Put the state into a file, whole or not at all."""
        arrays: dict[str, Any] = {
            f"array{n}": np.asarray(one) for n, one in enumerate(self._leaves())
        }
        write_arrays(
            path,
            {
                "counts": np.array([self.step, self.best_step]),
                "best_loss": np.array(self.best_loss),
                "train": np.array(self.curve.train),
                "held_out": np.array(self.curve.held_out),
                "held_out_step": np.array(self.curve.held_out_step, np.int64),
                **arrays,
            },
        )

    def read(self, path: Path) -> None:
        """Go on from a file that `write` left, of a state of the same shape.

        Raises:
            TilpError: the file is of something else.
        """
        held = read_arrays(path)
        try:
            leaves = [held[f"array{n}"] for n in range(len(self._leaves()))]
            shapes = [np.shape(one) for one in self._leaves()]
            if [one.shape for one in leaves] != shapes:
                raise ValueError
            self.step, self.best_step = (int(number) for number in held["counts"])
            self.best_loss = float(held["best_loss"])
            self.curve = LossCurve(
                held["train"].tolist(), held["held_out"].tolist(), held["held_out_step"].tolist()
            )
        except (ValueError, KeyError):
            raise TilpError(f"{path} cannot be read; remove it to begin training anew") from None
        structure = jax.tree.structure((self.values, self.optimiser, self.best))
        arrays = [jax.numpy.asarray(one) for one in leaves]
        self.values, self.optimiser, self.best = jax.tree.unflatten(structure, arrays)

    def _leaves(self) -> list[Any]:
        return jax.tree.leaves((self.values, self.optimiser, self.best))

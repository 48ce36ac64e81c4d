"""Adam with early stopping, and the checkpoint that training continues from."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tilp._utils.arrays import Floats
from tilp._utils.files import read_arrays, write_arrays
from tilp.errors import TilpError
from tilp.parallel import Workers

N_PARTS = 16  # of the queries; does not depend on the number of threads
_HELD_OUT_EVERY = 5  # steps
_MOMENTUM = 0.9

_log = logging.getLogger(__name__)


def map_arrays(function: Callable[..., Any], *trees: Any) -> Any:
    """Apply a function to the arrays that stand in the same place of nested dicts and lists."""
    first = trees[0]
    if isinstance(first, dict):
        return {name: map_arrays(function, *(tree[name] for tree in trees)) for name in first}
    if isinstance(first, list):
        return [map_arrays(function, *parts) for parts in zip(*trees, strict=True)]
    return function(*trees)


@dataclass(frozen=True)
class Adam:
    """Adam, with learning rates that decay to 0 along half a cosine."""

    rates: dict[str, float]  # by parameter
    steps: int  # after which the rates are 0
    decay: float = 0.999  # of the mean squared gradient
    epsilon: float = 1e-8  # added to its root

    def update(self, values: Any, gradient: Any, moments: list[Any], step: int) -> tuple[Any, Any]:
        """Return parameters after a step, and the means of gradients and of their squares."""
        done = 0.5 * (1.0 + np.cos(np.pi * step / self.steps))
        mean_share, square_share = 1.0 - _MOMENTUM ** (step + 1), 1.0 - self.decay ** (step + 1)

        def average(share: float, power: int) -> Callable[[Any, Any], Any]:
            return lambda old, new: (
                share * old + (1.0 - share) * np.asarray(new, old.dtype) ** power
            )

        mean = map_arrays(average(_MOMENTUM, 1), moments[0], gradient)
        square = map_arrays(average(self.decay, 2), moments[1], gradient)

        def move(rate: float) -> Callable[[Any, Any, Any], Any]:
            def moved(value: Any, mean: Any, square: Any) -> Any:
                root = np.sqrt(square / square_share) + self.epsilon
                return value - rate * (mean / mean_share) / root

            return moved

        after = {
            name: map_arrays(move(done * self.rates[name]), value, mean[name], square[name])
            for name, value in values.items()
        }
        return after, [mean, square]


@dataclass
class LossCurve:
    """Mean loss of training queries before each step, and of held-out queries after some."""

    train: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    held_out_step: list[int] = field(default_factory=list)


@dataclass
class TrainingState:
    """Everything that the next step depends on."""

    values: Any  # the parameters
    moments: list[Any]  # means of gradients and of their squares
    best: Any  # parameters with the least loss on held-out queries
    best_loss: float = float("inf")  # that loss
    best_step: int = 0  # step after which it was measured
    step: int = 0  # steps taken
    curve: LossCurve = field(default_factory=LossCurve)  # losses so far

    def write(self, path: Path) -> None:
        """Write the state to a file, whole or not at all."""
        write_arrays(
            path,
            {
                "counts": np.array([self.step, self.best_step]),
                "best_loss": np.array(self.best_loss),
                "train": np.array(self.curve.train),
                "held_out": np.array(self.curve.held_out),
                "held_out_step": np.array(self.curve.held_out_step, np.int64),
                **{f"array{i}": np.asarray(leaf) for i, leaf in enumerate(self._leaves())},
            },
        )

    def read(self, path: Path) -> None:
        """Continue from a checkpoint of a state of the same shape."""
        arrays = read_arrays(path)
        try:
            leaves = [arrays[f"array{i}"] for i in range(len(self._leaves()))]
            if [leaf.shape for leaf in leaves] != [np.shape(leaf) for leaf in self._leaves()]:
                raise ValueError
            self.step, self.best_step = (int(count) for count in arrays["counts"])
            self.best_loss = float(arrays["best_loss"])
            names = ("train", "held_out", "held_out_step")
            self.curve = LossCurve(*(arrays[name].tolist() for name in names))
        except (ValueError, KeyError):
            raise TilpError(f"{path} cannot be read; remove it to begin training anew") from None
        restored = iter(leaves)
        trees = [self.values, self.moments, self.best]
        self.values, self.moments, self.best = map_arrays(lambda _: next(restored), trees)

    def _leaves(self) -> list[Any]:
        leaves: list[Any] = []
        map_arrays(leaves.append, [self.values, self.moments, self.best])
        return leaves


def mean_loss(
    part_loss: Callable[[slice, list[Floats]], float], parts: list[slice],
    shapes: Iterable[tuple[int, ...]], n_queries: int, workers: Workers,
) -> tuple[float, list[Floats]]:  # fmt: skip
    """Return the mean loss and its gradient; `part_loss` adds a part's gradient to arrays."""
    gradient = [np.zeros(shape) for shape in shapes]

    def run(part: slice) -> tuple[float, list[Floats]]:
        slopes = [np.zeros_like(array) for array in gradient]
        return part_loss(part, slopes), slopes

    total = 0.0
    for loss, slopes in workers.map_in_threads(run, parts):
        total += loss
        for whole, part in zip(gradient, slopes, strict=True):
            whole += part
    n_queries = max(n_queries, 1)
    return total / n_queries, [array / n_queries for array in gradient]


def run_training(
    values: dict[str, Any], optimiser: Adam,
    gradient: Callable[[dict[str, Any]], tuple[float, dict[str, Any]]],
    held_out_loss: Callable[[dict[str, Any]], float], *, steps: int, patience: int,
    checkpoint: Path | None = None, progress: Callable[[float], None] | None = None,
) -> TrainingState:  # fmt: skip
    """Take gradient steps until held-out queries gain nothing for `patience` steps.

    `gradient` returns loss and gradient for parameters. Training continues from the file
    `checkpoint` if it exists, and writes its state there.
    """
    values = map_arrays(np.asarray, values)
    state = TrainingState(values, [map_arrays(np.zeros_like, values)] * 2, values)
    if checkpoint is not None and checkpoint.is_file():
        state.read(checkpoint)
        _log.info("training continues after step %d", state.step)
    patience = max(patience, _HELD_OUT_EVERY)
    while state.step < steps and state.step - state.best_step < patience:
        loss, slopes = gradient(state.values)
        state.values, state.moments = optimiser.update(
            state.values, slopes, state.moments, state.step
        )
        state.step += 1
        state.curve.train.append(loss)
        if state.step % _HELD_OUT_EVERY == 0 or state.step == steps:
            held_out = held_out_loss(state.values)
            state.curve.held_out.append(held_out)
            state.curve.held_out_step.append(state.step)
            if held_out < state.best_loss:
                state.best, state.best_loss, state.best_step = state.values, held_out, state.step
            if checkpoint is not None:
                state.write(checkpoint)
        if progress is not None:
            progress(state.step / steps)
    return state

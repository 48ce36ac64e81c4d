"""`AttentionNet`: attention vectors from a recurrent net, and the rule scores they give (eq. 8-13).

For every directed target predicate and rule length the net gives distributions over predicates
at each step, over words between each interval and the query's, over words between pairs of body
intervals, and over lengths; the score of a rule is the product of what these give its parts.

All distributions stand in one long vector of logarithms, in which a rule is a set of places: its
log score is the sum of what stands there. Where a rule set has several temporal forms, there is
a set of temporal distributions for each, and a distribution over the forms; with one form it is
exactly eq. 8-13.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.walks import RuleEncoding

Parameters = dict[str, Any]
"""Arrays by name, nested."""

_GATES = 4  # of the LSTM


@dataclass(frozen=True)
class AttentionNet:
    """The net of one set of rules.

    Attributes:
        encoding: what rules are made of.
        dimension: of embeddings and states, d.
    """

    encoding: RuleEncoding
    dimension: int = 32

    def parameters(self, seed: int) -> Parameters:
        """Parameters to begin with: small normal numbers, zero where they are added."""
        chance = np.random.default_rng([seed, 8])
        size, length = self.dimension, self.encoding.max_length
        n_heads, n_symbols = 2 * len(self.encoding.relations), self.encoding.symbols.count

        def matrix(rows: int, columns: int) -> NDArray[np.float64]:
            return chance.normal(0.0, columns**-0.5, (rows, columns))

        parameters: Parameters = {
            "embedding": chance.normal(0.0, 1.0, (length + 1, n_heads, size)),
            "update": {
                "input": matrix(_GATES * size, size),
                "state": matrix(_GATES * size, size),
                "bias": np.zeros(_GATES * size),
            },
            "predicate": _linear(matrix(n_symbols, size)),
            "length": _linear(matrix(length, size)),
            "form": _linear(matrix(len(self.encoding.forms), size)),
            "with_query": [
                _linear(matrix(len(form.query_relations), size)) for form in self.encoding.forms
            ],
            "between": [
                _linear(matrix(len(form.body_relations), 2 * size)) for form in self.encoding.forms
            ],
        }
        arrays: Parameters = jax.tree.map(jnp.asarray, parameters)
        return arrays

    def carried_over(
        self, arrays: Mapping[str, NDArray[Any]], heads: NDArray[np.int64], seed: int
    ) -> Parameters:
        """The parameters of a net of other relations, for this one; new ones begin as they do.

        Args:
            arrays: what `flat` gave of them.
            heads: for each head, which here is what bodies are made of too, the other net's; -1:
                none.
            seed: for what is new.

        Raises:
            TilpError: an array is missing, or of another shape.
        """
        known = np.flatnonzero(heads >= 0)

        def one(path: Any, fresh: jax.Array) -> jax.Array:
            name = _name(path)
            if name not in arrays:
                raise TilpError(f"the attention net lacks {name}; fit the model anew")
            held = arrays[name]
            if name == "embedding":
                held = np.asarray(fresh).copy()
                held[:, known] = arrays[name][:, heads[known]]
            elif name.startswith("predicate"):
                held = np.asarray(fresh).copy()
                held[known] = arrays[name][heads[known]]
            if held.shape != fresh.shape:
                raise TilpError(f"{name} of the attention net has another shape; fit anew")
            return jnp.asarray(held)

        carried: Parameters = jax.tree_util.tree_map_with_path(one, self.parameters(seed))
        return carried

    def log_scores(self, parameters: Parameters, places: NDArray[np.int32]) -> jax.Array:
        """The logarithm of the score of each rule (eq. 13), from its places."""
        parts: jax.Array = self.log_attention(parameters)[places]
        return parts.sum(axis=1)

    def log_attention(self, parameters: Parameters) -> jax.Array:
        """All attention vectors, as logarithms, in one vector that ends with a zero."""
        vector: jax.Array = _log_attention(parameters, self._layout())
        return vector

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Where the parts of each rule stand in the attention vectors; the end where it has none.

        Args:
            rows: rules as rows of the encoding.
        """
        layout = self._layout()
        parts = _Places(layout, rows[:, 2])
        length = rows[:, 1]
        parts.add(("length",), length - 1)
        parts.add(("form",), rows[:, 0])
        for size in range(1, self.encoding.max_length + 1):
            of_size = length == size
            symbols = self.encoding.symbols_of(rows, size)
            for place in range(size):
                parts.add(("predicate", size, place), symbols[place], of_size)
            for number, form in enumerate(self.encoding.forms):
                chosen = of_size & (rows[:, 0] == number)
                for (first, second), word in form.relation_codes(
                    size, rows[:, 4], rows[:, 5]
                ).items():
                    name = "with_query" if second == size + 1 else "between"
                    key = (name, number, size, first - 1, second - 1)
                    parts.add(key[:4] if name == "with_query" else key, word, chosen)
        return parts.table()

    def _layout(self) -> _Layout:
        """What stands where in the attention vectors."""
        encoding = self.encoding
        keys: list[tuple[Any, ...]] = [("length",), ("form",)]
        widths = [encoding.max_length, len(encoding.forms)]
        for size in range(1, encoding.max_length + 1):
            for place in range(size):
                keys.append(("predicate", size, place))
                widths.append(encoding.symbols.count)
            for number, form in enumerate(encoding.forms):
                for first, _ in form.query_pairs(size):
                    keys.append(("with_query", number, size, first - 1))
                    widths.append(len(form.query_relations))
                for first, second in form.body_pairs(size):
                    keys.append(("between", number, size, first - 1, second - 1))
                    widths.append(len(form.body_relations))
        return _Layout(tuple(keys), tuple(widths), 2 * len(encoding.relations))


@dataclass(frozen=True)
class _Layout:
    """The attention vectors in order: each is a block of heads times its width."""

    keys: tuple[tuple[Any, ...], ...]
    widths: tuple[int, ...]
    n_heads: int

    def begin(self, key: tuple[Any, ...]) -> int:
        return self.n_heads * sum(self.widths[: self.keys.index(key)])

    @property
    def size(self) -> int:
        return self.n_heads * sum(self.widths)


class _Places:
    """The places of rules, part by part."""

    def __init__(self, layout: _Layout, head: NDArray[np.int64]) -> None:
        self._layout = layout
        self._head = head
        self._columns: list[NDArray[np.int32]] = []

    def add(
        self,
        key: tuple[Any, ...],
        word: NDArray[np.int64],
        chosen: NDArray[np.bool_] | None = None,
    ) -> None:
        """A part of the chosen rules: which of an attention vector's entries is theirs."""
        width = self._layout.widths[self._layout.keys.index(key)]
        place = self._layout.begin(key) + self._head * width + word
        if chosen is not None:
            place = np.where(chosen, place, self._layout.size)
        self._columns.append(place.astype(np.int32))

    def table(self) -> NDArray[np.int32]:
        """All of them, a row a rule, without columns that are empty for every rule."""
        table = np.sort(np.stack(self._columns, axis=1), axis=1)
        used = (table < self._layout.size).any(axis=0)
        return table[:, used]


def flat(parameters: Parameters) -> dict[str, NDArray[Any]]:
    """Parameters as arrays by name, for a file."""
    leaves = jax.tree_util.tree_leaves_with_path(parameters)
    return {_name(path): np.asarray(one) for path, one in leaves}


def _name(path: Any) -> str:
    return ".".join(str(getattr(key, "key", getattr(key, "idx", None))) for key in path)


def _linear(weight: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {"weight": weight, "bias": np.zeros(len(weight))}


def _log_softmax(linear: Parameters, state: jax.Array) -> jax.Array:
    return jax.nn.log_softmax(state @ linear["weight"].T + linear["bias"])


@partial(jax.jit, static_argnums=(1,))
def _log_attention(parameters: Parameters, layout: _Layout) -> jax.Array:
    states: dict[int, list[jax.Array]] = {}
    rows = []
    for key in layout.keys:
        match key:
            case ("length" | "form" as name,):
                rows.append(_log_softmax(parameters[name], parameters["embedding"][0]))
            case ("predicate", size, place):
                if size not in states:
                    states[size] = _states(parameters, size)
                rows.append(_log_softmax(parameters["predicate"], states[size][place]))
            case ("with_query", form, size, place):
                rows.append(_log_softmax(parameters["with_query"][form], states[size][place]))
            case ("between", form, size, first, second):
                both = jnp.concatenate([states[size][first], states[size][second]], axis=1)
                rows.append(_log_softmax(parameters["between"][form], both))
    return jnp.concatenate([*(row.reshape(-1) for row in rows), jnp.zeros(1)])


def _states(parameters: Parameters, size: int) -> list[jax.Array]:
    """The states h_1 to h_l of rules of one length, for every head (eq. 8)."""
    given = parameters["embedding"][size]
    state = memory = jnp.zeros_like(given)
    states = []
    for _ in range(size):
        state, memory = _update(parameters["update"], given, state, memory)
        states.append(state)
    return states


def _update(
    weights: Parameters, given: jax.Array, state: jax.Array, memory: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One step of the LSTM; `memory` is its own state."""
    gates = given @ weights["input"].T + weights["bias"] + state @ weights["state"].T
    enter, forget, new, leave = jnp.split(gates, 4, axis=1)
    memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jax.nn.sigmoid(leave) * jnp.tanh(memory), memory

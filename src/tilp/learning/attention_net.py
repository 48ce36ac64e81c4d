"""`AttentionNet`: attention vectors from a recurrent net, and the scores of rules (eq. 8-13).

For every directed relation and rule length the net gives distributions over relations at each
step, over temporal relations between each interval and the query's, over temporal relations
between pairs of body intervals, and over lengths. The score of a rule is the product of the
probabilities of its parts.

All distributions are in one long vector of logarithms. A rule is a set of indices in it: its log
score is the sum of the values there. If a rule set has several temporal forms, each has temporal
distributions of its own, and there is a distribution over forms; with one form the scores are
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

from tilp._utils.arrays import Floats, Ids, Indices
from tilp.errors import TilpError
from tilp.walks import RuleEncoding

Parameters = dict[str, Any]  # arrays by name, nested
_N_GATES = 4  # of the LSTM


@dataclass(frozen=True)
class AttentionNet:
    """The net for a set of rules."""

    encoding: RuleEncoding  # encoding of the rules
    dimension: int = 32  # size of embeddings and states, d

    def initial_parameters(self, seed: int) -> Parameters:
        """Draw small normal weights and embeddings; biases are zero."""
        generator = np.random.default_rng([seed, 8])
        size, length = self.dimension, self.encoding.max_length
        n_directed = self.encoding.n_directed
        forms = self.encoding.forms

        def matrix(rows: int, columns: int) -> Floats:
            return generator.normal(0.0, columns**-0.5, (rows, columns))

        def linear(rows: int, columns: int) -> dict[str, Floats]:
            return {"weight": matrix(rows, columns), "bias": np.zeros(rows)}

        parameters: Parameters = {
            "embedding": generator.normal(0.0, 1.0, (length + 1, n_directed, size)),
            "update": {
                "input": matrix(_N_GATES * size, size),
                "state": matrix(_N_GATES * size, size),
                "bias": np.zeros(_N_GATES * size),
            },
            "predicate": linear(n_directed, size),
            "length": linear(length, size),
            "form": linear(len(forms), size),
            "with_query": [linear(len(form.query_relations), size) for form in forms],
            "between": [linear(len(form.body_relations), 2 * size) for form in forms],
        }
        arrays: Parameters = jax.tree.map(jnp.asarray, parameters)
        return arrays

    def transfer_parameters(
        self, arrays: Mapping[str, NDArray[Any]], relations: Indices, seed: int
    ) -> Parameters:
        """Return the parameters of a net of other relations, for this one."""
        known = np.flatnonzero(relations >= 0)

        def transfer(path: Any, initial: jax.Array) -> jax.Array:
            name = _name(path)
            if name not in arrays:
                raise TilpError(f"the attention net lacks {name}; fit the model again")
            values = arrays[name]
            if name == "embedding":
                values = np.asarray(initial).copy()
                values[:, known] = arrays[name][:, relations[known]]
            elif name.startswith("predicate"):
                values = np.asarray(initial).copy()
                values[known] = arrays[name][relations[known]]
            if values.shape != initial.shape:
                raise TilpError(f"{name} of the attention net has another shape; fit again")
            return jnp.asarray(values)

        initial = self.initial_parameters(seed)
        parameters: Parameters = jax.tree_util.tree_map_with_path(transfer, initial)
        return parameters

    def log_scores(self, parameters: Parameters, indices: Ids) -> jax.Array:
        """Return the log score of each rule (eq. 13), from the indices of its parts."""
        parts: jax.Array = self.log_attention(parameters)[indices]
        return parts.sum(axis=1)

    def gradient(self, parameters: Parameters, indices: Ids, slopes: Floats) -> Parameters:
        """Return the gradient for the parameters, given that for the log score of each rule."""
        _, vjp = jax.vjp(lambda values: self.log_scores(values, indices), parameters)
        gradient: Parameters = vjp(slopes.astype(np.float32))[0]
        return gradient

    def log_attention(self, parameters: Parameters) -> jax.Array:
        """Return all attention vectors, as logarithms, in one vector that ends with a zero."""
        vector: jax.Array = _log_attention(parameters, tuple(self._widths()))
        return vector

    def part_indices(self, rows: Indices) -> Ids:
        """Return indices of each rule's parts in the attention vectors; the last for no part."""
        form_of_rule, length, relation, _, digits, code = rows.T
        widths, n_directed = self._widths(), 2 * len(self.encoding.relations)
        begin, end = 0, n_directed * sum(widths.values())
        columns = []
        for key, width in widths.items():
            mask = np.ones(len(rows), np.bool_)
            match key:
                case ("length",):
                    value = length - 1
                case ("form",):
                    value = form_of_rule
                case ("predicate", size, step):
                    value, mask = self.encoding.body_relations(rows, size)[step], length == size
                case (_, form, size, first, second):
                    codes = self.encoding.forms[form].relation_codes(size, digits, code)
                    value = codes[first + 1, second + 1]
                    mask = (length == size) & (form_of_rule == form)
            index = np.where(mask, begin + relation * width + value, end)
            columns.append(index.astype(np.int32))
            begin += n_directed * width
        table = np.sort(np.stack(columns, axis=1), axis=1)
        used = (table < end).any(axis=0)
        return table[:, used]

    def _widths(self) -> dict[tuple[Any, ...], int]:
        """Return the attention vectors in order: each has its width for every directed relation."""
        encoding = self.encoding
        widths: dict[tuple[Any, ...], int] = {
            ("length",): encoding.max_length,
            ("form",): len(encoding.forms),
        }
        for size in range(1, encoding.max_length + 1):
            for step in range(size):
                widths["predicate", size, step] = encoding.n_directed
            for index, form in enumerate(encoding.forms):
                for first, _ in form.query_pairs(size):
                    widths["with_query", index, size, first - 1, size] = len(form.query_relations)
                for first, second in form.body_pairs(size):
                    widths["between", index, size, first - 1, second - 1] = len(form.body_relations)
        return widths


def flatten_parameters(parameters: Parameters) -> dict[str, NDArray[Any]]:
    """Return parameters as arrays by name, for a file."""
    leaves = jax.tree_util.tree_leaves_with_path(parameters)
    return {_name(path): np.asarray(leaf) for path, leaf in leaves}


def _name(path: Any) -> str:
    return ".".join(str(getattr(key, "key", getattr(key, "idx", None))) for key in path)


def _log_softmax(linear: Parameters, state: jax.Array) -> jax.Array:
    return jax.nn.log_softmax(state @ linear["weight"].T + linear["bias"])


@partial(jax.jit, static_argnums=(1,))
def _log_attention(parameters: Parameters, keys: tuple[tuple[Any, ...], ...]) -> jax.Array:
    states: dict[int, list[jax.Array]] = {}
    rows = []
    for key in keys:
        match key:
            case ("length" | "form" as name,):
                rows.append(_log_softmax(parameters[name], parameters["embedding"][0]))
            case ("predicate", size, step):
                if size not in states:
                    states[size] = _states(parameters, size)
                rows.append(_log_softmax(parameters["predicate"], states[size][step]))
            case ("with_query", form, size, step, _):
                rows.append(_log_softmax(parameters["with_query"][form], states[size][step]))
            case ("between", form, size, first, second):
                both = jnp.concatenate([states[size][first], states[size][second]], axis=1)
                rows.append(_log_softmax(parameters["between"][form], both))
    return jnp.concatenate([*(row.reshape(-1) for row in rows), jnp.zeros(1)])


def _states(parameters: Parameters, size: int) -> list[jax.Array]:
    """Return the states h_1 to h_l for rules of one length, for every directed relation (eq. 8)."""
    embedding, weights = parameters["embedding"][size], parameters["update"]
    state = memory = jnp.zeros_like(embedding)
    states = []
    for _ in range(size):
        gates = embedding @ weights["input"].T + weights["bias"] + state @ weights["state"].T
        enter, forget, new, leave = jnp.split(gates, _N_GATES, axis=1)
        memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(enter) * jnp.tanh(new)
        state = jax.nn.sigmoid(leave) * jnp.tanh(memory)
        states.append(state)
    return states

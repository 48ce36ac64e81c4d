"""Weights of the log-linear score of phase two, and how they are learned for one relation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tilp._kernels.likelihood import LogLinearTable, add_log_linear_likelihood
from tilp._utils.arrays import Floats, Ids, Indices
from tilp._utils.files import check_arrays
from tilp.errors import DataError
from tilp.features.candidate_counts import COUNT_FEATURES
from tilp.features.candidate_history import HISTORY_KINDS, n_history_features

RANDOM_WALKS = "random walks"
DENSE_FEATURES = ("rules", RANDOM_WALKS)  # every candidate has a value of each
TERMS = ("rules", "rule evidence", *HISTORY_KINDS, RANDOM_WALKS)
"""Parts of the score that are learned with their own fact left out, then scaled by stacking."""

DEFAULT_MAX_STEPS = 50  # of the optimiser

# Names of the attributes of `LogLinearWeights` in a saved model, in their order.
_SAVED_NAMES = ("columns", "rule", "row_of", "words", "terms", "counts", "bounds", "scale")
_DENSE_L2, _SPARSE_L2 = 0.1, 4.0  # regularisation of the weights of dense and of other features
_MIN_QUERIES = 20
_N_COUNTS = len(COUNT_FEATURES)
_TOLERANCE = 3e-5  # of the relative decrease of the loss
_SCALE_POWER = -0.25  # of the curvature: so scaled, weights take half the steps to learn


@dataclass(frozen=True)
class LogLinearWeights:
    """Weights of a log-linear score; the factors of its terms are already in them."""

    dense: Floats  # weights of `DENSE_FEATURES`, for each directed relation
    rule: Floats  # weight of each rule, for the root of its arriving rate at the candidate
    history_row: Ids  # row in `history` for each directed relation and group of facts; -1 for none
    history: Floats  # weights of history features, row by row
    terms: Floats  # factors that multiplied the learned weights of `TERMS`, by directed relation
    counts: Floats  # weights of `COUNT_FEATURES`, for each directed relation
    distance_bounds: Indices  # bounds of the bins of temporal distances in history features
    time_scale: float  # time scale of random walks

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights as arrays by their names in a saved model."""
        return dict(zip(_SAVED_NAMES, map(np.asarray, vars(self).values()), strict=True))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> LogLinearWeights:
        """Read what `to_arrays` returned."""
        n_directed, n_bounds = (len(arrays.get(name, ())) for name in ("columns", "bounds"))
        if "counts" in arrays and arrays["counts"].shape == (n_directed, _N_COUNTS - 1):
            arrays = {**arrays, "counts": np.pad(arrays["counts"], ((0, 0), (0, 1)))}  # no kinds
        shapes: tuple[tuple[str, tuple[int | None, ...]], ...] = (
            ("f8", (n_directed, len(DENSE_FEATURES))),
            ("f8", (None,)),
            ("i4", (n_directed, len(HISTORY_KINDS) * n_directed)),
            ("f8", (None, n_history_features(n_bounds))),
            ("f8", (n_directed, len(TERMS))),
            ("f8", (n_directed, _N_COUNTS)),
            ("i8", (n_bounds,)),
            ("f8", ()),
        )
        check_arrays(arrays, dict(zip(_SAVED_NAMES, shapes, strict=True)))
        rows, bounds = arrays["row_of"], arrays["bounds"]
        if rows.min(initial=-1) < -1 or rows.max(initial=-1) >= len(arrays["words"]):
            raise DataError("the array row_of has rows that words has not")
        if not n_bounds or bounds[0] < 0 or (np.diff(bounds) <= 0).any():
            raise DataError("the array bounds does not rise")
        saved = (arrays[name] for name in _SAVED_NAMES)
        values: list[Any] = [value if value.ndim else float(value) for value in saved]
        return cls(*values)

    def remap(self, relations: Indices, rules: Indices) -> LogLinearWeights:
        """Return the weights for new relations and rules, given their old ids, -1 if none."""
        n_directed = len(self.dense)
        n_kinds = self.history_row.shape[1] // n_directed
        known = relations >= 0
        groups = np.concatenate(
            [np.where(known, relations + kind * n_directed, -1) for kind in range(n_kinds)]
        )
        rows = self.history_row[np.ix_(relations, groups)]
        return LogLinearWeights(
            np.where(known[:, None], self.dense[relations], np.eye(1, len(DENSE_FEATURES))),
            np.where(rules >= 0, np.append(self.rule, 0.0)[rules], 0.0),
            np.where(known[:, None] & (groups >= 0), rows, np.int32(-1)),
            self.history,
            np.where(known[:, None], self.terms[relations], 1.0),
            np.where(known[:, None], self.counts[relations], 0.0),
            self.distance_bounds,
            self.time_scale,
        )

    def stacked(self, terms: Floats, counts: Floats, rule_relation: Indices) -> LogLinearWeights:
        """Return the weights with their terms multiplied by factors, and weights of counts.

        The weight of kinds stays: the best candidates, which stacking sees, are of the right one.
        """
        rules, evidence, *history, walks = terms.T
        n_relations = self.history_row.shape[1] // len(HISTORY_KINDS)
        scale = np.repeat(np.column_stack(history), n_relations, axis=1)
        used = self.history_row >= 0
        row_scale = np.ones(len(self.history))
        row_scale[self.history_row[used]] = scale[used]
        return replace(
            self,
            dense=self.dense * np.column_stack([rules, walks]),
            rule=self.rule * evidence[rule_relation],
            history=self.history * row_scale[:, None],
            terms=self.terms * terms,
            counts=np.column_stack([counts[:, :-1], self.counts[:, -1]]),
        )


@dataclass(frozen=True)
class RelationWeights:
    """Weights that were learned for one directed relation."""

    dense: Floats  # weights of `DENSE_FEATURES`
    rule: Ids  # rules with a weight
    rule_weight: Floats  # weights of these rules
    history_feature: Ids  # history features with a weight
    history_weight: Floats  # weights of these features


def rules_only() -> RelationWeights:
    """Return weights that leave the score of phase one as it is."""
    ids, weights = np.empty(0, np.int32), np.empty(0)
    return RelationWeights(_initial(0), ids, weights, ids, weights)


def fit_relation_weights(
    table: LogLinearTable, fold: Indices, n_folds: int, max_steps: int = DEFAULT_MAX_STEPS
) -> tuple[RelationWeights, ...]:
    """Learn the weights of one relation by softmax cross-entropy over the sampled candidates.

    Returns the weights learned without each of the folds, and then their mean, which predicts as
    well as weights learned from all queries.
    """
    if len(fold) < _MIN_QUERIES:
        return (rules_only(),) * (n_folds + 1)
    rule, local_rule = _compact_ids(table.rule)
    feature, local_feature = _compact_ids(table.history_feature)
    table = table._replace(rule=local_rule, history_feature=local_feature)
    problem = _Problem(table, len(rule), len(feature), max_steps)
    learned = [problem.learn(np.flatnonzero(fold != index)) for index in range(n_folds)]
    parts = map(problem.split, [*learned, np.mean(learned, axis=0)])
    return tuple(RelationWeights(dense, rule, a, feature, b) for dense, a, b in parts)


def _compact_ids(ids: Ids) -> tuple[Ids, Ids]:
    """Return the distinct ids, and the index of each id among them."""
    # A table of all ids is quicker than a search when there are many.
    seen = np.zeros(int(ids.max()) + 1 if len(ids) else 0, np.bool_)
    seen[ids] = True
    index = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(seen).astype(np.int32), index[ids]


def _initial(n_sparse: int) -> Floats:
    """Return weights that take the score of the rules as it is, and nothing else."""
    return np.concatenate([np.eye(1, len(DENSE_FEATURES))[0], np.zeros(n_sparse)])


class _Problem:
    """The queries of one relation, with ids of rules and history features from 0."""

    def __init__(self, table: LogLinearTable, n_rules: int, n_history: int, max_steps: int) -> None:
        self._table = table
        self._n_rules = n_rules
        self._max_steps = max_steps
        self.initial = _initial(n_rules + n_history)
        is_dense = np.arange(len(self.initial)) < len(DENSE_FEATURES)
        self._l2 = np.where(is_dense, _DENSE_L2, _SPARSE_L2)
        self._scale = (self._l2 + self._curvature()) ** _SCALE_POWER

    def learn(self, queries: Indices) -> Floats:
        """Return the weights that make the answers of some queries likely."""

        def loss(scaled: Floats) -> tuple[float, Floats]:
            distance = self._scale * scaled
            weights, gradient = self.initial + distance, np.zeros_like(distance)
            total = add_log_linear_likelihood(
                self._table, queries, *self.split(weights), *self.split(gradient)
            )
            total += 0.5 * float((self._l2 * distance * distance).sum())
            return total, self._scale * (gradient + self._l2 * distance)

        options = {"maxiter": self._max_steps, "ftol": _TOLERANCE}
        start = np.zeros_like(self.initial)
        result = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        return np.asarray(self.initial + self._scale * result.x, np.float64)

    def _curvature(self) -> Floats:
        """Return the second derivative of the loss by each weight, at the initial weights."""
        table, first = self._table, self._table.offsets[:-1]
        query = np.repeat(np.arange(len(first)), np.diff(table.offsets))
        score = table.columns @ self.initial[: len(DENSE_FEATURES)] + table.log_count
        share = np.exp(score - np.maximum.reduceat(score, first)[query])
        share /= np.add.reduceat(share, first)[query]
        variance = share * (1 - share)
        of_rules = np.repeat(variance, np.diff(table.rule_offsets)) * table.root_rate**2
        of_history = np.repeat(variance, np.diff(table.history_offsets))
        n_history = len(self.initial) - len(DENSE_FEATURES) - self._n_rules
        rules = np.bincount(table.rule, of_rules, self._n_rules)
        history = np.bincount(table.history_feature, of_history, n_history)
        return np.concatenate([variance @ table.columns**2, rules, history])

    def split(self, weights: Floats) -> list[Floats]:
        """Split weights into those of dense features, of rules and of history features."""
        return np.split(weights, [len(DENSE_FEATURES), len(DENSE_FEATURES) + self._n_rules])

"""Weights of the log-linear score of phase two, and how they are learned for one relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tilp._kernels.likelihood import (
    LogLinearTable,
    add_log_linear_likelihood,
    log_linear_scores,
    sum_reciprocal_ranks,
)
from tilp._utils.arrays import Floats, Ids, Indices
from tilp.errors import TilpError
from tilp.graph import TemporalGraph

if TYPE_CHECKING:
    from tilp.features.log_linear_scorer import LogLinearScorer
    from tilp.scoring import RuleScorer

RANDOM_WALKS = "random walks"
DENSE_FEATURES = ("rules", RANDOM_WALKS)  # every candidate has a value of each
DEFAULT_L2 = 2.5  # of the weights of rules and history features, unless chosen otherwise
DEFAULT_MAX_STEPS = 50  # of the optimiser

# Names of the attributes of `LogLinearWeights` in a saved model, in their order.
_SAVED_NAMES = ("columns", "rule", "row_of", "words", "mixing", "bounds", "scale", "pull")
_MIXINGS = (0.0, 0.25, 0.5, 0.75, 1.0)
_DENSE_L2 = 0.1
_OLD_L2 = 10.0  # of models that do not save it
_L2_CHOICES = (10.0, DEFAULT_L2)
_MIN_QUERIES = 20
_TOLERANCE = 3e-5  # of the relative decrease of the loss


@dataclass(frozen=True)
class LogLinearWeights:
    """Weights of a log-linear score; the mixing weight of each relation is already in them."""

    has_distributions: ClassVar[bool] = False  # nothing to fit again when facts change

    dense: Floats  # weights of `DENSE_FEATURES`, for each directed relation
    rule: Floats  # weight of each rule, for the root of its arriving rate at the candidate
    history_row: Ids  # row in `history` for each directed relation and group of facts; -1 for none
    history: Floats  # weights of history features, row by row
    mixing: Floats  # share of what was learned in the weights of each directed relation
    distance_bounds: Indices  # bounds of the bins of temporal distances in history features
    time_scale: float  # time scale of random walks
    l2: Floats  # regularisation of the weights of rules and history features, by directed relation

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights as arrays by their names in a saved model."""
        return dict(zip(_SAVED_NAMES, map(np.asarray, vars(self).values()), strict=True))

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], graph: TemporalGraph | None = None
    ) -> LogLinearWeights:
        """Read what `to_arrays` returned; the graph does not matter."""
        del graph
        if "columns" in arrays:  # older models do not save the regularisation
            arrays = {"pull": np.full(len(arrays["columns"]), _OLD_L2), **arrays}
        missing = [name for name in _SAVED_NAMES if name not in arrays]
        if missing:
            raise TilpError(f"weights of features lack {', '.join(missing)}; fit the model again")
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
            np.where(known, self.mixing[relations], 0.0),
            self.distance_bounds,
            self.time_scale,
            np.where(known, self.l2[relations], DEFAULT_L2),
        )

    def scorer(self, rules: RuleScorer, walk_length: int) -> LogLinearScorer:
        """Return the scorer of rules and features together."""
        from tilp.features.log_linear_scorer import LogLinearScorer

        return LogLinearScorer(rules, self, walk_length)

    def refresh(self, *_: object) -> LogLinearWeights:
        """Return the weights as they are: there are no statistics to fit again."""
        return self


@dataclass(frozen=True)
class RelationWeights:
    """Weights that were learned for one directed relation."""

    dense: Floats  # weights of `DENSE_FEATURES`
    rule: Ids  # rules with a weight
    rule_weight: Floats  # weights of these rules
    history_feature: Ids  # history features with a weight
    history_weight: Floats  # weights of these features
    mixing: float  # how much of what was learned is in the weights
    l2: float = DEFAULT_L2  # regularisation of the weights of rules and history features


def rules_only() -> RelationWeights:
    """Return weights that leave the score of phase one as it is."""
    ids, weights = np.empty(0, np.int32), np.empty(0)
    return RelationWeights(_initial(0), ids, weights, ids, weights, 0.0)


def fit_relation_weights(
    table: LogLinearTable, fold: Indices, *, mix: bool = True, max_steps: int = DEFAULT_MAX_STEPS
) -> RelationWeights:
    """Learn the weights of one relation by softmax cross-entropy over the sampled candidates.

    Regularisation and mixing with the score of phase one are chosen by the MRR in each of the two
    folds of weights learned from the other. Without `mix`, all that was learned is taken.
    """
    if len(fold) < _MIN_QUERIES:
        return rules_only()
    rule, local_rule = _compact_ids(table.rule)
    feature, local_feature = _compact_ids(table.history_feature)
    table = table._replace(rule=local_rule, history_feature=local_feature)
    problem = _Problem(table, len(rule), len(feature), max_steps)
    mixing, l2, first = 1.0, _L2_CHOICES[-1], problem.initial
    if mix:
        judged: dict[float, Floats] = {}
        learned = dict.fromkeys(range(2), problem.initial)
        for choice in _L2_CHOICES:
            judged[choice] = np.zeros(len(_MIXINGS))
            for held_out in learned:
                others = np.flatnonzero(fold != held_out)
                learned[held_out] = problem.learn(others, choice, learned[held_out])
                own = np.flatnonzero(fold == held_out)
                judged[choice] += problem.reciprocal_ranks(own, learned[held_out])
        l2 = max(_L2_CHOICES, key=lambda choice: float(judged[choice].max()))
        mixing = _MIXINGS[int(np.argmax(judged[l2]))]
        first = (learned[0] + learned[1]) / 2
    if mixing == 0:
        return rules_only()
    weights = problem.learn(np.arange(len(fold)), l2, first)
    mixed = problem.initial + mixing * (weights - problem.initial)
    dense, of_rules, of_history = problem.split(mixed)
    return RelationWeights(dense, rule, of_rules, feature, of_history, mixing, l2)


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

    def learn(self, queries: Indices, l2: float, first: Floats) -> Floats:
        """Return the weights that make the answers of some queries likely."""
        penalty = np.where(np.arange(len(self.initial)) < len(DENSE_FEATURES), _DENSE_L2, l2)

        def loss(weights: Floats) -> tuple[float, Floats]:
            gradient = np.zeros_like(weights)
            distance = weights - self.initial
            total = add_log_linear_likelihood(
                self._table, queries, *self.split(weights), *self.split(gradient)
            )
            total += 0.5 * float((penalty * distance * distance).sum())
            return total, gradient + penalty * distance

        options = {"maxiter": self._max_steps, "ftol": _TOLERANCE}
        result = minimize(loss, first, jac=True, method="L-BFGS-B", options=options)
        return np.asarray(result.x, np.float64)

    def reciprocal_ranks(self, queries: Indices, weights: Floats) -> Floats:
        """Return the sum of the reciprocal ranks of some queries' answers, for each mixing."""
        table = self._table
        before, after = (
            log_linear_scores(table, 0, len(table.log_count), *self.split(values))
            for values in (self.initial, weights)
        )
        return sum_reciprocal_ranks(table, queries, before, after, np.array(_MIXINGS))

    def split(self, weights: Floats) -> list[Floats]:
        """Split weights into those of dense features, of rules and of history features."""
        return np.split(weights, [len(DENSE_FEATURES), len(DENSE_FEATURES) + self._n_rules])

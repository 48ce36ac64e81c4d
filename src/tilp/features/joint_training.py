"""Training of the joint weights: each head by itself, drawn to the rules as phase one left them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tilp._kernels.joint_likelihood import JointTable, add_joint_likelihood, joint_scores
from tilp.features.joint import COLUMNS

__all__ = ["HeadWeights", "fit_head", "nothing_learned"]

_MIXINGS = (0.0, 0.25, 0.5, 0.75, 1.0)
_COLUMN_PULL = 0.1
_PULLS = (10.0, 50.0)  # of rules and words to 0, in likelihoods of a query
_FEWEST = 20  # queries that a head is learned from
_STEPS = 50


@dataclass(frozen=True)
class HeadWeights:
    """What was learned for one head.

    Attributes:
        columns: the weights of `COLUMNS`.
        rule: the rules that have a weight; `of_rule` these.
        word: the words that have a weight; `of_word` these.
        mixing: how much of what was learned is in them.
    """

    columns: NDArray[np.float64]
    rule: NDArray[np.int32]
    of_rule: NDArray[np.float64]
    word: NDArray[np.int32]
    of_word: NDArray[np.float64]
    mixing: float


def nothing_learned() -> HeadWeights:
    """The rules as phase one left them."""
    none = np.empty(0, np.int32)
    return _head_weights(_first(len(COLUMNS), 0), none, none, 0.0)


def fit_head(table: JointTable, fold: NDArray[np.int64], *, mix: bool = True) -> HeadWeights:
    """Learn the weights of one head by softmax cross-entropy over the listed candidates.

    How strongly weights are drawn to nothing, and how much of them is mixed with the rules as they
    were, is chosen by the MRR of queries that weights were not learned from.

    Args:
        table: the queries of the head.
        fold: of each query, 0 or 1; weights learned from one are judged by the other.
        mix: whether there is anything to choose; else all that was learned is taken.
    """
    rule, local_rule = _numbered(table.rule)
    word, local_word = _numbered(table.word)
    table = table._replace(rule=local_rule, word=local_word)
    n_columns = table.columns.shape[1]
    first = _first(n_columns, len(rule) + len(word))
    if len(fold) < _FEWEST:
        return nothing_learned()
    mixing, pull = (1.0, _PULLS[0])
    if mix:
        judged = {
            pull: sum(_judge(table, fold, one, pull, len(rule), first) for one in (0, 1))
            for pull in _PULLS
        }
        pull = max(_PULLS, key=lambda one: float(np.max(judged[one])))
        mixing = _MIXINGS[int(np.argmax(judged[pull]))]
    learned = first
    if mixing > 0:
        learned = _learn(table, np.arange(len(fold)), pull, len(rule), first)
    return _head_weights(first + mixing * (learned - first), rule, word, mixing)


def _numbered(ids: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The ids that occur, and for each one its place among them."""
    # A table of all places is quicker than a search when there are many.
    seen = np.zeros(int(ids.max()) + 1 if len(ids) else 0, np.bool_)
    seen[ids] = True
    distinct = np.flatnonzero(seen).astype(np.int32)
    place = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return distinct, place[ids]


def _first(n_columns: int, n_others: int) -> NDArray[np.float64]:
    """The rules as they are, nothing else."""
    return np.concatenate([np.eye(1, n_columns)[0], np.zeros(n_others)])


def _learn(
    table: JointTable,
    queries: NDArray[np.int64],
    pull: float,
    n_rules: int,
    first: NDArray[np.float64],
) -> NDArray[np.float64]:
    n_columns = table.columns.shape[1]
    cut = [n_columns, n_columns + n_rules]
    pulls = np.where(np.arange(len(first)) < n_columns, _COLUMN_PULL, pull)

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        gradient = np.zeros_like(values)
        away = values - first
        total = add_joint_likelihood(
            table, queries, *np.split(values, cut), *np.split(gradient, cut)
        )
        drawn = 0.5 * float((pulls * away * away).sum())
        return total + drawn, gradient + pulls * away

    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return np.asarray(found.x, np.float64)


def _judge(
    table: JointTable,
    fold: NDArray[np.int64],
    one: int,
    pull: float,
    n_rules: int,
    first: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The sum of inverse ranks in one fold, by each mixing, of weights learned from the other."""
    learned = _learn(table, np.flatnonzero(fold != one), pull, n_rules, first)
    cut = [table.columns.shape[1], table.columns.shape[1] + n_rules]
    before, after = (
        joint_scores(table, 0, len(table.stands_for), *np.split(values, cut))
        for values in (first, learned)
    )
    total = np.zeros(len(_MIXINGS))
    weight = np.exp(table.stands_for)
    for query in np.flatnonzero(fold == one):
        part = slice(table.begin[query], table.begin[query + 1])
        answer = table.answer[query] - table.begin[query]
        for place, mixing in enumerate(_MIXINGS):
            score = (1 - mixing) * before[part] + mixing * after[part]
            above = weight[part][score > score[answer]].sum()
            tied = weight[part][score == score[answer]].sum() - 1.0
            total[place] += 1.0 / (1.0 + above + tied / 2)
    return total


def _head_weights(
    values: NDArray[np.float64],
    rule: NDArray[np.int32],
    word: NDArray[np.int32],
    mixing: float,
) -> HeadWeights:
    columns, of_rule, of_word = np.split(values, [len(COLUMNS), len(COLUMNS) + len(rule)])
    return HeadWeights(columns, rule, of_rule, word, of_word, mixing)

"""`LogLinearWeights`: what rules, facts and soft walks add to a candidate's score in phase two."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tilp._kernels.likelihood import (
    LogLinearTable,
    add_log_linear_likelihood,
    log_linear_scores,
    sum_reciprocal_ranks,
)
from tilp.errors import TilpError
from tilp.graph import TemporalGraph

if TYPE_CHECKING:
    from tilp.features.log_linear_scorer import LogLinearScorer
    from tilp.scoring import RuleScorer

SOFT_WALKS = "soft walks"

COLUMNS = ("rules", SOFT_WALKS)
"""What has one weight for each head."""

USUAL_PULL = 10.0
"""How strongly weights of rules and words are drawn to 0, where nothing else was chosen."""


@dataclass(frozen=True)
class LogLinearWeights:
    """Weights of a log-linear score; a mixing weight of each head is in all of them.

    Attributes:
        columns: for each head, the weights of `COLUMNS`.
        rule: of each rule, for the root of its arriving rate at the candidate.
        row_of: for each head and group of facts the row of its words' weights; -1: none.
        words: the weights of words, row by row.
        mixing: for each head, how much of what was learned is in the weights: 0 leaves the rules
            as phase one weighted them.
        bounds: of the distances that words tell.
        scale: of time, of soft walks.
        pull: for each head, how strongly weights of rules and words were drawn to 0.
    """

    columns: NDArray[np.float64]
    rule: NDArray[np.float64]
    row_of: NDArray[np.int32]
    words: NDArray[np.float64]
    mixing: NDArray[np.float64]
    bounds: NDArray[np.int64]
    scale: float
    pull: NDArray[np.float64]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays by name."""
        return {one.name: np.asarray(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], graph: TemporalGraph | None = None
    ) -> LogLinearWeights:
        """Read what `to_arrays` returned; the graph does not matter.

        Raises:
            TilpError: an array is missing.
        """
        del graph
        if "columns" in arrays:  # models of before do not tell it
            arrays = {"pull": np.full(len(arrays["columns"]), USUAL_PULL), **arrays}
        lacking = [one.name for one in fields(cls) if one.name not in arrays]
        if lacking:
            raise TilpError(f"weights of features lack {', '.join(lacking)}; fit the model anew")
        held: dict[str, Any] = {one.name: arrays[one.name] for one in fields(cls)}
        return cls(**{**held, "scale": float(held["scale"])})

    def of(self, heads: NDArray[np.int64], rules: NDArray[np.int64]) -> LogLinearWeights:
        """The weights for other numbers of relations and rules.

        Args:
            heads: for each new head the old one; -1: none.
            rules: for each new rule the old one; -1: none.
        """
        n, kinds = len(self.columns), self.row_of.shape[1] // len(self.columns)
        known = heads >= 0
        columns = np.where(known[:, None], self.columns[heads], np.eye(1, len(COLUMNS)))
        groups = np.concatenate([np.where(known, heads + kind * n, -1) for kind in range(kinds)])
        row_of = np.where(
            known[:, None] & (groups >= 0), self.row_of[np.ix_(heads, groups)], np.int32(-1)
        )
        return LogLinearWeights(
            columns,
            np.where(rules >= 0, np.append(self.rule, 0.0)[rules], 0.0),
            row_of,
            self.words,
            np.where(known, self.mixing[heads], 0.0),
            self.bounds,
            self.scale,
            np.where(known, self.pull[heads], USUAL_PULL),
        )

    @property
    def distributions(self) -> None:
        """None: these features fit no distributions."""
        return None

    def scorer(self, rules: RuleScorer, walk_length: int) -> LogLinearScorer:
        """Return the scorer of rules and features together."""
        from tilp.features.log_linear_scorer import LogLinearScorer

        return LogLinearScorer(rules, self, walk_length)

    def refresh(self, *_: object) -> LogLinearWeights:
        """Return the weights as they are: there are no statistics to fit again."""
        return self


_MIXINGS = (0.0, 0.25, 0.5, 0.75, 1.0)
_COLUMN_PULL = 0.1
_PULLS = (50.0, USUAL_PULL)  # of rules and words to 0, in likelihoods of a query
_FEWEST = 20  # queries that a head is learned from
_STEPS = 50
_ENOUGH = 1e-6  # a step that makes the loss smaller by less, relatively, is the last


@dataclass(frozen=True)
class RelationWeights:
    """What was learned for one head.

    Attributes:
        columns: the weights of `COLUMNS`.
        rule: the rules that have a weight; `of_rule` these.
        word: the words that have a weight; `of_word` these.
        mixing: how much of what was learned is in them.
        pull: how strongly those of rules and words were drawn to 0.
    """

    columns: NDArray[np.float64]
    rule: NDArray[np.int32]
    of_rule: NDArray[np.float64]
    word: NDArray[np.int32]
    of_word: NDArray[np.float64]
    mixing: float
    pull: float = USUAL_PULL


def nothing_learned() -> RelationWeights:
    """The rules as phase one left them."""
    none = np.empty(0, np.int32)
    return _head_weights(_first(len(COLUMNS), 0), none, none, 0.0)


def fit_relation(
    table: LogLinearTable, fold: NDArray[np.int64], *, mix: bool = True
) -> RelationWeights:
    """Learn the weights of one head by softmax cross-entropy over the listed candidates.

    How strongly weights are drawn to nothing, and how much of them is mixed with the rules as they
    were, is chosen by the MRR of queries that weights were not learned from.

    Args:
        table: the queries of the head.
        fold: of each query, 0 or 1; weights learned from one are judged by the other.
        mix: whether there is anything to choose; else all that was learned is taken.
    """
    rule, local_rule = _numbered(table.rule)
    word, local_word = _numbered(table.history_feature)
    if len(fold) < _FEWEST:
        return nothing_learned()
    head = _Head(table._replace(rule=local_rule, history_feature=local_word), len(rule), len(word))
    mixing, pull, first = 1.0, _PULLS[-1], head.first
    if mix:
        judged: dict[float, NDArray[np.float64]] = {}
        learned = dict.fromkeys(range(2), head.first)
        for one_pull in _PULLS:
            judged[one_pull] = np.zeros(len(_MIXINGS))
            for one in learned:
                others = np.flatnonzero(fold != one)
                learned[one] = head.learn(others, one_pull, learned[one])
                judged[one_pull] += head.inverse_ranks(np.flatnonzero(fold == one), learned[one])
        pull = max(_PULLS, key=lambda one: float(judged[one].max()))
        mixing = _MIXINGS[int(np.argmax(judged[pull]))]
        first = (learned[0] + learned[1]) / 2
    if mixing == 0:
        return nothing_learned()
    values = head.learn(np.arange(len(fold)), pull, first)
    return _head_weights(head.first + mixing * (values - head.first), rule, word, mixing, pull)


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


class _Head:
    """The queries of one head, with rules and words numbered from 0."""

    def __init__(self, table: LogLinearTable, n_rules: int, n_words: int) -> None:
        n_columns = table.columns.shape[1]
        self._table = table
        self._cut = [n_columns, n_columns + n_rules]
        self.first = _first(n_columns, n_rules + n_words)

    def learn(
        self, queries: NDArray[np.int64], pull: float, begin: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The weights that make the answers of some queries likely."""
        of_columns = np.arange(len(self.first)) < self._cut[0]
        pulls = np.where(of_columns, _COLUMN_PULL, pull)

        def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            gradient = np.zeros_like(values)
            away = values - self.first
            total = add_log_linear_likelihood(
                self._table, queries, *self._split(values), *self._split(gradient)
            )
            drawn = 0.5 * float((pulls * away * away).sum())
            return total + drawn, gradient + pulls * away

        options = {"maxiter": _STEPS, "ftol": _ENOUGH}
        found = minimize(loss, begin, jac=True, method="L-BFGS-B", options=options)
        return np.asarray(found.x, np.float64)

    def inverse_ranks(
        self, queries: NDArray[np.int64], learned: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The sum of the inverse ranks of some queries' answers, by each mixing."""
        table = self._table
        before, after = (
            log_linear_scores(table, 0, len(table.log_count), *self._split(values))
            for values in (self.first, learned)
        )
        return sum_reciprocal_ranks(table, queries, before, after, np.array(_MIXINGS))

    def _split(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """The weights of columns, of rules and of words."""
        return np.split(values, self._cut)


def _head_weights(
    values: NDArray[np.float64],
    rule: NDArray[np.int32],
    word: NDArray[np.int32],
    mixing: float,
    pull: float = USUAL_PULL,
) -> RelationWeights:
    columns, of_rule, of_word = np.split(values, [len(COLUMNS), len(COLUMNS) + len(rule)])
    return RelationWeights(columns, rule, of_rule, word, of_word, mixing, pull)

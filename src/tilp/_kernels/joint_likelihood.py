"""The likelihood of answers among listed candidates under a log-linear score, and its gradient."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["JointTable", "add_joint_likelihood", "inverse_ranks", "joint_scores"]


class JointTable(NamedTuple):
    """What is known of the listed candidates of queries.

    Candidates of each query begin at `begin`, its answer stands at `answer`. `stands_for` is the
    logarithm of how many entities each candidate stands for, `columns` what has a weight for each
    column. The rules that lead to a candidate begin at `rule_begin`, with the root of its arriving
    rate; the words for its facts begin at `word_begin`.
    """

    begin: Array
    answer: Array
    stands_for: Array
    columns: Array
    rule_begin: Array
    rule: Array
    root: Array
    word_begin: Array
    word: Array


@kernel
def joint_scores(
    table: JointTable, first: int, last: int, of_column: Array, of_rule: Array, of_word: Array
) -> Array:
    """The scores of the candidates from `first` to `last`."""
    scores = np.empty(last - first)
    for place in range(first, last):
        score = 0.0
        for column in range(len(of_column)):
            score += of_column[column] * table.columns[place, column]
        for one in range(table.rule_begin[place], table.rule_begin[place + 1]):
            score += of_rule[table.rule[one]] * table.root[one]
        for one in range(table.word_begin[place], table.word_begin[place + 1]):
            score += of_word[table.word[one]]
        scores[place - first] = score
    return scores


@kernel
def add_joint_likelihood(
    table: JointTable,
    queries: Array,
    of_column: Array,
    of_rule: Array,
    of_word: Array,
    column_gradient: Array,
    rule_gradient: Array,
    word_gradient: Array,
) -> float:
    """Add the gradient of the negative log-likelihood of some queries' answers.

    Returns:
        The negative log-likelihood.
    """
    loss = 0.0
    for query in queries:
        first, last = table.begin[query], table.begin[query + 1]
        scores = joint_scores(table, first, last, of_column, of_rule, of_word)
        answer = table.answer[query]
        at_answer = scores[answer - first] + table.stands_for[answer]
        highest = -np.inf
        for place in range(first, last):
            scores[place - first] += table.stands_for[place]
            highest = max(highest, scores[place - first])
        total = 0.0
        for one in range(last - first):
            total += np.exp(scores[one] - highest)
        normaliser = highest + np.log(total)
        loss += normaliser - at_answer
        for place in range(first, last):
            share = np.exp(scores[place - first] - normaliser)
            if place == answer:
                share -= 1.0
            elif share < 1e-6:
                continue  # does not move anything
            for column in range(len(of_column)):
                column_gradient[column] += share * table.columns[place, column]
            for one in range(table.rule_begin[place], table.rule_begin[place + 1]):
                rule_gradient[table.rule[one]] += share * table.root[one]
            for one in range(table.word_begin[place], table.word_begin[place + 1]):
                word_gradient[table.word[one]] += share
    return loss


@kernel
def inverse_ranks(
    table: JointTable, queries: Array, before: Array, after: Array, mixings: Array
) -> Array:
    """The sums of the inverse ranks of some queries' answers, by each mixing of two scores.

    A candidate counts as many entities as it stands for, those that tie with the answer by half.

    Args:
        before: the scores of all listed candidates.
        after: likewise.
        mixings: how much of `after` is mixed in.
    """
    total = np.zeros(len(mixings))
    for query in queries:
        answer = table.answer[query]
        for one, mixing in enumerate(mixings):
            least = (1.0 - mixing) * before[answer] + mixing * after[answer]
            rank = 0.5  # with the answer itself, which ties
            for place in range(table.begin[query], table.begin[query + 1]):
                score = (1.0 - mixing) * before[place] + mixing * after[place]
                if score > least:
                    rank += np.exp(table.stands_for[place])
                elif score == least:
                    rank += 0.5 * np.exp(table.stands_for[place])
            total[one] += 1.0 / rank
    return total

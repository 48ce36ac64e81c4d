"""Likelihoods of answers and their gradients: weighted rules, paper features, log-linear scores."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array


@kernel
def add_likelihood(
    first: int,
    last: int,
    begin: Array,
    rule: Array,
    others: Array,
    at_answer: Array,
    at_known: Array,
    gain: Array,
    head: Array,
    answer_kind: Array,
    prior: Array,
    weight: Array,
    prior_weight: Array,
    factor: Array,
    of_weight: Array,
    of_prior: Array,
    of_factor: Array,
) -> float:
    """Add up the gradient of the negative log-likelihood of some queries' answers.

    The likelihood of a query's answer is a mixture over the rules that fired and the prior:
    p(o) = (v π_o + Σ w g α_o) / (v + Σ w g), where known candidates count by their factor in α.

    Args:
        first: query to begin with; likewise `last`, where to stop.
        begin: where the entries of each query begin.
        rule: of each entry; what follows are its walks.
        others: that end in candidates which are not known.
        at_answer: that end in the answer.
        at_known: that end in known candidates of each kind.
        gain: what the entry's rule is worth more for having many walks, g.
        head: of each query.
        answer_kind: the kind of known candidate that the answer is; -1: none.
        prior: of the answer.
        weight: of each rule, w.
        prior_weight: of each head, v.
        factor: of each head and kind.
        of_weight: gets the gradient for the logarithm of each weight; likewise `of_prior` and
            `of_factor`.

    Returns:
        The negative log-likelihood.
    """
    n_kinds = factor.shape[1]
    longest = 0
    for query in range(first, last):
        longest = max(longest, begin[query + 1] - begin[query])
    rate = np.empty(longest)
    total = np.empty(longest)
    loss = 0.0
    for query in range(first, last):
        low, high = begin[query], begin[query + 1]
        if low == high:
            continue
        of_head, kind = head[query], answer_kind[query]
        own_factor = factor[of_head, kind] if kind >= 0 else 1.0
        whole = prior_weight[of_head]
        right = whole * prior[query]
        for entry in range(low, high):
            arriving = own_factor * at_answer[entry]
            walks = others[entry] + arriving
            for known in range(n_kinds):
                walks += factor[of_head, known] * at_known[entry, known]
            total[entry - low] = walks
            rate[entry - low] = arriving / walks
            mass = weight[rule[entry]] * gain[entry]
            whole += mass
            right += mass * rate[entry - low]
        loss -= np.log(right / whole)
        of_prior[of_head] -= prior_weight[of_head] * (prior[query] / right - 1.0 / whole)
        by_rules = 0.0
        for entry in range(low, high):
            mass = weight[rule[entry]] * gain[entry]
            of_weight[rule[entry]] -= mass * (rate[entry - low] / right - 1.0 / whole)
            if rate[entry - low] > 0.0:
                share = mass * rate[entry - low] / right
                by_rules += share
                for known in range(n_kinds):
                    lost = factor[of_head, known] * at_known[entry, known] / total[entry - low]
                    of_factor[of_head, known] += share * lost
                if kind >= 0:
                    of_factor[of_head, kind] += share * rate[entry - low]
        if kind >= 0:
            of_factor[of_head, kind] -= by_rules
    return loss


class FeatureTable(NamedTuple):
    """Queries, their candidates, which begin at `offsets`, and the evidence for these.

    The evidence for a candidate and kind begins at `begin[3 · candidate + kind]`. `answer` is the
    place of a query's answer among the candidates, -1 where it is not one of them.
    """

    offsets: Array
    answer: Array
    directed_relation: Array
    phi: Array
    recurrence: Array
    evidence_offsets: Array
    pair: Array
    order: Array
    interval: Array


class FeatureValues(NamedTuple):
    """What scores are made of: w and b of recurrence; of each pair w and b of order and interval.

    `factor` is what φ of each kind of evidence and feature counts; `scale` what φ_TLR counts, and
    what the whole is multiplied with.
    """

    recurrence: Array
    pairs: Array
    factor: Array
    scale: Array


FeatureSlopes = FeatureValues
"""The gradient has the same shape."""


@kernel
def add_feature_likelihood(
    first: int, last: int, table: FeatureTable, values: FeatureValues, of: FeatureSlopes
) -> float:
    """Add up the gradient of the negative log-likelihood of some queries' answers (eq. 14-21).

    Args:
        first: query to begin with; likewise `last`, where to stop.
        table: the queries.
        values: what scores are made of.
        of: gets the gradient for each of them.

    Returns:
        The negative log-likelihood.
    """
    most = 0
    for query in range(first, last):
        most = max(most, table.offsets[query + 1] - table.offsets[query])
    score = np.empty(most)
    mean = np.zeros((most, 3, 3))
    below = np.empty((most, 3, 2))
    mass = np.exp(values.pairs[:, ::2])
    sharpness = values.scale[1]
    loss = 0.0
    for query in range(first, last):
        if table.answer[query] < 0:
            continue
        low, high = table.offsets[query], table.offsets[query + 1]
        highest = -np.inf
        for row in range(low, high):
            score[row - low] = _score(row, row - low, table, values, mass, mean, below)
            highest = max(highest, score[row - low])
        total = 0.0
        for row in range(low, high):
            total += np.exp(sharpness * (score[row - low] - highest))
        right = score[table.answer[query] - low]
        loss += np.log(total) - sharpness * (right - highest)
        for row in range(low, high):
            away = np.exp(sharpness * (score[row - low] - highest)) / total
            if row == table.answer[query]:
                away -= 1.0
            of.scale[1] += away * score[row - low]
            _add_slopes(row, row - low, away * sharpness, table, values, mass, mean, below, of)
    return loss


@kernel
def _score(
    row: int,
    number: int,
    table: FeatureTable,
    values: FeatureValues,
    mass: Array,
    mean: Array,
    below: Array,
) -> float:
    """φ_TILP of a candidate; φ of each kind and feature goes into `mean`, divisors into `below`.

    `number` is the candidate's among its query's; `mass` is exp(w) of order and interval, for each
    pair.
    """
    head = table.directed_relation[row]
    score = values.scale[0] * table.phi[row]
    for kind in range(3):
        if kind < 2:
            weight, bias = values.recurrence[0, kind, head], values.recurrence[1, kind, head]
            mean[number, kind, 0] = weight * table.recurrence[row, kind] + bias
        order = order_mass = interval = interval_mass = 0.0
        for place in range(
            table.evidence_offsets[3 * row + kind], table.evidence_offsets[3 * row + kind + 1]
        ):
            pair = table.pair[place]
            order += mass[pair, 0] * (table.order[place] + values.pairs[pair, 1])
            order_mass += mass[pair, 0]
            interval += mass[pair, 1] * (table.interval[place] + values.pairs[pair, 3])
            interval_mass += mass[pair, 1]
        below[number, kind, 0] = order_mass
        below[number, kind, 1] = interval_mass
        mean[number, kind, 1] = order / order_mass if order_mass > 0.0 else 0.0
        mean[number, kind, 2] = interval / interval_mass if interval_mass > 0.0 else 0.0
        for feature in range(3):
            score += values.factor[kind, feature] * mean[number, kind, feature]
    return score


@kernel
def _add_slopes(
    row: int,
    number: int,
    slope: float,
    table: FeatureTable,
    values: FeatureValues,
    mass: Array,
    mean: Array,
    below: Array,
    of: FeatureSlopes,
) -> None:
    """Add what a candidate's score, whose own gradient is given, adds to the gradient."""
    head = table.directed_relation[row]
    of.scale[0] += slope * table.phi[row]
    for kind in range(3):
        for feature in range(3):
            of.factor[kind, feature] += slope * mean[number, kind, feature]
        if kind < 2:
            onward = slope * values.factor[kind, 0]
            of.recurrence[0, kind, head] += onward * table.recurrence[row, kind]
            of.recurrence[1, kind, head] += onward
        for place in range(
            table.evidence_offsets[3 * row + kind], table.evidence_offsets[3 * row + kind + 1]
        ):
            pair = table.pair[place]
            share = slope * values.factor[kind, 1] * mass[pair, 0] / below[number, kind, 0]
            above = table.order[place] + values.pairs[pair, 1]
            of.pairs[pair, 0] += share * (above - mean[number, kind, 1])
            of.pairs[pair, 1] += share
            share = slope * values.factor[kind, 2] * mass[pair, 1] / below[number, kind, 1]
            above = table.interval[place] + values.pairs[pair, 3]
            of.pairs[pair, 2] += share * (above - mean[number, kind, 2])
            of.pairs[pair, 3] += share


class LogLinearTable(NamedTuple):
    """What is known of the listed candidates of queries.

    Candidates of each query begin at `begin`, its answer stands at `answer`. `stands_for` is the
    logarithm of how many entities each candidate stands for, `columns` what has a weight for each
    column. The rules that lead to a candidate begin at `rule_begin`, with the root of its arriving
    rate; the words for its facts begin at `word_begin`.
    """

    offsets: Array
    answer: Array
    log_count: Array
    columns: Array
    rule_offsets: Array
    rule: Array
    root_rate: Array
    history_offsets: Array
    history_feature: Array


@kernel
def log_linear_scores(
    table: LogLinearTable, first: int, last: int, of_column: Array, of_rule: Array, of_word: Array
) -> Array:
    """The scores of the candidates from `first` to `last`."""
    scores = np.empty(last - first)
    for place in range(first, last):
        score = 0.0
        for column in range(len(of_column)):
            score += of_column[column] * table.columns[place, column]
        for one in range(table.rule_offsets[place], table.rule_offsets[place + 1]):
            score += of_rule[table.rule[one]] * table.root_rate[one]
        for one in range(table.history_offsets[place], table.history_offsets[place + 1]):
            score += of_word[table.history_feature[one]]
        scores[place - first] = score
    return scores


@kernel
def add_log_linear_likelihood(
    table: LogLinearTable,
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
        first, last = table.offsets[query], table.offsets[query + 1]
        scores = log_linear_scores(table, first, last, of_column, of_rule, of_word)
        answer = table.answer[query]
        at_answer = scores[answer - first] + table.log_count[answer]
        highest = -np.inf
        for place in range(first, last):
            scores[place - first] += table.log_count[place]
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
            for one in range(table.rule_offsets[place], table.rule_offsets[place + 1]):
                rule_gradient[table.rule[one]] += share * table.root_rate[one]
            for one in range(table.history_offsets[place], table.history_offsets[place + 1]):
                word_gradient[table.history_feature[one]] += share
    return loss


@kernel
def sum_reciprocal_ranks(
    table: LogLinearTable, queries: Array, before: Array, after: Array, mixings: Array
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
            for place in range(table.offsets[query], table.offsets[query + 1]):
                score = (1.0 - mixing) * before[place] + mixing * after[place]
                if score > least:
                    rank += np.exp(table.log_count[place])
                elif score == least:
                    rank += 0.5 * np.exp(table.log_count[place])
            total[one] += 1.0 / rank
    return total

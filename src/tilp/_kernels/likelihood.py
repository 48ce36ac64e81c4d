"""Likelihoods of answers and their gradients: weighted rules, paper features, log-linear scores."""

from typing import NamedTuple

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

_LEAST = float(np.log(1e-6))  # share of a candidate, as a logarithm, below which it moves no weight


@kernel
def add_likelihood(
    first: int, last: int, offsets: Array, rule: Array, others: Array, at_answer: Array,
    at_known: Array, gain: Array, directed_relation: Array, answer_kind: Array, prior: Array,
    weight: Array, prior_weight: Array, factor: Array, weight_gradient: Array,
    prior_gradient: Array, factor_gradient: Array,
) -> float:  # fmt: skip
    """Return the negative log-likelihood of the answers of queries, and add up its gradient.

    The likelihood of an answer is a mixture over the rules that apply and the prior: p(o) = (v π_o
    + Σ w g α_o) / (v + Σ w g), where known candidates count by their factor in α. The examples of
    each query stand at `offsets`, each with its rule and its walks: to `others`, `at_answer`, and
    `at_known` candidates of each kind; g is `gain`, π `prior`, w `weight`, v `prior_weight`.
    `answer_kind` is the kind of known candidate that the answer is (-1: none). Gradients are by the
    logarithms.
    """
    n_kinds = factor.shape[1]
    longest = 0
    for query in range(first, last):
        longest = max(longest, offsets[query + 1] - offsets[query])
    rate, total = np.empty(longest), np.empty(longest)
    loss = 0.0
    for query in range(first, last):
        low, high = offsets[query], offsets[query + 1]
        if low == high:
            continue
        relation, kind = directed_relation[query], answer_kind[query]
        answer_factor = factor[relation, kind] if kind >= 0 else 1.0
        whole = prior_weight[relation]
        right = whole * prior[query]
        for example in range(low, high):
            mass = weight[rule[example]] * gain[example]
            whole += mass
            rate[example - low] = 0.0
            if at_answer[example] == 0.0:  # most rules miss the answer
                continue
            arriving = answer_factor * at_answer[example]
            walks = others[example] + arriving
            for known in range(n_kinds):
                walks += factor[relation, known] * at_known[example, known]
            total[example - low] = walks
            rate[example - low] = arriving / walks
            right += mass * rate[example - low]
        loss -= np.log(right / whole)
        prior_gradient[relation] -= prior_weight[relation] * (prior[query] / right - 1.0 / whole)
        by_rules = 0.0
        for example in range(low, high):
            mass = weight[rule[example]] * gain[example]
            weight_gradient[rule[example]] -= mass * (rate[example - low] / right - 1.0 / whole)
            if rate[example - low] > 0.0:
                share = mass * rate[example - low] / right
                by_rules += share
                for known in range(n_kinds):
                    lost = factor[relation, known] * at_known[example, known] / total[example - low]
                    factor_gradient[relation, known] += share * lost
                if kind >= 0:
                    factor_gradient[relation, kind] += share * rate[example - low]
        if kind >= 0:
            factor_gradient[relation, kind] -= by_rules
    return loss


@kernel
def add_rule_gains(
    first: int, last: int, offsets: Array, rule: Array, others: Array, at_answer: Array,
    at_known: Array, gain: Array, directed_relation: Array, answer_kind: Array, prior: Array,
    weight: Array, prior_weight: Array, factor: Array, responsibility: Array, lost: Array,
) -> float:  # fmt: skip
    """Add up what each rule does for the likelihood of answers, and return the log-likelihood.

    The arguments are those of `add_likelihood`. `responsibility` gets the share of each answer's
    probability that comes from the rule; `lost` how much the log-likelihood falls without it.
    """
    longest = 0
    for query in range(first, last):
        longest = max(longest, offsets[query + 1] - offsets[query])
    mass = np.empty(longest)
    arriving = np.empty(longest)
    log_likelihood = 0.0
    for query in range(first, last):
        low, high = offsets[query], offsets[query + 1]
        relation, kind = directed_relation[query], answer_kind[query]
        answer_factor = factor[relation, kind] if kind >= 0 else 1.0
        whole = prior_weight[relation]
        right = whole * prior[query]
        for example in range(low, high):
            index = example - low
            here = answer_factor * at_answer[example]
            walks = others[example] + here
            for known in range(factor.shape[1]):
                walks += factor[relation, known] * at_known[example, known]
            mass[index] = weight[rule[example]] * gain[example]
            arriving[index] = mass[index] * here / walks
            whole += mass[index]
            right += arriving[index]
        log_likelihood += np.log(right / whole)
        # The prior stays without any rule, so that nothing below is 0.
        least, least_whole = prior_weight[relation] * prior[query], prior_weight[relation]
        for example in range(low, high):
            index = example - low
            right_without = max(right - arriving[index], least)
            whole_without = max(whole - mass[index], least_whole)
            responsibility[rule[example]] += arriving[index] / right
            lost[rule[example]] += np.log(right / whole) - np.log(right_without / whole_without)
    return log_likelihood


class FeatureTable(NamedTuple):
    """Queries, their candidates, and the evidence for these."""

    offsets: Array  # where the candidates of each query begin
    answer: Array  # index of each query's answer among the candidates (-1: not listed)
    directed_relation: Array  # of each candidate, likewise phi and recurrence
    phi: Array
    recurrence: Array
    evidence_offsets: Array  # of candidate and kind at 3 · candidate + kind
    pair: Array  # of each piece of evidence, likewise order and interval
    order: Array
    interval: Array


class FeatureValues(NamedTuple):
    """Parameters of φ_TILP; a gradient has the same shape."""

    recurrence: Array  # w and b
    pairs: Array  # w and b of order and of interval, for each pair
    factor: Array  # of φ of each kind of evidence and feature
    scale: Array  # factors of φ_TLR and of the whole score


@kernel
def add_feature_likelihood(
    first: int, last: int, table: FeatureTable, values: FeatureValues, gradient: FeatureValues
) -> float:
    """Return the negative log-likelihood of answers, and add up its gradient (eq. 14-21)."""
    most = 0
    for query in range(first, last):
        most = max(most, table.offsets[query + 1] - table.offsets[query])
    score = np.empty(most)
    mean = np.zeros((most, 3, 3))
    divisor = np.empty((most, 3, 2))
    mass = np.exp(values.pairs[:, ::2])
    sharpness = values.scale[1]
    loss = 0.0
    for query in range(first, last):
        if table.answer[query] < 0:
            continue
        low, high = table.offsets[query], table.offsets[query + 1]
        highest = -np.inf
        for row in range(low, high):
            score[row - low] = _score(row, row - low, table, values, mass, mean, divisor)
            highest = max(highest, score[row - low])
        total = 0.0
        for row in range(low, high):
            total += np.exp(sharpness * (score[row - low] - highest))
        right = score[table.answer[query] - low]
        loss += np.log(total) - sharpness * (right - highest)
        for row in range(low, high):
            error = np.exp(sharpness * (score[row - low] - highest)) / total
            if row == table.answer[query]:
                error -= 1.0
            gradient.scale[1] += error * score[row - low]
            _add_gradient(
                row, row - low, error * sharpness, table, values, mass, mean, divisor, gradient
            )
    return loss


@kernel
def _score(
    row: int, index: int, table: FeatureTable, values: FeatureValues, mass: Array, mean: Array,
    divisor: Array,
) -> float:  # fmt: skip
    """Return φ_TILP of a candidate, the `index`-th of its query.

    `mean` gets φ of each kind and feature, `divisor` the sums of `mass`, which is exp(w) of order
    and interval of each pair.
    """
    relation = table.directed_relation[row]
    score = values.scale[0] * table.phi[row]
    for kind in range(3):
        if kind < 2:
            weight = values.recurrence[0, kind, relation]
            bias = values.recurrence[1, kind, relation]
            mean[index, kind, 0] = weight * table.recurrence[row, kind] + bias
        order = order_mass = interval = interval_mass = 0.0
        begin = table.evidence_offsets[3 * row + kind]
        for item in range(begin, table.evidence_offsets[3 * row + kind + 1]):
            pair = table.pair[item]
            order += mass[pair, 0] * (table.order[item] + values.pairs[pair, 1])
            order_mass += mass[pair, 0]
            interval += mass[pair, 1] * (table.interval[item] + values.pairs[pair, 3])
            interval_mass += mass[pair, 1]
        divisor[index, kind, 0] = order_mass
        divisor[index, kind, 1] = interval_mass
        mean[index, kind, 1] = order / order_mass if order_mass > 0.0 else 0.0
        mean[index, kind, 2] = interval / interval_mass if interval_mass > 0.0 else 0.0
        for feature in range(3):
            score += values.factor[kind, feature] * mean[index, kind, feature]
    return score


@kernel
def _add_gradient(
    row: int, index: int, slope: float, table: FeatureTable, values: FeatureValues, mass: Array,
    mean: Array, divisor: Array, gradient: FeatureValues,
) -> None:  # fmt: skip
    """Add to the gradient by a candidate's score, whose own gradient is `slope`."""
    relation = table.directed_relation[row]
    gradient.scale[0] += slope * table.phi[row]
    for kind in range(3):
        for feature in range(3):
            gradient.factor[kind, feature] += slope * mean[index, kind, feature]
        if kind < 2:
            onward = slope * values.factor[kind, 0]
            gradient.recurrence[0, kind, relation] += onward * table.recurrence[row, kind]
            gradient.recurrence[1, kind, relation] += onward
        begin = table.evidence_offsets[3 * row + kind]
        for item in range(begin, table.evidence_offsets[3 * row + kind + 1]):
            pair = table.pair[item]
            share = slope * values.factor[kind, 1] * mass[pair, 0] / divisor[index, kind, 0]
            value = table.order[item] + values.pairs[pair, 1]
            gradient.pairs[pair, 0] += share * (value - mean[index, kind, 1])
            gradient.pairs[pair, 1] += share
            share = slope * values.factor[kind, 2] * mass[pair, 1] / divisor[index, kind, 1]
            value = table.interval[item] + values.pairs[pair, 3]
            gradient.pairs[pair, 2] += share * (value - mean[index, kind, 2])
            gradient.pairs[pair, 3] += share


class LogLinearTable(NamedTuple):
    """Features of the listed candidates of queries.

    The candidates of each query stand at `offsets`, its answer at `answer`. `log_count` is the
    logarithm of how many entities each candidate stands for, `columns` its dense features. The
    rules that reach a candidate stand at `rule_offsets`, with the root of its arriving rate; the
    features of its history at `history_offsets`.
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
    table: LogLinearTable, first: int, last: int, column_weight: Array, rule_weight: Array,
    history_weight: Array,
) -> Array:  # fmt: skip
    """Return the scores of the candidates from `first` to `last`."""
    # Out of the loops: an array that is read from a tuple is reference-counted each time.
    columns, rule_offsets, rule, root_rate = (
        table.columns, table.rule_offsets, table.rule, table.root_rate
    )  # fmt: skip
    history_offsets, history_feature = table.history_offsets, table.history_feature
    scores = np.empty(last - first)
    for row in range(first, last):
        score = 0.0
        for column in range(len(column_weight)):
            score += column_weight[column] * columns[row, column]
        for item in range(rule_offsets[row], rule_offsets[row + 1]):
            score += rule_weight[rule[item]] * root_rate[item]
        for item in range(history_offsets[row], history_offsets[row + 1]):
            score += history_weight[history_feature[item]]
        scores[row - first] = score
    return scores


@kernel
def add_log_linear_likelihood(
    table: LogLinearTable, queries: Array, column_weight: Array, rule_weight: Array,
    history_weight: Array, column_gradient: Array, rule_gradient: Array, history_gradient: Array,
) -> float:  # fmt: skip
    """Return the negative log-likelihood of the answers of queries, and add up its gradient."""
    offsets, answers, log_count, columns = (
        table.offsets, table.answer, table.log_count, table.columns
    )  # fmt: skip
    rule_offsets, rule, root_rate = table.rule_offsets, table.rule, table.root_rate
    history_offsets, history_feature = table.history_offsets, table.history_feature
    loss = 0.0
    for query in queries:
        first, last = offsets[query], offsets[query + 1]
        scores = log_linear_scores(table, first, last, column_weight, rule_weight, history_weight)
        answer = answers[query]
        at_answer = scores[answer - first] + log_count[answer]
        highest = -np.inf
        for row in range(first, last):
            scores[row - first] += log_count[row]
            highest = max(highest, scores[row - first])
        total = 0.0
        for index in range(last - first):
            total += np.exp(scores[index] - highest)
        normaliser = highest + np.log(total)
        loss += normaliser - at_answer
        for row in range(first, last):
            if row != answer and scores[row - first] - normaliser < _LEAST:
                continue
            share = np.exp(scores[row - first] - normaliser)
            if row == answer:
                share -= 1.0
            for column in range(len(column_weight)):
                column_gradient[column] += share * columns[row, column]
            for item in range(rule_offsets[row], rule_offsets[row + 1]):
                rule_gradient[rule[item]] += share * root_rate[item]
            for item in range(history_offsets[row], history_offsets[row + 1]):
                history_gradient[history_feature[item]] += share
    return loss

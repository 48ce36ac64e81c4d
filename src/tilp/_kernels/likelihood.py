"""The likelihood of answers under weighted rules, and its gradient."""

import numpy as np

from tilp._kernels.jit import kernel
from tilp._kernels.types import Array

__all__ = ["add_likelihood"]


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

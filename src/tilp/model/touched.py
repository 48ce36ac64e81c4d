"""What a change of the facts of some relations touches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from tilp.rules import RuleSet

__all__ = ["touched"]


def touched(rules: RuleSet, relations: Collection[str], least: float = 0.0) -> set[str]:
    """The relations themselves, and those that are predicted by them to some part.

    Args:
        rules: with their weights.
        relations: their names.
        least: of the weight of a relation's rules, each times its support, the share of those
            whose bodies have one of the relations; 0: any such rule.
    """
    whole: defaultdict[str, float] = defaultdict(float)
    through: defaultdict[str, float] = defaultdict(float)
    for one in rules:
        head, said = one.rule.head.relation, (one.weight or 0.0) * one.support
        whole[head] += said
        if any(atom.relation in relations for atom in one.rule.body):
            through[head] += said
    return {*relations} | {head for head in through if through[head] >= least * whole[head]}

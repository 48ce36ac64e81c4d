"""Temporal logical rules (eq. 1): as values, as text, as sets with statistics, as pictures."""

from tilp.rules.grains import FORMS, TemporalForm
from tilp.rules.rule import Atom, Constraint, Rule
from tilp.rules.ruleset import MinedRule, RuleSet, RuleSetDiff
from tilp.rules.text import Notation, format_rule, parse_rule

__all__ = [
    "FORMS",
    "Atom",
    "Constraint",
    "MinedRule",
    "Notation",
    "Rule",
    "RuleSet",
    "RuleSetDiff",
    "TemporalForm",
    "format_rule",
    "parse_rule",
]

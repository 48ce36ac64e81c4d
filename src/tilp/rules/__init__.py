"""Temporal logical rules: lifted from walks, printed as people write them, read back (eq. 1)."""

from tilp.rules.grains import FORMS, Form
from tilp.rules.rule import Atom, Constraint, Rule
from tilp.rules.ruleset import MinedRule, RuleSet, RuleSetDiff
from tilp.rules.text import Notation, format_rule, parse_rule

__all__ = [
    "FORMS",
    "Atom",
    "Constraint",
    "Form",
    "MinedRule",
    "Notation",
    "Rule",
    "RuleSet",
    "RuleSetDiff",
    "format_rule",
    "parse_rule",
]

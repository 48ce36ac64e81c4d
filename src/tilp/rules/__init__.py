"""Temporal logical rules (eq. 1): as values, as text, as sets with statistics, as pictures."""

from tilp.rules.phrasings import Phrasing, Phrasings
from tilp.rules.rule import Atom, Constraint, Notation, Rule, format_rule, parse_rule
from tilp.rules.ruleset import MinedRule, RuleSet
from tilp.rules.temporal import FORMS, TemporalForm

__all__ = [
    "FORMS", "Atom", "Constraint", "MinedRule", "Notation", "Phrasing", "Phrasings", "Rule",
    "RuleSet", "TemporalForm", "format_rule", "parse_rule",
]  # fmt: skip

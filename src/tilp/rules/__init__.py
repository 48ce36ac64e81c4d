"""Temporal logical rules (eq. 1): as values, as text, as sets with statistics, as pictures."""

from tilp.rules.phrasings import Phrasing, Phrasings
from tilp.rules.rule import Atom, Constraint, Notation, Rule, format_rule, parse_rule
from tilp.rules.ruleset import MinedRule, RuleSet, RuleSetDiff
from tilp.rules.temporal import FORMS, TemporalForm, generalises

__all__ = [
    "FORMS", "Atom", "Constraint", "MinedRule", "Notation", "Phrasing", "Phrasings", "Rule",
    "RuleSet", "RuleSetDiff", "TemporalForm", "format_rule", "generalises", "parse_rule",
]  # fmt: skip

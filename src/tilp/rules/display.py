"""Rules as notebooks show them: sentence, numbers, picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from tilp.rules.picture import draw_rule
from tilp.rules.rule import Rule
from tilp.rules.text import Notation, format_rule
from tilp.viz.html import Markup, element, fragment, table

if TYPE_CHECKING:
    from tilp.rules.ruleset import MinedRule, RuleSet

__all__ = ["mined_rule_html", "rule_html", "rule_set_html"]

_SHOWN = 10
_DRAWN = 3  # their pictures are open


def rule_html(rule: Rule) -> str:
    """A rule with its picture."""
    return fragment(_told(rule), _picture(rule))


def mined_rule_html(mined: MinedRule) -> str:
    """A rule with what was counted of it, and its picture."""
    return fragment(_rows([mined], drawn=1))


def rule_set_html(rules: RuleSet) -> str:
    """The first rules of a set as a table, the first of them with their pictures."""
    shown = list(islice(rules, _SHOWN))
    further = len(rules) - len(shown)
    return fragment(
        element("p", repr(rules)),
        _rows(shown, _DRAWN),
        *([element("p", f"… and {further:,} more", class_="tilp-soft")] if further else []),
    )


def _rows(rules: Sequence[MinedRule], drawn: int) -> Markup:
    weighted = any(mined.weight is not None for mined in rules)
    header = ["rule", *(["weight"] if weighted else []), "confidence", "support", "fired"]
    rows = [
        [
            _with_picture(mined.rule, open_=number < drawn),
            *([f"{mined.weight or 0.0:.3g}"] if weighted else []),
            f"{mined.confidence:.2f}{'~' if mined.sampled else ''}",
            f"{mined.support:,}",
            f"{mined.fired:,}",
        ]
        for number, mined in enumerate(rules)
    ]
    return table(header, rows, numbers=len(header) - 1)


def _with_picture(rule: Rule, *, open_: bool) -> Markup:
    attributes = {"open": None} if open_ else {}
    return element("details", element("summary", _told(rule)), _picture(rule), **attributes)


def _told(rule: Rule) -> Markup:
    return element("span", format_rule(rule, Notation.SENTENCE), title=str(rule))


def _picture(rule: Rule) -> Markup:
    return element("figure", Markup(draw_rule(rule)))

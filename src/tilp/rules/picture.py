"""Draw a rule as a chain of variables with intervals that satisfy it; show rules in notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING

from tilp.pictures import Chain, Link, draw_chain
from tilp.pictures.markup import Markup, element, fragment, table
from tilp.rules.consistency import arrange, possible_classes, speaks_of_time
from tilp.rules.rule import Atom, Constraint, Rule
from tilp.rules.text import Notation, format_rule
from tilp.time import GAP_CLASSES, Allen, Interval, TemporalRelation, temporal_relation

if TYPE_CHECKING:
    from tilp.rules.ruleset import MinedRule, RuleSet

_CONTRADICTION = "No intervals can be all that the rule asks of them."
_STATIC = "The rule says nothing of time."
_UNSAID = "not said"
_WORDS = (tuple(TemporalRelation), tuple(Allen), GAP_CLASSES)  # converse at the mirrored place


def draw_rule(rule: Rule) -> str:
    """A picture of a rule, as SVG.

    The intervals below the chain are one arrangement that satisfies the rule. A note names the
    pairs of which it says nothing; constraints of one's own stand there as text.
    """
    asked = rule.length + 1
    temporal = tuple(one for one in rule.constraints if speaks_of_time(one))
    own = (str(one) for one in rule.constraints if not speaks_of_time(one))
    intervals = arrange(temporal)
    time = _Time(temporal, intervals or {}, asked)
    if intervals is None:
        notes = [_CONTRADICTION]
    else:
        notes = list(time.notes()) if intervals else [_STATIC]
    return draw_chain(
        Chain(
            nodes=tuple(f"E{place}" for place in range(1, asked + 1)),
            links=tuple(time.link(place, atom) for place, atom in enumerate(rule.body, start=1)),
            asked=Link(
                rule.head.relation, time.intervals.get(asked), rule.head.inverse, f"I{asked}"
            ),
            ends=(0, rule.length),
            notes=(*notes, *own),
        )
    )


@dataclass(frozen=True)
class _Time:
    """What a rule says of time, and intervals that satisfy it.

    Attributes:
        constraints: what it says.
        intervals: by number, those that are spoken of.
        asked: the number of the query's.
    """

    constraints: tuple[Constraint, ...]
    intervals: Mapping[int, Interval]
    asked: int

    def link(self, place: int, atom: Atom) -> Link:
        """A body atom with its interval, and how that lies to the others."""
        said: dict[str, list[str]] = {}
        for other in range(place + 1, self.asked):
            for word in self._words(place, other):
                said.setdefault(word, []).append(f"I{other}")
        interval, asked = self.intervals.get(place), self.intervals.get(self.asked)
        words = self._words(place, self.asked)
        relation = None
        if interval is not None and asked is not None:
            if not words and self._is_open(place, self.asked):
                words = [_UNSAID]
            else:
                relation = temporal_relation(interval, asked)
                words = words or [str(relation)]
        return Link(
            atom.relation,
            interval,
            atom.inverse,
            mark=f"I{place}",
            detail=", ".join(f"{word} {', '.join(others)}" for word, others in said.items()),
            word=", ".join(words) or ("any time" if interval is None else _UNSAID),
            relation=relation,
        )

    def notes(self) -> Iterator[str]:
        """The pairs of body intervals of which nothing is said."""
        body = [place for place in self.intervals if place != self.asked]
        pairs = list(combinations(body, 2))
        unsaid = [pair for pair in pairs if not self._words(*pair) and self._is_open(*pair)]
        if len(body) > 2 and unsaid == pairs:
            names = ", ".join(f"I{place}" for place in body[:-1])
            yield f"How {names} and I{body[-1]} lie to each other is not said."
        elif unsaid:
            listed = "; ".join(f"I{first} and I{second}" for first, second in unsaid)
            yield f"Nothing is said of how these lie to each other: {listed}."

    def _words(self, first: int, second: int) -> list[str]:
        """What is said of one interval against another."""
        return [
            *(one.word for one in self.constraints if one.places == (first, second)),
            *(_converse(one.word) for one in self.constraints if one.places == (second, first)),
        ]

    def _is_open(self, first: int, second: int) -> bool:
        """Whether what is said leaves the class of a pair open (eq. 4)."""
        return len(possible_classes(self.constraints, first, second)) > 1


def _converse(word: str) -> str:
    words = next(words for words in _WORDS if word in words)
    return str(words[len(words) - 1 - words.index(word)])


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

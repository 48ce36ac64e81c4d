"""Draw a rule as a chain with intervals that satisfy it; show rules in notebooks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from tilp.rules.phrasings import Phrasings
from tilp.rules.rule import Atom, Constraint, Notation, Rule, format_rule
from tilp.rules.ruleset import MinedRule, RuleSet, figure_columns
from tilp.rules.temporal import gap_parts, is_temporal, possible_classes, satisfying_intervals
from tilp.time import Allen, Interval, TemporalRelation, temporal_relation
from tilp.viz import Chain, Link, draw_chain
from tilp.viz.html import Markup, element, fragment, table

_CONTRADICTION = "The constraints contradict each other: no intervals satisfy them."
_STATIC = "The rule has no temporal constraint."
_UNSAID = "not said"
# The converse of a relation has the mirrored index.
_NAMES = (tuple(TemporalRelation), tuple(Allen))
_CONVERSE = {str(a): str(b) for names in _NAMES for a, b in zip(names, names[::-1], strict=True)}


def _converse(word: str) -> str:
    length, side = gap_parts(word) or ("", word)
    return f"{length} {_CONVERSE[side]}".lstrip()


def draw_rule(rule: Rule, phrasings: Phrasings | None = None) -> str:
    """Draw a rule as SVG.

    The intervals below the chain are one example that satisfies the rule. Entities have the names
    of its sentence with the same phrasings. A note names the pairs of intervals that the rule does
    not constrain, and lists constraints of other kinds as text.
    """
    query = rule.length + 1
    temporal = tuple(c for c in rule.constraints if is_temporal(c))
    other = (str(c) for c in rule.constraints if not is_temporal(c))
    intervals = satisfying_intervals(temporal)
    time = _Time(temporal, intervals or {}, query)
    notes = list(time.notes()) if intervals else [_CONTRADICTION if intervals is None else _STATIC]
    nodes = (phrasings or Phrasings()).entity_names(rule)
    links = tuple(time.link(index, atom) for index, atom in enumerate(rule.body, start=1))
    head, interval = rule.head, time.intervals.get(query)
    link = Link(head.relation, interval, head.inverse, "?")
    return draw_chain(Chain(nodes, links, link, (0, rule.length), notes=(*notes, *other)))


@dataclass(frozen=True)
class _Time:
    """Temporal constraints of a rule, intervals that satisfy them, the index of the query's."""

    constraints: tuple[Constraint, ...]
    intervals: Mapping[int, Interval]
    query: int

    def link(self, index: int, atom: Atom) -> Link:
        """Return a body atom with its interval and its relations to the others."""
        relations: dict[str, list[str]] = {}
        for other in range(index + 1, self.query):
            for name in self._relations(index, other):
                relations.setdefault(name, []).append(str(other))
        interval, query = self.intervals.get(index), self.intervals.get(self.query)
        to_query = self._relations(index, self.query)
        relation = None
        if interval is not None and query is not None:
            if not to_query and self._is_open(index, self.query):
                to_query = [_UNSAID]
            else:
                relation = temporal_relation(interval, query)
                to_query = to_query or [str(relation)]
        return Link(
            atom.relation,
            interval,
            atom.inverse,
            mark=str(index),
            detail=", ".join(f"{name} {', '.join(others)}" for name, others in relations.items()),
            word=", ".join(to_query) or ("any time" if interval is None else _UNSAID),
            relation=relation,
        )

    def notes(self) -> Iterator[str]:
        """Name the pairs of body intervals that are not constrained."""
        body = [index for index in self.intervals if index != self.query]
        pairs = list(combinations(body, 2))
        free = [pair for pair in pairs if not self._relations(*pair) and self._is_open(*pair)]
        if len(body) > 2 and free == pairs:
            names = ", ".join(map(str, body[:-1]))
            yield f"The order of {names} and {body[-1]} is free."
        elif free:
            listed = "; ".join(f"{first} and {second}" for first, second in free)
            yield f"The order of these is free: {listed}."

    def _relations(self, first: int, second: int) -> list[str]:
        return [
            *(c.word for c in self.constraints if c.indices == (first, second)),
            *(_converse(c.word) for c in self.constraints if c.indices == (second, first)),
        ]

    def _is_open(self, first: int, second: int) -> bool:
        """Return True if the constraints allow several classes of a pair (eq. 4)."""
        return len(possible_classes(self.constraints, first, second)) > 1


_SHOWN = 10
_DRAWN = 3  # rules whose picture is open


def rule_html(rule: Rule) -> str:
    """Return a rule as HTML, with its picture."""
    return fragment(_sentence(rule), _picture(rule))


def mined_rule_html(mined: MinedRule) -> str:
    """Return a rule as HTML, with its statistics and picture."""
    return fragment(_rows([mined], drawn=1))


def rule_set_html(rules: RuleSet) -> str:
    """Return the first rules of a set as an HTML table."""
    shown = list(islice(rules, _SHOWN))
    hidden = len(rules) - len(shown)
    more = [element("p", f"… and {hidden:,} more", class_="tilp-soft")] if hidden else []
    return fragment(element("p", repr(rules)), _rows(shown, _DRAWN), *more)


def _rows(rules: Sequence[MinedRule], drawn: int) -> Markup:
    columns = figure_columns(rules)
    rows = []
    for index, (mined, *figures) in enumerate(zip(rules, *columns.values(), strict=True)):
        summary = element("summary", _sentence(mined.rule))
        opening = {"open": None} if index < drawn else {}
        rows.append([element("details", summary, _picture(mined.rule), **opening), *figures])
    return table(["rule", *columns], rows, numbers=len(columns))


def _sentence(rule: Rule) -> Markup:
    return element("span", format_rule(rule, Notation.SENTENCE), title=str(rule))


def _picture(rule: Rule) -> Markup:
    return element("figure", Markup(draw_rule(rule)))

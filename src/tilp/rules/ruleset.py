"""`RuleSet`: rules with their statistics, read and written as JSON lines and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tilp._deprecated import warn_renamed
from tilp.errors import DataError, TilpError
from tilp.rules.rule import Rule, parse_rule


@dataclass(frozen=True, slots=True)
class MinedRule:
    """A rule and its statistics over the facts of its head relation.

    Attributes:
        rule: the rule.
        support: number of facts whose answer the rule reaches.
        body_support: number of facts for which the body has a grounding.
        confidence: mean arriving rate N_o / N at the answer, over the facts of `body_support`.
        facts: number of facts that the rule was applied to.
        sampled: True if some count is an unbiased estimate rather than exact.
        weight: learned score of the rule in eq. 15; None before it is learned.
    """

    rule: Rule
    support: int
    body_support: int
    confidence: float
    facts: int
    sampled: bool = False
    weight: float | None = None

    def __str__(self) -> str:
        counts = f"confidence {self.confidence:.2f}, support {self.support:,} of {self.facts:,}"
        weight = "" if self.weight is None else f", weight {self.weight:.3g}"
        return f"{self.rule}  ({counts}{weight})"

    @property
    def measure(self) -> float:
        """Default sort key: confidence times the share of the facts that the rule explains."""
        return self.confidence * self.confidence * self.body_support / max(self.facts, 1)

    @property
    def fired(self) -> int:
        """Deprecated name of `body_support`."""
        warn_renamed("MinedRule.fired", "MinedRule.body_support")
        return self.body_support

    def _repr_html_(self) -> str:
        from tilp.rules.picture import mined_rule_html

        return mined_rule_html(self)


_KEYS = ("support", "fired", "confidence", "facts", "sampled")  # in files; fired: body support


@dataclass(frozen=True, slots=True)
class RuleSetDiff:
    """Rules that only one of two sets has, and rules whose statistics differ."""

    only_first: RuleSet
    only_second: RuleSet
    changed: tuple[tuple[MinedRule, MinedRule], ...]


class RuleSet:
    """Immutable list of distinct rules with their statistics.

    >>> from tilp.rules import MinedRule, RuleSet, parse_rule
    >>> rule = parse_rule("won(E1,E2,I2) <- nominated(E1,E2,I1) & before(I1,I2)")
    >>> rules = RuleSet([MinedRule(rule, support=3, body_support=4, confidence=0.5, facts=9)])
    >>> print(rules.filter(relation="won", min_support=2)[0])
    won(E1,E2,I2) ← nominated(E1,E2,I1) ∧ before(I1,I2)  (confidence 0.50, support 3 of 9)
    """

    def __init__(self, rules: Iterable[MinedRule] = ()) -> None:
        self._rules = tuple(rules)
        self._by_rule = {mined.rule: mined for mined in self._rules}
        if len(self._by_rule) != len(self._rules):
            raise TilpError("a rule set holds each rule once; merge sets with RuleSet.merge")

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[MinedRule]:
        return iter(self._rules)

    def __getitem__(self, rule: Rule | int) -> MinedRule:
        return self._rules[rule] if isinstance(rule, int) else self._by_rule[rule]

    def __contains__(self, rule: object) -> bool:
        return rule in self._by_rule

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self._rules == other._rules

    def __hash__(self) -> int:
        return hash(self._rules)

    def __repr__(self) -> str:
        heads = {str(mined.rule.head) for mined in self._rules}
        return f"RuleSet({len(self):,} rules for {len(heads):,} relations)"

    def _repr_html_(self) -> str:
        from tilp.rules.picture import rule_set_html

        return rule_set_html(self)

    def filter(
        self,
        condition: Callable[[MinedRule], bool] | None = None,
        *,
        relation: str | None = None,
        min_support: int = 0,
        min_confidence: float = 0.0,
        max_length: int | None = None,
    ) -> RuleSet:
        """Return the rules that meet all conditions.

        Args:
            condition: Function of a `MinedRule`; keep rules for which it is true.
            relation: Keep rules that predict this relation, `name` or `name⁻¹`.
            min_support: Drop rules with less support.
            min_confidence: Drop rules with less confidence.
            max_length: Drop rules with more body atoms.
        """
        return RuleSet(
            mined
            for mined in self._rules
            if (relation is None or str(mined.rule.head) == relation)
            and mined.support >= min_support
            and mined.confidence >= min_confidence
            and (max_length is None or mined.rule.length <= max_length)
            and (condition is None or condition(mined))
        )

    def sort(self, key: Callable[[MinedRule], float] | None = None) -> RuleSet:
        """Sort by head relation, then by the key, highest first; by default `MinedRule.measure`."""
        measure = key or (lambda mined: mined.measure)

        def order(mined: MinedRule) -> tuple[str, float, str]:
            return str(mined.rule.head), -measure(mined), str(mined.rule)

        return RuleSet(sorted(self._rules, key=order))

    def merge(self, other: RuleSet) -> RuleSet:
        """Return the rules of both sets; this set's statistics win."""
        return RuleSet([*self, *(mined for mined in other if mined.rule not in self)])

    def diff(self, other: RuleSet) -> RuleSetDiff:
        """Return the differences from another set."""
        common = [(mined, other[mined.rule]) for mined in self if mined.rule in other]
        return RuleSetDiff(
            only_first=RuleSet(mined for mined in self if mined.rule not in other),
            only_second=RuleSet(mined for mined in other if mined.rule not in self),
            changed=tuple(pair for pair in common if pair[0] != pair[1]),
        )

    def to_jsonl(self) -> str:
        """Return one line a rule: its text and statistics as JSON."""
        lines = (json.dumps(_to_record(mined), ensure_ascii=False) for mined in self)
        return "".join(f"{line}\n" for line in lines)

    def write_jsonl(self, path: Path | str) -> None:
        """Write `to_jsonl` to a file."""
        Path(path).write_text(self.to_jsonl(), encoding="utf-8", newline="\n")

    @classmethod
    def read_jsonl(cls, path: Path | str) -> RuleSet:
        """Read a file that `write_jsonl` wrote.

        Raises:
            DataError: A line holds no rule; the message has its number.
        """
        with Path(path).open(encoding="utf-8") as file:
            lines = [(index, line) for index, line in enumerate(file, start=1) if line.strip()]
        return cls(_from_record(json.loads, line, path, index) for index, line in lines)

    def write_csv(self, path: Path | str) -> None:
        """Write the rules as CSV with a header."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            weighted = any(mined.weight is not None for mined in self)
            fields = ("rule", *_KEYS, *(("weight",) if weighted else ()))
            table = csv.DictWriter(file, fields, lineterminator="\n")
            table.writeheader()
            table.writerows(_to_record(mined) for mined in self)

    @classmethod
    def read_csv(cls, path: Path | str) -> RuleSet:
        """Read a file that `write_csv` wrote."""
        with Path(path).open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            return cls(_from_record(dict, row, path, table.line_num) for row in table)


def _to_record(mined: MinedRule) -> dict[str, object]:
    values = (mined.support, mined.body_support, mined.confidence, mined.facts, mined.sampled)
    record = {"rule": str(mined.rule), **dict(zip(_KEYS, values, strict=True))}
    return record if mined.weight is None else {**record, "weight": mined.weight}


def _from_record(
    decode: Callable[..., dict[str, object]], raw: object, path: Path | str, line: int
) -> MinedRule:
    try:
        record = decode(raw)
        return MinedRule(
            parse_rule(str(record["rule"])),
            support=int(str(record["support"])),
            body_support=int(str(record["fired"])),
            confidence=float(str(record["confidence"])),
            facts=int(str(record["facts"])),
            sampled=str(record["sampled"]) in ("True", "true"),
            weight=None if record.get("weight") in (None, "") else float(str(record["weight"])),
        )
    except (ValueError, KeyError, TypeError, TilpError) as failure:
        raise DataError(
            f"{path}, line {line}: not a rule with its statistics ({failure!r}); each holds "
            f"rule, {', '.join(_KEYS)}"
        ) from failure

"""`RuleSet`: rules with what was counted of them, in and out as JSON lines and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tilp.errors import DataError, TilpError
from tilp.rules.rule import Rule
from tilp.rules.text import Notation, format_rule, parse_rule

__all__ = ["MinedRule", "RuleSet", "RuleSetDiff"]


@dataclass(frozen=True, slots=True)
class MinedRule:
    """A rule and its statistics over the facts of its head relation.

    Attributes:
        rule: the rule.
        support: facts whose answer the rule reaches.
        fired: facts where the rule applies at all.
        confidence: mean arriving rate N_o / N at the answer, over the facts where it applies.
        facts: how many facts were asked.
        sampled: whether some count is an unbiased estimate rather than exact.
        weight: what the rule counts in a model, its score in eq. 15; None before it is learned.
    """

    rule: Rule
    support: int
    fired: int
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
        """What rules are ordered by: confidence times the share of the facts that it explains."""
        return self.confidence * self.confidence * self.fired / max(self.facts, 1)

    def _repr_html_(self) -> str:
        from tilp.rules.picture import mined_rule_html

        return mined_rule_html(self)


_FIELDS = ("support", "fired", "confidence", "facts", "sampled")


@dataclass(frozen=True, slots=True)
class RuleSetDiff:
    """What one rule set has that another has not, and what both have with other statistics."""

    only_first: RuleSet
    only_second: RuleSet
    changed: tuple[tuple[MinedRule, MinedRule], ...]


class RuleSet:
    """An immutable list of rules, each once."""

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
        """The rules that meet all conditions given.

        Args:
            condition: any further condition.
            relation: the head relation, `name` or `name⁻¹`.
            min_support: least support.
            min_confidence: least confidence.
            max_length: greatest length.
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
        """By head relation, then by the key, highest first; by default `MinedRule.measure`."""
        measure = key or (lambda mined: mined.measure)
        return RuleSet(
            sorted(self._rules, key=lambda one: (str(one.rule.head), -measure(one), str(one.rule)))
        )

    def merge(self, other: RuleSet) -> RuleSet:
        """The rules of both; where both have one, this set's statistics stay."""
        return RuleSet([*self, *(mined for mined in other if mined.rule not in self)])

    def diff(self, other: RuleSet) -> RuleSetDiff:
        """What differs from another set."""
        return RuleSetDiff(
            only_first=RuleSet(mined for mined in self if mined.rule not in other),
            only_second=RuleSet(mined for mined in other if mined.rule not in self),
            changed=tuple(
                (mined, other[mined.rule])
                for mined in self
                if mined.rule in other and other[mined.rule] != mined
            ),
        )

    def to_jsonl(self) -> str:
        """One rule a line: its text and statistics."""
        lines = (json.dumps(_to_record(mined), ensure_ascii=False) for mined in self)
        return "".join(f"{line}\n" for line in lines)

    def write_jsonl(self, path: Path | str) -> None:
        """Write `to_jsonl` to a file."""
        Path(path).write_text(self.to_jsonl(), encoding="utf-8", newline="\n")

    @classmethod
    def read_jsonl(cls, path: Path | str) -> RuleSet:
        """Read what `write_jsonl` wrote.

        Raises:
            DataError: a line that holds no rule, by its number.
        """
        with Path(path).open(encoding="utf-8") as file:
            lines = enumerate(file, start=1)
            return cls(
                _from_record(json.loads, line, path, number)
                for number, line in lines
                if line.strip()
            )

    def write_csv(self, path: Path | str) -> None:
        """The same as a table with a header."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            weighted = any(mined.weight is not None for mined in self)
            fields = ("rule", *_FIELDS, *(("weight",) if weighted else ()))
            table = csv.DictWriter(file, fields, lineterminator="\n")
            table.writeheader()
            table.writerows(_to_record(mined) for mined in self)

    @classmethod
    def read_csv(cls, path: Path | str) -> RuleSet:
        """Read what `write_csv` wrote."""
        with Path(path).open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            return cls(_from_record(dict, row, path, table.line_num) for row in table)


def _to_record(mined: MinedRule) -> dict[str, object]:
    return {
        "rule": format_rule(mined.rule, Notation.SIGNS),
        **{field: getattr(mined, field) for field in _FIELDS},
        **({} if mined.weight is None else {"weight": mined.weight}),
    }


def _from_record(
    decode: Callable[..., dict[str, object]], raw: object, path: Path | str, line: int
) -> MinedRule:
    try:
        record = decode(raw)
        return MinedRule(
            parse_rule(str(record["rule"])),
            support=int(str(record["support"])),
            fired=int(str(record["fired"])),
            confidence=float(str(record["confidence"])),
            facts=int(str(record["facts"])),
            sampled=str(record["sampled"]) in ("True", "true"),
            weight=None if record.get("weight") in (None, "") else float(str(record["weight"])),
        )
    except (ValueError, KeyError, TypeError, TilpError) as failure:
        raise DataError(
            f"{path}, line {line}: not a rule with its statistics ({failure!r}); each holds "
            f"rule, {', '.join(_FIELDS)}"
        ) from failure

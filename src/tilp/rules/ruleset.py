"""`RuleSet`: rules with their statistics, read and written as JSON lines, text and CSV."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tilp._utils.files import write_text
from tilp.errors import DataError, TilpError
from tilp.rules.rule import Rule, parse_rule


@dataclass(frozen=True, slots=True)
class MinedRule:
    """A rule and its statistics over the facts of its head relation.

    Counts are 0 if the rule was not counted, as when a person wrote it.

    Attributes:
        rule: the rule.
        support: number of facts whose answer the rule reaches.
        body_support: number of facts for which the body has a grounding.
        confidence: mean arriving rate N_o / N at the answer, over the facts of `body_support`.
        facts: number of facts that the rule was applied to.
        sampled: True if some count is an unbiased estimate rather than exact.
        weight: learned score of the rule in eq. 15; None before it is learned.
        gain: held-out gain: how much the mean held-out log-likelihood of the relation's queries
            falls without the rule, in nats per query; None if it was not measured.
        lift: confidence over the relation's base rate, the mean share of a popularity guess at the
            answer; None if it was not measured.
        given: True if a user gave the rule, so that selection does not drop it.
    """

    rule: Rule
    support: int = 0
    body_support: int = 0
    confidence: float = 0.0
    facts: int = 0
    sampled: bool = False
    weight: float | None = None
    gain: float | None = None
    lift: float | None = None
    given: bool = False

    def __str__(self) -> str:
        return f"{self.rule}  ({self.figures})"

    @property
    def figures(self) -> str:
        """The statistics as text."""
        texts = [
            _text("gain {:.3g}", self.gain),
            f"confidence {self.confidence:.2f}" if self.facts else "not counted",
            _text("lift {:,.2f}", self.lift),
            f"support {self.support:,} of {self.facts:,}" if self.facts else "",
            _text("weight {:.3g}", self.weight),
        ]
        return ", ".join(filter(None, texts))

    @property
    def statistics(self) -> dict[str, float | None]:
        """The statistics by name."""
        return {name: getattr(self, name) for name in _STATISTICS}

    @property
    def measure(self) -> float:
        """Sort key of mining: confidence times the share of the facts that the rule explains."""
        return self.confidence * self.confidence * self.body_support / max(self.facts, 1)

    @property
    def order(self) -> tuple[float, float, float]:
        """Sort key for people, highest first: gain, weight, measure; what is unknown is lowest."""
        gain, weight = (-math.inf if x is None else x for x in (self.gain, self.weight))
        return gain, weight, self.measure

    def _repr_html_(self) -> str:
        from tilp.rules.picture import mined_rule_html

        return mined_rule_html(self)


_COLUMNS: dict[str, type[pl.DataType]] = {
    "rule": pl.String, "relation": pl.String, "inverse": pl.Boolean, "length": pl.Int64,
    "gain": pl.Float64, "weight": pl.Float64, "support": pl.Int64, "body_support": pl.Int64,
    "confidence": pl.Float64, "lift": pl.Float64, "facts": pl.Int64, "sampled": pl.Boolean,
}  # fmt: skip
_STATISTICS = tuple(_COLUMNS)[4:]
_KEYS = ("support", "fired", "confidence", "facts", "sampled")  # in files; fired: body support
_OPTIONAL = ("weight", "gain", "lift")
_GIVEN = "given"


def _text(template: str, number: float | None) -> str:
    return "" if number is None else template.format(number)


def figure_columns(rules: Sequence[MinedRule]) -> dict[str, list[str]]:
    """Return statistics of rules as texts, by column; the first is gain if known, or weight."""
    first = "weight" if all(mined.gain is None for mined in rules) else "gain"
    columns = {
        first: [_text("{:.3g}", getattr(mined, first)) for mined in rules],
        "support": [f"{mined.support:,}" for mined in rules],
        "body support": [f"{mined.body_support:,}" for mined in rules],
        "confidence": [f"{mined.confidence:.2f}{'~' * mined.sampled}" for mined in rules],
        "lift": [_text("{:,.2f}", mined.lift) for mined in rules],
    }
    return {name: texts for name, texts in columns.items() if any(texts) or name not in _OPTIONAL}


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
        """Sort by head relation, then by the key, highest first.

        By default the key is `MinedRule.order`, and the best rule of each chain of relations comes
        before all other rules of that chain, which differ from it in temporal detail alone.
        """

        def order(mined: MinedRule) -> tuple[str, list[float], str]:
            values = mined.order if key is None else (key(mined),)
            return str(mined.rule.head), [-value for value in values], str(mined.rule)

        ordered = sorted(self._rules, key=order)
        if key is None:
            best = self.best_of_chains()
            ordered.sort(key=lambda mined: (str(mined.rule.head), mined.rule not in best))
        return RuleSet(ordered)

    def best_of_chains(self) -> set[Rule]:
        """Return the best rule, by `MinedRule.order`, of each head and chain of relations."""
        ordered = sorted(self._rules, key=lambda mined: (mined.order, str(mined.rule)))
        return set({(mined.rule.head, mined.rule.body): mined.rule for mined in ordered}.values())

    def frame(self) -> pl.DataFrame:
        """Return a table with one row a rule.

        >>> from tilp.rules import MinedRule, RuleSet, parse_rule
        >>> rule = parse_rule("won^-1(E1,E2,I2) <- nominated^-1(E1,E2,I1) & before(I1,I2)")
        >>> rules = RuleSet([MinedRule(rule, support=3, body_support=4, confidence=0.5, facts=9)])
        >>> rules.frame().drop("rule", "gain", "weight", "lift").row(0, named=True)
        {'relation': 'won', 'inverse': True, 'length': 1, 'support': 3, 'body_support': 4, \
'confidence': 0.5, 'facts': 9, 'sampled': False}
        """
        rows = [
            {
                "rule": str(mined.rule),
                "relation": mined.rule.head.relation,
                "inverse": mined.rule.head.inverse,
                "length": mined.rule.length,
                **mined.statistics,
            }
            for mined in self
        ]
        return pl.DataFrame(rows, _COLUMNS)

    def merge(self, other: RuleSet) -> RuleSet:
        """Return the rules of both sets; this set's statistics win."""
        return RuleSet([*self, *(mined for mined in other if mined.rule not in self)])

    def to_jsonl(self) -> str:
        """Return one line a rule: its text and statistics as JSON."""
        lines = (json.dumps(_to_record(mined), ensure_ascii=False) for mined in self)
        return "".join(f"{line}\n" for line in lines)

    def write_jsonl(self, path: Path | str) -> None:
        """Write `to_jsonl` to a file, whole or not at all."""
        write_text(Path(path), self.to_jsonl())

    @classmethod
    def read_jsonl(cls, path: Path | str) -> RuleSet:
        """Read a file that `write_jsonl` wrote, as `read` does."""
        return cls.read(path)

    def to_text(self) -> str:
        """Return one line a rule: its text, and its statistics as a comment."""
        return "".join(f"{mined.rule}  # {mined.figures}\n" for mined in self)

    def write(self, path: Path | str) -> None:
        """Write the rules, whole or not at all: `.txt` as `to_text`, others as `to_jsonl`."""
        is_text = Path(path).suffix.lower() == ".txt"
        write_text(Path(path), self.to_text() if is_text else self.to_jsonl())

    @classmethod
    def read(cls, path: Path | str, check: Callable[[Rule], object] | None = None) -> RuleSet:
        """Read a file of rules that `write` or `tilp mine` wrote, or a person.

        A line is a JSON record with statistics, or a rule as `parse_rule` reads it, which has none.
        Empty lines and comments (`#`) are skipped. `check` raises a `TilpError` for unusable rules.
        """
        raw = Path(path).read_bytes()
        try:
            lines = io.StringIO(raw.decode("utf-8-sig"), newline=None)
        except UnicodeDecodeError as failure:
            line = raw.count(b"\n", 0, failure.start) + 1
            raise DataError(
                f"{path}, line {line}: not UTF-8 text; save the file as UTF-8"
            ) from failure
        rules: list[MinedRule] = []
        found: dict[Rule, int] = {}
        for index, text in enumerate(map(str.strip, lines), start=1):
            if not text or text.startswith("#"):
                continue
            if text.startswith("{"):
                rules.append(_from_record(text, path, index))
            else:
                rules.append(_from_text(text, path, index))
            first = found.setdefault(rules[-1].rule, index)
            if first != index:
                raise DataError(
                    f"{path}, line {index}: the rule of line {first} again; remove one of them"
                )
            try:
                check and check(rules[-1].rule)
            except TilpError as failure:
                raise DataError(f"{path}, line {index}: {failure}") from failure
        return cls(rules)


def _to_record(mined: MinedRule) -> dict[str, object]:
    values = (mined.support, mined.body_support, mined.confidence, mined.facts, mined.sampled)
    record = {"rule": str(mined.rule), **dict(zip(_KEYS, values, strict=True))}
    optional = {key: getattr(mined, key) for key in _OPTIONAL}
    optional[_GIVEN] = mined.given or None
    return record | {key: value for key, value in optional.items() if value is not None}


def _from_text(text: str, path: Path | str, line: int) -> MinedRule:
    try:
        return MinedRule(parse_rule(text))
    except TilpError as failure:
        raise DataError(
            f"{path}, line {line}: {failure}. Write a rule a line, such as won(E1,E2,I2) <- "
            "nominated(E1,E2,I1) & before(I1,I2), and # before a comment."
        ) from failure


def _from_record(text: str, path: Path | str, line: int) -> MinedRule:
    try:
        record = json.loads(text)
        known = [key for key in _OPTIONAL if record.get(key) not in (None, "")]
        optional = {key: float(str(record[key])) for key in known}
        if not all(map(math.isfinite, optional.values())):
            raise ValueError(f"{optional} should be finite")
        return MinedRule(
            parse_rule(str(record["rule"])),
            support=int(str(record["support"])),
            body_support=int(str(record["fired"])),
            confidence=float(str(record["confidence"])),
            facts=int(str(record["facts"])),
            sampled=str(record["sampled"]) in ("True", "true"),
            given=str(record.get(_GIVEN)) in ("True", "true"),
            **optional,
        )
    except (ValueError, KeyError, TypeError, RecursionError, TilpError) as failure:
        raise DataError(
            f"{path}, line {line}: not a rule with its statistics ({failure!r}); each holds "
            f"rule, {', '.join(_KEYS)}"
        ) from failure

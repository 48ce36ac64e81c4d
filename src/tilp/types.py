"""Choices that users make, as enumerations of their names."""

from enum import StrEnum
from typing import Self, TypeVar

from tilp.errors import TilpError

MAX_RULES = 3_000
"""Default for the number of rules of each relation and direction."""


class Unit(StrEnum):
    """Unit of an integer time: years, months or days of the calendar, or just integers."""

    YEAR, MONTH, DAY, INTEGER = "year", "month", "day", "integer"


class OnError(StrEnum):
    """Treatment of a row whose dates are malformed or run backwards."""

    REPAIR, SKIP, RAISE = "repair", "skip", "raise"


class OnInvalidQuery(StrEnum):
    """Treatment of a query that has an unknown name or a malformed date."""

    RAISE, SKIP = "raise", "skip"


class TableFormat(StrEnum):
    """File format of written tables."""

    TSV, CSV, PARQUET = "tsv", "csv", "parquet"


class Backend(StrEnum):
    """Where chunks of work run."""

    SERIAL, THREADS, RAY = "serial", "threads", "ray"


class Grain(StrEnum):
    """Temporal detail of rules."""

    STATIC, QUERY, ADJACENT = "static", "query", "adjacent"
    PAIRS, ALLEN, GAP = "pairs", "allen", "gap"


class Missing(StrEnum):
    """Treatment of a missing start or end."""

    POINT, DURATION, OPEN = "point", "duration", "open"


class Estimate(StrEnum):
    """How an interval's length is estimated: by its expected value, or by a random draw."""

    EXPECTED, DRAWN = "expected", "drawn"


class Protocol(StrEnum):
    """Which other answers of a query are removed before its answer is ranked."""

    ENUMERATE, EXACT, OVERLAP = "enumerate", "exact", "overlap"
    STATIC, RAW, TILP_RELEASE = "static", "raw", "tilp-release"


class Ties(StrEnum):
    """Rank of an answer among candidates with the same score.

    `optimistic`, `realistic` and `pessimistic` are accepted for best, average and worst.
    """

    BEST, AVERAGE, WORST = "best", "average", "worst"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        aliases = {"optimistic": cls.BEST, "realistic": cls.AVERAGE, "pessimistic": cls.WORST}
        return aliases.get(str(value))


class Weights(StrEnum):
    """How rule weights are parametrised."""

    ATTENTION, FREE = "attention", "free"


class Features(StrEnum):
    """Temporal features beside the rules."""

    NONE, PAPER, FULL = "none", "paper", "full"


class Effort(StrEnum):
    """How much work a fit puts into a large graph."""

    QUICK, NORMAL, THOROUGH = "quick", "normal", "thorough"


class EvidenceKind(StrEnum):
    """Evidence for a candidate: its facts with the subject, its other facts, walks to it."""

    BETWEEN, OTHERS, WALKS = "between", "others", "walks"


class End(StrEnum):
    """Subject or object of a fact."""

    SUBJECT, OBJECT = "subject", "object"


class Part(StrEnum):
    """Parts of temporal features, for ablation: the paper's first, then those of `full`."""

    RECURRENCE = "recurrence"
    ORDER = "order"
    PAIR = "pair"
    RULE_EVIDENCE = "rule-evidence"
    OWN_FACTS = "own-facts"
    SOFT_WALKS = "soft-walks"
    STACKING = "stacking"
    COUNTS = "counts"
    KINDS = "kinds"
    VALID = "valid"


class EvaluationTask(StrEnum):
    """What an evaluation asks for: the subject or object of a fact, or its time."""

    LINK, TIME = "link", "time"


class Task(StrEnum):
    """What a model is for."""

    COMPLETE = "complete"
    FORECAST = "forecast"


class Preset(StrEnum):
    """Choices for a model that go together."""

    DEFAULT, PAPER = "default", "paper"


class Transition(StrEnum):
    """How a temporal random walk chooses among facts: more recent ones rather, or uniformly."""

    EXPONENTIAL, UNIFORM = "exponential", "uniform"


class RuleOrder(StrEnum):
    """Sort order of rules."""

    GAIN, WEIGHT, CONFIDENCE, SUPPORT, LENGTH = "gain", "weight", "confidence", "support", "length"


class SplitKind(StrEnum):
    """Ways in which `tilp split` splits a data set."""

    RANDOM, TIME_SHIFT = "random", "time-shift"


class WalkGraph(StrEnum):
    """Facts that walks may use when rules are learned from part of the training facts."""

    FULL, REDUCED = "kept", "reduced"


class LateEnds(StrEnum):
    """Treatment of training facts that end in or after the time of valid."""

    MASK, DROP, KEEP = "mask", "drop", "keep"


class ByLabel(StrEnum):
    """How to treat a new name that is the label, but no id and no key, of something known."""

    REFUSE, MATCH, NEW = "refuse", "match", "new"


Choice = TypeVar("Choice", bound=StrEnum)


def choose(choices: type[Choice], value: str, name: str) -> Choice:
    """Return the member of an enumeration that a parameter names."""
    try:
        return choices(value)
    except ValueError:
        raise TilpError(f"{name} is {value!r}; it can be {', '.join(choices)}") from None

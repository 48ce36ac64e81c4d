"""Names of the choices that users make, and `choose`, which checks one."""

from enum import StrEnum
from typing import Self, TypeVar

from tilp.errors import TilpError

MAX_RULES = 3_000
"""Default for the number of rules of each relation and direction."""


class Unit(StrEnum):
    """What an integer time counts: years, months or days of the calendar, or just integers."""

    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    INTEGER = "integer"


class OnError(StrEnum):
    """What to do with a row whose dates cannot be taken as they are."""

    REPAIR = "repair"
    SKIP = "skip"
    RAISE = "raise"


class OnInvalidQuery(StrEnum):
    """What to do with a query that cannot be asked."""

    RAISE = "raise"
    SKIP = "skip"


class TableFormat(StrEnum):
    """How tables are written."""

    TSV = "tsv"
    CSV = "csv"
    PARQUET = "parquet"


class Backend(StrEnum):
    """Where chunks of work are done."""

    SERIAL = "serial"
    THREADS = "threads"
    RAY = "ray"


class Grain(StrEnum):
    """How finely rules speak of time."""

    STATIC = "static"
    QUERY = "query"
    ADJACENT = "adjacent"
    PAIRS = "pairs"
    ALLEN = "allen"
    GAP = "gap"


class Missing(StrEnum):
    """What a start or an end that is not known is taken for."""

    POINT = "point"
    DURATION = "duration"
    OPEN = "open"
    UNKNOWN = "unknown"


class Estimate(StrEnum):
    """What an interval's length is estimated by: its expected value, or a draw."""

    EXPECTED = "expected"
    DRAWN = "drawn"


class DumpFormat(StrEnum):
    """What a dump to import holds."""

    JSON = "json"
    NTRIPLES = "ntriples"
    TURTLE = "turtle"


class Protocol(StrEnum):
    """Which other answers of a query are removed before its answer is ranked."""

    ENUMERATE = "enumerate"
    EXACT = "exact"
    OVERLAP = "overlap"
    STATIC = "static"
    RAW = "raw"
    TILP_RELEASE = "tilp-release"


class Ties(StrEnum):
    """Rank of an answer among candidates with the same score.

    `optimistic`, `realistic` and `pessimistic` are accepted for best, average and worst.
    """

    BEST = "best"
    AVERAGE = "average"
    WORST = "worst"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        aliases = {"optimistic": cls.BEST, "realistic": cls.AVERAGE, "pessimistic": cls.WORST}
        return aliases.get(str(value))


class Weights(StrEnum):
    """What the weight of a rule is made of."""

    ATTENTION = "attention"
    FREE = "free"


class Features(StrEnum):
    """Which temporal features join the rules."""

    NONE = "none"
    PAPER = "paper"
    FULL = "full"


class EvidenceKind(StrEnum):
    """What speaks for a candidate: its facts with the subject, its other facts, walks to it."""

    BETWEEN = "between"
    OTHERS = "others"
    WALKS = "walks"


class End(StrEnum):
    """An end of a fact."""

    SUBJECT = "subject"
    OBJECT = "object"


class Part(StrEnum):
    """What can be left out of temporal features: the paper's first, then those of `full`."""

    RECURRENCE = "recurrence"
    ORDER = "order"
    PAIR = "pair"
    RULE_EVIDENCE = "rule-evidence"
    OWN_FACTS = "own-facts"
    SOFT_WALKS = "soft-walks"
    OUT_OF_FOLD = "out-of-fold"
    MIXING = "mixing"


class Preset(StrEnum):
    """Choices for a model that go together."""

    DEFAULT = "default"
    PAPER = "paper"


class Transition(StrEnum):
    """How a temporal random walk chooses among facts: by how late they are, or all alike."""

    EXPONENTIAL = "exponential"
    UNIFORM = "uniform"


class RuleOrder(StrEnum):
    """What rules are sorted by."""

    WEIGHT = "weight"
    CONFIDENCE = "confidence"
    SUPPORT = "support"
    LENGTH = "length"


class SplitKind(StrEnum):
    """The harder settings that a data set can be split for."""

    FEW = "few"
    BIASED = "biased"
    TIME_SHIFT = "time-shift"


class Walked(StrEnum):
    """What becomes of the graph to walk on when fewer of its facts are learned from."""

    KEPT = "kept"
    REDUCED = "reduced"


class LateEnds(StrEnum):
    """What becomes of training facts that end after all training facts have started."""

    MASK = "mask"
    DROP = "drop"
    KEEP = "keep"


class ByLabel(StrEnum):
    """What a new name is that is no id and no key, but the label of something known."""

    REFUSE = "refuse"
    MATCH = "match"
    NEW = "new"


class MoreDates(StrEnum):
    """What becomes of a fact when another tells the same, and more of its dates."""

    SUPERSEDE = "supersede"
    BOTH = "both"


class ExperimentKind(StrEnum):
    """What an experiment of a plan asks."""

    COMPARE = "compare"
    CURVE = "curve"
    BIASED = "biased"
    EFFICIENCY = "efficiency"
    RULES = "rules"


class SettingKind(StrEnum):
    """What becomes of a data set before the methods of an experiment see it."""

    NONE = "none"
    FEW = "few"
    BALANCED = "balanced"
    BIASED = "biased"
    TIME_SHIFT = "time-shift"
    RELEASE = "release"
    FORECAST = "forecast"


class BaseMethod(StrEnum):
    """The methods that a plan knows by name, and makes its own from."""

    FULL = "full"
    RULES = "rules"
    PAPER = "paper"
    STATIC = "static"
    TIMESTAMPS = "timestamps"
    FORECAST = "forecast"
    POPULARITY = "popularity"
    RECURRENCE = "recurrence"


Word = TypeVar("Word", bound=StrEnum)


def choose(words: type[Word], word: str, name: str) -> Word:
    """The word of an enumeration.

    Raises:
        TilpError: it has no such word.
    """
    try:
        return words(word)
    except ValueError:
        raise TilpError(f"{name} is {word!r}; it can be {', '.join(words)}") from None

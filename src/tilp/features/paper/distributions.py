"""Distributions of temporal features: Bernoulli, Gaussian and exponential (Appendix A).

Each holds its parameters as arrays, one place a distribution, and gives those at some places by
`[...]`. Densities are logarithms, so that those far from the mean do not vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import TilpError
from tilp.features.paper.evidence import EVIDENCE_KINDS, Evidence
from tilp.graph import QueryTable, Vocabulary

Floats = NDArray[np.float64]

_LEAST_SCALE = 0.5  # times are whole units; nothing is known finer


@dataclass(frozen=True)
class Bernoulli:
    """p^x (1 - p)^(1 - x).

    Attributes:
        probability: p.
    """

    probability: Floats

    @classmethod
    def fit(cls, place: NDArray[Any], x: NDArray[np.bool_], places: int) -> Bernoulli:
        """The mean of what was seen at each place, with one of each added: never 0 nor 1."""
        seen = np.bincount(place, minlength=places)
        return cls((np.bincount(place, x, places) + 1.0) / (seen + 2.0))

    def __getitem__(self, place: Any) -> Bernoulli:
        return Bernoulli(self.probability[place])

    def log_density(self, x: NDArray[np.bool_]) -> Floats:
        """The logarithm of the probability of each x."""
        logs: Floats = np.log(np.where(x, self.probability, 1.0 - self.probability))
        return logs


@dataclass(frozen=True)
class Gaussian:
    """N(x; μ, σ).

    Attributes:
        mean: μ.
        deviation: σ.

    >>> born_to_graduation = Gaussian(np.array(22.0), np.array(1.0))
    >>> print(f"{np.exp(born_to_graduation.log_density(np.array(47.0))):.3e}")
    7.654e-137
    """

    mean: Floats
    deviation: Floats

    @classmethod
    def fit(cls, place: NDArray[Any], x: Floats, places: int) -> Gaussian:
        """Mean and deviation of what was seen at each place; the deviation is never too small."""
        seen = np.maximum(np.bincount(place, minlength=places), 1)
        mean = np.bincount(place, x, places) / seen
        variance = np.bincount(place, (x - mean[place]) ** 2, places) / seen
        return cls(mean, np.maximum(np.sqrt(variance), _LEAST_SCALE))

    def __getitem__(self, place: Any) -> Gaussian:
        return Gaussian(self.mean[place], self.deviation[place])

    def log_density(self, x: Floats) -> Floats:
        """The logarithm of the density at each x."""
        away = (x - self.mean) / self.deviation
        logs: Floats = -0.5 * away * away - np.log(self.deviation) - 0.5 * np.log(2.0 * np.pi)
        return logs


@dataclass(frozen=True)
class Exponential:
    """λ exp(-λx).

    Attributes:
        rate: λ.
    """

    rate: Floats

    @classmethod
    def fit(cls, place: NDArray[Any], x: Floats, places: int) -> Exponential:
        """One over the mean of what was seen at each place; the mean is never too small."""
        seen = np.maximum(np.bincount(place, minlength=places), 1)
        return cls(1.0 / np.maximum(np.bincount(place, x, places) / seen, _LEAST_SCALE))

    def __getitem__(self, place: Any) -> Exponential:
        return Exponential(self.rate[place])

    def log_density(self, x: Floats) -> Floats:
        """The logarithm of the density at each x."""
        logs: Floats = np.log(self.rate) - self.rate * x
        return logs


@dataclass(frozen=True)
class PairInterval:
    """Gaussian or exponential, whichever makes what was seen more likely.

    Attributes:
        gaussian: what the Gaussian would be at each place; likewise `exponential`.
        is_gaussian: which of them it is.
    """

    gaussian: Gaussian
    exponential: Exponential
    is_gaussian: NDArray[np.bool_]

    @classmethod
    def fit(cls, place: NDArray[Any], x: Floats, places: int) -> PairInterval:
        """Fit both at each place; where they are equally likely, the exponential is taken."""
        gaussian = Gaussian.fit(place, x, places)
        exponential = Exponential.fit(place, x, places)
        by_gaussian, by_exponential = (
            np.bincount(place, logs, places)
            for logs in (gaussian[place].log_density(x), exponential[place].log_density(x))
        )
        return cls(gaussian, exponential, by_gaussian > by_exponential)

    def __getitem__(self, place: Any) -> PairInterval:
        return PairInterval(self.gaussian[place], self.exponential[place], self.is_gaussian[place])

    def log_density(self, x: Floats) -> Floats:
        """The logarithm of the density at each x."""
        both = self.gaussian.log_density(x), self.exponential.log_density(x)
        return np.where(self.is_gaussian, *both)


_LEAST_SEEN = 5  # of a pair, for an interval distribution of its own


@dataclass(frozen=True)
class FittedDistributions:
    """Distributions fitted to queries with their answers as candidates (Appendix A).

    A pair is a kind of evidence, a query's relation and another relation. Pairs that were seen have
    a place each, by their keys; after them comes, for each kind and query's relation, a place for
    all relations that were never seen with an answer.

    Attributes:
        directed: how many directed relations there are.
        key: of each pair that was seen, rising: (kind · directed + relation) · directed + other.
        seen: how often something was seen at each place.
        order: whether the query's fact starts earlier, at each place.
        interval: the time between the starts, at each place; pooled over all other relations, or
            over all pairs of the kind, where little was seen.
        asked: how many queries each relation has.
        recurrence: whether a candidate has the query's relation again, first in its facts with the
            subject, then in its others, for each relation.
    """

    n_directed: int
    key: NDArray[np.int64]
    count: NDArray[np.int64]
    order: Bernoulli
    interval: PairInterval
    n_queries: NDArray[np.int64]
    recurrence: Bernoulli

    @classmethod
    def fit(cls, directed: int, queries: QueryTable, evidence: Evidence) -> FittedDistributions:
        """Fit to the evidence for the answers of queries, one candidate each."""
        of_head = queries.directed_relation[evidence.query]
        again = recurs(queries, evidence)
        recurrence = Bernoulli.fit(
            np.concatenate([of_head, directed + of_head]), again.T.reshape(-1), 2 * directed
        )
        _, kind, head, relation, apart = evidence.dated(queries)
        group = kind * directed + head
        key, pair = np.unique(group * directed + relation, return_inverse=True)
        groups = len(EVIDENCE_KINDS) * directed
        # Everything is seen at its pair, at its group, and at its kind.
        place = np.concatenate([pair, len(key) + group, len(key) + groups + kind])
        places = len(key) + groups + len(EVIDENCE_KINDS)
        seen = np.bincount(place, minlength=places)
        parent = np.concatenate(
            [
                len(key) + key // directed,
                len(key) + groups + np.repeat(np.arange(len(EVIDENCE_KINDS)), directed),
            ]
        )
        interval = PairInterval.fit(place, np.tile(np.abs(apart), 3), places)
        source = np.arange(len(parent))
        for _ in range(2):  # from pair to group, from group to kind
            source = np.where(
                (seen[source] < _LEAST_SEEN) & (source < len(parent)),
                parent[np.minimum(source, len(parent) - 1)],
                source,
            )
        return cls(
            directed,
            key,
            seen[: len(parent)],
            Bernoulli.fit(place, np.tile(apart > 0, 3), places)[: len(parent)],
            interval[source],
            np.bincount(of_head, minlength=directed),
            Bernoulli(recurrence.probability.reshape(2, directed)),
        )

    def __len__(self) -> int:
        return len(self.count)

    def indices(
        self, kind: NDArray[Any], head: NDArray[Any], relation: NDArray[Any]
    ) -> NDArray[np.int64]:
        """The place of each pair."""
        group = kind.astype(np.int64) * self.n_directed + head
        wanted = group * self.n_directed + relation
        place = np.searchsorted(self.key, wanted)
        known = place < len(self.key)
        known[known] = self.key[place[known]] == wanted[known]
        places: NDArray[np.int64] = np.where(known, place, len(self.key) + group)
        return places

    def remap(self, heads: NDArray[np.int64]) -> tuple[FittedDistributions, NDArray[np.int64]]:
        """The same for other numbers of relations; and for each new place the old one.

        Args:
            heads: for each new head the old one; -1: none, which has the distributions of any.
        """
        directed = len(heads)
        new = np.full(self.n_directed, -1, np.int64)
        new[heads[heads >= 0]] = np.flatnonzero(heads >= 0)
        group, other = np.divmod(self.key, self.n_directed)
        kind, head = np.divmod(group, self.n_directed)
        key = (kind * directed + new[head]) * directed + new[other]
        kept = np.flatnonzero((new[head] >= 0) & (new[other] >= 0))
        kept = kept[np.argsort(key[kept])]
        groups = (
            np.arange(len(EVIDENCE_KINDS))[:, None] * self.n_directed + np.maximum(heads, 0)
        ).reshape(-1)
        place = np.concatenate([kept, len(self.key) + groups])
        return (
            FittedDistributions(
                directed,
                key[kept],
                self.count[place],
                self.order[place],
                self.interval[place],
                np.where(heads >= 0, self.n_queries[heads], 0),
                Bernoulli(self.recurrence.probability[:, heads]),
            ),
            place,
        )

    def table(self, relations: Vocabulary) -> pl.DataFrame:
        """Every distribution that was fitted, with its parameters, in words.

        Relations are those of queries, as asked; others are read from the candidate, or in walking
        direction. Of pairs that were seen too seldom, the pooled interval is given.
        """
        labels = pl.Series(
            [relations.label(one) for one in range(self.n_directed)], dtype=pl.String
        )
        return pl.concat([self._recurrence_table(labels), *self._pair_tables(labels)])

    def _recurrence_table(self, labels: pl.Series) -> pl.DataFrame:
        heads = np.flatnonzero(self.n_queries)
        return pl.concat(
            [
                _rows(
                    "recurrence",
                    np.full(len(heads), kind),
                    labels.gather(heads),
                    None,
                    self.n_queries[heads],
                    Bernoulli(self.recurrence.probability[kind, heads]),
                )
                for kind in range(2)
            ]
        )

    def _pair_tables(self, labels: pl.Series) -> list[pl.DataFrame]:
        group, other = np.divmod(self.key, self.n_directed)
        kind, head = np.divmod(group, self.n_directed)
        pairs = slice(len(self.key))
        return [
            _rows(
                feature, kind, labels.gather(head), labels.gather(other), self.count[pairs], fitted
            )
            for feature, fitted in (("order", self.order[pairs]), ("pair", self.interval[pairs]))
        ]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays by name."""
        return {
            "directed": np.array(self.n_directed),
            "key": self.key,
            "seen": self.count,
            "order": self.order.probability,
            "mean": self.interval.gaussian.mean,
            "deviation": self.interval.gaussian.deviation,
            "rate": self.interval.exponential.rate,
            "is_gaussian": self.interval.is_gaussian,
            "asked": self.n_queries,
            "recurrence": self.recurrence.probability,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> FittedDistributions:
        """What `to_arrays` gave.

        Raises:
            TilpError: an array is missing.
        """
        try:
            return cls(
                int(arrays["directed"]),
                arrays["key"],
                arrays["seen"],
                Bernoulli(arrays["order"]),
                PairInterval(
                    Gaussian(arrays["mean"], arrays["deviation"]),
                    Exponential(arrays["rate"]),
                    arrays["is_gaussian"],
                ),
                arrays["asked"],
                Bernoulli(arrays["recurrence"]),
            )
        except KeyError as missing:
            raise TilpError(
                f"distributions of features lack {missing}; fit the model anew"
            ) from None


def recurs(queries: QueryTable, evidence: Evidence) -> NDArray[np.bool_]:
    """Whether each candidate has the query's relation again: with the subject, and with others.

    The relation is read from the candidate, as in the paper's example, where a query for who was
    born somewhere is about the candidate's own birth: to (s, r, ?) it is r⁻¹ of the candidate.
    """
    head = queries.directed_relation[evidence.query]
    size = np.int32(evidence.n_directed // 2)
    from_candidate = np.where(head < size, head + size, head - size)
    found = np.zeros((len(evidence.candidate), len(EVIDENCE_KINDS)), np.bool_)
    same = np.flatnonzero(evidence.relation == from_candidate[evidence.row])
    found[evidence.row[same], evidence.kind[same]] = True
    return found[:, :2]


def _rows(
    feature: str,
    kind: NDArray[np.int64],
    relation: pl.Series,
    other: pl.Series | None,
    seen: NDArray[np.int64],
    fitted: Bernoulli | PairInterval,
) -> pl.DataFrame:
    nothing = pl.repeat(None, len(kind), dtype=pl.Float64, eager=True)
    parameters = dict.fromkeys(("probability", "mean", "deviation", "rate"), nothing)
    if isinstance(fitted, Bernoulli):
        distribution = np.full(len(kind), "Bernoulli")
        parameters["probability"] = pl.Series(fitted.probability)
    else:
        chosen = pl.Series(fitted.is_gaussian)
        distribution = np.where(fitted.is_gaussian, "Gaussian", "exponential")
        for name, values, wanted in (
            ("mean", fitted.gaussian.mean, chosen),
            ("deviation", fitted.gaussian.deviation, chosen),
            ("rate", fitted.exponential.rate, ~chosen),
        ):
            parameters[name] = pl.Series(values).zip_with(wanted, nothing)
    return pl.DataFrame(
        {
            "feature": pl.Series([feature] * len(kind), dtype=pl.String),
            "evidence": pl.Series([EVIDENCE_KINDS[one] for one in kind], dtype=pl.String),
            "relation": relation,
            "other": pl.repeat(None, len(kind), dtype=pl.String, eager=True)
            if other is None
            else other,
            "distribution": pl.Series(distribution.tolist(), dtype=pl.String),
            **parameters,
            "seen": pl.Series(seen, dtype=pl.Int64),
            "pooled": pl.Series(seen < _LEAST_SEEN) & isinstance(fitted, PairInterval),
        }
    )

"""`Evaluation`: the rank of every query's answer, and the figures made of the ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils.files import file_digest, new_folder, read_note, write_note
from tilp.errors import TilpError
from tilp.evaluation.filtered_ranks import rank_column, ties_of
from tilp.types import Protocol, Ties

HITS = (1, 3, 10)
"""The ranks up to which an answer is a hit."""

APART: Mapping[str, str] = {
    "repeated": "the triple stands in train with another interval",
    "dated": "both dates are known",
    "unreached": "no rule reaches the answer (or it is not listed)",
    "unseen": "an entity that train never saw",
}
"""The rows that are also looked at apart, and what they are."""

QUERY_SCHEMA = {
    "fact": pl.Int64,
    "direction": pl.String,
    "subject": pl.String,
    "relation": pl.String,
    "object": pl.String,
    "start": pl.String,
    "end": pl.String,
}
"""The columns that tell which query a rank is of."""


@dataclass(frozen=True)
class Metrics:
    """Figures of some queries; `nan` where there are none."""

    queries: int
    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float
    mean_rank: float

    def to_json(self) -> dict[str, float | None]:
        """As in a report: `mrr`, `hits@1` and so on; None where there are no queries."""
        figures = (self.mrr, self.hits_at_1, self.hits_at_3, self.hits_at_10, self.mean_rank)
        names = ("mrr", *(f"hits@{k}" for k in HITS), "mean_rank")
        return {
            name: float(one) if self.queries else None
            for name, one in zip(names, figures, strict=True)
        }


@dataclass(frozen=True)
class Bounds:
    """A figure, and the bootstrap interval that it lies in."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The ranks of the answers of one split's facts, each asked in both directions.

    Attributes:
        ranks: one row a query: the fact's number in the graph, which end is asked for
            (`direction`), the fact as written, whether it belongs to the rows that are looked
            at `APART`, and a column of ranks for each protocol and tie rule.
        split: whose facts were asked.
        graph: the fingerprint of the graph.
        protocols: those that ranks were made for.
        note: anything worth keeping, such as where the scores came from.
    """

    ranks: pl.DataFrame
    split: str
    graph: str
    protocols: tuple[Protocol, ...]
    note: str = ""

    def __len__(self) -> int:
        return len(self.ranks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        return self.ranks.equals(other.ranks) and all(
            getattr(self, name) == getattr(other, name)
            for name in ("split", "graph", "protocols", "note")
        )

    __hash__ = None  # type: ignore[assignment]  # compared by content, never hashed

    def __repr__(self) -> str:
        metrics = self.metrics()
        return (
            f"Evaluation({len(self):,} queries of {self.split}; {' '.join(self.headline)}: "
            f"MRR {metrics.mrr:.4f}, hits@1 {metrics.hits_at_1:.4f}, "
            f"hits@10 {metrics.hits_at_10:.4f})"
        )

    @property
    def headline(self) -> tuple[Protocol, Ties]:
        """The protocol and tie rule that figures are given for where none is chosen."""
        protocol = self.protocols[0]
        if Protocol.ENUMERATE in self.protocols:
            protocol = Protocol.ENUMERATE
        return protocol, Ties.AVERAGE if Ties.AVERAGE in ties_of(protocol) else Ties.BEST

    def figures(self) -> list[tuple[Protocol, Ties]]:
        """Every protocol and tie rule that there are ranks for."""
        return [(protocol, ties) for protocol in self.protocols for ties in ties_of(protocol)]

    def rank(
        self, protocol: Protocol | str | None = None, ties: Ties | str | None = None
    ) -> pl.Series:
        """The rank of every query's answer.

        Raises:
            TilpError: there are no such ranks.
        """
        return self.ranks[self.column(protocol, ties)]

    def column(self, protocol: Protocol | str | None = None, ties: Ties | str | None = None) -> str:
        """The column of ranks that is meant; the headline's protocol or ties where None."""
        known = sorted({str(one) for one, _ in self.figures()})
        protocol = self.headline[0] if protocol is None else protocol
        if protocol not in known:
            raise TilpError(
                f"there are no ranks for the protocol {str(protocol)!r}, only for "
                f"{', '.join(known)}"
            )
        allowed = ties_of(Protocol(protocol))
        if ties is None:
            ties = Ties.AVERAGE if Ties.AVERAGE in allowed else Ties.BEST
        if ties not in allowed:
            raise TilpError(f"ties under {protocol} are {', '.join(allowed)}, not {str(ties)!r}")
        return rank_column(Protocol(protocol), Ties(ties))

    def metrics(
        self, protocol: Protocol | str | None = None, ties: Ties | str | None = None
    ) -> Metrics:
        """MRR, hits and mean rank of all queries."""
        return _metrics(self.ranks.select(_figures(self.column(protocol, ties))))

    def by_relation(
        self, protocol: Protocol | str | None = None, ties: Ties | str | None = None
    ) -> pl.DataFrame:
        """The same for each relation and direction, most queries first."""
        return (
            self.ranks.group_by("relation", "direction")
            .agg(_figures(self.column(protocol, ties)))
            .sort("queries", "relation", "direction", descending=[True, False, False])
        )

    def apart(
        self, protocol: Protocol | str | None = None, ties: Ties | str | None = None
    ) -> pl.DataFrame:
        """The same for the rows that are looked at `APART`, and for the rest of each."""
        column = self.column(protocol, ties)
        return pl.concat(
            self.ranks.filter(pl.col(name) == holds)
            .select(_figures(column))
            .select(rows=pl.lit(name), holds=pl.lit(holds), **{c: c for c in _FIGURES})
            for name in APART
            for holds in (True, False)
        )

    def bootstrap(
        self,
        protocol: Protocol | str | None = None,
        ties: Ties | str | None = None,
        *,
        resamples: int = 1_000,
        seed: int = 0,
        level: float = 0.95,
    ) -> dict[str, Bounds]:
        """Intervals for MRR and hits, from resampled facts; a fact's two queries stay together."""
        values = gains(self.rank(protocol, ties))
        means = fact_means(self.ranks["fact"], np.stack(list(values.values()), axis=1))
        low, high = resampled_bounds(means, resamples, seed, level)
        return {
            name: Bounds(float(value), float(a), float(b))
            for name, value, a, b in zip(values, means.mean(axis=0), low, high, strict=True)
        }

    def save(self, folder: Path | str) -> Path:
        """Write a folder that `load_evaluation` reads: see `save_evaluation`."""
        return save_evaluation(self, folder)

    def to_json(self, *, resamples: int = 1_000, seed: int = 0) -> dict[str, Any]:
        """All of it as plain values: figures by protocol and ties, MRR's intervals, the parts."""
        protocols: dict[str, dict[str, dict[str, float | None]]] = {}
        for protocol, ties in self.figures():
            metrics = self.metrics(protocol, ties).to_json()
            protocols.setdefault(protocol.value, {})[ties.value] = metrics
        bounds = self.bootstrap(resamples=resamples, seed=seed)
        apart: dict[str, dict[str, Any]] = {}
        for row in self.apart().iter_rows(named=True):
            name = row.pop("rows") if row.pop("holds") else f"not {row.pop('rows')}"
            apart[name] = row
        return {
            "split": self.split,
            "queries": len(self),
            "graph": self.graph,
            "note": self.note,
            "protocols": protocols,
            "headline": {
                "protocol": self.headline[0].value,
                "ties": self.headline[1].value,
                "intervals": {name: [one.low, one.high] for name, one in bounds.items()},
                "apart": apart,
                "relations": self.by_relation().to_dicts(),
            },
        }


_FIGURES = ("queries", "mrr", *(f"hits@{k}" for k in HITS), "mean_rank")


def _figures(column: str) -> list[pl.Expr]:
    """What is told of a column of ranks."""
    rank = pl.col(column)
    return [
        rank.len().cast(pl.Int64).alias("queries"),
        (1.0 / rank).mean().alias("mrr"),
        *((rank <= k).mean().alias(f"hits@{k}") for k in HITS),
        rank.mean().alias("mean_rank"),
    ]


def _metrics(figures: pl.DataFrame) -> Metrics:
    queries, *rest = figures.row(0)
    return Metrics(queries, *(float("nan") if one is None else one for one in rest))


def gains(rank: pl.Series) -> dict[str, NDArray[np.float64]]:
    """What each query adds to MRR and to hits."""
    ranks = rank.to_numpy()
    return {"mrr": 1.0 / ranks, **{f"hits@{k}": (ranks <= k).astype(np.float64) for k in HITS}}


def fact_means(fact: pl.Series, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each fact's queries, column by column."""
    _, place, count = np.unique(fact.to_numpy(), return_inverse=True, return_counts=True)
    sums = [np.bincount(place, column, minlength=len(count)) for column in values.T]
    return np.stack(sums, axis=1) / count[:, None]


def resampled_bounds(
    means: NDArray[np.float64], resamples: int, seed: int, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Percentile bootstrap intervals of the mean of each column."""
    if resamples < 1 or not 0 < level < 1:
        raise TilpError("a bootstrap takes at least 1 resample and a level between 0 and 1")
    chance = np.random.default_rng(seed)
    facts = len(means)
    found = np.empty((resamples, means.shape[1]))
    for number in range(resamples):
        times = np.bincount(chance.integers(facts, size=facts), minlength=facts)
        found[number] = times @ means / facts
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


_NOTE = "evaluation.json"
_RANKS = "ranks.parquet"
_FORMAT = "tilp evaluation"
_VERSION = 1


def save_evaluation(evaluation: Evaluation, folder: Path | str) -> Path:
    """Write an evaluation as a folder: `evaluation.json` for people, `ranks.parquet` beside it.

    Raises:
        TilpError: the folder is in use.
    """
    with new_folder(Path(folder)) as place:
        evaluation.ranks.write_parquet(place / _RANKS)
        content = {"ranks_sha256": file_digest(place / _RANKS), **evaluation.to_json()}
        write_note(place / _NOTE, _FORMAT, _VERSION, content, sign=False)
    return Path(folder)


def is_evaluation(path: Path) -> bool:
    """Whether a path looks like a saved evaluation."""
    return path.is_dir() and (path / _NOTE).exists()


def load_evaluation(folder: Path | str) -> Evaluation:
    """Read what `save_evaluation` wrote.

    Raises:
        TilpError: the folder holds no evaluation, or a damaged one.
    """
    folder = Path(folder)
    if not is_evaluation(folder):
        raise TilpError(f"{folder}: no saved evaluation; it is a folder with {_NOTE} and {_RANKS}")
    note = read_note(folder / _NOTE, _FORMAT, _VERSION, "evaluate again", signed=False)
    try:
        protocols = tuple(Protocol(name) for name in note["protocols"])
        split, graph, words = (str(note[name]) for name in ("split", "graph", "note"))
        columns = {
            **QUERY_SCHEMA,
            **dict.fromkeys(APART, pl.Boolean),
            **{
                rank_column(protocol, ties): pl.Float64
                for protocol in protocols
                for ties in ties_of(protocol)
            },
        }
        digest, queries = note["ranks_sha256"], note["queries"]
    except (KeyError, TypeError, ValueError) as failure:
        raise TilpError(f"{folder / _NOTE}: damaged ({failure!r}); evaluate again") from failure
    ranks = _read_ranks(folder / _RANKS, digest)
    if dict(ranks.schema) != columns or len(ranks) != queries or not protocols:
        raise TilpError(f"{folder}: {_RANKS} does not belong to {_NOTE}; evaluate again")
    return Evaluation(ranks, split, graph, protocols, words)


def _read_ranks(path: Path, digest: object) -> pl.DataFrame:
    try:
        if file_digest(path) != digest:
            raise TilpError(f"{path}: damaged or changed since it was written; evaluate again")
        return pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as failure:
        raise TilpError(f"{path}: cannot be read ({failure}); evaluate again") from failure

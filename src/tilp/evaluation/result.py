"""`Evaluation`: ranks of all answers, metrics, folders that hold them; `compare` two of them."""

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.arrays import Floats
from tilp._utils.files import file_digest, new_folder, read_note, write_note
from tilp.errors import TilpError
from tilp.evaluation.filtered_ranks import default_ties, rank_column, rank_columns, ties_of
from tilp.types import Protocol, Ties, choose

ProtocolName = Protocol | str | None
TiesName = Ties | str | None

HITS = (1, 3, 10)  # ranks up to which an answer is a hit

SUBSETS: Mapping[str, str] = {
    "repeated": "the triple stands in train with another interval",
    "dated": "both dates are known",
    "unreached": "no rule reaches the answer (or it is not listed)",
    "unseen": "an entity that train never saw",
}
"""Subsets of the queries with metrics of their own, and what they are."""

QUERY_SCHEMA = {
    "fact": pl.Int64,
    **dict.fromkeys(["direction", "subject", "relation", "object", "start", "end"], pl.String),
}
"""Columns that identify the query of a rank."""


@dataclass(frozen=True)
class Metrics:
    """Metrics of some queries; `nan` if there are none."""

    queries: int
    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float
    mean_rank: float

    def to_json(self) -> dict[str, float | None]:
        """Return `mrr`, `hits@1` and so on by name; None if there are no queries."""
        values = zip(_METRICS[1:], astuple(self)[1:], strict=True)
        return {name: float(value) if self.queries else None for name, value in values}


@dataclass(frozen=True)
class Bounds:
    """A metric and its bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FactSample:
    """Random sample of a split: the number of facts, of how many, and the seed."""

    facts: int
    of: int
    seed: int

    def __str__(self) -> str:
        return f"a random sample of {self.facts:,} of {self.of:,} facts (seed {self.seed})"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Ranks of the answers of one split's facts, queried in both directions.

    Attributes:
        ranks: One row a query: the id of the fact in the graph, the end that is asked for
            (`direction`), the fact as written, a column for each of `SUBSETS`, and a column of
            ranks for each protocol and tie rule.
        split: Split whose facts were queried.
        graph: Fingerprint of the graph.
        protocols: Protocols of the ranks.
        note: Text saved with it, such as where the scores came from.
        sample: Sample of the split that was queried; None for all of its facts.

    >>> from tilp import datasets
    >>> from tilp.evaluation import evaluate, popularity
    >>> graph = datasets.world(0, 1000).graph
    >>> evaluation = evaluate(popularity(graph), graph, "valid", protocols=["enumerate"])
    >>> evaluation.metrics("enumerate", "realistic") == evaluation.metrics()
    True
    """

    ranks: pl.DataFrame
    split: str
    graph: str
    protocols: tuple[Protocol, ...]
    note: str = ""
    sample: FactSample | None = None

    def __len__(self) -> int:
        return len(self.ranks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        mine, others = ((e.split, e.graph, e.protocols, e.note, e.sample) for e in (self, other))
        return mine == others and self.ranks.equals(other.ranks)

    __hash__ = None  # type: ignore[assignment]  # compared by content, never hashed

    def __repr__(self) -> str:
        metrics = self.metrics()
        sample = "" if self.sample is None else f", {self.sample}"
        return (
            f"Evaluation({len(self):,} queries of {self.split}{sample}; {' '.join(self.headline)}: "
            f"MRR {metrics.mrr:.4f}, hits@1 {metrics.hits_at_1:.4f}, "
            f"hits@10 {metrics.hits_at_10:.4f})"
        )

    @property
    def headline(self) -> tuple[Protocol, Ties]:
        """Protocol and tie rule of metrics where none is chosen."""
        has_enumerate = Protocol.ENUMERATE in self.protocols
        protocol = Protocol.ENUMERATE if has_enumerate else self.protocols[0]
        return protocol, default_ties(protocol)

    def protocols_and_ties(self) -> list[tuple[Protocol, Ties]]:
        """Return every protocol and tie rule that there are ranks for."""
        return [(protocol, ties) for protocol in self.protocols for ties in ties_of(protocol)]

    def rank(self, protocol: ProtocolName = None, ties: TiesName = None) -> pl.Series:
        """Return the rank of every query's answer; for the arguments see `column`."""
        return self.ranks[self.column(protocol, ties)]

    def column(self, protocol: ProtocolName = None, ties: TiesName = None) -> str:
        """Return the name of a column of ranks.

        Args:
            protocol: Protocol; that of `headline` by default.
            ties: `average` (or `realistic`), `best` (`optimistic`) or `worst` (`pessimistic`);
                `average` by default, if the protocol has it.
        """
        name = str(self.headline[0] if protocol is None else protocol)
        if name not in self.protocols:
            known = ", ".join(sorted(self.protocols))
            raise TilpError(f"there are no ranks for the protocol {name!r}, only for {known}")
        protocol = Protocol(name)
        allowed = ties_of(protocol)
        chosen = default_ties(protocol) if ties is None else choose(Ties, ties, "ties")
        if chosen not in allowed:
            raise TilpError(f"ties under {protocol} are {', '.join(allowed)}, not {str(ties)!r}")
        return rank_column(protocol, chosen)

    def metrics(self, protocol: ProtocolName = None, ties: TiesName = None) -> Metrics:
        """Return MRR, hits and mean rank of all queries."""
        queries, *values = self.ranks.select(_metrics(self.column(protocol, ties))).row(0)
        return Metrics(queries, *(float("nan") if value is None else value for value in values))

    def by_relation(self, protocol: ProtocolName = None, ties: TiesName = None) -> pl.DataFrame:
        """Return metrics of each relation and direction, most queries first."""
        return (
            self.ranks.group_by("relation", "direction")
            .agg(_metrics(self.column(protocol, ties)))
            .sort("queries", "relation", "direction", descending=[True, False, False])
        )

    def by_subset(self, protocol: ProtocolName = None, ties: TiesName = None) -> pl.DataFrame:
        """Return metrics of each of `SUBSETS`, and of all other queries."""
        column = self.column(protocol, ties)
        return pl.concat(
            self.ranks.filter(pl.col(name) == holds)
            .select(_metrics(column))
            .select(rows=pl.lit(name), holds=pl.lit(holds), **{c: c for c in _METRICS})
            for name in SUBSETS
            for holds in (True, False)
        )

    def bootstrap(
        self, protocol: ProtocolName = None, ties: TiesName = None, *, resamples: int = 1_000,
        seed: int = 0, level: float = 0.95,
    ) -> dict[str, Bounds]:  # fmt: skip
        """Return bootstrap intervals of MRR and hits; a fact's two queries stay together.

        Args:
            protocol: As in `column`.
            ties: As in `column`.
            resamples: Number of bootstrap samples, 1,000 by default.
            seed: Seed of the samples.
            level: Confidence level, 0.95 by default.
        """
        means = fact_means(self.ranks["fact"], self.rank(protocol, ties))
        bounds = resampled_bounds(means, resamples, seed, level)
        rows = zip(FACT_METRICS, means.mean(axis=0), *bounds, strict=True)
        return {name: Bounds(*map(float, values)) for name, *values in rows}

    def save(self, folder: Path | str) -> Path:
        """Write a folder: `evaluation.json` for people, `ranks.parquet` beside it."""
        with new_folder(Path(folder)) as place:
            self.ranks.write_parquet(place / _RANKS)
            content = {"ranks_sha256": file_digest(place / _RANKS), **self.to_json()}
            write_note(place / _NOTE, _FORMAT, _VERSION, content, sign=False)
        return Path(folder)

    def to_json(self, *, resamples: int = 1_000, seed: int = 0) -> dict[str, Any]:
        """Return all metrics, with intervals and by subset and relation, as plain values."""
        protocols: dict[str, dict[str, dict[str, float | None]]] = {}
        for protocol, ties in self.protocols_and_ties():
            metrics = self.metrics(protocol, ties).to_json()
            protocols.setdefault(protocol.value, {})[ties.value] = metrics
        bounds = self.bootstrap(resamples=resamples, seed=seed)
        apart: dict[str, dict[str, Any]] = {}
        for row in self.by_subset().iter_rows(named=True):
            apart[("" if row.pop("holds") else "not ") + row.pop("rows")] = row
        return {
            "split": self.split,
            "queries": len(self),
            "sample": None if self.sample is None else asdict(self.sample),
            "graph": self.graph,
            "note": self.note,
            "protocols": protocols,
            "headline": {
                "protocol": self.headline[0].value,
                "ties": self.headline[1].value,
                "intervals": {name: [metric.low, metric.high] for name, metric in bounds.items()},
                "apart": apart,
                "relations": self.by_relation().to_dicts(),
            },
        }


FACT_METRICS = ("mrr", *(f"hits@{k}" for k in HITS))
_METRICS = ("queries", *FACT_METRICS, "mean_rank")


def _metrics(column: str) -> list[pl.Expr]:
    rank = pl.col(column)
    return [
        rank.len().cast(pl.Int64).alias("queries"),
        (1.0 / rank).mean().alias("mrr"),
        *((rank <= k).mean().alias(f"hits@{k}") for k in HITS),
        rank.mean().alias("mean_rank"),
    ]


def fact_means(fact: pl.Series, rank: pl.Series) -> Floats:
    """Return the means of reciprocal rank and hits of each fact's queries, as `FACT_METRICS`."""
    _, index, count = np.unique(fact.to_numpy(), return_inverse=True, return_counts=True)
    ranks = rank.to_numpy()
    values = [1.0 / ranks, *(ranks <= k for k in HITS)]
    sums = [np.bincount(index, column, minlength=len(count)) for column in values]
    return np.stack(sums, axis=1) / count[:, None]


def resampled_bounds(means: Floats, count: int, seed: int, level: float) -> tuple[Floats, Floats]:
    """Return percentile bootstrap intervals of the mean of each column, from `count` samples."""
    if count < 1 or not 0 < level < 1:
        raise TilpError("a bootstrap takes at least 1 resample and a level between 0 and 1")
    rng = np.random.default_rng(seed)
    facts = len(means)
    samples = np.empty((count, means.shape[1]))
    for sample in range(count):
        times = np.bincount(rng.integers(facts, size=facts), minlength=facts)
        samples[sample] = times @ means / facts
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


_NOTE, _RANKS = "evaluation.json", "ranks.parquet"
_FORMAT, _VERSION = "tilp evaluation", 1


save_evaluation = Evaluation.save


def load_evaluation(folder: Path | str) -> Evaluation:
    """Read an evaluation that `save_evaluation` wrote."""
    folder = Path(folder)
    if not (folder / _NOTE).exists():
        raise TilpError(f"{folder}: no saved evaluation; it is a folder with {_NOTE} and {_RANKS}")
    note = read_note(folder / _NOTE, _FORMAT, _VERSION, "evaluate again", signed=False)
    try:
        protocols = tuple(Protocol(name) for name in note["protocols"])
        split, graph, text = (str(note[name]) for name in ("split", "graph", "note"))
        sample = note.get("sample")
        if sample is not None:
            sample = FactSample(*(int(sample[name]) for name in ("facts", "of", "seed")))
        columns = {
            **QUERY_SCHEMA,
            **dict.fromkeys(SUBSETS, pl.Boolean),
            **dict.fromkeys(rank_columns(protocols), pl.Float64),
        }
        digest, queries = note["ranks_sha256"], note["queries"]
    except (KeyError, TypeError, ValueError) as failure:
        raise TilpError(f"{folder / _NOTE}: damaged ({failure!r}); evaluate again") from failure
    path = folder / _RANKS
    try:
        if file_digest(path) != digest:
            raise TilpError(f"{path}: damaged or changed since it was written; evaluate again")
        ranks = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as failure:
        raise TilpError(f"{path}: cannot be read ({failure}); evaluate again") from failure
    if dict(ranks.schema) != columns or len(ranks) != queries or not protocols:
        raise TilpError(f"{folder}: {_RANKS} does not belong to {_NOTE}; evaluate again")
    return Evaluation(ranks, split, graph, protocols, text, sample)


_TOLERANCE = 1e-12
_BLOCK = 1 << 22  # signs drawn at a time


@dataclass(frozen=True)
class Difference:
    """A metric of two evaluations, and second - first with its bootstrap interval.

    `p_value` is the probability of an absolute difference at least as large, if for every fact
    the two evaluations were exchanged at random.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two evaluations side by side, under one protocol and tie rule."""

    protocol: Protocol
    ties: Ties
    facts: int  # each a query in both directions
    metrics: dict[str, Difference]  # MRR and hits
    wins: int  # queries whose answer the second ranks better
    losses: int  # queries whose answer the second ranks worse
    draws: int  # queries whose answer both rank the same
    by_relation: pl.DataFrame  # MRR of both for each relation and direction, most queries first

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "protocol": self.protocol.value,
            "ties": self.ties.value,
            "facts": self.facts,
            "figures": {name: asdict(metric) for name, metric in self.metrics.items()},
            **{name: getattr(self, name) for name in ("wins", "losses", "draws")},
            "relations": self.by_relation.to_dicts(),
        }


def compare(
    first: Evaluation, second: Evaluation, protocol: ProtocolName = None, ties: TiesName = None, *,
    resamples: int = 1_000, flips: int = 10_000, seed: int = 0, level: float = 0.95,
) -> Comparison:  # fmt: skip
    """Compare two evaluations of the same queries: differences, intervals and p-values.

    Facts are resampled, and signs are flipped by fact, so that its two queries stay together.

    Args:
        first: The baseline.
        second: The evaluation to compare with it.
        protocol: Protocol of the ranks; `enumerate` by default.
        ties: Tie rule of the ranks; `average` by default.
        resamples: Number of bootstrap samples for intervals, 1,000 by default.
        flips: Number of random sign flips for p-values, 10,000 by default. If there are no more
            possible flips than that, all are counted and p-values are exact.
        seed: Seed of samples and flips.
        level: Confidence level of intervals, 0.95 by default.

    >>> from tilp import datasets
    >>> from tilp.evaluation import evaluate, popularity, recurrence
    >>> graph = datasets.world(0, 1000).graph
    >>> scorers = popularity(graph), recurrence(graph)
    >>> comparison = compare(*(evaluate(scorer, graph, "valid") for scorer in scorers))
    >>> comparison.wins + comparison.losses + comparison.draws == 2 * comparison.facts
    True
    """
    one, other = ((e.split, e.sample or "all facts", e.graph) for e in (first, second))
    if one != other:
        why = "their graphs differ. Evaluate both on the same data, read in the same way."
        if one[:2] != other[:2]:
            mine, others = next(pair for pair in zip(one, other, strict=True) if pair[0] != pair[1])
            why = f"one is of {mine}, the other of {others}"
        raise TilpError(f"the two evaluations are not of the same queries: {why}")
    if protocol is None and Protocol.ENUMERATE not in {*first.protocols} & {*second.protocols}:
        protocol = next((shared for shared in first.protocols if shared in second.protocols), None)
    column = first.column(protocol, ties)
    second.column(protocol, ties)
    chosen = next(pair for pair in first.protocols_and_ties() if first.column(*pair) == column)
    ranks = [evaluation.ranks[column] for evaluation in (first, second)]
    means = [fact_means(first.ranks["fact"], rank) for rank in ranks]
    differences = means[1] - means[0]
    averages = ([column.mean() for column in values.T] for values in (*means, differences))
    bounds = resampled_bounds(differences, resamples, seed, level)
    rows = zip(FACT_METRICS, *averages, *bounds, _sign_flip(differences, flips, seed), strict=True)
    metrics = {name: Difference(*map(float, values)) for name, *values in rows}
    base, rank = ranks
    wins, losses = int((rank < base).sum()), int((rank > base).sum())
    draws = len(first) - wins - losses
    by_relation = (
        first.ranks.select("relation", "direction")
        .with_columns(first=1.0 / base, second=1.0 / rank, better=rank < base, worse=rank > base)
        .group_by("relation", "direction")
        .agg(
            queries=pl.len().cast(pl.Int64),
            first=pl.col("first").mean(),
            second=pl.col("second").mean(),
            difference=pl.col("second").mean() - pl.col("first").mean(),
            wins=pl.col("better").sum().cast(pl.Int64),
            losses=pl.col("worse").sum().cast(pl.Int64),
        )
        .sort("queries", "relation", "direction", descending=[True, False, False])
    )
    return Comparison(*chosen, len(differences), metrics, wins, losses, draws, by_relation)


def _sign_flip(differences: Floats, flips: int, seed: int) -> Floats:
    """Return the share of sign flips with a sum at least as far from zero, for each column."""
    if flips < 1:
        raise TilpError("a p-value needs at least 1 flip")
    differences = differences[(differences != 0).any(axis=1)]  # the others change no sum
    facts = len(differences)
    observed = np.abs(differences.sum(axis=0)) - _TOLERANCE * max(facts, 1)
    if facts < flips.bit_length() and 2**facts <= flips:
        patterns = np.arange(2**facts)[:, None] >> np.arange(facts)
        sums = np.abs((1.0 - 2.0 * (patterns & 1)) @ differences)
        return np.asarray((sums >= observed).mean(axis=0))
    rng = np.random.default_rng(seed)
    extreme = np.zeros(differences.shape[1])
    block = max(1, _BLOCK // facts)
    for done in range(0, flips, block):
        signs = 2.0 * rng.integers(2, size=(min(block, flips - done), facts), dtype=np.int8) - 1.0
        extreme += (np.abs(signs @ differences) >= observed).sum(axis=0)
    return (extreme + 1.0) / (flips + 1.0)

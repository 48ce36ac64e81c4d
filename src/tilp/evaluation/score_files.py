"""Files of scored candidates that any tool can write: one row for a candidate of a query.

The columns, named in a header, in any order: subject, relation, object, start, end (the fact, as
in the data), direction (the end that is asked for), candidate and score.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.errors import DataError, TilpError, TilpWarning
from tilp.evaluation.evaluate import DIRECTIONS
from tilp.graph import QueryTable, TemporalGraph, Vocabulary
from tilp.io.tables import PARQUET_SUFFIXES, as_table, read_parquet, write_table
from tilp.io.text import TextTable, read_text_table
from tilp.scoring import Scores
from tilp.scoring.scores import ScoreFunction
from tilp.time import UNKNOWN, parse_date
from tilp.types import TableFormat

_FACT = ("subject", "relation", "object", "start", "end")
SCORE_COLUMNS = (*_FACT, "direction", "candidate", "score")
"""The columns of a file of scored candidates."""

_DIRECTIONS = {"object": 0, "o": 0, "tail": 0, "t": 0, "subject": 1, "s": 1, "head": 1, "h": 1}


def read_scores(
    path: Path | str,
    graph: TemporalGraph,
    split: str = "test",
    *,
    default: float = float("-inf"),
) -> Scores:
    """Read scored candidates for `evaluate`.

    Args:
        path: TSV or CSV, gzipped or not, with a header; or Parquet. Names are ids, keys or
            labels. A query without a row lists no candidate, and a warning says so.
        graph: The facts that were queried.
        split: Their split, `test` by default.
        default: Score of candidates that the file does not list; below all by default.

    Raises:
        DataError: A row cannot be read; names file, row and remedy.
    """
    path = Path(path)
    table = _read_table(path)
    facts = table.frame.select(_FACT).unique(maintain_order=True).with_row_index("fact")
    reader = _FactReader(path, table, graph, split)
    positions = reader.positions(facts)
    lines = pl.Series(table.lines, dtype=pl.Int64)
    scored = table.frame.select(*_FACT, "candidate", line=lines).with_columns(
        score=_read_score_column(path, table), inverse=_read_directions(path, table)
    )
    ids = reader.ids(graph.entities, ["candidate"])
    rows = (
        scored.join(facts, on=_FACT, nulls_equal=True)
        .join(positions, on="fact")
        .select(
            query=pl.col("position") + pl.col("inverse") * len(graph.rows(split)),
            candidate=pl.col("candidate").replace_strict(
                list(ids), list(ids.values()), return_dtype=pl.Int32
            ),
            score="score",
            line="line",
        )
        .unique(["query", "candidate", "score"], keep="first", maintain_order=True)
        .sort("query", "candidate", maintain_order=True)
    )
    _refuse_two_scores(path, rows)
    queries = 2 * len(graph.rows(split))
    counts = np.bincount(rows["query"].to_numpy(), minlength=queries)
    missing = int((counts == 0).sum())
    if missing:
        warnings.warn(
            TilpWarning(
                f"{path}: {missing:,} of the {queries:,} queries of {split} have no row; all "
                "their candidates tie"
            ),
            stacklevel=2,
        )
    return Scores(
        np.concatenate([[0], np.cumsum(counts)]),
        rows["candidate"].to_numpy(),
        rows["score"].to_numpy(),
        default,
    )


def write_scores(
    scorer: ScoreFunction | Scores, graph: TemporalGraph, path: Path | str, split: str = "test"
) -> Path:
    """Write the scored candidates of a split's queries, as `read_scores` reads them.

    Default scores are not written. Names are ids.

    Args:
        scorer: A function from queries to scores, or the scores of all queries of the split.
        graph: The facts that are queried.
        path: A `.tsv`, `.csv` or `.parquet` file to write.
        split: Split whose facts are queried, `test` by default.
    """
    path = Path(path)
    format = path.suffix.removeprefix(".")
    if format not in list(TableFormat):
        raise TilpError(f"{path}: scores are written as .{', .'.join(TableFormat)}")
    rows = np.asarray(graph.rows(split), dtype=np.int64)
    queries = QueryTable.of_facts(graph, rows, walked=split == "train")
    scores = scorer if isinstance(scorer, Scores) else scorer(queries)
    scores.check(len(queries), len(graph.entities))
    facts = graph.frame(split, names="ids").select(_FACT)
    both = pl.concat(facts.with_columns(direction=pl.lit(end)) for end in DIRECTIONS)
    table = both[scores.query].with_columns(
        candidate=graph.entities.ids.gather(scores.candidate), score=pl.Series(scores.score)
    )
    write_table(table, path.with_suffix(""), TableFormat(format))
    return path


def _read_table(path: Path) -> TextTable:
    """Read the columns by their names, the score as it is and all else as text."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.suffix.lower() in PARQUET_SUFFIXES:
        table = as_table(read_parquet(path), 1)
    else:
        table = read_text_table(path, True, lambda _: True, min_columns=len(SCORE_COLUMNS))
    names = [name.strip().lower() for name in table.names or ()]
    missing = [name for name in SCORE_COLUMNS if name not in names]
    if missing:
        raise DataError(
            f"{path}: no column is called {', '.join(missing)}; a header names the columns "
            f"{', '.join(SCORE_COLUMNS)}. Found: {', '.join(names)[:200]}"
        )
    frame = table.frame.select(
        table.frame.to_series(names.index(name)).alias(name) for name in SCORE_COLUMNS
    )
    try:
        return TextTable(SCORE_COLUMNS, _as_text(frame), table.lines)
    except pl.exceptions.PolarsError as failure:
        raise DataError(f"{path}: names and dates are text or integers: {failure}") from failure


def _as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Return names and dates as text; a missing date is empty."""
    # Floats are integers with gaps, as pandas has them.
    floats = [name for name, dtype in frame.schema.items() if name != "score" and dtype.is_float()]
    return (
        frame.with_columns(pl.col(floats).fill_nan(None).cast(pl.Int64))
        .with_columns(pl.all().exclude("score").cast(pl.String).fill_null(""))
        .with_columns(pl.col("direction").str.strip_chars().str.to_lowercase())
    )


def _line(table: TextTable, wrong: pl.Series) -> int:
    """Return the line of the first wrong row."""
    return int(table.lines[int(wrong.arg_max() or 0)])


def _read_score_column(path: Path, table: TextTable) -> pl.Series:
    scores = table.frame["score"].cast(pl.Float64, strict=False)
    wrong = scores.is_null() | scores.is_nan()
    if wrong.any():
        text = table.frame["score"].filter(wrong)[0]
        raise DataError(
            f"{path}, row {_line(table, wrong)}: the score is {text!r}, not a number. Leave out "
            "the rows of candidates without a score."
        )
    return scores


def _read_directions(path: Path, table: TextTable) -> pl.Series:
    column = table.frame["direction"]
    codes = column.replace_strict(
        list(_DIRECTIONS), list(_DIRECTIONS.values()), default=None, return_dtype=pl.Int64
    )
    wrong = codes.is_null()
    if wrong.any():
        raise DataError(
            f"{path}, row {_line(table, wrong)}: the direction is {column.filter(wrong)[0]!r}; it "
            "is object where the object is asked for, and subject where the subject is"
        )
    return codes


def _refuse_two_scores(path: Path, rows: pl.DataFrame) -> None:
    """Raise an error if a candidate of a query has two scores."""
    again = rows.filter(rows.select("query", "candidate").is_duplicated())
    if len(again):
        lines = again["line"].head(2).sort().to_list()
        raise DataError(
            f"{path}, rows {lines[0]} and {lines[1]}: two scores of one candidate of one query; "
            "keep one of them"
        )


class _FactReader:
    """Finds the facts of a split that the rows of a file are about."""

    def __init__(self, path: Path, table: TextTable, graph: TemporalGraph, split: str) -> None:
        self._path, self._table, self._graph, self._split = path, table, graph, split

    def ids(self, vocabulary: Vocabulary, columns: Sequence[str]) -> dict[str, int]:
        """Return the id of every name in some columns."""
        ids: dict[str, int] = {}
        for column in columns:
            for name in self._table.frame[column].unique(maintain_order=True):
                try:
                    ids[name] = vocabulary.find(name)
                except TilpError as failure:
                    line = _line(self._table, self._table.frame[column] == name)
                    raise DataError(
                        f"{self._path}, row {line}, {column}: {failure}. Names are the ids, keys "
                        "or labels of the data."
                    ) from None
        return ids

    def positions(self, facts: pl.DataFrame) -> pl.DataFrame:
        """Return the position in the split of each fact, several if the split repeats it.

        Raises:
            DataError: The split does not have a fact.
        """
        graph = self._graph
        entities = self.ids(graph.entities, ["subject", "object"])
        relations = self.ids(graph.relations, ["relation"])
        start, end = self._times(facts)
        keys = pl.DataFrame(
            {
                "fact": facts["fact"],
                "subject": [entities[name] for name in facts["subject"]],
                "relation": [relations[name] for name in facts["relation"]],
                "object": [entities[name] for name in facts["object"]],
                "start": start,
                "end": end,
            },
            schema_overrides=dict.fromkeys(_FACT[:3], pl.Int32),
        )
        rows = graph.span(self._split)
        split = pl.DataFrame({name: getattr(graph, name)[rows] for name in _FACT})
        split = split.with_row_index("position").with_columns(pl.col("position").cast(pl.Int64))
        joined = keys.join(split, on=_FACT, how="left")
        if joined["position"].null_count():
            missing = joined.filter(pl.col("position").is_null()).sort("fact")
            raise self._error(facts, split, missing)
        return joined.select("fact", "position")

    def _times(self, facts: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return starts and ends as the graph has them, with the same repairs."""
        spans = {
            text: parse_date(text).span(self._graph.unit) or (UNKNOWN, UNKNOWN)
            for text in {*facts["start"], *facts["end"]}
        }
        start, last = np.array([spans[text] for text in facts["start"]], np.int64).reshape(-1, 2).T
        end = np.array([spans[text][1] for text in facts["end"]], dtype=np.int64)
        backwards = (start > end) & (start != UNKNOWN) & (end != UNKNOWN)
        return start, np.where(backwards, last, end)

    def _error(self, facts: pl.DataFrame, split: pl.DataFrame, missing: pl.DataFrame) -> DataError:
        first = missing.row(0, named=True)
        names = facts.row(int(first["fact"]), named=True)
        same = pl.all_horizontal(pl.col(name) == names[name] for name in _FACT)
        line = _line(self._table, self._table.frame.select(same).to_series())
        triple = pl.all_horizontal(pl.col(name) == first[name] for name in _FACT[:3])
        others = split.filter(triple)["position"].to_list()
        hint = "Is the split the right one?"
        if others:
            begin = self._graph.rows(self._split).start
            hint = f"The split has it as {self._graph.fact(begin + others[0])}."
        return DataError(
            f"{self._path}, row {line}: ({', '.join(names[name] for name in _FACT)}) is no fact of "
            f"the {self._split} split; {len(missing):,} such facts in all. {hint}"
        )

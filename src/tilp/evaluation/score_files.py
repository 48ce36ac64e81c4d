"""Files of scored candidates that any tool can write: one row for a candidate of a query.

The columns, named in a header, in any order: subject, relation, object, start, end (the fact, as
in the data), direction (the end that is asked for), candidate and score.
"""

import warnings
from pathlib import Path

import numpy as np
import polars as pl

from tilp._utils.arrays import Ids, Ints
from tilp.errors import DataError, TilpError, TilpWarning
from tilp.evaluation.evaluate import DIRECTIONS
from tilp.graph import QueryTable, TemporalGraph, Vocabulary
from tilp.io.frames import as_text, first_line
from tilp.io.tables import read_table, write_table
from tilp.io.text import TextTable
from tilp.scoring import Scores
from tilp.scoring.scores import ScoreFunction
from tilp.time import UNKNOWN, parse_date
from tilp.types import TableFormat, Unit

_FACT = ("subject", "relation", "object", "start", "end")
SCORE_COLUMNS = (*_FACT, "direction", "candidate", "score")
"""The columns of a file of scored candidates."""

_DIRECTIONS = {"object": 0, "o": 0, "tail": 0, "t": 0, "subject": 1, "s": 1, "head": 1, "h": 1}


def read_scores(
    path: Path | str, graph: TemporalGraph, split: str = "test", *, default: float = float("-inf")
) -> Scores:
    """Read scored candidates for `evaluate`.

    Args:
        path: TSV or CSV, gzipped or not, with a header; or Parquet. Names are ids, keys or
            labels. A query without a row lists no candidate, and a warning says so.
        graph: The facts that were queried.
        split: Their split, `test` by default.
        default: Score of candidates that the file does not list; below all by default.
    """
    path = Path(path)
    table = _read_table(path)
    facts = _find_facts(path, table, graph, split)
    row = facts["row"]
    scores = table.frame["score"].cast(pl.Float64, strict=False)
    advice = ", not a number. Leave out the rows of candidates without a score."
    _refuse(path, table, "score", scores.is_null() | scores.is_nan(), advice)
    directions = table.frame["direction"]
    inverse = directions.replace_strict(_DIRECTIONS, default=None, return_dtype=pl.Int64)
    advice = "; it is object where the object is asked for, and subject where the subject is"
    _refuse(path, table, "direction", inverse.is_null(), advice)
    candidate = pl.Series(_read_names(path, table, "candidate", graph.entities))
    rows = (
        pl.DataFrame(
            {
                "query": facts["position"] + inverse[row] * len(graph.rows(split)),
                "candidate": candidate[row],
                "score": scores[row],
                "line": pl.Series(table.lines, dtype=pl.Int64)[row],
            }
        )
        .unique(["query", "candidate", "score"], keep="first", maintain_order=True)
        .sort("query", "candidate", maintain_order=True)
    )
    again = rows.filter(rows.select("query", "candidate").is_duplicated())
    if len(again):
        lines = again["line"].head(2).sort().to_list()
        raise DataError(
            f"{path}, rows {lines[0]} and {lines[1]}: two scores of one candidate of one query; "
            "keep one of them"
        )
    queries = 2 * len(graph.rows(split))
    counts = np.bincount(rows["query"].to_numpy(), minlength=queries)
    missing = int((counts == 0).sum())
    if missing:
        message = f"{missing:,} of the {queries:,} queries of {split} have no row"
        warnings.warn(TilpWarning(f"{path}: {message}; all their candidates tie"), stacklevel=2)
    offsets = np.append(0, np.cumsum(counts))
    return Scores(offsets, rows["candidate"].to_numpy(), rows["score"].to_numpy(), default)


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
    table = read_table(path, True, lambda *_: True, min_columns=len(SCORE_COLUMNS))
    names = [name.strip().lower() for name in table.names or ()]
    missing = [name for name in SCORE_COLUMNS if name not in names]
    if missing:
        raise DataError(
            f"{path}: no column is called {', '.join(missing)}; a header names the columns "
            f"{', '.join(SCORE_COLUMNS)}. Found: {', '.join(names)[:200]}"
        )
    columns = {name: table.frame.to_series(names.index(name)) for name in SCORE_COLUMNS}
    for name in SCORE_COLUMNS[:-1]:
        columns[name] = as_text(columns[name], str(path), name).fill_null("")
    frame, direction = pl.DataFrame(columns), pl.col("direction")
    direction = direction.str.strip_chars().str.to_lowercase()
    return TextTable(SCORE_COLUMNS, frame.with_columns(direction), table.lines)


def _refuse(path: Path, table: TextTable, column: str, wrong: pl.Series, advice: str) -> None:
    if wrong.any():
        row, text = first_line(table, wrong), table.frame[column].filter(wrong)[0]
        raise DataError(f"{path}, row {row}: the {column} is {text!r}{advice}")


def _read_names(path: Path, table: TextTable, column: str, vocabulary: Vocabulary) -> Ids:
    ids = vocabulary.find_all(table.frame[column])
    if (ids < 0).any():
        row = int(np.argmax(ids < 0))
        try:
            vocabulary.find(table.frame[column][row])
        except TilpError as failure:
            raise DataError(
                f"{path}, row {table.lines[row]}, {column}: {failure}. Names are the ids, keys "
                "or labels of the data."
            ) from None
    return ids


def _read_times(frame: pl.DataFrame, unit: Unit) -> tuple[Ints, Ints]:
    """Return starts and ends as the graph has them, with the same repairs."""
    texts = pl.concat([frame["start"], frame["end"]]).unique()
    spans = [parse_date(text).span(unit) or (UNKNOWN, UNKNOWN) for text in texts]
    dates = frame.select(pl.col("start", "end").cast(pl.Enum(texts)).to_physical())
    first, last = np.array(spans, np.int64).reshape(-1, 2).T
    start, end = first[dates["start"]], last[dates["end"]]
    backwards = (start > end) & (start != UNKNOWN) & (end != UNKNOWN)
    return start, np.where(backwards, last[dates["start"]], end)


def _find_facts(path: Path, table: TextTable, graph: TemporalGraph, split: str) -> pl.DataFrame:
    """Return the position in the split of each row's fact, several if the split repeats it."""
    names = {"subject": graph.entities, "object": graph.entities, "relation": graph.relations}
    ids = {column: _read_names(path, table, column, names[column]) for column in names}
    start, end = _read_times(table.frame, graph.unit)
    keys = pl.DataFrame({**ids, "start": start, "end": end}).with_row_index("row")
    facts = pl.DataFrame({name: getattr(graph, name)[graph.span(split)] for name in _FACT})
    facts = facts.with_row_index("position").with_columns(pl.col("position").cast(pl.Int64))
    joined = keys.join(facts, on=_FACT, how="left", maintain_order="left")
    missing = joined.filter(pl.col("position").is_null())
    if not len(missing):
        return joined.select("row", "position")
    first = missing.row(0, named=True)
    texts = table.frame.select(_FACT)[missing["row"]]
    triple = pl.all_horizontal(pl.col(name) == first[name] for name in _FACT[:3])
    others = facts.filter(triple)["position"].to_list()
    hint = "Is the split the right one?"
    if others:
        hint = f"The split has it as {graph.fact(graph.rows(split).start + others[0])}."
    raise DataError(
        f"{path}, row {table.lines[first['row']]}: ({', '.join(texts.row(0))}) is no fact of the "
        f"{split} split; {texts.n_unique():,} such facts in all. {hint}"
    )

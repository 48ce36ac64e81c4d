"""Evaluations in and out: a folder of JSON and Parquet."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl

from tilp._version import __version__
from tilp.choices import Protocol
from tilp.errors import TilpError
from tilp.evaluation.evaluation import APART, QUERY_SCHEMA, Evaluation
from tilp.evaluation.ranking import rank_column, ties_of
from tilp.io.folders import new_folder

__all__ = ["is_evaluation", "load_evaluation", "save_evaluation"]

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
        note = {
            "format": _FORMAT,
            "version": _VERSION,
            "tilp": __version__,
            "ranks_sha256": _digest(place / _RANKS),
            **evaluation.to_json(),
        }
        text = json.dumps(note, indent=2, ensure_ascii=False)
        (place / _NOTE).write_text(text + "\n", encoding="utf-8")
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
    note = _read_note(folder / _NOTE)
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


def _read_note(path: Path) -> dict[str, Any]:
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise TilpError(f"{path}: cannot be read ({failure}); evaluate again") from failure
    if not isinstance(note, dict) or note.get("format") != _FORMAT:
        raise TilpError(f"{path}: not the note of a tilp evaluation")
    if note.get("version") != _VERSION:
        raise TilpError(
            f"{path}: written in version {note.get('version')} of the format, and this tilp reads "
            f"version {_VERSION}; evaluate again, or use the tilp that wrote it "
            f"({note.get('tilp')})"
        )
    return note


def _read_ranks(path: Path, digest: object) -> pl.DataFrame:
    try:
        if _digest(path) != digest:
            raise TilpError(f"{path}: damaged or changed since it was written; evaluate again")
        return pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as failure:
        raise TilpError(f"{path}: cannot be read ({failure}); evaluate again") from failure


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

"""Models in and out: a folder of JSON, JSON lines and Parquet that a person can read.

Loading reads values and executes nothing.
"""

import hashlib
import json
import platform
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp._utils import files
from tilp.errors import DataError, TilpError, TilpWarning
from tilp.features.log_linear import LogLinearWeights
from tilp.features.paper.features import FittedPaper
from tilp.forecasting import ForecastModel
from tilp.graph import TemporalGraph
from tilp.graph.sources import SourceFiles
from tilp.io import read, write
from tilp.io.packed.open import is_still_packed
from tilp.io.packed.pack import copy_packed
from tilp.io.tables import parquet_errors
from tilp.learning import KNOWN_KINDS
from tilp.learning.training_loop import LossCurve
from tilp.model.config import ModelSettings
from tilp.model.fitted_model import FittedFeatures, FittedModel
from tilp.rules import RuleSet
from tilp.scoring import RuleWeights
from tilp.time_prediction import TimeModel
from tilp.types import Features, TableFormat

_NOTE, _RULES, _GRAPH = "model.json", "rules.jsonl", "graph"
_FEATURES, _NET, _TIME = "features.npz", "attention.npz", "time.npz"
_SOURCES = "sources.parquet"
_FORMAT = "tilp model"
_VERSION = 2
_PACKAGES = ("numpy", "scipy", "numba", "polars", "jax")


SavedState = tuple[Path, str]
"""Folder of a saved model, and the digest of its note, which is another after each save."""


def saved_state(folder: Path | str) -> SavedState:
    """Return what is saved in a folder now."""
    folder = Path(folder).expanduser()
    _check_there(folder)
    return folder.resolve(), files.file_digest(folder / _NOTE)


def _check_replaced(
    folder: Path, read: Callable[[Path], dict[str, Any]], loaded: SavedState | None
) -> None:
    """Refuse to replace what is no model, or a model that changed since it was loaded."""
    if not folder.exists() or not any(folder.iterdir()):
        return
    read(folder)
    if loaded is not None and loaded[0] == folder.resolve() and loaded != saved_state(folder):
        raise TilpError(
            f"{folder} changed since this model was loaded from it, and replacing it would lose "
            "the change; load it again and repeat the update, or save to another folder"
        )


def save_model(
    settings: ModelSettings, graph: TemporalGraph, fitted: FittedModel, folder: Path | str, *,
    replace: bool = False, loaded: SavedState | None = None,
) -> Path:  # fmt: skip
    """Write settings, weights, rules and the graph with all splits; a packed one stays packed."""
    folder = Path(folder).expanduser()
    with files.new_folder(folder, replace=replace) as partial:
        _check_replaced(folder, _read_note, loaded)
        fitted.rules.write_jsonl(partial / _RULES)
        sources = write_graph(partial, graph)
        features = None if fitted.features is None else fitted.features.to_arrays()
        weights = fitted.weights
        by_relation = zip(weights.prior.tolist(), weights.factor.tolist(), strict=True)
        content = {
            "made_with": {"python": platform.python_version()}
            | {name: version(name) for name in _PACKAGES},
            "graph": graph.fingerprint(),
            "rules_sha256": files.file_digest(partial / _RULES),
            "features_sha256": _write_arrays(partial / _FEATURES, features),
            "attention_sha256": _write_arrays(partial / _NET, fitted.net),
            "time_sha256": _write_arrays(
                partial / _TIME, None if fitted.time is None else fitted.time.to_arrays()
            ),
            "sources": sources,
            "settings": settings.to_json(),
            "walks_power": weights.walks_power,
            "relations": [
                {
                    "relation": graph.relations.label(relation),
                    "prior_weight": prior,
                    "known_factor": dict(zip(KNOWN_KINDS, factors, strict=True)),
                }
                for relation, (prior, factors) in enumerate(by_relation)
            ],
            "loss": asdict(fitted.curve),
            "updates": list(fitted.updates),
        }
        files.write_note(partial / _NOTE, _FORMAT, _VERSION, content)
    return folder


def model_digest(settings: ModelSettings, graph: TemporalGraph, fitted: FittedModel) -> str:
    """Return a digest of all that the predictions of a model depend on."""
    features = {} if fitted.features is None else fitted.features.to_arrays()
    weights = fitted.weights
    time = {} if fitted.time is None else fitted.time.to_arrays()
    arrays = {
        **{f"time_{name}": np.asarray(time[name]) for name in sorted(time)},
        **{name: np.asarray(features[name]) for name in sorted(features)},
        **{name: getattr(weights, name) for name in ("rule", "prior", "factor")},
    }
    text = json.dumps([settings.to_json(), graph.fingerprint(), weights.walks_power])
    digest = hashlib.sha256((text + fitted.rules.to_jsonl()).encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def load_model(folder: Path | str) -> tuple[ModelSettings, TemporalGraph, FittedModel]:
    """Read what `save_model` wrote."""
    folder = Path(folder)
    note = _read_note(folder)
    try:
        _check_same(folder / _RULES, files.file_digest(folder / _RULES), note["rules_sha256"])
        rules = RuleSet.read_jsonl(folder / _RULES)
        graph = read_graph(folder, note)
        relations = note["relations"]
        if len(relations) != 2 * len(graph.relations):
            raise ValueError(f"{len(relations)} directed relations")
        factors = [[row["known_factor"][kind] for kind in KNOWN_KINDS] for row in relations]
        weights = RuleWeights(
            np.array([_check_weight(mined.weight) for mined in rules]),
            np.array([_check_weight(row["prior_weight"]) for row in relations]),
            np.array([list(map(_check_weight, factor)) for factor in factors]),
            _check_weight(note["walks_power"]),
        )
        settings = ModelSettings.from_json(note["settings"])
        arrays = _read_arrays(folder / _FEATURES, note["features_sha256"])
        features: FittedFeatures | None = None
        if arrays is not None and settings.features is Features.PAPER:
            features = FittedPaper.from_arrays(arrays, graph)
        elif arrays is not None:
            lengths = {"columns": ("f8", (len(relations), None)), "rule": ("f8", (len(rules),))}
            files.check_arrays(arrays, lengths)
            features = LogLinearWeights.from_arrays(arrays)
        net = _read_arrays(folder / _NET, note.get("attention_sha256"))
        dates = _read_arrays(folder / _TIME, note.get("time_sha256"))
        time = None if dates is None else TimeModel.from_arrays(dates, tuple(graph.relations))
        curve, updates = LossCurve(**note["loss"]), tuple(map(dict, note.get("updates", ())))
        fitted = FittedModel(rules, weights, curve, features, net=net, updates=updates, time=time)
    except OSError as failure:
        raise TilpError(f"{folder}: the model cannot be read: {failure}") from failure
    except (LookupError, AttributeError, TypeError, ValueError, DataError) as failure:
        raise TilpError(f"{folder}: a damaged model ({failure}); fit it again") from failure
    return settings, graph, fitted


def write_graph(folder: Path, graph: TemporalGraph) -> dict[str, Any] | None:
    """Write the graph of a model, packed if it was; return the note of its sources."""
    if is_still_packed(graph):
        copy_packed(graph, folder / _GRAPH)
        return None
    write(graph, folder / _GRAPH, format=TableFormat.PARQUET)
    return _write_sources(folder / _SOURCES, graph)


def read_graph(folder: Path, note: dict[str, Any]) -> TemporalGraph:
    """Read the graph of a model, given the model's note."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilpWarning)  # about dates, given at the first reading
        graph = read(folder / _GRAPH)
    _check_same(folder / _GRAPH, graph.fingerprint(), note["graph"])
    if graph.storage is not None:  # a packed graph has its sources itself
        return graph
    return _with_sources(graph, folder / _SOURCES, note.get("sources"))


FORECAST = "tilp forecast model"
_FORECAST_VERSION, _WEIGHTS = 1, "weights.npz"


def is_forecast(folder: Path | str) -> bool:
    """Return whether a folder holds a forecaster."""
    path = Path(folder) / _NOTE
    try:
        _check_there(Path(folder))
        note = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, RecursionError, TilpError):
        return False  # reading the model says what is wrong
    return isinstance(note, dict) and note.get("format") == FORECAST


def save_forecast(
    parameters: dict[str, Any],
    graph: TemporalGraph,
    fitted: ForecastModel,
    updates: Iterable[dict[str, Any]],
    folder: Path | str,
    *,
    replace: bool = False,
    loaded: SavedState | None = None,
) -> Path:
    """Write a forecaster and its graph to a folder, like `save_model`."""
    folder = Path(folder).expanduser()
    with files.new_folder(folder, replace=replace) as partial:
        _check_replaced(folder, _read_forecast_note, loaded)
        fitted.rules.write_jsonl(partial / _RULES)  # to read; the weights hold all of it
        packages = {name: version(name) for name in _PACKAGES}
        content = {
            "made_with": {"python": platform.python_version()} | packages,
            "graph": graph.fingerprint(),
            "sources": write_graph(partial, graph),
            "weights_sha256": _write_arrays(partial / _WEIGHTS, fitted.to_arrays()),
            "parameters": parameters,
            "updates": list(updates),
        }
        files.write_note(partial / _NOTE, FORECAST, _FORECAST_VERSION, content)
    return folder


def load_forecast(
    folder: Path | str,
) -> tuple[dict[str, Any], TemporalGraph, ForecastModel, tuple[dict[str, Any], ...]]:
    """Read what `save_forecast` wrote."""
    folder = Path(folder)
    note = _read_forecast_note(folder)
    try:
        graph = read_graph(folder, note)
        arrays = _read_arrays(folder / _WEIGHTS, note["weights_sha256"])
        fitted = ForecastModel.from_arrays(arrays or {}, graph.relations, graph.unit)
        return dict(note["parameters"]), graph, fitted, tuple(map(dict, note["updates"]))
    except OSError as failure:
        raise TilpError(f"{folder}: the model cannot be read: {failure}") from failure
    except (KeyError, IndexError, TypeError, ValueError, DataError) as failure:
        raise TilpError(f"{folder}: a damaged model ({failure}); fit it again") from failure


def _read_forecast_note(folder: Path) -> dict[str, Any]:
    if not is_forecast(folder):
        _read_note(folder)  # an error for most of what else is there
        raise TilpError(f"{folder}: not a forecaster; tilp.load reads models of every task")
    return files.read_note(folder / _NOTE, FORECAST, _FORECAST_VERSION, "fit the model again")


def _write_arrays(path: Path, arrays: dict[str, NDArray[Any]] | None) -> str | None:
    """Write arrays if there are any, and return the digest of the file."""
    if arrays is None:
        return None
    files.write_arrays(path, arrays)
    return files.file_digest(path)


def _read_arrays(path: Path, digest: str | None) -> dict[str, NDArray[Any]] | None:
    if digest is None:
        return None
    _check_same(path, files.file_digest(path), digest)
    return files.read_arrays(path, "fit the model again")


def _write_sources(path: Path, graph: TemporalGraph) -> dict[str, Any] | None:
    if not graph.source_files.prefixes:
        return None
    pl.DataFrame({"source_line": graph.source_line}).write_parquet(path)
    return {**asdict(graph.source_files), "sha256": files.file_digest(path)}


def _with_sources(graph: TemporalGraph, path: Path, note: dict[str, Any] | None) -> TemporalGraph:
    """Return the graph with the sources of its facts; models saved by 0.1 have none."""
    if note is None:
        return replace(graph, source_line=np.empty(0, np.int32), source_files=SourceFiles())
    _check_same(path, files.file_digest(path), note["sha256"])
    with parquet_errors(path):
        lines = pl.read_parquet(path, glob=False)["source_line"].to_numpy()
    read_from = SourceFiles(tuple(note["prefixes"]), tuple(note["bounds"]))
    shape = {"source_line": (read_from.dtype.str, (len(graph),))}
    files.check_arrays({"source_line": lines}, shape)
    return replace(graph, source_line=lines, source_files=read_from)


def _check_same(path: Path, digest: str, noted: str) -> None:
    if digest != noted:
        raise TilpError(f"{path}: damaged or changed since it was written")


def _check_weight(value: Any) -> float:
    if not isinstance(value, (int, float)) or not np.isfinite(value) or value < 0:
        raise ValueError(f"a weight is {value!r}")
    return float(value)


def _read_note(folder: Path) -> dict[str, Any]:
    _check_there(folder)
    return files.read_note(folder / _NOTE, _FORMAT, _VERSION, "fit the model again")


def _check_there(folder: Path) -> None:
    """Raise an error if a folder has no model; put back one that a killed writer moved aside."""
    if (folder / _NOTE).is_file():
        return
    if not folder.exists() and (backup := files.backup_folder(folder) / _NOTE).is_file():
        with files.locked(folder, beside=True):
            pass  # it puts the model back
        if folder.exists():
            return
        raise TilpError(
            f"{folder}: no model; a replacement was stopped half-way, and the model is now "
            f"{backup.parent}: rename it back"
        )
    problem = "no model" if folder.exists() else "no such folder"
    raise TilpError(
        f"{folder}: {problem}; tilp fit DATA --out MODEL makes a model of a table of facts"
    )

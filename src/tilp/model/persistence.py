"""Models in and out: a folder of JSON, JSON lines and Parquet that a person can read.

Loading reads values and executes nothing.
"""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilp._utils.files import before, new_folder, read_arrays, write_arrays
from tilp._version import __version__
from tilp.errors import DataError, TilpError, TilpWarning
from tilp.graph import TemporalGraph
from tilp.io import read, write
from tilp.io.packed.open import still_packed
from tilp.io.packed.pack import copy_pack
from tilp.learning import KNOWN_KINDS
from tilp.learning.checkpoint import LossCurve
from tilp.model.config import ModelSettings
from tilp.model.fitted_model import FEATURES, FittedFeatures, FittedModel
from tilp.rules import RuleSet
from tilp.scoring import RuleWeights
from tilp.types import TableFormat

_NOTE, _RULES, _GRAPH = "model.json", "rules.jsonl", "graph"
_FEATURES, _NET = "features.npz", "attention.npz"
_FORMAT = "tilp model"
_VERSION = 2


def save_model(
    settings: ModelSettings,
    graph: TemporalGraph,
    fitted: FittedModel,
    folder: Path | str,
    *,
    replace: bool = False,
) -> Path:
    """Write a model: settings and weights, rules, and the graph with all its splits.

    A graph that was opened from a packed one is kept packed, where that still lies there.

    Args:
        settings: of the model.
        graph: likewise.
        fitted: likewise.
        folder: the name of the model.
        replace: whether it takes the place of a model of that name.

    Raises:
        TilpError: the folder is in use, or is to be replaced and holds no model.
    """
    folder = Path(folder).expanduser()
    if replace and folder.exists():
        _read_note(folder)  # nothing else is ever removed
    with new_folder(folder, replace=replace) as place:
        fitted.rules.write_jsonl(place / _RULES)
        if still_packed(graph):
            copy_pack(graph, place / _GRAPH)
        else:
            write(graph, place / _GRAPH, format=TableFormat.PARQUET)
        if fitted.features is not None:
            write_arrays(place / _FEATURES, fitted.features.to_arrays())
        if fitted.net is not None:
            write_arrays(place / _NET, fitted.net)
        directed = [graph.relations.label(head) for head in range(2 * len(graph.relations))]
        note = {
            "format": _FORMAT,
            "version": _VERSION,
            "tilp": __version__,
            "made_with": _versions(),
            "graph": graph.fingerprint(),
            "rules_sha256": _digest(place / _RULES),
            "features_sha256": None if fitted.features is None else _digest(place / _FEATURES),
            "attention_sha256": None if fitted.net is None else _digest(place / _NET),
            "settings": settings.to_json(),
            "walks_power": fitted.weights.walks_power,
            "relations": [
                {
                    "relation": name,
                    "prior_weight": float(fitted.weights.prior[head]),
                    "known_factor": dict(
                        zip(KNOWN_KINDS, map(float, fitted.weights.factor[head]), strict=True)
                    ),
                }
                for head, name in enumerate(directed)
            ],
            "loss": asdict(fitted.curve),
            "updates": list(fitted.updates),
        }
        note["sha256"] = _note_digest(note)
        text = json.dumps(note, indent=2, ensure_ascii=False)
        (place / _NOTE).write_text(text + "\n", encoding="utf-8")
    return Path(folder)


def model_digest(settings: ModelSettings, graph: TemporalGraph, fitted: FittedModel) -> str:
    """A digest of all that a model's answers are made from."""
    features = {} if fitted.features is None else fitted.features.to_arrays()
    weights = fitted.weights
    arrays = {
        **{name: np.asarray(features[name]) for name in sorted(features)},
        **{name: getattr(weights, name) for name in ("rule", "prior", "factor")},
    }
    text = json.dumps([settings.to_json(), graph.fingerprint(), weights.walks_power])
    found = hashlib.sha256((text + fitted.rules.to_jsonl()).encode())
    for name, array in arrays.items():
        found.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def load_model(folder: Path | str) -> tuple[ModelSettings, TemporalGraph, FittedModel]:
    """Read what `save_model` wrote.

    Raises:
        TilpError: the folder holds no model, a damaged one, or one of another version.
    """
    folder = Path(folder)
    note = _read_note(folder)
    try:
        if _digest(folder / _RULES) != note["rules_sha256"]:
            raise TilpError(f"{folder / _RULES}: damaged or changed since it was written")
        rules = RuleSet.read_jsonl(folder / _RULES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TilpWarning)  # of the dates, given when first read
            graph = read(folder / _GRAPH)
        if graph.fingerprint() != note["graph"]:
            raise TilpError(f"{folder / _GRAPH}: damaged or changed since it was written")
        heads = note["relations"]
        if len(heads) != 2 * len(graph.relations):
            raise ValueError(f"{len(heads)} directed relations")
        weights = RuleWeights(
            np.array([_weight(one.weight) for one in rules]),
            np.array([_weight(head["prior_weight"]) for head in heads]),
            np.array(
                [[_weight(head["known_factor"][kind]) for kind in KNOWN_KINDS] for head in heads]
            ),
            _weight(note["walks_power"]),
        )
        curve = LossCurve(**note["loss"])
        settings = ModelSettings.from_json(note["settings"])
        updates = tuple(dict(one) for one in note.get("updates", ()))
        arrays = _read_arrays(folder / _FEATURES, note["features_sha256"])
        features: FittedFeatures | None = None
        if arrays is not None:
            features = FEATURES[settings.features].from_arrays(arrays, graph)
        net = _read_arrays(folder / _NET, note.get("attention_sha256"))
    except (KeyError, TypeError, ValueError, OSError, DataError) as failure:
        raise TilpError(f"{folder}: a damaged model ({failure}); fit it again") from failure
    return settings, graph, FittedModel(rules, weights, curve, features, net=net, updates=updates)


def _read_arrays(path: Path, digest: str | None) -> dict[str, NDArray[Any]] | None:
    """The arrays of a file that a note tells of; None: of none."""
    if digest is None:
        return None
    if _digest(path) != digest:
        raise TilpError(f"{path}: damaged or changed since it was written")
    return read_arrays(path)


def _weight(value: Any) -> float:
    if not isinstance(value, (int, float)) or not np.isfinite(value) or value < 0:
        raise ValueError(f"a weight is {value!r}")
    return float(value)


def _read_note(folder: Path) -> dict[str, Any]:
    path = folder / _NOTE
    if not path.is_file():
        if not folder.exists() and (before(folder) / _NOTE).is_file():
            raise TilpError(
                f"{folder}: no model, but {before(folder)} is the one that another was about to "
                "replace when this was stopped; give it its name back"
            )
        found = "no model" if folder.exists() else "no such folder"
        raise TilpError(
            f"{folder}: {found}; tilp fit DATA --out MODEL makes a model of a table of facts"
        )
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise TilpError(f"{path}: cannot be read ({failure}); fit the model again") from failure
    if not isinstance(note, dict) or note.get("format") != _FORMAT:
        raise TilpError(f"{path}: not the note of a tilp model")
    if note.get("version") != _VERSION:
        raise TilpError(
            f"{path}: written in version {note.get('version')} of the format, and this tilp reads "
            f"version {_VERSION}; fit the model again, or use the tilp that wrote it "
            f"({note.get('tilp')})"
        )
    if note.pop("sha256", None) != _note_digest(note):
        raise TilpError(f"{path}: damaged or changed since it was written; fit the model again")
    return note


def _note_digest(note: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()


def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "numba", "polars", "jax", "optax")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

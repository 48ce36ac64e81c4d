"""Small models for tests, fitted once, and what compares, damages and stops them."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

import tilp
from strategies import small_world
from tilp import TILP, TILPConfig
from tilp.learning.rule_weights import TrainingSettings
from tilp.time import known_ends

FAST = {
    "features": "none",
    "max_length": 1,
    "n_jobs": 1,
    "config": TILPConfig(sample=40, training=TrainingSettings(steps=25, dimension=8)),
}


@cache
def fitted(weights="free"):
    return TILP(rule_weights=weights, **FAST).fit(small_world())


def contents(folder):
    """Every file of a folder, byte for byte."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def same(first, second):
    """Whether two models are the same in all that makes one."""
    arrays = ("rule", "prior", "factor", "walks_power")
    return (
        first.settings == second.settings
        and first.graph == second.graph
        and first.curve == second.curve
        and first.rules() == second.rules()
        and all(
            np.array_equal(getattr(first.weights, name), getattr(second.weights, name))
            for name in arrays
        )
    )


def interval_by_hand(graph, query):
    one = tilp.Interval.parse(query.start, query.end, graph.unit)
    start, end = known_ends(np.array([one.start]), np.array([one.end]))
    return int(start[0]), int(end[0])


def edit(path, change):
    """Change what is in the note of a model."""
    note = json.loads(path.read_text(encoding="utf-8"))
    change(note)
    path.write_text(json.dumps(note), encoding="utf-8")


class KilledError(BaseException):
    """As a kill: nothing of the program's own catches it."""


def kill_at(monkeypatch, name, count, moment):
    """Stop just before or after the given file is put into its place for the n-th time."""
    replace_file = Path.replace
    seen = 0

    def stop(self, target):
        nonlocal seen
        seen += Path(target).name == name
        due = seen == count and Path(target).name == name
        if due and moment == "before":
            raise KilledError
        replace_file(self, target)
        if due:
            raise KilledError

    monkeypatch.setattr(Path, "replace", stop)


def fact_table(*rows):
    names = ("subject", "relation", "object", "start", "end")
    return pl.DataFrame([dict(zip(names, row, strict=False)) for row in rows], schema=names)


def read_facts(*rows, **options):
    return tilp.read(fact_table(*rows).cast(pl.String), unit="year", **options)


def fact_rows(graph, split=None):
    return [
        (one.subject, one.relation, one.object, one.interval.start, one.interval.end)
        for one in graph.facts(split)
    ]

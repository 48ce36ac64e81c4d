"""Plans from TOML: those of the package by name, anybody's by their file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from tilp._utils.files import file_name_part
from tilp.bench.keys import NUMBER, TEXT, WHOLE, Keys, Reader, list_of, word_of
from tilp.bench.kinds import KINDS
from tilp.bench.methods import METHODS, Method, read_method
from tilp.bench.plans import Asked, Experiment, Figure, Plan, Published
from tilp.bench.sources import WorldSize
from tilp.errors import TilpError
from tilp.evaluation import ties_of
from tilp.graph import SPLITS
from tilp.types import ExperimentKind, Protocol, Ties

__all__ = ["load_plan", "shipped_plans"]

_FOLDER = "plans"
_FIGURE = Reader(
    "a protocol and a tie rule that it has, of "
    + "; ".join(f"{one.value} {', '.join(ties_of(one))}" for one in Protocol)
    + ', such as "enumerate average"',
    Figure.parse,
)
_HEADLINE = Figure(Protocol.ENUMERATE, Ties.AVERAGE)


def shipped_plans() -> dict[str, Plan]:
    """The plans of the package, by name."""
    files = resources.files("tilp.bench").joinpath(_FOLDER)
    names = sorted(one.name for one in files.iterdir() if one.name.endswith(".toml"))
    return {
        name.removesuffix(".toml"): _parse(files.joinpath(name).read_text("utf-8"), name)
        for name in names
    }


def load_plan(plan: str | Path) -> Plan:
    """A plan from its file, or one of the package by its name.

    Raises:
        TilpError: names the file, the experiment, the key, what is wrong and what is possible.
    """
    path = Path(plan).expanduser()
    if path.is_file():
        try:
            return _parse(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as failure:
            raise TilpError(f"{path}: cannot be read ({failure})") from failure
    shipped = shipped_plans()
    if str(plan) in shipped:
        return shipped[str(plan)]
    raise TilpError(
        f"{plan}: no such file, and no plan of that name; there are {', '.join(shipped)}. The plan "
        "comes first, then the data"
    )


def _parse(text: str, file: str) -> Plan:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        raise TilpError(f"{file}: not TOML ({failure})") from failure
    keys = Keys(values, file)
    title, about = keys.take("title", TEXT), keys.get("about", TEXT, "")
    world = keys.table("world")
    size = WorldSize(world.get("size", WHOLE, WorldSize.size), world.get("seed", _SEED, 0))
    world.finish()
    methods = dict(METHODS)
    for name, own in keys.table("methods").rest().items():
        place = f"{file}, method {name!r}"
        if not isinstance(own, dict):
            raise TilpError(f"{place}: give a table, [methods.{name}]")
        methods[name] = read_method(name, own, place)
    experiments = [_experiment(one, file, methods) for one in keys.tables("experiment")]
    keys.finish()
    names = [one.name for one in experiments]
    for name in names:
        if names.count(name) > 1:
            raise TilpError(f"{file}: two experiments are named {name!r}; give each its own name")
    if not experiments:
        raise TilpError(f"{file}: there is no experiment; write one under [[experiment]]")
    return Plan(file_name_part(Path(file).stem) or "plan", title, about, size, tuple(experiments))


_SEED = Reader(
    "a whole number from 0 on",
    lambda value: value if isinstance(value, int) and value >= 0 else None,
)
_HELD_OUT = SPLITS[1:]  # train is learned from
_SPLIT = Reader(" or ".join(_HELD_OUT), lambda one: str(one) if one in _HELD_OUT else None)
_NAME = Reader(
    "a name of letters, digits, '-' and '_'",
    lambda one: one if isinstance(one, str) and one and file_name_part(one) == one else None,
)


def _experiment(values: Mapping[str, Any], file: str, methods: Mapping[str, Method]) -> Experiment:
    name = Keys(values, f"{file}, an experiment").take("name", _NAME)
    place = f"{file}, experiment {name!r}"
    keys = Keys(values, place)
    keys.take("name", _NAME)
    kind = keys.take("kind", word_of(ExperimentKind))
    uses = KINDS[kind].uses
    seeds = keys.get("seeds", WHOLE, 1) if "seeds" in uses else 1
    figures: tuple[Figure, ...] = (_HEADLINE,)
    if "figures" in uses:
        figures = keys.get("figures", list_of(_FIGURE), figures)
    published = keys.tables("published") if "published" in uses else []
    found = Experiment(
        name=name,
        kind=kind,
        title=keys.get("title", TEXT, name),
        about=keys.get("about", TEXT, ""),
        methods=_methods(keys, methods, seeds),
        figures=figures,
        split=keys.get("split", _SPLIT, "test") if "split" in uses else "test",
        published=tuple(_published(one, f"{place}, published", figures) for one in published),
        options=KINDS[kind].read(keys),
    )
    keys.finish()
    strange = [one.method.name for one in found.methods if not one.method.is_tilp]
    if KINDS[kind].tilp_only and strange:
        keys.refuse("methods", strange, f"forms of TILP alone where the kind is {kind.value}")
    return found


def _methods(keys: Keys, methods: Mapping[str, Method], seeds: int) -> tuple[Asked, ...]:
    """The methods of an experiment: by name, or as tables with a number of seeds of their own."""
    reader = Reader(
        f"one of {', '.join(methods)}, or {{ name = …, seeds = … }}",
        lambda value: (
            (value, None)
            if isinstance(value, str) and value in methods
            else (value.get("name"), value)
            if isinstance(value, dict) and str(value.get("name")) in methods
            else None
        ),
    )
    found = []
    for name, own in keys.take("methods", list_of(reader)):
        number = seeds
        if own is not None:
            inner = Keys(own, f"{keys.place}, method {name!r}")
            inner.take("name", TEXT)
            number = inner.get("seeds", WHOLE, seeds)
            inner.finish()
        found.append(Asked(methods[str(name)], number))
    names = [one.method.name for one in found]
    if len(set(names)) < len(names):
        keys.refuse("methods", names, "each method once")
    return tuple(found)


def _published(values: Mapping[str, Any], place: str, figures: tuple[Figure, ...]) -> Published:
    keys = Keys(values, place)
    figure = keys.get("figure", _FIGURE, figures[0])
    if figure not in figures:
        keys.refuse("figure", figure.key, f"one of {', '.join(one.key for one in figures)}")
    found = Published(
        method=keys.take("method", TEXT),
        data=keys.take("data", TEXT),
        figure=figure,
        protocol=keys.get("protocol", TEXT, str(figure)),
        mrr=keys.take("mrr", NUMBER),
        hits_at_1=keys.get("hits_at_1", NUMBER, None),
        hits_at_10=keys.get("hits_at_10", NUMBER, None),
        share=keys.get("share", NUMBER, None),
        note=keys.get("note", TEXT, ""),
    )
    keys.finish()
    return found

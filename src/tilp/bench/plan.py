"""Plans: experiments as a TOML file describes them, those of the package by name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from tilp._utils.files import file_name_part
from tilp.bench.experiments import EXPERIMENTS, Experiment
from tilp.bench.experiments.base import FileName, MethodRuns
from tilp.bench.methods import METHODS, Method, read_method
from tilp.bench.schema import Count, Reader, keys_of, read_table, read_value
from tilp.bench.settings import SETTINGS
from tilp.bench.sources import WorldSize
from tilp.errors import TilpError
from tilp.types import ExperimentKind, SettingKind

_FOLDER = "plans"


@dataclass(frozen=True)
class Plan:
    """Experiments that are run and reported together.

    Attributes:
        name: Name of its file.
        title: Title of the report.
        about: What it is for.
        world: The bundled world to use if no data are given.
        experiments: The experiments, in their order.
    """

    name: str
    title: str
    about: str
    world: WorldSize
    experiments: tuple[Experiment, ...]

    def narrowed(self, seeds: int | None = None, only: tuple[str, ...] = ()) -> Plan:
        """Return the plan with another count of seeds, or with some of its experiments.

        Args:
            seeds: Count of seeds of every method; by default as the plan says.
            only: Names of experiments; by default all.

        Raises:
            TilpError: There is no such experiment.
        """
        names = [experiment.name for experiment in self.experiments]
        for name in only:
            if name not in names:
                raise TilpError(
                    f"the plan {self.name} has no experiment {name!r}; it has {', '.join(names)}"
                )
        experiments = [
            experiment for experiment in self.experiments if not only or experiment.name in only
        ]
        if seeds is not None:
            experiments = [experiment.with_seeds(seeds) for experiment in experiments]
        return replace(self, experiments=tuple(experiments))


def shipped_plans() -> dict[str, Plan]:
    """Return the plans of the package, by name.

    >>> sorted(shipped_plans())[:3]
    ['biased', 'efficiency', 'few']
    """
    files = resources.files("tilp.bench").joinpath(_FOLDER)
    names = sorted(file.name for file in files.iterdir() if file.name.endswith(".toml"))
    return {
        name.removesuffix(".toml"): _parse(files.joinpath(name).read_text("utf-8"), name)
        for name in names
    }


def load_plan(plan: str | Path) -> Plan:
    """Return the plan of a file, or a plan of the package.

    >>> load_plan("quick").title
    'A quick look at everything, on the bundled world'

    Args:
        plan: Path of a TOML file, or a name.

    Raises:
        TilpError: Names the file, the experiment, the key, what is wrong and what is possible.
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


@dataclass(frozen=True)
class _PlanTable:
    """The top level of a plan's file."""

    title: str
    about: str = ""
    world: WorldSize = WorldSize()  # noqa: RUF009 - frozen
    methods: dict[str, Any] | None = None
    experiment: tuple[dict[str, Any], ...] = ()


def _parse(text: str, file: str) -> Plan:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        raise TilpError(f"{file}: not TOML ({failure})") from failure
    table = read_table(_PlanTable, values, file)
    methods = dict(METHODS)
    for name, own in (table.methods or {}).items():
        where = f"{file}, method {name!r}"
        if not isinstance(own, dict):
            raise TilpError(f"{where}: give a table, [methods.{name}]")
        methods[name] = read_method(name, own, where)
    experiments = [_read_experiment(own, file, methods) for own in table.experiment]
    names = [experiment.name for experiment in experiments]
    for name in names:
        if names.count(name) > 1:
            raise TilpError(f"{file}: two experiments are named {name!r}; give each its own name")
    if not experiments:
        raise TilpError(f"{file}: there is no experiment; write one under [[experiment]]")
    name = file_name_part(Path(file).stem) or "plan"
    return Plan(name, table.title, table.about, table.world, tuple(experiments))


def _read_experiment(
    table: Mapping[str, Any], file: str, methods: Mapping[str, Method]
) -> Experiment:
    where = f"{file}, experiment {table['name']!r}" if "name" in table else f"{file}, an experiment"
    name = read_value(FileName, table, "name", where)
    cls = EXPERIMENTS[read_value(ExperimentKind, table, "kind", where)]
    given: dict[str, Any] = {"methods": _read_methods(table, where, methods)}
    more_keys = ["kind"]
    if "setting" in keys_of(cls):
        # The keys of a setting are keys of the experiment too.
        kind = read_value(SettingKind, table, "setting", where, SettingKind.NONE)
        keys = keys_of(SETTINGS[kind])
        own = {key: table[key] for key in table if key in keys}
        given["setting"] = read_table(SETTINGS[kind], own, where)
        more_keys += keys
    return read_table(cls, {"title": name, **table}, where, given=given, more_keys=more_keys)


@dataclass(frozen=True)
class _MethodEntry:
    """A method with a count of seeds of its own."""

    name: str
    seeds: Count | None = None


def _read_methods(
    table: Mapping[str, Any], where: str, methods: Mapping[str, Method]
) -> tuple[MethodRuns, ...]:
    """Read the methods of an experiment: names, or tables with a count of seeds."""

    def read(value: Any) -> MethodRuns | None:
        entry = {"name": value} if isinstance(value, str) else value
        if not isinstance(entry, dict) or str(entry.get("name")) not in methods:
            return None
        checked = read_table(_MethodEntry, entry, f"{where}, method {entry['name']!r}")
        return MethodRuns(methods[checked.name], checked.seeds)

    reader = Reader(f"one of {', '.join(methods)}, or {{ name = …, seeds = … }}", read)
    entries: tuple[MethodRuns, ...] = read_value(
        tuple[Annotated[MethodRuns, reader], ...], table, "methods", where
    )
    return entries

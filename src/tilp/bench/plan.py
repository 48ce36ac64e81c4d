"""Plans: experiments that a TOML file describes, to be run on data sets and reported."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Self

from tilp._utils.files import file_name_part, locked
from tilp._version import version_report
from tilp.bench import experiment as kinds
from tilp.bench import schema
from tilp.bench.data import SETTINGS, Source, WorldSize
from tilp.bench.experiment import Experiment, FileName, RankedExperiment
from tilp.bench.jobs import Job, Results, Store, Watcher, merge_jobs, run_jobs
from tilp.bench.methods import METHODS, Method, read_method
from tilp.bench.report import TEXTS, Report
from tilp.errors import TilpError
from tilp.graph import SPLITS
from tilp.parallel import thread_count

EXPERIMENTS: Mapping[str, type[Experiment]] = {
    cls.kind: cls for cls in (kinds.Compare, kinds.Curve, kinds.BiasedData, kinds.Times)
}
_Kind, _SettingKind = (
    Annotated[str, schema.one_of(list(names))] for names in (EXPERIMENTS, SETTINGS)
)


@dataclass(frozen=True)
class Plan:
    """Experiments that are run and reported together."""

    name: str = field(metadata={"key": None})  # of its file
    experiments: tuple[Experiment, ...] = field(metadata={"key": None})
    title: str
    about: str = ""
    world: WorldSize = WorldSize()  # noqa: RUF009 - frozen; used if no data are given

    def narrowed(self, seeds: int | None = None, only: tuple[str, ...] = ()) -> Self:
        """Return the plan with another count of seeds, or with some of its experiments.

        Args:
            seeds: Count of seeds of every method; by default as the plan says.
            only: Names of experiments; by default all.
        """
        names = [experiment.name for experiment in self.experiments]
        if unknown := [name for name in only if name not in names]:
            missing = f"the plan {self.name} has no experiment {unknown[0]!r}"
            raise TilpError(f"{missing}; it has {', '.join(names)}")
        chosen = [each for each in self.experiments if not only or each.name in only]
        if seeds is not None:
            for index, each in enumerate(chosen):
                methods = tuple(replace(method, seeds=seeds) for method in each.methods)
                chosen[index] = replace(each, methods=methods)
        return replace(self, experiments=tuple(chosen))


_RENAMED = {"icews14": "forecasting"}  # plans by the names they had before


def shipped_plans() -> dict[str, Plan]:
    """Return the plans of the package, by name.

    >>> sorted(shipped_plans())[:3]
    ['biased', 'few', 'forecasting']
    """
    files = resources.files("tilp.bench").joinpath("plans")
    plans = sorted(file.name for file in files.iterdir() if file.name.endswith(".toml"))
    texts = {name: files.joinpath(name).read_text("utf-8") for name in plans}
    return {name.removesuffix(".toml"): _parse(text, name) for name, text in texts.items()}


def load_plan(plan: str | Path) -> Plan:
    """Return the plan of a file, or a plan of the package.

    >>> load_plan("quick").title
    'A quick look at everything, on the bundled world'
    """
    path = Path(plan).expanduser()
    if path.is_file():
        try:
            return _parse(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as failure:
            raise TilpError(f"{path}: cannot be read ({failure})") from failure
    shipped, name = shipped_plans(), _RENAMED.get(str(plan), str(plan))
    if name in shipped:
        return shipped[name]
    raise TilpError(
        f"{plan}: no such file, and no plan of that name; there are {', '.join(shipped)}. The plan "
        "comes first, then the data"
    )


def _parse(text: str, file: str) -> Plan:
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as failure:  # numbers of any length, tables of any depth
        raise TilpError(f"{file}: not TOML ({failure})") from failure
    methods, given = dict(METHODS), dict[str, Any]()
    for name, choices in schema.read_value(dict[str, Any], values, "methods", file, {}).items():
        where = f"{file}, method {name!r}"
        if not isinstance(choices, dict):
            raise TilpError(f"{where}: give a table, [methods.{name}]")
        methods[name] = read_method(name, choices, where)
    entries = schema.read_value(tuple[dict[str, Any], ...], values, "experiment", file, ())
    given["experiments"] = tuple(_read_experiment(entry, file, methods) for entry in entries)
    given["name"] = file_name_part(Path(file).stem) or "plan"
    plan = schema.read_table(Plan, values, file, ["methods", "experiment"], **given)
    for name in _repeated(experiment.name for experiment in plan.experiments):
        raise TilpError(f"{file}: two experiments are named {name!r}; give each its own name")
    if not plan.experiments:
        raise TilpError(f"{file}: there is no experiment; write one under [[experiment]]")
    return plan


def _read_experiment(table: schema.Table, file: str, methods: Mapping[str, Method]) -> Experiment:
    where = f"{file}, experiment {table['name']!r}" if "name" in table else f"{file}, an experiment"
    name = schema.read_value(FileName, table, "name", where)
    cls = EXPERIMENTS[schema.read_value(_Kind, table, "kind", where)]
    given: dict[str, Any] = {"methods": _read_methods(table, where, methods)}
    more_keys = ["kind"]
    if "setting" in schema.keys_of(cls):
        # The keys of a setting are keys of the experiment too.
        kind = schema.read_value(_SettingKind, table, "setting", where, "none")
        keys = schema.keys_of(SETTINGS[kind])
        of_setting = {key: table[key] for key in table if key in keys}
        given["setting"] = schema.read_table(SETTINGS[kind], of_setting, where)
        more_keys += keys
    return schema.read_table(cls, {"title": name, **table}, where, more_keys, **given)


def _read_methods(table: schema.Table, where: str, methods: Mapping[str, Method]) -> Any:
    """Read the methods of an experiment: names, or tables with a count of seeds."""

    def read(value: Any) -> Method | None:
        entry = {"name": value} if isinstance(value, str) else value
        if not isinstance(entry, dict) or entry.get("name") not in list(methods):
            return None
        method, own = methods[entry["name"]], f"{where}, method {entry['name']!r}"
        seeds = schema.read_value(schema.Count, entry, "seeds", own) if "seeds" in entry else None
        schema.check_keys(entry, ["name", "seeds"], own)
        return replace(method, seeds=seeds)

    reader = schema.Reader(f"one of {', '.join(methods)}, or {{ name = …, seeds = … }}", read)
    return schema.read_value(tuple[Annotated[Method, reader], ...], table, "methods", where)


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a plan: the report as HTML and as Markdown, and the results."""

    page: Path
    text: Path
    results: Results
    ran: int  # count of jobs that were run now; the others had results
    missing_charts: tuple[str, ...] = ()  # those that could not be drawn without matplotlib


def plan_jobs(plan: Plan, sources: Sequence[Source]) -> tuple[list[Job], dict[str, str]]:
    """Return every job of a plan, once; and why an experiment has none on some data set."""
    for name in _repeated(source.name for source in sources):
        why = "that name identifies their runs; rename one of the folders or files"
        raise TilpError(f"two data sets are named {name}, and {why}")
    jobs, refused = list[Job](), dict[str, str]()
    for experiment in plan.experiments:
        for source in sources:
            try:
                jobs += experiment.jobs(source)
            except TilpError as failure:
                refused[f"{experiment.name} on {source.name}"] = str(failure)
    return merge_jobs(jobs), refused


def run_plan(
    plan: Plan, sources: Sequence[Source], out: Path, *, threads: int | None = None,
    side_by_side: int = 1, command: str = "", watcher: Watcher | None = None,
) -> Outcome:  # fmt: skip
    """Run a plan on data sets, and write its report.

    Results of earlier runs with the same data, settings and version are used again.

    Args:
        plan: The plan.
        sources: Data sets to run it on.
        out: Folder of the report and of the results.
        threads: Count of threads; by default all. Results do not depend on it.
        side_by_side: Count of runs at a time, which share the threads. Default 1.
        command: Command that runs the same again, for the report.
        watcher: Receives the progress.
    """
    for source in sources:
        source.fingerprint  # noqa: B018 - unreadable data raise an error before anything is run
    jobs, refused = plan_jobs(plan, sources)
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / "runs").is_dir()):
        raise TilpError(f"{out} holds something that is no report; choose another folder")
    (out / "runs").mkdir(parents=True, exist_ok=True)
    store, results, ran = Store(out), Results(), 0
    with locked(out):
        ended = run_jobs(jobs, store, thread_count(threads), side_by_side, watcher)
        for position, (job, result, is_new) in enumerate(ended, start=1):
            ran += is_new
            outcome = result if isinstance(result, str) else "run" if is_new else "reused"
            if isinstance(result, str):
                results.failed[job.name] = result
            else:
                results.done[job.name] = result
            if watcher:
                watcher.ends(job, outcome, position, len(jobs))
        report = Report(plan.name, plan.title, results)
        _write_overview(report, plan, sources, command)
        for experiment in plan.experiments:
            report.heading(experiment.title)
            if experiment.about:
                report.text(experiment.about)
            possible = []
            for source in sources:
                if reason := refused.get(f"{experiment.name} on {source.name}"):
                    report.text(f"Not run on {source.name}: {reason}.")
                else:
                    possible.append(source)
            if possible:
                experiment.write(report, possible)
        page, text = report.write(out)
    return Outcome(page, text, results, ran, tuple(report.missing_charts))


def _write_overview(report: Report, plan: Plan, sources: Sequence[Source], command: str) -> None:
    """Write what comes before the first experiment."""
    report.heading(plan.title, 1)
    if plan.about:
        report.text(plan.about)
    report.code(command)
    days = sorted({result["finished"][:10] for result in report.results.done.values()})
    period = " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))
    measured = f"Measured {period}" if days else "Nothing was measured"
    report.text(f"{measured}. Every run is a file in the folder runs, beside this report.")
    rows = []
    for source in sources:
        graph = source.graph
        counts = [len(graph.rows(split)) for split in SPLITS]
        counts += [len(graph.entities), len(graph.relations), len(graph.defects)]
        texts = [source.name, graph.unit.value, source.fingerprint[:16]]
        rows.append([*texts, *(f"{count:,}" for count in counts)])
    header = ["data", "unit", "fingerprint", *SPLITS, "entities", "relations", "rows with defects"]
    report.table(header, rows, 3)
    methods, protocols = dict[str, str](), dict[str, None]()
    for experiment in plan.experiments:
        methods |= {method.name: method.about for method in experiment.methods}
        if isinstance(experiment, RankedExperiment):
            protocols |= dict.fromkeys(ranking.split()[0] for ranking in experiment.figures)
    report.table(["method", "what it is"], list(methods.items()), 2)
    with report.folded("How to read it"):
        report.text(TEXTS["reading"])
        if protocols:
            report.items(f"{name}: {TEXTS['protocols'][name]}" for name in protocols)
        report.text(TEXTS["ties"])
    with report.folded("Versions and machine"):
        report.code(version_report())

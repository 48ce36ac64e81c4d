"""Experiments of a plan: jobs that evaluate methods, their means, and the rules they show."""

from __future__ import annotations

import operator
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, product
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from tilp._utils.files import file_name_part, unique_file_name
from tilp.bench.data import Setting, Source
from tilp.bench.jobs import Job, Result, Workspace
from tilp.bench.methods import Method
from tilp.bench.report import Report, bold
from tilp.bench.schema import Count, allow, one_of
from tilp.evaluation import Evaluation, evaluate, ties_of
from tilp.evaluation.evaluate import split_facts, unique_labels
from tilp.explanation import Grounding, WalkedFact
from tilp.explanation.render import draw_grounding, fact_text
from tilp.graph import SPLITS, QueryTable, TemporalGraph
from tilp.model import TILP
from tilp.rules import MinedRule, Notation, format_rule
from tilp.scoring import Query
from tilp.types import Protocol
from tilp.viz.charts import Bars
from tilp.walks import Grounder, Step

_MOST_RULES = 200  # of a relation, that groundings are looked for
_MOST_FACTS = 300  # of a relation, that are tried for each rule


@dataclass(frozen=True)
class EvaluationJob(Job):
    """One method on one data set in one setting, evaluated on a split under every protocol."""

    source: Source
    setting: Setting
    method: Method
    seed: int
    split: str = "test"
    shown: tuple[int, int] = (0, 0)  # rules to show: of how many relations, and of each

    @property
    def name(self) -> str:
        parts = [unique_file_name(self.source.name), self.setting.name]
        parts += [unique_file_name(self.method.name), str(self.seed)]
        return ".".join(parts if self.split == "test" else [*parts, self.split])

    @property
    def group(self) -> str:
        if not self.setting.shares_models:
            return self.name
        return f"{self.source.name}.{self.method.base}.{self.seed}"

    def identity(self) -> dict[str, Any]:
        setting, method = self.setting.identity(self.source), self.method.identity(self.seed)
        decisive = {"setting": setting, "method": method, "seed": self.seed, "split": self.split}
        return {"data": self.source.fingerprint, **decisive}

    def satisfied_by(self, result: Result) -> bool:
        return all(map(operator.le, self.shown, result.get("shown", (0, 0))))

    def merged_with(self, other: Job) -> Job:
        if not isinstance(other, EvaluationJob) or replace(other, shown=self.shown) != self:
            return super().merged_with(other)
        most = map(max, self.shown, other.shown)
        return replace(self, shown=(next(most), next(most)))

    def run(self, workspace: Workspace) -> Result:
        case = self.setting.case(self.source, self.seed)
        split_facts(case.known, self.split)  # an error comes before anything is learned
        resumed = workspace.folder.exists()
        learned = self.method.learn(case, self.seed, workspace)
        began = time.perf_counter()
        graph, threads = case.known, workspace.threads
        advance = partial(workspace.advance, "evaluate")
        evaluation = evaluate(learned.scorer, graph, self.split, threads=threads, progress=advance)
        seconds = {**learned.seconds, "evaluate": time.perf_counter() - began}
        figures, relations = {}, {}
        for protocol, ties in evaluation.protocols_and_ties():
            key = f"{protocol.value} {ties.value}"
            figures[key] = evaluation.metrics(protocol, ties).to_json()
            relations[key] = _mrr_by_relation(evaluation.by_relation(protocol, ties))
        graphs = {"learned_from": _graph_summary(case.learned), "asked": _graph_summary(graph)}
        result: Result = {
            "data": {"name": self.source.name, "fingerprint": self.source.fingerprint, **graphs},
            "setting": {"name": self.setting.name, **self.setting.identity(self.source)},
            "method": {"name": self.method.name, **self.method.identity(self.seed)},
            "seed": self.seed,
            "split": self.split,
            "queries": len(evaluation),
            "figures": figures,
            "relations": relations,
            "rules": learned.rules,
            "seconds": seconds,
            "threads": threads,
            "resumed": resumed,
        }
        if learned.model is not None:
            examples = _rule_examples(learned.model, case.applied, evaluation, *self.shown)
            result |= {"shown": self.shown, "examples": examples}
        return result


def _graph_summary(graph: TemporalGraph) -> dict[str, Any]:
    counted = {name: len(getattr(graph, name)) for name in ("targets", "entities", "relations")}
    counts = {split: len(graph.rows(split)) for split in SPLITS}
    return {"fingerprint": graph.fingerprint(), **counts, **counted}


def _mrr_by_relation(table: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return the MRR of each relation, its two directions together."""
    mrr, queries = pl.col("mrr"), pl.col("queries")
    sums = table.group_by("relation", maintain_order=True).agg((mrr * queries).sum(), queries.sum())
    rows = sums.select("relation", mrr / queries, queries).iter_rows()
    return {relation: {"mrr": value, "queries": count} for relation, value, count in rows}


def _rule_examples(
    model: TILP, graph: TemporalGraph, evaluation: Evaluation, relations: int, rules: int
) -> list[list[Result]]:
    """Return the heaviest rules, of distinct bodies, of the best relations, with groundings."""
    scorer = model.scorer(graph).rule_scorer
    grounder = Grounder(scorer.walker)
    facts = np.asarray(graph.rows(evaluation.split), np.int64)
    table = evaluation.by_relation().filter(pl.col("direction") == "object")
    best = table.sort("mrr", "relation", descending=[True, False])["relation"][:relations]
    labels = unique_labels(graph.relations).to_list()
    examples: list[list[Result]] = []
    for relation in map(labels.index, best):
        examples.append([])
        rows = facts[graph.relation[facts] == relation][:_MOST_FACTS]
        queries = scorer.fill_dates(QueryTable.of_facts(graph, rows, walked=False))
        bodies: set[tuple[str, ...]] = set()
        for mined in list(model.rules(str(graph.relations.ids[relation])))[:_MOST_RULES]:
            body = tuple(str(atom) for atom in mined.rule.body)
            if body in bodies:
                continue
            for index, row in enumerate(rows.tolist()):
                query = queries[np.array([index])]
                walks = grounder(mined.rule, query, int(graph.object[row]), 1).walks
                if walks:
                    examples[-1].append(_example(graph, mined, row, walks[0]))
                    bodies.add(body)
                    break
            if len(bodies) == rules:
                break
    return examples


def _example(graph: TemporalGraph, mined: MinedRule, row: int, walk: tuple[Step, ...]) -> Result:
    facts = (WalkedFact(step.fact, graph.fact(step.fact), step.inverse) for step in walk)
    grounding, fact = Grounding(tuple(facts)), graph.fact(row)
    dates = [graph.date_text(end)[row] for end in ("start", "end")]
    query = Query(fact.relation, fact.subject, None, *dates)
    return {
        "relation": fact.relation,
        "rule": str(mined.rule),
        "sentence": format_rule(mined.rule, Notation.SENTENCE),
        **{name: getattr(mined, name) for name in ("weight", "confidence", "support", "facts")},
        "asked": str(replace(fact, object="?")),
        "answer": fact.object,
        "grounding": "; ".join(map(fact_text, grounding.steps)),
        "picture": draw_grounding(grounding, query, fact.object),
    }


_RANKINGS = [
    f"{protocol.value} {ties.value}" for protocol in Protocol for ties in ties_of(protocol)
]
Ranking = Annotated[str, one_of(_RANKINGS)]  # a protocol and a tie rule
SplitName = Annotated[str, one_of(SPLITS[1:])]
FileName = Annotated[
    str,
    allow("a name of letters, digits, '-' and '_'", lambda x: x and file_name_part(str(x)) == x),
]


def ranking_text(ranking: str) -> str:
    """Return a ranking in words.

    >>> ranking_text("enumerate average")
    'enumerate, average ties'
    """
    return "{}, {} ties".format(*ranking.split())


@dataclass(frozen=True, kw_only=True)
class Published:
    """A result that others published, to stand beside ours."""

    method: str
    data: str
    figure: Ranking | None = None  # to compare it with; by default the experiment's first
    protocol: str = ""  # how it was measured, in words
    mrr: float
    hits_at_1: float | None = None
    hits_at_10: float | None = None
    share: float | None = None  # of the training facts, on a curve
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """One question of a plan."""

    kind: ClassVar[str]
    tilp_only: ClassVar[bool] = False  # whether all its methods must be forms of TILP

    name: FileName
    title: str
    about: str = ""  # what it asks and how to read it
    methods: tuple[Method, ...]

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        if len(set(names)) < len(names):
            raise ValueError(f"methods is {names!r}; give each method once")
        others = [method.name for method in self.methods if not method.is_tilp]
        if self.tilp_only and others:
            only = f"give forms of TILP alone where the kind is {self.kind}"
            raise ValueError(f"methods is {others!r}; {only}")

    @abstractmethod
    def jobs(self, source: Source) -> list[Job]:
        """Return all that is run on a data set."""

    @abstractmethod
    def write(self, report: Report, sources: Sequence[Source]) -> None:
        """Write its part of a report, below the heading."""


@dataclass(frozen=True, kw_only=True)
class RankedExperiment(Experiment):
    """An experiment on how well answers are ranked."""

    seeds: Count = 1  # of each method that has no count of its own, from 0 on
    figures: tuple[Ranking, ...] = ("enumerate average",)  # first: drawn
    split: SplitName = "test"
    published: tuple[Published, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for entry in self.published:
            if entry.figure is not None and entry.figure not in self.figures:
                wrong = f"published: figure is {entry.figure!r}"
                raise ValueError(f"{wrong}; give one of {', '.join(self.figures)}")

    def published_for(self, ranking: str) -> Iterator[Published]:
        """Return the published results that belong to a ranking."""
        return (entry for entry in self.published if (entry.figure or self.figures[0]) == ranking)

    @abstractmethod
    def settings(self, source: Source) -> Iterable[Setting]:
        """Return the settings that every method is run in."""

    def jobs(self, source: Source) -> list[Job]:
        pairs = product(self.methods, self.settings(source))
        return [job for method, setting in pairs for job in self.jobs_of(source, setting, method)]

    def jobs_of(self, source: Source, setting: Setting, method: Method) -> list[EvaluationJob]:
        """Return the jobs of a method: one per seed, or one if seeds change nothing."""
        count = (method.seeds or self.seeds) if method.seeded or setting.seeded else 1
        return [EvaluationJob(source, setting, method, seed, self.split) for seed in range(count)]

    def results_of(
        self, report: Report, source: Source, setting: Setting
    ) -> dict[str, list[Result]]:
        """Return the results of each method, by its name."""
        jobs = {method.name: self.jobs_of(source, setting, method) for method in self.methods}
        return {name: report.results.of_all(own) for name, own in jobs.items()}

    def means(
        self, report: Report, source: Source, setting: Setting, ranking: str, metric: str = "mrr"
    ) -> list[Mean | None]:
        """Return a metric of each method, over its seeds."""
        by_method = self.results_of(report, source, setting).values()
        return [Mean.of(result["figures"][ranking][metric] for result in own) for own in by_method]

    def column(self, means: Sequence[Mean | None]) -> list[str]:
        """Return a column of means, the best of our methods bold; of all if none is ours."""
        any_ours = any(method.is_ours for method in self.methods)
        compared = [method.is_ours or not any_ours for method in self.methods]
        best = max((mean.value for mean in compress(means, compared) if mean), default=None)
        return [
            bold(mean_text(mean)) if mean and own and mean.value == best else mean_text(mean)
            for mean, own in zip(means, compared, strict=True)
        ]

    def sections(self, report: Report, sources: Sequence[Source]) -> Iterator[Source]:
        """Begin a section for each data set, and yield those that have results."""
        for source in sources:
            report.heading(source.name, 3)
            if report.failures(self.jobs(source)):
                yield source

    @property
    def rounds(self) -> str:
        """The methods with their counts of seeds."""
        return ", ".join(f"{each.name} {each.seeds or self.seeds}" for each in self.methods)


class Mean(NamedTuple):
    """A metric over runs: its mean, standard deviation (0 of one run) and count of runs."""

    value: float
    spread: float
    runs: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Mean | None:
        """Return the mean of the values that are not None, or None if all are."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        spread = statistics.stdev(known) if len(known) > 1 else 0.0
        return cls(statistics.fmean(known), spread, len(known))


def share_text(value: float | None) -> str:
    """Return a share as tables show it.

    >>> share_text(0.4114), share_text(1.0), share_text(-0.02), share_text(None)
    ('.411', '1.000', '-.020', '')
    """
    if value is None:
        return ""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def mean_text(mean: Mean | None, *, signed: bool = False) -> str:
    """Return a mean with its deviation, if there are several runs."""
    if mean is None:
        return ""
    value = ("+" if signed and mean.value >= 0 else "") + share_text(mean.value)
    return f"{value} ± {share_text(mean.spread)}" if mean.runs > 1 else value


def bars(by_name: Mapping[str, Iterable[Mean | None]]) -> list[Bars]:
    """Return means as bars of a chart."""
    return [Bars(name, tuple(m and m[:2] for m in means)) for name, means in by_name.items()]

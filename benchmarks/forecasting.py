"""Timestamp rules: forecasting on ICEWS14, and completion of sets with intervals.

TILP_DATA names the folder of published data sets. Forecasting: rules are fitted on train; evidence
is every fact dated before the query, of valid and test too; the filter is that of the query's date
(protocol exact); both directions; one thread. Parts:
  figures  MRR and hits with average and with best ties, and ranked as the released code of TLogic
           ranks: best ties, the noisy-or rounded, an answer that nothing leads to comes last;
           seconds of fitting and ranking; several seeds;
  plain    seconds of ranking when every walk of a rule is gone through, as the release does;
  own      rules weighed by recency and count (ForecastRules): figures on valid and test, several
           seeds; seconds of fitting and ranking test, and how they compare with timestamp rules
           that are fitted and plainly applied in the same run; one rule's curve;
  older    CPU seconds of fitting and ranking test, here and at an older commit of this repository,
           in turn;
  scale    a world of events from 10 thousand to a million facts, packed, each in a process that
           only fits, then asks 1,000 queries: CPU seconds, and the peak of memory while it fits;
  update   the last 300 or so facts of worlds of three sizes, then the days of test of ICEWS14, one
           by one, are added to a model in memory: seconds of each, by facts known before;
  choices  the same on valid alone, for other choices than the defaults, one at a time;
  lengths  the same figures as the first, by the lengths of rules;
  completion  WIKIDATA12k and YAGO11k, original dates, evidence train: looking back only, and
           ahead too; protocol enumerate with average ties, exact with worst; and on the files with
           filled dates tilp-release.
Seconds are of the processor, after the loops are compiled.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
from published import load

import tilp
from tilp.evaluation import Evaluation, evaluate
from tilp.forecasting import ForecastSettings, TimestampRules, TimestampScorer, recency
from tilp.forecasting.events import event_times
from tilp.graph import SPLITS, QueryTable
from tilp.scoring import Scores
from tilp.time import FAR

PUBLISHED = "MRR 0.4304, hits@1 0.3356, hits@10 0.6123"


def compile_loops(graph: tilp.TemporalGraph) -> None:
    model = TimestampRules(walks=1, samples=1).fit(graph)
    evaluate(model.scorer(graph, SPLITS), graph, "valid", protocols=["exact"])


def ranked(scorer, graph: tilp.TemporalGraph, split: str = "test") -> Evaluation:
    return evaluate(scorer, graph, split, protocols=["exact"])


def figures(rank: np.ndarray) -> str:
    hits = ", ".join(f"hits@{k} {(rank <= k).mean():.4f}" for k in (1, 10))
    return f"MRR {(1 / rank).mean():.4f}, {hits}"


def as_released(scorer: TimestampScorer):
    """The same scores as numbers from 0 to 1, where many are 1; an answer counts if listed."""

    def score(queries: QueryTable) -> Scores:
        found = scorer(queries)
        return replace(found, score=-np.expm1(-found.score), reached=None)

    return score


def show(rules: TimestampRules, graph: tilp.TemporalGraph) -> None:
    began = time.process_time()
    model = rules.fit(graph)
    fitted = time.process_time()
    scorer = model.scorer(graph, SPLITS)
    found = ranked(scorer, graph)
    done = time.process_time()
    print(f"seed {rules.seed}, {model}; seconds: fit {fitted - began:.1f}, "
          f"rank {done - fitted:.1f}")  # fmt: skip
    for ties in ("average", "best"):
        print(f"    {ties} ties: {figures(found.ranks[f'rank_exact_{ties}'].to_numpy())}")
    released = ranked(as_released(scorer), graph).ranks
    best, worst = (released[f"rank_exact_{ties}"].to_numpy() for ties in ("best", "worst"))
    rank = np.where(released["unreached"].to_numpy(), worst, best)
    print(f"    as released: {figures(rank)}; published: {PUBLISHED}", flush=True)


def part_figures(seeds: int) -> None:
    graph = load("ICEWS14")
    compile_loops(graph)
    for seed in range(seeds):
        show(TimestampRules(seed=seed), graph)


def part_plain(_: int) -> None:
    graph = load("ICEWS14")
    compile_loops(graph)
    model = TimestampRules().fit(graph)
    began = time.process_time()
    found = ranked(model.scorer(graph, SPLITS, plain=True), graph)
    print(f"(plain) seconds: rank {time.process_time() - began:.1f}; "
          f"average ties: {figures(found.ranks['rank_exact_average'].to_numpy())}")  # fmt: skip


def part_own(seeds: int) -> None:
    graph = load("ICEWS14")
    compile_loops(graph)
    ranked(ForecastSettings(warm=0.99).fit(graph).scorer(graph, SPLITS), graph, "valid")
    own = []
    for seed in range(seeds):
        began = time.process_time()
        model = ForecastSettings(seed=seed).fit(graph)
        fitted = time.process_time()
        scorer = model.scorer(graph, SPLITS)
        found = {"test": ranked(scorer, graph)}
        own.append(time.process_time() - began)
        print(f"(own) seed {seed}, {model}; seconds: fit {fitted - began:.1f}, "
              f"rank {own[-1] - fitted + began:.1f}")  # fmt: skip
        found["valid"] = ranked(scorer, graph, "valid")
        for split, one in found.items():
            rank = one.ranks["rank_exact_average"].to_numpy()
            print(f"    {split}, average ties: {figures(rank)}", flush=True)
    likely = max(model.rules, key=lambda mined: mined.support)
    print(f"    {likely}: {model.curve(likely.rule)}")
    began = time.process_time()
    scorer = TimestampRules().fit(graph).scorer(graph, SPLITS, plain=True)
    found["test"] = ranked(scorer, graph)
    plain = time.process_time() - began
    print(f"(own) timestamp rules, plain: {plain:.1f} seconds; average ties: "
          f"{figures(found['test'].ranks['rank_exact_average'].to_numpy())}; "
          f"own take {max(own) / plain:.2f} of that at most")  # fmt: skip


SCALES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
OLDER = "324b996"
_TIMED = """
import sys, time
sys.path.insert(0, {benchmarks!r})
from published import load
from tilp.evaluation import evaluate
from tilp.graph import SPLITS
from {module} import {name} as Rules
graph = load("ICEWS14")
rank = lambda rules, split: evaluate(
    rules.fit(graph).scorer(graph, SPLITS), graph, split, protocols=["exact"])
rank(Rules(warm=0.99), "valid")
began = time.process_time()
ranks = rank(Rules(), "test").ranks["rank_exact_average"].to_numpy()
print(time.process_time() - began, (1 / ranks).mean())
"""


def part_older(seeds: int) -> None:
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        tree = ["git", "-C", str(root), "archive", OLDER, "src"]
        archive = subprocess.run(tree, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        names = {
            OLDER: (Path(folder) / "src", "tilp.timestamps.forecasting", "ForecastRules"),
            "here": (root / "src", "tilp.forecasting", "ForecastSettings"),
        }
        for _, (version, (source, module, name)) in product(range(seeds), names.items()):
            code = _TIMED.format(benchmarks=str(root / "benchmarks"), module=module, name=name)
            found = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True,
                env={**os.environ, "PYTHONPATH": str(source)},
            )  # fmt: skip
            seconds, mrr = map(float, found.stdout.split())
            print(f"(older) {version}: {seconds:.1f} CPU seconds, test MRR {mrr:.4f}", flush=True)


_FITTED = """
import sys, time
import numpy as np, tilp
from tilp._utils.memory import forget_peak, peak_megabytes
from tilp.graph import QueryTable
graph = tilp.read(sys.argv[1])
tilp.ForecastRules(n_jobs=1).fit(tilp.datasets.world(0, 1_000).graph)
forget_peak()
before, began = peak_megabytes(), time.process_time()
model = tilp.ForecastRules(n_jobs=1).fit(graph)
fitted, peak = time.process_time(), peak_megabytes()
rows = np.asarray(graph.rows("test"), np.int64)[:500]
queries = QueryTable.of_facts(graph, rows, walked=False)
model.scorer().evidence
began_asking = time.process_time()
model.scorer().score(queries)
print(f"(scale) {len(graph):,} facts: fit {fitted - began:.1f} CPU seconds, peak {peak:,.0f} MB, "
      f"{peak - before:,.0f} more than before; {len(queries):,} queries "
      f"{time.process_time() - began_asking:.2f} s", flush=True)
"""


def part_scale(_: int) -> None:
    for size in SCALES:
        with tempfile.TemporaryDirectory() as folder:
            tilp.write(tilp.datasets.world(0, size).graph, Path(folder) / "facts")
            packed = Path(folder) / "packed"
            tilp.pack(Path(folder) / "facts", packed)
            subprocess.run([sys.executable, "-c", _FITTED, str(packed)], check=True)


def part_update(_: int) -> None:
    for size in SCALES[:3]:
        graph = tilp.datasets.world(0, size).graph
        time_of = event_times(graph.start, graph.end)
        order = np.argsort(np.where(time_of < FAR, time_of, -FAR), kind="stable")
        last = order[time_of[order] >= time_of[order[-300]]]
        last = last[time_of[last] < FAR]
        facts = graph.frame()[last].select("subject", "relation", "object", "start", "end")
        model = tilp.ForecastRules(warm=0.9).fit(graph.without(last.tolist()))
        new = tilp.read({"train": facts}, unit="year")
        model.scorer().evidence, model.update(new)
        began = time.process_time()
        known = len(model.graph)
        model.update(new)
        print(f"(update) {len(facts):,} facts to {known:,} of the world, "
              f"{time.process_time() - began:.3f} CPU seconds", flush=True)  # fmt: skip
    graph = load("ICEWS14")
    test = graph.frame("test").with_columns(end=pl.col("start"))
    model = tilp.ForecastRules().fit(graph.without(np.asarray(graph.rows("test"))))
    for date in sorted(test["start"].unique())[:5]:
        facts = test.filter(pl.col("start") == date)
        new = tilp.read({"train": facts}, unit="day")
        began = time.process_time()
        model = model.update(new)
        taken, known = time.process_time() - began, len(model.graph) - len(facts)
        print(f"(update) {date}: {len(facts):,} facts to {known:,} known, {taken:.2f} CPU seconds; "
              f"next is {model.now}", flush=True)  # fmt: skip


def part_choices(_: int) -> None:
    graph = load("ICEWS14")
    others = {"classes": (6, 20), "warm": (0.0, 0.3), "rate": (0.025, 0.1), "own_rate": (0.0, 0.05)}
    changes = [{}, *({name: value} for name, values in others.items() for value in values)]
    listed = [{"listed": n} for n in (250, 1000, 10**9)]  # no parameter: answers of a relation
    for change in changes + listed:
        with patch.object(recency, "LISTED", change.get("listed", recency.LISTED)):
            settings = {name: value for name, value in change.items() if name != "listed"}
            scorer = ForecastSettings(**settings).fit(graph).scorer(graph, SPLITS)
        rank = ranked(scorer, graph, "valid").ranks["rank_exact_average"].to_numpy()
        print(f"(choices) {change or 'defaults'}: valid, average ties: {figures(rank)}", flush=True)


def part_lengths(_: int) -> None:
    graph = load("ICEWS14")
    compile_loops(graph)
    for lengths in ((1,), (2,), (3,), (1, 2)):
        print(f"(lengths) {lengths}")
        show(TimestampRules(lengths), graph)


def part_completion(_: int) -> None:
    protocols = {
        "": (("enumerate", "average"), ("exact", "worst")),
        "/tilp-release": (("tilp-release", "best"),),
    }
    for name, folder in product(("WIKIDATA12k", "YAGO11k"), protocols):
        graph = load(name + folder)
        for ahead in (False, True):
            model = TimestampRules(ahead=ahead).fit(graph)
            asked = [protocol for protocol, _ in protocols[folder]]
            found = evaluate(model.scorer(graph), graph, "test", protocols=asked)
            print(f"(completion) {name}{folder}, {'ahead too' if ahead else 'back only'}, {model}")
            for protocol, ties in protocols[folder]:
                rank = found.ranks[f"rank_{protocol}_{ties}"].to_numpy()
                print(f"    {protocol}, {ties} ties: {figures(rank)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--parts", default="figures,plain,own,older,scale,update,choices,lengths,completion"
    )
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    parts = {
        "figures": part_figures,
        "plain": part_plain,
        "own": part_own,
        "older": part_older,
        "scale": part_scale,
        "update": part_update,
        "choices": part_choices,
        "lengths": part_lengths,
        "completion": part_completion,
    }
    for part in arguments.parts.split(","):
        parts[part](arguments.seeds)


if __name__ == "__main__":
    main()

"""Explanations as people read them: how few reasons, how decisive, how honest, how fast.

TILP_DATA names the folder of data sets; congress/congress.csv is split at random, seed 0. A model
is fitted to each set with default settings, or read from the folder --models. The best candidate of
200 valid queries, from either end, is explained. Printed are, for each set and for all together,
  reasons    median number of reasons; how many of the positive score's first reasons, in the order
             shown, reach 90 % of it, and the share of the first three (medians);
  decisive   share of queries whose first reason adds at least 1.25 times max(0, what it adds to the
             runner-up);
  honest     walks shown that use a fact or an entity twice, reasons with two chains, winners whose
             first reason is negative, and the greatest error of the sums, of score and rival;
  fidelity   share of queries in which the score drops as stated within 1e-9 of the score, when the
             facts of the first reason are removed from the files and the model is asked again;
  seconds    median of one explanation, with ablation, and of the same queries with --baseline, each
             in a process of its own; CPU seconds of `tilp explain` in a new process.
The baseline is fitted by its own version, or read from the folder --baseline-models.
`--examples N` prints N explanations of each set, chosen by --seed, as in docs/explanations.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from _baseline import REPOSITORY, Version, installed
from fidelity import figures, measured, sample
from learning import THREADS

import tilp

SETS = ("WIKIDATA12k", "YAGO11k", "congress")
COLUMNS = "subject=member,relation=what,object=of,start=from,end=to"
COVERED, FIRST, DECISIVE = 0.9, 3, 1.25
TIMED = """
import json, statistics, sys, time, tilp
model = tilp.load(sys.argv[1])
queries = [tilp.Query(**query) for query in json.load(sys.stdin)]
for query in queries[:3]:
    model.explain(query)
seconds = []
for query in queries:
    start = time.process_time()
    model.explain(query)
    seconds.append(time.process_time() - start)
print(statistics.median(seconds))
"""


def data_folder(name: str, folder: Path) -> Path:
    """Return the folder of a set; congress is split into one first."""
    data = Path(os.environ["TILP_DATA"])
    if name != "congress":
        return data / name
    if not folder.exists():
        table = data / "congress" / "congress.csv"
        split = ("--kind", "random", "--seed", "0", "--columns", COLUMNS, "--out", str(folder))
        here().run("split", str(table), *split)
    return folder


def here() -> Version:
    return Version(Path(sys.executable), REPOSITORY / "src")


def fitted(version: Version, data: Path, folder: Path) -> Path:
    """Return the model of a version in a folder; fit it if it is not there."""
    if not folder.exists():
        version.run("fit", str(data), "--out", str(folder))
    return folder


def has_circle(grounding: tilp.explanation.Grounding) -> bool:
    visited = [grounding.steps[0].source, *(step.target for step in grounding.steps)]
    return len(set(visited)) < len(visited) or len(grounding.facts) < len(grounding.steps)


def row(found: tilp.explanation.Explanation) -> dict[str, float]:
    """Return what is measured of one explanation."""
    positive = np.array([max(reason.score, 0.0) for reason in found.reasons])
    covered = np.cumsum(positive) / positive.sum()
    first = found.reasons[0]
    chains = [
        {
            tuple((s.fact.relation, s.inverse) for s in grounding.steps)
            for grounding in one.groundings
        }
        for one in found.reasons
    ]
    walks = [grounding for one in found.reasons for grounding in one.groundings]
    joined = all(a.target == b.source for walk in walks for a, b in pairwise(walk.steps))
    return {
        "reasons": len(found.reasons),
        "to 90 %": 1 + int(np.argmax(covered >= COVERED - 1e-12)),
        "first three": float(covered[min(FIRST, len(covered)) - 1]),
        "decisive": float(first.score >= DECISIVE * max(0.0, first.rival)),
        "circles": sum(map(has_circle, walks)) + (not joined),
        "two chains": sum(len(one) > 1 for one in chains),
        "negative first": first.score < 0,
        "error": max(
            abs(sum(one.score for one in found.reasons) - found.score),
            abs(sum(one.rival for one in found.reasons) - found.rival_score),
        ),
    }


def show(name: str, rows: list[dict[str, float]]) -> None:
    table = {key: np.array([one[key] for one in rows]) for key in rows[0]}
    medians = {key: np.median(table[key]) for key in ("reasons", "to 90 %", "first three")}
    print(f"{name}: {len(rows)} queries\n"
          f"    reasons: {medians['reasons']:g}; {medians['to 90 %']:g} reach 90 %; the first "
          f"three have {medians['first three']:.1%}\n"
          f"    decisive: {table['decisive'].mean():.1%}\n"
          f"    honest: {table['circles'].sum():g} circles, {table['two chains'].sum():g} reasons "
          f"with two chains, {table['negative first'].sum():g} negative first, greatest error "
          f"{table['error'].max():.0e}", flush=True)  # fmt: skip


def seconds(version: Version, model: Path, queries: list[tilp.Query]) -> float:
    """Return the median CPU seconds of an explanation by a version."""
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    if version.source is not None:
        environment["PYTHONPATH"] = str(version.source.resolve())
    fields = ("relation", "subject", "object", "start", "end")
    asked = json.dumps([{key: getattr(query, key) for key in fields} for query in queries])
    command = [str(version.python), "-c", TIMED, str(model)]
    run = subprocess.run(command, input=asked, env=environment, text=True, capture_output=True)
    if run.returncode:
        sys.exit(run.stderr)
    return float(run.stdout)


def command_seconds(model: Path, query: tilp.Query) -> float:
    """Return CPU seconds of `tilp explain` in a new process, after one that compiled."""
    asked = [("relation", query.relation), ("subject", query.subject), ("object", query.object)]
    options = [part for key, text in asked if text is not None for part in (f"--{key}", str(text))]
    for key in ("start", "end"):
        date = getattr(query, key)
        options += [] if date is None else [f"--{key}", str(date)]
    return min(here().run("explain", str(model), *options).cpu_seconds for _ in range(2))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--models", type=Path, help="a folder for models, named as the sets")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--baseline", help="a commit to compare the time with, such as 324b996")
    parser.add_argument("--baseline-models", type=Path, help="a folder for its models")
    parser.add_argument("--examples", type=int, default=0)
    arguments = parser.parse_args()
    every = []
    with tempfile.TemporaryDirectory() as temporary:
        models = arguments.models or Path(temporary)
        older = arguments.baseline_models or Path(temporary) / "baseline"
        models.mkdir(parents=True, exist_ok=True)
        older.mkdir(parents=True, exist_ok=True)
        for name in arguments.sets.split(","):
            data = data_folder(name, models / "congress-data")
            folder = fitted(here(), data, models / name)
            model = tilp.load(folder)
            model.n_jobs = THREADS
            queries = sample(model.graph, arguments.examples or arguments.queries, arguments.seed)
            if arguments.examples:
                print(f"### {name}\n\n```text")
                print("\n\n".join(str(model.explain(query)) for query in queries))
                print("```\n")
                continue
            rows = [row(model.explain(query, ablation=False)) for query in queries]
            show(name, rows)
            every += rows
            real = figures(measured(model, queries))
            print(f"    fidelity: {real['agree']:.1%}, greatest error {real['greatest error']:.0e}")
            here_seconds = seconds(here(), folder, queries)
            print(f"    seconds: {1e3 * here_seconds:.0f} ms an explanation", end="", flush=True)
            if arguments.baseline:
                version = installed(arguments.baseline)
                other = seconds(version, fitted(version, data, older / name), queries)
                print(f", {1e3 * other:.0f} ms by {arguments.baseline}", end="")
            print(f"; {command_seconds(folder, queries[0]):.1f} CPU s in a new process", flush=True)
    if every and len(every) > arguments.queries:
        show("all", every)


if __name__ == "__main__":
    main()

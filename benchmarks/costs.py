"""Estimated against measured costs, and a projection to graphs that cannot be run here.

    python benchmarks/costs.py [--sizes 10000,100000,1000000]
    TILP_DATA=FOLDER python benchmarks/costs.py --parts fits [--sets YAGO11k,world3000]

worlds  Bundled worlds, which stay as dense as they grow, each in a process of its own: read it from
        a TSV file, index it, mine one relation (livesIn, at most 10,000 facts, default settings),
        apply its rules to 10,000 queries. Each step is extrapolated from the two smaller worlds.
        Then 100 million and 1 billion facts, all relations and facts, on 1 to 64 machines.
fits    Whole fits of published sets or worlds, with default settings and with rules alone: what
        `tilp fit --dry-run` estimates, and what is measured.
Times are CPU seconds of one thread. Memory is the peak of the process in each step, from /proc.
Tables are Markdown.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tilp
from tilp._utils.memory import forget_peak, peak_megabytes
from tilp.cost_estimate import estimate_cost, extrapolate
from tilp.graph import QueryTable
from tilp.parallel import Workers
from tilp.walks import MiningSettings, Walker, chunks_by
from tilp.walks.mining import mine_relations, mining_queries, mining_walker

RELATION = "livesIn"
MOST = 10_000
SETTINGS = MiningSettings(sample=MOST)
CORES = 16
BANDWIDTH = 1.25e9  # bytes a second between machines
SORTING = 24  # bytes of each edge while edges are sorted
STEPS_OF_WORLD = ("read", "index", "mine", "apply")


class Meter:
    """CPU seconds and peak megabytes of named steps."""

    def __init__(self) -> None:
        self.taken: dict[str, dict] = {}

    def __call__(self, name, function):
        """Call the function; note what it takes."""
        forget_peak()
        began = time.process_time()
        result = function()
        seconds = time.process_time() - began
        self.taken[name] = {"seconds": seconds, "megabytes": peak_megabytes()}
        return result


def applied_queries(graph: tilp.TemporalGraph) -> QueryTable:
    """Return queries of facts of all relations, in both directions."""
    rows = np.random.default_rng(0).permutation(len(graph.rows("train")))[: MOST // 2]
    return QueryTable.of_facts(graph, np.sort(rows), walked=True)


def mine_and_apply(meter: Meter, walker: Walker) -> None:
    """Mine one relation, and apply its rules to queries of all relations."""
    graph = walker.graph
    rules = meter("mine", lambda: next(iter(mine_relations(
        walker, [RELATION], SETTINGS, Workers())))[1])  # fmt: skip
    queries = applied_queries(graph)
    compiled = walker.compile([mined.rule for mined in rules])

    def apply() -> None:
        for chunk in chunks_by(walker, queries, queries.subject):
            walker.apply(chunk, compiled)

    meter("apply", apply)


def step_world(path: str) -> dict:
    mine_and_apply(Meter(), mining_walker(tilp.datasets.world(0, 1_000).graph, SETTINGS))  # compile
    meter = Meter()
    graph = meter("read", lambda: tilp.read(path))

    def index() -> Walker:
        walker = mining_walker(graph, SETTINGS)
        walker.steps_from, walker._inverse  # noqa: B018 - built at first use
        return walker

    walker = meter("index", index)
    mine_and_apply(meter, walker)
    every = QueryTable.of_facts(graph, np.arange(len(graph.rows("train"))), walked=True)
    names = ("subject", "relation", "object", "start", "end", "start_text", "end_text")
    columns = (getattr(graph, name) for name in names)
    arrays = (*columns, *walker.edges, walker._inverse, walker.steps_from)
    return {
        "taken": meter.taken,
        "facts": len(graph),
        "bytes": sum(array.nbytes for array in arrays) + SORTING * len(every),
        "walks": {
            "mine": distinct_walks(walker, mining_queries(walker, RELATION, SETTINGS)),
            "apply": distinct_walks(walker, applied_queries(graph)),
            "all": distinct_walks(walker, every),
        },
    }


def distinct_walks(walker: Walker, queries: QueryTable) -> float:
    """Count walks once for all queries of a relation that start at the same entity."""
    pairs = np.unique(
        queries.directed_relation.astype(np.int64) * len(walker.graph.entities) + queries.subject
    )
    return float(walker.steps_from[pairs % len(walker.graph.entities)].sum())


def load_set(name: str) -> tilp.TemporalGraph:
    if name.startswith("world"):
        return tilp.datasets.world(0, int(name.removeprefix("world"))).graph
    from published import load

    return load(name)


def step_fit(spec: str) -> dict:
    """Measure the stages of a fit."""
    name, features = spec.split(",")
    tilp.TILP(2, features=features, n_jobs=1).fit(tilp.datasets.world(0, 1_000).graph)  # compile
    graph = load_set(name)
    taken: dict[str, dict] = {}
    began = [time.process_time()]
    forget_peak()

    def note(stage: str, share: float) -> None:
        found = taken.setdefault(stage, {"seconds": 0.0, "megabytes": 0.0})
        found["seconds"] += time.process_time() - began[0]
        began[0] = time.process_time()
        if share == 1.0:
            found["megabytes"] = max(found["megabytes"], peak_megabytes())
            forget_peak()

    model = tilp.TILP(features=features, n_jobs=1).fit(graph, progress=note)
    return {"taken": taken, "rules": len(model.rules()), "gradients": len(model.curve.train)}


def step_estimate(spec: str) -> dict:
    name, features = spec.split(",")
    graph = load_set(name)
    settings = tilp.TILP(features=features).settings_for(graph)
    began = time.process_time()
    estimate = estimate_cost(graph, settings)
    return {**estimate.to_json(), "took": time.process_time() - began}


STEPS = {"world": step_world, "fit": step_fit, "estimate": step_estimate}


def child(step: str, argument: str) -> dict:
    """Run a step in a process of its own."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answer:
        command = [sys.executable, __file__, "--step", step, "--argument", argument]
        subprocess.run([*command, "--answer", answer.name], check=True)
        return json.loads(Path(answer.name).read_text())


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*cells: str) -> None:
    row(*cells)
    row(*("---" for _ in cells))


def number(value: float) -> str:
    return f"{value:,.2g}" if value < 10 else f"{value:,.0f}"


def work_of(world: dict, step: str) -> float:
    return world["walks"].get(step, world["facts"])


def part_worlds(sizes: list[int], folder: Path) -> None:
    found: list[dict] = []
    head("facts", "step", "CPU s measured", "from smaller worlds", "ratio", "MB measured")
    for size in sizes:
        path = folder / f"world-{size}.tsv"
        graph = tilp.datasets.world(seed=0, size=size).graph
        graph.frame().write_csv(path, separator="\t", quote_style="never")
        del graph
        world = child("world", str(path))
        path.unlink()
        for step in STEPS_OF_WORLD:
            taken = world["taken"][step]
            estimated = ratio = ""
            if len(found) >= 2:
                points = [(work_of(one, step), one["taken"][step]["seconds"]) for one in found]
                seconds = extrapolate(points, work_of(world, step))
                estimated, ratio = number(seconds), f"{seconds / taken['seconds']:.2f}"
            row(f"{size:,}", step, number(taken["seconds"]), estimated, ratio,
                f"{taken['megabytes']:,.0f}")  # fmt: skip
        found.append(world)
    print()
    project(found)


def project(found: list[dict]) -> None:
    """Project to graphs as dense as the largest world; nothing of it is measured.

    One machine reads and indexes, each that has the graph sends it to one that has not, then every
    core mines and applies rules to a part of the facts. Each machine holds the whole graph.
    """
    largest = found[-1]
    seconds = {step: largest["taken"][step]["seconds"] for step in STEPS_OF_WORLD}
    of_fact = largest["bytes"] / largest["facts"]
    walks = largest["walks"]
    head("facts", "machines", "read and index", "send", "mine", "apply to train", "all",
         "GB of the graph")  # fmt: skip
    for facts in (100_000_000, 1_000_000_000):
        alone = 0.0
        for step in ("read", "index"):
            points = [(one["facts"], one["taken"][step]["seconds"]) for one in found[-2:]]
            alone += extrapolate(points, facts)
        times = facts / largest["facts"]
        mining, applying = (
            times * seconds[step] * walks["all"] / walks[step] for step in ("mine", "apply")
        )
        for machines in (1, 4, 16, 64):
            workers = machines * CORES
            sending = math.ceil(math.log2(machines)) * facts * of_fact / BANDWIDTH
            parts = [alone, sending, mining / workers, applying / workers]
            texts = (f"{part / 60:,.1f} min" if part < 7_200 else f"{part / 3600:,.1f} h"
                     for part in (*parts, sum(parts)))  # fmt: skip
            gigabytes = facts * of_fact / 1e9
            row(f"{facts / 1e6:,.0f} million", machines, *texts, f"{gigabytes:,.0f}")


def part_fits(sets: list[str]) -> None:
    head("set", "stage", "CPU s measured", "estimated", "ratio", "MB measured", "estimated",
         "ratio")  # fmt: skip
    notes = []
    for name in sets:
        for features in ("full", "none"):
            said = child("estimate", f"{name},{features}")
            fit = child("fit", f"{name},{features}")
            label = f"{name}, {'default' if features == 'full' else 'rules alone'}"
            rows = [
                (stage["name"], fit["taken"][stage["name"]], stage["cpu"],
                 said["before"] + stage["peak"])
                for stage in said["stages"] if stage["name"] in fit["taken"]
            ]  # fmt: skip
            whole = {
                "seconds": sum(measured["seconds"] for _, measured, _, _ in rows),
                "megabytes": max(measured["megabytes"] for _, measured, _, _ in rows),
            }
            rows.append(("**all**", whole, sum(one[2] for one in rows), said["peak"]))
            for stage, measured, cpu, peak in rows:
                seconds, megabytes = measured["seconds"], measured["megabytes"]
                memory = peak / 1024**2
                row(label, stage, number(seconds), number(cpu), f"{cpu / seconds:.2f}",
                    f"{megabytes:,.0f}", f"{memory:,.0f}", f"{memory / megabytes:.2f}")  # fmt: skip
            sample = said["sample"]
            notes.append(
                f"{label}: {said['took']:.0f} CPU seconds to estimate, from {sample['facts']:,} of "
                f"{sample['of']:,} facts; {fit['rules']:,} rules, {fit['gradients']} gradients."
            )
    print()
    for note in notes:
        print(f"- {note}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="worlds")
    parser.add_argument("--sizes", default="10000,100000,1000000,10000000")
    parser.add_argument("--sets", default="WIKIDATA12k,YAGO11k,world3000")
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--argument")
    parser.add_argument("--answer", type=Path)
    arguments = parser.parse_args()
    if arguments.step:
        arguments.answer.write_text(json.dumps(STEPS[arguments.step](arguments.argument)))
        return
    if "worlds" in arguments.parts.split(","):
        with tempfile.TemporaryDirectory() as folder:
            part_worlds([int(size) for size in arguments.sizes.split(",")], Path(folder))
    if "fits" in arguments.parts.split(","):
        part_fits(arguments.sets.split(","))


if __name__ == "__main__":
    main()

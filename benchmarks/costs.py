"""The cost model: predicted against measured, then carried on to what cannot be run here.

    python benchmarks/costs.py [--sizes 10000,…,10000000]
    TILP_DATA=FOLDER python benchmarks/costs.py --parts fits

worlds  bundled worlds of 10 thousand to 10 million facts, each written as one TSV file and handled
        in a process of its own: reading it, indexing it for walks, mining one relation (livesIn, at
        most 10,000 facts, length <= 3, default grains), applying its rules to 10,000 queries.
        What there is to walk is counted from each world's own degrees; what a unit takes is
        measured on samples of the smallest world alone. What reading and indexing take is measured
        on 100 thousand and 1 million facts and carried on by the power between them. Then 100
        million and 1 billion facts, as dense, all relations and all facts, on 1 to 64 machines.
fits    whole fits of published sets, with default settings and rules alone: what `tilp fit
        --dry-run` says against what is measured.
Time is CPU seconds of one thread; memory the peak of a step, from /proc. Tables are Markdown.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

import tilp
from tilp.bench.memory import forget_peak, peak_megabytes
from tilp.costs import (
    GraphSize,
    Nodes,
    Rates,
    StageCost,
    WalkAmounts,
    Walks,
    calibrate,
    dry_run,
    spread,
    steps_by_length,
)
from tilp.costs.growth import by_power
from tilp.graph import QueryTable
from tilp.model import stages as model_stages
from tilp.walks import MiningSettings, Walker, chunks_by
from tilp.walks.mining import mine_relations, mined_queries, mining_walker, one_end

RELATION = "livesIn"
MOST = 10_000
SETTINGS = MiningSettings(sample=MOST)
MEGABYTE = 1024.0**2
LOADED = (100_000, 1_000_000)  # facts that reading and indexing are measured on
CORES = 16


def cpu(function):
    began = time.process_time()
    return function(), time.process_time() - began


def peak_of(function):
    """What a step gives, its CPU seconds, and its peak above what there was before."""
    forget_peak()
    before = peak_megabytes()
    result, seconds = cpu(function)
    return result, seconds, peak_megabytes() - before


def ready(path: str) -> tuple[tilp.TemporalGraph, Walker]:
    graph = tilp.read(path)
    walker = mining_walker(graph, SETTINGS)
    walker.steps_from  # noqa: B018 - built once for a graph
    return graph, walker


def queries_of(graph: tilp.TemporalGraph) -> QueryTable:
    """Facts of all relations, asked in both directions."""
    rows = np.random.default_rng(0).permutation(len(graph.rows("train")))[: MOST // 2]
    return QueryTable.of_facts(graph, np.sort(rows), walked=True)


def works(graph: tilp.TemporalGraph, walker: Walker, asked: list[str]) -> dict[str, Walks]:
    """What is to be walked: to find rules, to count them, to apply them."""
    steps = walker.steps_from
    found = steps_by_length(walker, walker.limit // 10).sum(axis=0)
    mined = [mined_queries(walker, one, SETTINGS) for one in asked]
    ends = [one_end(walker, one) for one in mined]
    applied = queries_of(graph)

    def of(steps, tables, entity):
        queries = QueryTable.join(tables)
        calls = sum(len(chunks_by(walker, one, getattr(one, entity))) for one in tables)
        apart = np.repeat(np.arange(len(tables)), [len(one) for one in tables])
        where = getattr(queries, entity)
        return Walks.of_queries(steps, queries, entity=where, apart=apart, calls=calls)

    return {
        "find": of(found, ends, "answer"),
        "tally": of(steps, mined, "subject"),
        "apply": of(steps, [applied], "subject"),
    }


def size_of(graph: tilp.TemporalGraph) -> GraphSize:
    names = sum(len(name.encode()) for name in graph.entities)
    return GraphSize(len(graph), len(graph.rows("train")), len(graph.entities), names)


def step_calibrate(path: str) -> dict:
    """Seconds for each unit, on samples of a world."""
    graph, walker = ready(path)
    found = list(mine_relations(walker, [RELATION], SETTINGS))[0][1]
    rules = walker.compile([one.rule for one in found])
    work = works(graph, walker, [RELATION])
    probes = {
        "find": lambda part: walker.find_both(part.queries),
        "tally": lambda part: walker.tally(part.queries, rules),
        "apply": lambda part: walker.apply(part.queries, rules),
    }
    rates = {name: calibrate(work[name], probe, 3.0) for name, probe in probes.items()}
    rows = walker.encoding.encode([one.rule for one in found])
    _, lifted = cpu(lambda: [walker.encoding.lift(row) for row in rows])
    return {
        "rates": {name: one.of.tolist() for name, one in rates.items()},
        "measured": {name: one.measured for name, one in rates.items()},
        "rule": lifted / len(found),
    }


def step_measure(path: str) -> dict:
    """What the steps take for a world, and what there is to do."""
    small = tilp.datasets.world(0, 1_000).graph  # compiled before the clock runs
    some = list(mine_relations(mining_walker(small, SETTINGS), [RELATION], SETTINGS))[0][1]
    first = Walker(small, grains=SETTINGS.grains)
    first.apply(queries_of(small), first.compile([one.rule for one in some]))
    taken = {}

    def note(name, function):
        result, seconds, peak = peak_of(function)
        taken[name] = {"seconds": seconds, "megabytes": peak}
        return result

    graph = note("read", lambda: tilp.read(path))

    def indexed():
        walker = mining_walker(graph, SETTINGS)
        walker.steps_from, walker._inverse  # noqa: B018 - built when first asked for
        return walker

    walker = note("index", indexed)
    rules = note("mine", lambda: list(mine_relations(walker, [RELATION], SETTINGS))[0][1])
    queries = queries_of(graph)
    compiled = walker.compile([one.rule for one in rules])

    def apply():
        for chunk in chunks_by(walker, queries, queries.subject):
            walker.apply(chunk, compiled)

    note("apply", apply)
    work = works(graph, walker, [RELATION])
    everything = Walks.of_queries(
        walker.steps_from,
        QueryTable.of_facts(graph, np.arange(len(graph.rows("train"))), walked=True),
    )
    relation = everything.queries.head % len(graph.relations)
    apart = Walks.of_queries(walker.steps_from, everything.queries, apart=relation.astype(np.int64))
    degree = np.diff(walker.edges.offsets)
    return {
        "taken": taken,
        "size": asdict(size_of(graph)),
        "amounts": {name: one.amounts().row().tolist() for name, one in work.items()},
        "all": {"tally": apart.amounts().row().tolist(), "apply": everything.amounts().row().tolist()},
        "facts": len(mined_queries(walker, RELATION, SETTINGS)) // 2,
        "rules": len(rules),
        "most": float(steps_by_length(walker).max()),
        "degree": [float(degree.mean()), float(np.median(degree)), int(degree.max())],
    }  # fmt: skip


def step_fit(spec: str) -> dict:
    """What the stages of a fit take."""
    from published import load

    name, features = spec.split(",")
    tilp.TILP(2, features=features, threads=1).fit(tilp.datasets.world(0, 1_000).graph)
    taken: dict[str, dict] = {}

    @contextmanager
    def watched(self, stage):
        forget_peak()
        began = time.process_time()
        yield lambda _share: None
        taken[stage] = {"seconds": time.process_time() - began, "megabytes": peak_megabytes()}

    model_stages.Stages.__call__ = watched
    graph = load(name)
    model = tilp.TILP(features=features, threads=1).fit(graph)
    return {"taken": taken, "rules": len(model.rules()), "gradients": len(model.curve.train)}


def step_dry(spec: str) -> dict:
    from published import load

    name, features = spec.split(",")
    found, seconds = cpu(
        lambda: dry_run(load(name), tilp.TILP(features=features).settings, threads=1)
    )
    return {**found.to_json(), "took": seconds}


STEPS = {"calibrate": step_calibrate, "measure": step_measure, "fit": step_fit, "dry": step_dry}


def child(step: str, argument: str) -> dict:
    """A step in a process of its own."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answer:
        command = [sys.executable, __file__, "--step", step, "--argument", argument]
        subprocess.run([*command, "--answer", answer.name], check=True)
        return json.loads(Path(answer.name).read_text())


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*cells: str) -> None:
    row(*cells)
    row(*("---" for _ in cells))


def ratio(predicted: float, measured: float) -> str:
    return f"{predicted / measured:.2f}" if measured > 0.005 else ""


def number(value: float) -> str:
    return f"{value:,.3g}" if value < 100 else f"{value:,.0f}"


def part_worlds(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for size in sizes:
            paths[size] = f"{folder}/world-{size}.tsv"
            graph = tilp.datasets.world(seed=0, size=size).graph
            graph.frame().write_csv(paths[size], separator="\t", quote_style="never")
            del graph
        rates = child("calibrate", paths[sizes[0]])
        found = {size: child("measure", paths[size]) for size in sizes}
    of = {name: Rates(np.array(one)) for name, one in rates["rates"].items()}
    spent = ", ".join(f"{name} {one:.1f} s" for name, one in rates["measured"].items())
    print(f"\nMeasured on the world of {sizes[0]:,} facts, CPU seconds: {spent}.\n")

    def loading(step: str, size: float) -> float:
        return by_power([(one, found[one]["taken"][step]["seconds"]) for one in LOADED], size)

    def predicted(size: int) -> dict[str, tuple[float, float]]:
        one = found[size]
        graph = GraphSize(**one["size"])
        amounts = {name: WalkAmounts(*values) for name, values in one["amounts"].items()}
        touched = 1e6 / max(one["degree"][0], 1.0)
        worker = graph.worker(SETTINGS.max_length, touched, one["most"]) / MEGABYTE
        mining = of["find"].seconds(amounts["find"]) + of["tally"].seconds(amounts["tally"])
        return {
            "read": (loading("read", size), graph.reading / MEGABYTE),
            "index": (
                loading("index", size),
                (graph.index + graph.walker + graph.building) / MEGABYTE,
            ),
            "mine": (mining + rates["rule"] * one["rules"], worker),
            "apply": (of["apply"].seconds(amounts["apply"]), worker),
        }

    head("facts", "step", "work", "CPU s predicted", "measured", "ratio", "MB predicted",
         "measured", "ratio")  # fmt: skip
    for size in sizes:
        one = found[size]
        words = {
            "read": f"{one['size']['facts']:,} facts",
            "index": f"{2 * one['size']['train']:,} edges of {one['size']['entities']:,} entities",
            "mine": f"{one['facts']:,} facts, {one['amounts']['tally'][4] / 1e6:,.0f} M walks",
            "apply": f"{MOST:,} queries, {one['amounts']['apply'][6] / 1e6:,.0f} M walks",
        }
        for step, (seconds, memory) in predicted(size).items():
            taken = one["taken"][step]
            known = step in ("read", "index") and size <= LOADED[-1]
            row(
                f"{size:,}", step, words[step],
                number(seconds) + (" (from it)" if known and size in LOADED else ""),
                number(taken["seconds"]), ratio(seconds, taken["seconds"]), f"{memory:,.0f}",
                f"{taken['megabytes']:,.0f}",
                ratio(memory, taken["megabytes"]) if taken["megabytes"] > 20 else "",
            )  # fmt: skip
    print(
        "\nedges of an entity (mean, median, most), and walks of length <= 3 for each mined fact:"
    )
    for size in sizes:
        one = found[size]
        mean, median, most = one["degree"]
        print(f"- {size:,} facts: {mean:.1f}, {median:.0f}, {most:,}; "
              f"{one['amounts']['tally'][6] / 2 / max(one['facts'], 1):,.0f}")  # fmt: skip
    beyond(found[sizes[-1]], of, loading)


def beyond(reference: dict, of: dict[str, Rates], loading) -> None:
    """Graphs as dense as the largest that was run, on several machines."""
    print(f"\nAll relations, all facts, machines of {CORES} cores and 10 Gbit/s:\n")
    head("facts", "machines", "read and index", "send", "mine", "apply to train", "all",
         "GB of each machine")  # fmt: skip
    known = GraphSize(**reference["size"])
    tally, apply = (WalkAmounts(*reference["all"][name]) for name in ("tally", "apply"))
    find = WalkAmounts(*reference["amounts"]["find"])
    mined = reference["facts"]
    for facts in (100_000_000, 1_000_000_000):
        times = facts / known.facts
        size = known.scaled(facts)
        find_all = of["find"].seconds(find * (size.train / mined))
        alone = loading("read", facts) + loading("index", facts)
        for count in (1, 4, 16, 64):
            stages = [
                StageCost("load", facts, "facts", alone, serial=alone),
                StageCost("mine", tally.steps * times, "walks",
                          find_all + of["tally"].seconds(tally * times)),
                StageCost("apply", apply.steps * times, "walks",
                          of["apply"].seconds(apply * times)),
            ]  # fmt: skip
            nodes = Nodes(count, CORES)
            worker = size.worker(SETTINGS.max_length, 1e5, reference["most"])
            taken = spread(stages, size, nodes, worker=worker, before=0.4e9)
            minutes = (
                taken.alone, taken.shipping, *(one.seconds(nodes.workers) for one in stages[1:]),
                taken.seconds,
            )  # fmt: skip
            row(f"{facts / 1e6:,.0f} million", count,
                *(f"{one / 60:,.1f} min" if one < 36_000 else f"{one / 3600:,.1f} h"
                  for one in minutes), f"{taken.memory / 1e9:,.0f}")  # fmt: skip


def part_fits(sets: list[str]) -> None:
    head("set", "stage", "CPU s predicted", "measured", "ratio", "MB predicted", "measured",
         "ratio")  # fmt: skip
    for name in sets:
        for features in ("full", "none"):
            said = child("dry", f"{name},{features}")
            fit = child("fit", f"{name},{features}")
            label = f"{name}, {'default' if features == 'full' else 'rules alone'}"
            total = [0.0, 0.0]
            for stage in said["stages"]:
                taken = fit["taken"].get(stage["name"])
                if taken is None:
                    continue
                total = [total[0] + stage["cpu"], total[1] + taken["seconds"]]
                memory = (said["before"] + stage["peak"]) / MEGABYTE
                row(label, stage["name"], number(stage["cpu"]), number(taken["seconds"]),
                    ratio(stage["cpu"], taken["seconds"]), f"{memory:,.0f}",
                    f"{taken['megabytes']:,.0f}", ratio(memory, taken["megabytes"]))  # fmt: skip
            peak = max(one["megabytes"] for one in fit["taken"].values())
            row(f"**{label}**", "all", number(total[0]), number(total[1]), ratio(*total),
                f"{said['peak'] / MEGABYTE:,.0f}", f"{peak:,.0f}",
                ratio(said["peak"] / MEGABYTE, peak))  # fmt: skip
            print(f"<!-- {label}: {said['took']:.1f} CPU s to predict; rules {said['rules']:,} "
                  f"predicted, {fit['rules']:,} found; {fit['gradients']} gradients -->")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="worlds")
    parser.add_argument("--sizes", default="10000,100000,1000000,10000000")
    parser.add_argument("--sets", default="WIKIDATA12k,YAGO11k")
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--argument")
    parser.add_argument("--answer", type=Path)
    arguments = parser.parse_args()
    if arguments.step:
        found = STEPS[arguments.step](arguments.argument)
        arguments.answer.write_text(json.dumps(found))
        return
    if "worlds" in arguments.parts.split(","):
        part_worlds([int(one) for one in arguments.sizes.split(",")])
    if "fits" in arguments.parts.split(","):
        part_fits(arguments.sets.split(","))


if __name__ == "__main__":
    main()

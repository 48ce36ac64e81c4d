"""The cost model: predicted against measured, then carried on to what cannot be run here.

    python benchmarks/costs.py [--sizes 10000,100000,1000000,10000000]
    TILP_DATA=FOLDER python benchmarks/costs.py --parts fits

worlds  bundled worlds, each written as one TSV file and handled in a process of its own: reading
        it, indexing it for walks, mining one relation (livesIn, at most 10,000 facts, length <= 3,
        default settings), applying its rules to 10,000 queries. What there is to walk is counted
        from each world's own degrees. What a unit of it takes is measured on samples, 2 CPU seconds
        each, of that world ('sample') or of the smallest world alone ('smallest'). What reading and
        indexing take is measured on 100 thousand and 1 million facts, and carried on by the power
        between them. Then 100 million and 1 billion facts, as dense as the largest world that was
        run, all relations and all facts, on 1 to 64 machines.
fits    whole fits of published sets, with default settings and rules alone: what `tilp fit
        --dry-run` says against what is measured.
Time is CPU seconds of one thread. Memory is the peak of the process during the step, from /proc.
Tables are Markdown.
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
from tilp._utils import progress as model_stages
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
    expected_steps,
    spread,
    steps_by_length,
)
from tilp.costs.calibration import cpu_seconds
from tilp.graph import QueryTable
from tilp.parallel import Workers
from tilp.walks import MiningSettings, Walker, chunks_by
from tilp.walks.mining import mine_relations, mined_queries, mining_walker, one_end

RELATION = "livesIn"
MOST = 10_000
SETTINGS = MiningSettings(sample=MOST)
BUDGET = 2.0
MEGABYTE = 1024.0**2
LOADED = (100_000, 1_000_000)  # facts that reading and indexing are measured on
CORES = 16
ROW_BYTES = 200  # of rows that rules were applied to: recorded, grown, copied
FOUND_BYTES = 4 * 7 * 8  # of rules found in chunks, while they are put together
MOST_FOUND = 1_200_000


def mined(walker: Walker) -> list:
    return next(iter(mine_relations(walker, [RELATION], SETTINGS, Workers())))[1]


def queries_of(graph: tilp.TemporalGraph) -> QueryTable:
    """Facts of all relations, asked in both directions."""
    rows = np.random.default_rng(0).permutation(len(graph.rows("train")))[: MOST // 2]
    return QueryTable.of_facts(graph, np.sort(rows), walked=True)


def works(graph: tilp.TemporalGraph, walker: Walker) -> dict[str, Walks]:
    """What is to be walked: to find rules, to count them, to apply them."""
    found = steps_by_length(walker, walker.limit // 10).sum(axis=0)
    asked, applied = mined_queries(walker, RELATION, SETTINGS), queries_of(graph)
    ends = one_end(walker, asked)

    def of(steps, queries, entity):
        calls = len(chunks_by(walker, queries, entity))
        return Walks.of_queries(steps, queries, entity=entity, calls=calls)

    return {
        "find": of(found, ends, ends.answer),
        "tally": of(walker.steps_from, asked, asked.subject),
        "apply": of(walker.steps_from, applied, applied.subject),
    }


def sampled(work: dict[str, Walks], walker: Walker, rules: list) -> dict:
    """Seconds for each unit, and how much is found, on samples of the work."""
    compiled = walker.compile([one.rule for one in rules])
    rows = {"find": [0, 0.0], "apply": [0, 0.0]}

    def find(part: Walks) -> None:
        rows["find"][0] += len(walker.find_both(part.queries)[0])
        rows["find"][1] += len(part.queries)

    def apply(part: Walks) -> None:
        rows["apply"][0] += len(walker.apply(part.queries, compiled)[0])
        rows["apply"][1] += part.amounts().steps_queried

    probes = {
        "find": find,
        "tally": lambda part: walker.tally(part.queries, compiled),
        "apply": apply,
    }
    rates = {name: calibrate(work[name], probe, BUDGET) for name, probe in probes.items()}
    encoded = walker.encoding.encode([one.rule for one in rules])
    _, lifted = cpu_seconds(lambda: [walker.encoding.lift(row) for row in encoded])
    return {
        "rates": {name: one.of.tolist() for name, one in rates.items()},
        "rule": lifted / len(rules),
        "rows": {name: count / of for name, (count, of) in rows.items()},
    }


def step_measure(path: str) -> dict:
    """What the steps take for a world, what there is to do, and what samples of it take."""
    small = tilp.datasets.world(0, 1_000).graph  # compiled before the clock runs
    first = mining_walker(small, SETTINGS)
    some = mined(first)
    sampled(works(small, first), first, some)
    taken = {}

    def note(name, function):
        forget_peak()
        result, seconds = cpu_seconds(function)
        taken[name] = {"seconds": seconds, "megabytes": peak_megabytes()}
        return result

    before = note("program", peak_megabytes)
    graph = note("read", lambda: tilp.read(path))

    def indexed():
        walker = mining_walker(graph, SETTINGS)
        walker.steps_from, walker._inverse  # noqa: B018 - built when first asked for
        return walker

    walker = note("index", indexed)
    rules = note("mine", lambda: mined(walker))
    queries = queries_of(graph)
    compiled = walker.compile([one.rule for one in rules])

    def apply():
        for chunk in chunks_by(walker, queries, queries.subject):
            walker.apply(chunk, compiled)

    note("apply", apply)
    work = works(graph, walker)
    every = QueryTable.of_facts(graph, np.arange(len(graph.rows("train"))), walked=True)
    relation = (every.directed_relation % len(graph.relations)).astype(np.int64)
    steps = walker.steps_from
    degree = np.diff(walker.edges.offsets)
    labels = sum(len(name.encode()) for name in graph.entities)
    size = GraphSize(len(graph), len(graph.rows("train")), len(graph.entities), labels)
    return {
        "before": before,
        "taken": taken,
        "size": asdict(size),
        "amounts": {name: one.amounts().row().tolist() for name, one in work.items()},
        "largest": work["apply"].largest(),
        "all": {
            "tally": Walks.of_queries(steps, every, apart=relation).amounts().row().tolist(),
            "apply": Walks.of_queries(steps, every).amounts().row().tolist(),
        },
        "facts": len(mined_queries(walker, RELATION, SETTINGS)) // 2,
        "rules": len(rules),
        "most": float(steps_by_length(walker).max()),
        "degree": [float(degree.mean()), float(np.median(degree)), int(degree.max())],
        "ends": [
            float(steps[every.subject].mean()),
            float(expected_steps(degree, SETTINGS.max_length, SETTINGS.limit).sum()),
        ],
        "sample": sampled(work, walker, rules),
    }


def step_fit(spec: str) -> dict:
    """What the stages of a fit take."""
    from published import load

    name, features = spec.split(",")
    tilp.TILP(2, features=features, n_jobs=1).fit(tilp.datasets.world(0, 1_000).graph)
    taken: dict[str, dict] = {}

    @contextmanager
    def watched(_stages, stage):
        forget_peak()
        began = time.process_time()
        yield lambda _share: None
        taken[stage] = {"seconds": time.process_time() - began, "megabytes": peak_megabytes()}

    model_stages.Stages.__call__ = watched
    graph = load(name)
    model = tilp.TILP(features=features, n_jobs=1).fit(graph)
    return {"taken": taken, "rules": len(model.rules()), "gradients": len(model.curve.train)}


def step_dry(spec: str) -> dict:
    from published import load

    name, features = spec.split(",")
    settings = tilp.TILP(features=features).settings
    found, seconds = cpu_seconds(lambda: dry_run(load(name), settings, threads=1))
    return {**found.to_json(), "took": seconds}


STEPS = {"measure": step_measure, "fit": step_fit, "dry": step_dry}


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
    return f"{predicted / measured:.2f}"


def number(value: float) -> str:
    return f"{value:,.2g}" if value < 10 else f"{value:,.0f}"


def loading(found: dict[int, dict], step: str, size: float) -> float:
    """Seconds to read or index so many facts."""
    few, many = (found[one]["taken"][step]["seconds"] for one in LOADED)
    power = np.log(many / few) / np.log(LOADED[1] / LOADED[0])
    return float(many * (size / LOADED[1]) ** power)


def mining_seconds(of: dict, to_do: dict) -> tuple[float, float]:
    """To mine, and to apply, by what a sample took."""
    amounts = {name: WalkAmounts(*values) for name, values in to_do["amounts"].items()}
    rates = {name: Rates(np.array(values)) for name, values in of["rates"].items()}
    seconds = {name: rates[name].seconds(amounts[name]) for name in rates}
    return seconds["find"] + seconds["tally"] + of["rule"] * to_do["rules"], seconds["apply"]


def memory_of(one: dict) -> dict[str, float]:
    """Megabytes that each step is predicted to take."""
    size = GraphSize(**one["size"])
    touched = 1e6 / max(one["degree"][0], 1.0)
    worker = size.whole + size.worker(SETTINGS.max_length, touched, one["most"])
    rows = one["sample"]["rows"]
    found = min(MOST_FOUND, rows["find"] * one["facts"]) * FOUND_BYTES
    applied = rows["apply"] * max(one["largest"], 1e6) * ROW_BYTES
    taken = {
        "read": size.reading,
        "index": size.whole + size.building,
        "mine": worker + found,
        "apply": worker + applied,
    }
    return {name: one["before"] + value / MEGABYTE for name, value in taken.items()}


def part_worlds(sizes: list[int], folder: Path) -> None:
    found = {}
    for size in sizes:
        path = folder / f"world-{size}.tsv"
        graph = tilp.datasets.world(seed=0, size=size).graph
        graph.frame().write_csv(path, separator="\t", quote_style="never")
        del graph
        found[size] = child("measure", str(path))
        path.unlink()
    head("facts", "step", "work", "CPU s measured", "predicted: sample", "ratio",
         "predicted: smallest", "ratio", "MB measured", "predicted", "ratio")  # fmt: skip
    for size in sizes:
        one = found[size]
        amounts = one["amounts"]
        words = {
            "read": f"{one['size']['facts']:,} facts",
            "index": f"{one['size']['entities']:,} entities",
            "mine": f"{one['facts']:,} facts, {amounts['tally'][4] / 1e6:,.0f} M walks",
            "apply": f"{MOST:,} queries, {amounts['apply'][4] / 1e6:,.0f} M walks",
        }
        memory = memory_of(one)
        own = mining_seconds(one["sample"], one)
        first = mining_seconds(found[sizes[0]]["sample"], one)
        for step in words:
            measured = one["taken"][step]
            if step in ("read", "index"):
                known = size in LOADED
                said = ["", "", "measured", ""]
                if not known:
                    seconds = loading(found, step, size)
                    said = ["", "", number(seconds), ratio(seconds, measured["seconds"])]
            else:
                place = ("mine", "apply").index(step)
                said = []
                for seconds in (own[place], first[place]):
                    said += [number(seconds), ratio(seconds, measured["seconds"])]
            row(f"{size:,}", step, words[step], number(measured["seconds"]), *said,
                f"{measured['megabytes']:,.0f}", f"{memory[step]:,.0f}",
                ratio(memory[step], measured["megabytes"]))  # fmt: skip
    print()
    head("facts", "edges of an entity: mean, median, most",
         "walks from an end of a fact: counted", "by degrees alone")  # fmt: skip
    for size in sizes:
        one = found[size]
        mean, median, most = one["degree"]
        counted, expected = one["ends"]
        row(f"{size:,}", f"{mean:.1f}, {median:.0f}, {most:,}", f"{counted:,.0f}",
            f"{expected:,.0f}")  # fmt: skip
    print()
    beyond(found, found[sizes[-1]])


def beyond(found: dict[int, dict], reference: dict) -> None:
    """Graphs as dense as the largest that was run, on several machines."""
    head("facts", "machines", "read and index", "send", "mine", "apply to train", "all",
         "GB of each machine")  # fmt: skip
    known = GraphSize(**reference["size"])
    rates = {name: Rates(np.array(one)) for name, one in reference["sample"]["rates"].items()}
    find = WalkAmounts(*reference["amounts"]["find"]) * (1 / reference["facts"])
    tally, apply = (WalkAmounts(*reference["all"][name]) for name in ("tally", "apply"))
    for facts in (100_000_000, 1_000_000_000):
        times = facts / known.facts
        size = known.scaled(facts)
        alone = loading(found, "read", facts) + loading(found, "index", facts)
        mining = rates["find"].seconds(find * size.train) + rates["tally"].seconds(tally * times)
        applying = rates["apply"].seconds(apply * times)
        stages = [
            StageCost("load", facts, "facts", alone, serial=alone),
            StageCost("mine", tally.steps * times, "walks", mining),
            StageCost("apply", apply.steps * times, "walks", applying),
        ]
        worker = size.worker(SETTINGS.max_length, 1e5, reference["most"])
        for count in (1, 4, 16, 64):
            nodes = Nodes(count, CORES)
            before = reference["before"] * MEGABYTE
            taken = spread(stages, size, nodes, worker=worker, before=before)
            working = (one.seconds(nodes.workers) for one in stages[1:])
            parts = (taken.alone, taken.shipping, *working, taken.seconds)
            texts = (f"{one / 60:,.1f} min" if one < 7_200 else f"{one / 3600:,.1f} h"
                     for one in parts)  # fmt: skip
            row(f"{facts / 1e6:,.0f} million", count, *texts, f"{taken.memory / 1e9:,.0f}")


def part_fits(sets: list[str]) -> None:
    head("set", "stage", "CPU s measured", "predicted", "ratio", "MB measured", "predicted",
         "ratio")  # fmt: skip
    notes = []
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
                row(label, stage["name"], number(taken["seconds"]), number(stage["cpu"]),
                    ratio(stage["cpu"], taken["seconds"]), f"{taken['megabytes']:,.0f}",
                    f"{memory:,.0f}", ratio(memory, taken["megabytes"]))  # fmt: skip
            peak = max(one["megabytes"] for one in fit["taken"].values())
            said_peak = said["peak"] / MEGABYTE
            row(label, "**all**", number(total[1]), number(total[0]), ratio(*total),
                f"{peak:,.0f}", f"{said_peak:,.0f}", ratio(said_peak, peak))  # fmt: skip
            sample = said["sample"]
            notes.append(
                f"{label}: {said['took']:.0f} CPU seconds to predict, from {sample['facts']:,} of "
                f"{sample['of']:,} facts; {said['rules']:,} rules predicted, "
                f"{fit['rules']:,} found; {fit['gradients']} gradients."
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
    parser.add_argument("--sets", default="WIKIDATA12k,YAGO11k")
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--argument")
    parser.add_argument("--answer", type=Path)
    arguments = parser.parse_args()
    if arguments.step:
        arguments.answer.write_text(json.dumps(STEPS[arguments.step](arguments.argument)))
        return
    if "worlds" in arguments.parts.split(","):
        with tempfile.TemporaryDirectory() as folder:
            part_worlds([int(one) for one in arguments.sizes.split(",")], Path(folder))
    if "fits" in arguments.parts.split(","):
        part_fits(arguments.sets.split(","))


if __name__ == "__main__":
    main()

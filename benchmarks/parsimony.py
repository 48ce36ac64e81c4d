"""How few rules a fit keeps, and what that costs and saves, beside an older commit in the same run.

    TILP_DATA=… python benchmarks/parsimony.py                      # fits, demo and hub, on valid
    TILP_DATA=… python benchmarks/parsimony.py --sets congress world --split test

For each data set: rules for each relation and direction (mean, most), MRR / hits@1 / hits@10
(`enumerate`, average ties, seed 0), CPU seconds and peak memory of the fit. CPU is warm: a small
fit compiles the loops of both versions first. congress is split at random with seed 0, and the
world has 10,000 facts. `--parts`: `fits`; `growth` (CPU and memory by the size of the world);
`hub` (one subject in half of the facts, as in hubs.py); `demo`.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from _baseline import Run, Version, installed
from hubs import measure_hubs

BASELINE = "324b996"
PUBLISHED = ("WIKIDATA12k", "YAGO11k")
SETS = (*PUBLISHED, "congress", "world")
COLUMNS = "subject=member,relation=what,object=of,start=from,end=to"
NOW = Version(Path(sys.executable), Path(__file__).resolve().parent.parent / "src")


def data_set(name: str, folder: Path) -> str:
    """Return the path of a data set; make it in a folder if it is not published."""
    if name in PUBLISHED:
        return str(Path(os.environ["TILP_DATA"]) / name)
    path = folder / f"data-{name}"
    if path.exists():
        return str(path)
    if name == "congress":
        table = str(Path(os.environ["TILP_DATA"]) / "congress" / "congress.csv")
        random = ("--kind", "random", "--seed", "0", "--columns", COLUMNS)
        NOW.run("split", table, "--out", str(path), *random)
    else:
        size = name.removeprefix("world-") if name != "world" else "10000"
        NOW.run("datasets", "world", "--size", size, "--out", str(path))
    return str(path)


def fit(version: Version, data: str, out: Path, *options: str) -> Run:
    """Fit a model; return what it cost."""
    return version.run("fit", data, "--out", str(out), *options)


def rule_counts(model: Path) -> tuple[float, int]:
    """Return the mean and the largest number of rules of a relation and direction."""
    lines = (model / "rules.jsonl").read_text(encoding="utf-8").splitlines()
    heads = Counter(json.loads(line)["rule"].split("(E1", 1)[0] for line in lines)
    relations = json.loads((model / "model.json").read_text(encoding="utf-8"))["relations"]
    return len(lines) / len(relations), max(heads.values())


def metrics(version: Version, model: Path, split: str) -> str:
    """Return MRR / hits@1 / hits@10 of a split."""
    command = ("evaluate", str(model), "--split", split, "--protocol", "enumerate", "--json")
    report = json.loads(version.run(*command).stdout)
    ties = report["protocols"]["enumerate"]["average"]
    return " / ".join(f"{ties[name]:.4f}" for name in ("mrr", "hits@1", "hits@10"))


def part_fits(sets: list[str], split: str, folder: Path, versions: dict[str, Version]) -> None:
    print("| data | version | features | rules: mean, most | MRR / hits@1 / hits@10 | CPU s | MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in sets:
        data = data_set(name, folder)
        for label, version in versions.items():
            for features in ("full", "none") if name in PUBLISHED else ("full",):
                model = folder / f"{name}-{label}-{features}"
                run = fit(version, data, model, "--features", features)
                mean, most = rule_counts(model)
                figures = metrics(version, model, split)
                cost = f"{run.cpu_seconds:.1f} | {run.peak_memory / 1e6:.0f}"
                row = f"{name}, {split} | {label} | {features} | {mean:.1f}, {most:,} | {figures}"
                print(f"| {row} | {cost} |", flush=True)


def part_growth(folder: Path, sizes: list[int]) -> None:
    """Fit ever larger worlds, and rank 1,000 facts of test with each model."""
    print("| facts of the world | fit: CPU s | MB | evaluate: CPU s | MB | MRR |")
    print("| --- | --- | --- | --- | --- | --- |")
    for size in sizes:
        model = folder / f"growth-{size}"
        run = fit(NOW, data_set(f"world-{size}", folder), model)
        sample = ("--sample", "1000", "--protocol", "enumerate", "--json")
        ranked = NOW.run("evaluate", str(model), "--split", "test", *sample)
        mrr = json.loads(ranked.stdout)["protocols"]["enumerate"]["average"]["mrr"]
        costs = [f"{each.cpu_seconds:.1f} | {each.peak_memory / 1e6:.0f}" for each in (run, ranked)]
        print(f"| {size:,} | {' | '.join(costs)} | {mrr:.4f} |", flush=True)


def part_demo(versions: dict[str, Version]) -> None:
    for label, version in versions.items():
        print(f"tilp demo, {label}, warm: {version.run('demo').cpu_seconds:.1f} CPU s", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TILP_CACHE"] = cache
        print(f"tilp demo, now, cold: {NOW.run('demo').cpu_seconds:.1f} CPU s", flush=True)
        del os.environ["TILP_CACHE"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--split", default="valid", choices=("valid", "test"))
    parser.add_argument("--parts", nargs="+", default=["fits", "demo", "hub"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[3_000, 10_000, 30_000, 100_000])
    parser.add_argument("--baseline", default=BASELINE, help="a commit; none to leave it out")
    arguments = parser.parse_args()
    versions = {"now": NOW}
    if arguments.baseline != "none":
        versions[arguments.baseline] = installed(arguments.baseline)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        small = data_set("world-1000", folder)
        for label, version in versions.items():
            for features in ("full", "none"):
                warm = folder / f"warm-{label}-{features}"
                fit(version, small, warm, "--features", features)
                metrics(version, warm, "valid")
        if "fits" in arguments.parts:
            part_fits(arguments.sets, arguments.split, folder, versions)
        if "growth" in arguments.parts:
            part_growth(folder, arguments.sizes)
        if "hub" in arguments.parts:
            measure_hubs(folder, [10_000, 20_000], 2)
        if "demo" in arguments.parts:
            part_demo(versions)


if __name__ == "__main__":
    main()

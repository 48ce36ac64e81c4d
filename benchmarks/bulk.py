"""A bulk prediction killed (SIGKILL) at random moments and started again: the same parts.

python benchmarks/bulk.py fits a model of rules to the bundled world of 3,000 facts, makes a file of
1,000,000 seeded queries, answers it once undisturbed, then again while killing it five times at
seeded moments (a share of the parts, then a while), the last time while a part is being written,
and compares all parts.

python benchmarks/bulk.py --speed [--model MODEL] answers such queries once, and prints how many a
second of a processor, beside the time that scoring alone takes; and explanations of a few of them.
"""

import argparse
import hashlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import tilp
from tilp.scoring.queries import QueryColumns
from tilp.scoring.topk import QueryBatches

FEW = 200  # that are explained


def make_queries(graph: tilp.TemporalGraph, count: int, seed: int) -> pl.DataFrame:
    """The ends and relations of training facts, asked at other times, either end for the other."""
    chance = np.random.default_rng(seed)
    facts = graph.frame("train", names="ids")[chance.integers(0, graph.bounds[1], count)]
    asks_object = pl.Series(chance.random(count) < 0.5)
    nothing = pl.Series([None], dtype=pl.String)
    start = chance.integers(1900, 2020, count)
    return pl.DataFrame(
        {
            "relation": facts["relation"],
            "subject": facts["subject"].zip_with(asks_object, nothing),
            "object": facts["object"].zip_with(~asks_object, nothing),
            "start": pl.Series(start).cast(pl.String),
            "end": pl.Series(start + chance.integers(0, 10, count)).cast(pl.String),
        }
    )


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("part-*.parquet"))
    }


def same_parts(first: Path, second: Path) -> bool:
    """Whether the parts hold the same rows in the same order, put together one after the other."""
    names = sorted(path.name for path in first.glob("part-*.parquet"))
    return names == sorted(path.name for path in second.glob("part-*.parquet")) and all(
        pl.read_parquet(first / name).equals(pl.read_parquet(second / name)) for name in names
    )


def kill_once(command: list[str], out: Path, parts: int, wait: float, *, writing: bool) -> str:
    """Kill a run some time after so many parts are there; gives what it left, or ''.

    Args:
        command: the run.
        out: its folder.
        parts: that are waited for.
        wait: seconds after that.
        writing: whether it is then killed as soon as it writes a part.
    """
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while run.poll() is None and len(list(out.glob("part-*.parquet"))) < parts:
        time.sleep(0.01)
    try:
        run.wait(wait)
    except subprocess.TimeoutExpired:
        while writing and run.poll() is None and not list(out.glob(".part-*.partial")):
            time.sleep(0.0005)
    if run.poll() is not None:
        return ""
    run.kill()
    run.wait()
    there = len(list(out.glob("part-*.parquet")))
    half = [path.stat().st_size for path in out.glob(".part-*.partial")]
    return f"{there} parts" + (f" and {half[0]:,} bytes of the next" if half else "")


def killed_and_not(arguments: argparse.Namespace, place: Path) -> bool:
    graph = tilp.datasets.world(0, 3_000).graph
    model = tilp.TILP(2, features=arguments.features).fit(graph).save(place / "model")
    make_queries(graph, arguments.queries, arguments.seed).write_csv(
        place / "queries.tsv", separator="\t"
    )
    command = [sys.executable, "-m", "tilp", "--quiet", "predict", str(model)]
    command += ["--queries", str(place / "queries.tsv"), "--threads", str(arguments.threads)]
    command += ["--out"]
    began = time.perf_counter()
    subprocess.run([*command, str(place / "whole")], check=True)
    whole = time.perf_counter() - began
    print(f"undisturbed: {whole:.0f} s, {arguments.queries / whole:,.0f} queries a second")
    parts = len(digests(place / "whole"))
    chance = random.Random(arguments.seed)
    shares = sorted(chance.random() for _ in range(arguments.kills))
    out = place / "killed"
    killed = 0
    while killed < arguments.kills:
        first, wait = int(shares[killed] * parts), chance.uniform(0.0, 2.0) * whole / parts
        writing = killed == arguments.kills - 1
        left = kill_once([*command, str(out)], out, first, wait, writing=writing)
        if left:
            killed += 1
            print(f"kill {killed}, {wait:.1f} s after {first} parts were there; left: {left}")
        else:
            print("finished before it could be killed; begun anew")
            shutil.rmtree(out)
            killed = 0
    subprocess.run([*command, str(out)], check=True)
    same = same_parts(place / "whole", out)
    print(
        f"{killed} kills; {arguments.queries:,} queries; {parts} parts; equal: {same}; "
        f"byte for byte: {digests(place / 'whole') == digests(out)}"
    )
    return same


def measure(arguments: argparse.Namespace, place: Path) -> bool:
    if arguments.model:
        model = tilp.load(arguments.model)
    else:
        model = tilp.TILP(2, features=arguments.features).fit(tilp.datasets.world(0, 3_000).graph)
    model.n_jobs = arguments.threads
    graph = model.graph
    queries = make_queries(graph, arguments.queries, arguments.seed)
    model.predict(queries[:1_000])  # compiles
    table = QueryColumns.of(queries).table(graph)
    scorer = model.scorer()
    began = time.process_time()
    for chunk in QueryBatches(table, scorer):
        scorer(chunk)
    alone = time.process_time() - began
    for name, some, options in (
        ("answered", queries, {}),
        ("explained, the best of each", queries[:FEW], {"explain": 1}),
    ):
        began, worked = time.perf_counter(), time.process_time()
        model.predict_to(place / name, some, **options)
        taken, work = time.perf_counter() - began, time.process_time() - worked
        print(
            f"{len(some):,} queries {name}: {taken:.1f} s, {work:.1f} s of a processor; "
            f"{len(some) / work:,.0f} in a second of it"
        )
        if not options:
            print(f"scoring alone: {alone:.1f} s of a processor, {alone / work:.0%} of that")
    return True


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--model", help="for --speed; one of the bundled world by default")
    parser.add_argument("--features", default="none", choices=["none", "paper", "full"])
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        run = measure if arguments.speed else killed_and_not
        sys.exit(0 if run(arguments, Path(temporary)) else 1)


if __name__ == "__main__":
    main()

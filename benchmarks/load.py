"""Memory and time of building a graph, against polars merely reading the same file.

    python benchmarks/load.py [--facts 10000000]

The bundled world is written as one TSV file. One process reads the input columns with polars,
notes its memory, builds the graph and its index, and prints the peak above that note; another
times the plain read and `tilp.read` of the same file, turn by turn. Linux only: the peak is read
from /proc.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import polars as pl

import tilp


def peak_mb() -> float:
    return _status("VmHWM")


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def make(path: Path, facts: int) -> None:
    started = time.perf_counter()
    graph = tilp.datasets.world(seed=0, size=facts).graph
    print(f"world of {len(graph):,} facts: {time.perf_counter() - started:.1f} s, "
          f"peak {peak_mb():,.0f} MB")  # fmt: skip
    graph.frame().write_csv(path, separator="\t", quote_style="never")
    print(f"file: {path.stat().st_size / 1e6:,.0f} MB")


def read_plain(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, separator="\t", quote_char=None, infer_schema=False)


def compare(path: Path) -> None:
    tilp.read(read_plain(path)[:1000]).index()  # importing and compiling are not reading
    times: dict[str, list[float]] = {"polars": [], "tilp.read": [], "index": []}
    for _ in range(3):
        for name, step in (("polars", read_plain), ("tilp.read", tilp.read)):
            started = time.perf_counter()
            result = step(path)
            times[name].append(time.perf_counter() - started)
        started = time.perf_counter()
        result.index()
        times["index"].append(time.perf_counter() - started)
        del result
    unit = median(times["polars"])
    for name, taken in times.items():
        print(f"{name:9} {median(taken):6.2f} s   {median(taken) / unit:5.2f} × polars reading it")


def build(path: Path) -> None:
    frame = read_plain(path)
    tilp.read(frame[:1000]).index()  # what importing and the first call take is not the graph's
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    graph = tilp.read(frame)
    index = graph.index()
    print(f"on top of the input columns ({before:,.0f} MB): peak {peak_mb() - before:,.0f} MB")
    names = ("subject", "relation", "object", "start", "end", "start_text", "end_text")
    columns = sum(getattr(graph, name).nbytes for name in names) / len(graph)
    edges = (index.offsets, index.relation, index.target, index.fact)
    indexed = sum(array.nbytes for array in edges) / len(graph)
    print(f"bytes a fact: {columns:.1f} columns, {indexed:.1f} index")


STEPS = {"compare": compare, "build": build}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--step", choices=("make", *STEPS))
    parser.add_argument("--path", type=Path)
    arguments = parser.parse_args()
    if arguments.step == "make":
        make(arguments.path, arguments.facts)
    elif arguments.step:
        STEPS[arguments.step](arguments.path)
    else:
        with tempfile.TemporaryDirectory() as folder:
            for step in ("make", "compare", "build"):
                command = [sys.executable, __file__, "--step", step, "--facts"]
                path = f"{folder}/facts.tsv"
                subprocess.run([*command, str(arguments.facts), "--path", path], check=True)


if __name__ == "__main__":
    main()

"""Memory and time of building a graph, against polars merely reading the same file.

    python benchmarks/load.py [--facts 10000000]

The bundled world is written as one TSV file. One process reads the input columns with polars,
notes its memory, builds the graph and its index, and prints the peak above that note; others
time the plain read and `tilp.read` of the same file. Linux only: the peak is read from /proc.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def peak_mb() -> float:
    return _status("VmHWM")


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def make(path: Path, facts: int) -> None:
    import tilp

    started = time.perf_counter()
    graph = tilp.datasets.world(seed=0, size=facts).graph
    print(f"world of {len(graph):,} facts: {time.perf_counter() - started:.1f} s, "
          f"peak {peak_mb():,.0f} MB")  # fmt: skip
    graph.frame().write_csv(path, separator="\t", quote_style="never")
    print(f"file: {path.stat().st_size / 1e6:,.0f} MB")


def read_plain(path: Path) -> None:
    import polars as pl

    started = time.perf_counter()
    frame = pl.read_csv(path, separator="\t", quote_char=None, infer_schema=False)
    print(f"polars, read alone: {time.perf_counter() - started:.2f} s, {frame.shape}")


def read_graph(path: Path) -> None:
    import tilp

    started = time.perf_counter()
    graph = tilp.read(path)
    read = time.perf_counter() - started
    graph.index()
    print(f"tilp.read: {read:.2f} s; index: {time.perf_counter() - started - read:.2f} s; "
          f"peak {peak_mb():,.0f} MB in all")  # fmt: skip


def build(path: Path) -> None:
    import polars as pl

    import tilp

    frame = pl.read_csv(path, separator="\t", quote_char=None, infer_schema=False)
    tilp.read(frame[:1000]).index()  # what importing and the first call take is not the graph's
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    graph = tilp.read(frame)
    index = graph.index()
    print(f"on top of the input columns ({before:,.0f} MB): peak {peak_mb() - before:,.0f} MB")
    print(f"bytes a fact: {graph.nbytes / len(graph):.1f} columns, "
          f"{index.nbytes / len(graph):.1f} index")  # fmt: skip


STEPS = {"make": make, "plain": read_plain, "graph": read_graph, "build": build}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--path", type=Path)
    arguments = parser.parse_args()
    if arguments.step == "make":
        make(arguments.path, arguments.facts)
    elif arguments.step:
        STEPS[arguments.step](arguments.path)
    else:
        with tempfile.TemporaryDirectory() as folder:
            for step in ("make", "plain", "graph", "plain", "graph", "build"):
                command = [sys.executable, __file__, "--step", step, "--facts"]
                path = f"{folder}/facts.tsv"
                subprocess.run([*command, str(arguments.facts), "--path", path], check=True)


if __name__ == "__main__":
    main()

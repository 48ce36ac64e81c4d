"""How time and memory grow where one subject has half of all facts, and where none has.

    python benchmarks/hubs.py [--sizes 10000 20000 40000] [--length 2] [--mine 100000]

Fits at length 2, then `tilp mine` of the largest size, each with and without the hub; CPU seconds
and peak memory of a process of its own, once warm.
"""

import argparse
import csv
import sys
import tempfile
from pathlib import Path

from _baseline import Version

NOW = Version(Path(sys.executable), Path(__file__).resolve().parent.parent / "src")


def write_facts(path: Path, size: int, *, hub: bool) -> Path:
    """Write facts, five relations between each two entities; half of them of one subject."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("subject", "relation", "object", "start", "end"))
        for i in range(size):
            pair, year = i // 5, 1900 + i % 97
            subject = "hub" if hub and pair % 2 else f"s{pair * 7919 % (size // 20)}"
            target = f"o{pair * 104729 % (size // 8)}"
            table.writerow((subject, f"r{i % 5}", target, year, year + i % 7))
    return path


def measure_hubs(folder: Path, sizes: list[int], length: int, mined: int | None = None) -> None:
    """Print a row for each size and command, with and without the hub."""
    print("| command | facts | without a hub: CPU s | MB | with one: CPU s | MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    runs = [("fit", size) for size in sizes] + ([("mine", mined)] if mined else [])
    for command, size in runs:
        cells = []
        for hub in (False, True):
            data = write_facts(folder / f"hub-{size}-{hub}.csv", size, hub=hub)
            out = str(folder / f"hub-{command}-{size}-{hub}")
            run = NOW.run(command, str(data), "--out", out, "--max-length", str(length))
            cells.append(f"{run.cpu_seconds:.1f} | {run.peak_memory / 1e6:.0f}")
        print(f"| {command} | {size:,} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[10_000, 20_000, 40_000])
    parser.add_argument("--length", type=int, default=2)
    parser.add_argument("--mine", type=int, default=100_000, help="facts to mine; 0 for none")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        warm = str(write_facts(folder / "warm.csv", 1_000, hub=False))
        NOW.run("fit", warm, "--out", str(folder / "warm"), "--max-length", str(chosen.length))
        measure_hubs(folder, chosen.sizes, chosen.length, chosen.mine)


if __name__ == "__main__":
    main()

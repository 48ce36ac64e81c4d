"""Damaged and hostile inputs for every reader: each gives a result or a TilpError, nothing else.

    python benchmarks/hostile.py [--inputs 100000] [--seed 0] [--kinds table.csv packed …]
        [--folder FOLDER]

Tables, queries, rules, scores, plans, wordings, models and packed graphs are changed at
random: bytes, tokens, values of JSON, arrays and columns. Models are signed again after most
changes, so that digests do not find them all. Inputs are read in a process of their own, so that
one that crashes is counted, and the others go on.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mutations import Inputs

PROPER = ("read", "refused")


def work(folder: Path, kind: str, first: int, last: int) -> None:
    """Try inputs one after the other, and print what becomes of each."""
    inputs = Inputs(folder)
    for seed in range(first, last):
        print(seed, flush=True)
        outcome = " ".join(inputs.attempt(kind, seed).split())
        print(outcome if outcome in PROPER else f"{outcome} (input {seed})", flush=True)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, flush=True)


def run(folder: Path, kind: str, first: int, last: int) -> tuple[Counter[str], int]:
    """Return the outcomes of inputs, in as many processes as it takes, and the peak memory."""
    outcomes, peak = Counter[str](), 0
    while first < last:
        command = [sys.executable, __file__, "--work", str(folder), kind, str(first), str(last)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
        lines = done.stdout.splitlines()
        if done.returncode == 0:
            outcomes.update(lines[1:-1:2])
            return outcomes, max(peak, int(lines[-1]))
        if not lines:
            raise SystemExit("the inputs could not be made")
        outcomes.update(lines[1::2])
        outcomes[f"crash {-done.returncode} at input {lines[-1 - (len(lines) + 1) % 2]}"] += 1
        first += (len(lines) + 1) // 2
    return outcomes, peak


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+")
    parser.add_argument("--folder", type=Path, help="of whole inputs, to use them again")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        folder, kind, first, last = chosen.work
        work(Path(folder), kind, int(first), int(last))
        return
    total, bad = Counter[str](), 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        kinds = chosen.kinds or list(Inputs(folder).kinds())
        count = -(-chosen.inputs // len(kinds))
        print(f"{count:,} inputs of each of {len(kinds)} kinds")
        for kind in kinds:
            began = time.perf_counter()
            first = chosen.seed * 10**6
            outcomes, peak = run(folder, kind, first, first + count)
            others = {name: n for name, n in outcomes.items() if name not in PROPER}
            total.update({name: n for name, n in outcomes.items() if name not in others})
            bad += sum(others.values())
            print(
                f"{kind:16} read {outcomes['read']:6,}  refused {outcomes['refused']:6,}  "
                f"other {sum(others.values()):4,}  {time.perf_counter() - began:6.1f} s, {peak} MB",
                flush=True,
            )
            for name, n in Counter(others).most_common(8):
                print(f"    {n:4,} × {name}")
    done = sum(total.values()) + bad
    print(f"{done:,} inputs: {total['read']:,} read, {total['refused']:,} refused, {bad} other")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

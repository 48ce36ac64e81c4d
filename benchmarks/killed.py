"""A fit killed (SIGKILL) at random moments and started again: the same model, byte for byte.

python benchmarks/killed.py [DATA] fits DATA (the bundled world of 10,000 facts by default) once
undisturbed, then again while killing it ten times at seeded moments, and compares all files.
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

import tilp


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        data = Path(arguments.data) if arguments.data else place / "world"
        if not arguments.data:
            tilp.write(tilp.datasets.world(0, 10_000).graph, data)
        command = [sys.executable, "-m", "tilp", "--quiet", "fit", str(data), "--out"]
        options = [] if arguments.data else ["--sample", "200", "--top", "200"]
        subprocess.run([*command, str(place / "warm"), *options], check=True)  # compiles
        shutil.rmtree(place / "warm")
        began = time.perf_counter()
        subprocess.run([*command, str(place / "whole"), *options], check=True)
        whole = time.perf_counter() - began
        killed = 0
        while killed < arguments.kills:
            fit = subprocess.Popen([*command, str(place / "killed"), *options])
            moment = chance.uniform(0.0, whole)
            try:
                fit.wait(moment)
                print(f"finished before it could be killed at {moment:.1f} s; begun anew")
                shutil.rmtree(place / "killed")
            except subprocess.TimeoutExpired:
                fit.kill()
                fit.wait()
                killed += 1
                left = place / "killed.unfinished"
                parts = ", ".join(sorted(path.name for path in left.glob("*"))) or "nothing"
                print(f"kill {killed} after {moment:.1f} s of {whole:.1f} s; left: {parts}")
        subprocess.run([*command, str(place / "killed"), *options], check=True)
        same = digests(place / "whole") == digests(place / "killed")
        print(f"{killed} kills; {len(digests(place / 'whole'))} files; equal: {same}")
        sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()

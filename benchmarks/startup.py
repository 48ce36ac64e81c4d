"""How long `tilp --help` takes, as a multiple of importing typer in the same run.

python benchmarks/startup.py
"""

import subprocess
import sys
import time
from statistics import median

ROUNDS = 15


def seconds(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    commands = {
        "python -c pass": ("-c", "pass"),
        "import typer": ("-c", "import typer"),
        "import tilp": ("-c", "import tilp"),
        "tilp --help": ("-m", "tilp", "--help"),
    }
    # Turn by turn, so that a noisy machine is noisy for all of them.
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(seconds(*command))
    unit = median(times["import typer"])
    for name, taken in times.items():
        print(
            f"{name:16} {1000 * median(taken):6.0f} ms   {median(taken) / unit:5.2f} × import typer"
        )


if __name__ == "__main__":
    main()

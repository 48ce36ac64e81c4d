"""Commands that are killed (SIGKILL) or run twice at once: nothing is lost, nothing is half.

    python benchmarks/killed.py [DATA] [--parts fit windows writers] [--kills 10]
        [--commands fit update …]

fit: DATA (the bundled world of 10,000 facts by default) is fitted once undisturbed, then again
while killing it at seeded moments; all files of the two models are compared.
windows: every command that writes is killed before and after each of its renames and removals of
folders, then run again: the files are those of an undisturbed run, and nothing else is left.
writers: every such command runs twice at once: each ends well or is refused, and what is there is
whole; of two updates in place, all facts of those that ended well are there.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tilp
from tilp.cli import main as run_command
from tilp.evaluation import popularity
from tilp.evaluation.score_files import write_scores

PLAN = """title = "Small"
[world]
size = 1000
seed = 1
[[experiment]]
name = "side"
kind = "compare"
methods = ["popularity"]
figures = ["enumerate average"]
"""
FAST = ["--max-length", "1", "--features", "none", "--sample", "40", "--threads", "1"]
COMMANDS = {  # each writes `out`, in a folder with what it reads
    "fit": ["fit", "world", "--out", "out", *FAST],
    "forecaster": ["fit", "world", "--task", "forecast", "--out", "out", "--threads", "1"],
    "update in place": ["update", "out", "new.tsv", "--in-place", "--threads", "1"],
    "update": ["update", "model", "new.tsv", "--out", "out", "--threads", "1"],
    "mine": ["mine", "world", "--out", "out", "--max-length", "1", "--relation", "playsFor"],
    "rules": ["rules", "model", "--out", "out"],
    "predict": ["predict", "model", "--queries", "queries.tsv", "--out", "out", "--threads", "1"],
    "when": ["when", "model", "--queries", "facts.tsv", "--out", "out", "--threads", "1"],
    "evaluate": ["evaluate", "model", "--split", "valid", "--out", "out", "--threads", "1"],
    "pack": ["pack", "world", "--out", "out"],
    "convert": ["convert", "world", "--out", "out"],
    "split": ["split", "world", "--out", "out", "--kind", "random"],
    "impute": ["impute", "world", "--out", "out"],
    "impute by a model": ["impute", "world", "--out", "out", "--model", "model"],
    "forecaster in place": ["update", "out", "new.tsv", "--in-place", "--threads", "1"],
    "evaluate-scores": [
        *("evaluate-scores", "scores.tsv", "--data", "world", "--split", "valid", "--out", "out")
    ],
    "datasets world": ["datasets", "world", "--size", "1000", "--out", "out"],
    "bench": ["bench", "plan.toml", "--out", "out", "--threads", "1"],
}

WINDOWS = (
    *((os, name) for name in ("rename", "replace", "rmdir", "unlink", "remove")),
    (shutil, "rmtree"),
)
IN_PLACE = {"update in place": "model", "forecaster in place": "forecaster"}


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of each file; of a report, which has times in it, the names alone."""
    if (folder / "runs").is_dir():
        return {str(path.relative_to(folder)): "" for path in sorted(folder.rglob("*"))}
    beside = folder.with_name(f"{folder.name}-estimates.parquet")
    if folder.is_file() or beside.exists():
        files = [path for path in (beside, folder, *folder.rglob("*")) if path.is_file()]
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Windows:
    """Counts renames and removals in a process, and kills it before or after one of them."""

    def __init__(self, at: int | None) -> None:
        self._at, self.count = at, 0
        for module, name in WINDOWS:
            setattr(module, name, self._wrapped(getattr(module, name)))

    def _wrapped(self, function: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*arguments: object, **options: object) -> object:
            self._pass()
            done = function(*arguments, **options)
            self._pass()
            return done

        return wrapped

    def _pass(self) -> None:
        if self.count == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


def start(place: Path, arguments: list[str], *, kill_at: int | None = None) -> int:
    """Run a command in a folder, in a child of this process; return the id of the child."""
    if (child := os.fork()) != 0:
        return child
    os.chdir(place)
    with (place.parent / "log").open("a") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    windows, sys.argv, code = Windows(kill_at), ["tilp", "--quiet", *arguments], 0
    try:
        run_command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    (place.parent / "windows").write_text(str(windows.count))
    os._exit(code)


def finish(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(place: Path, arguments: list[str], *, kill_at: int | None = None) -> int:
    return finish(start(place, arguments, kill_at=kill_at))


def prepare(place: Path) -> None:
    """Make what the commands read."""
    place.mkdir()
    graph = tilp.datasets.world(0, 1_000).graph
    tilp.write(graph, place / "world")
    facts = graph.frame("train", names="ids")
    for name, year in (("new.tsv", "1999"), ("newer.tsv", "2001")):
        rows = ["\t".join([*row[:3], year, year]) for row in facts.head(20).iter_rows()]
        (place / name).write_text("subject\trelation\tobject\tstart\tend\n" + "\n".join(rows))
    queries = facts.head(30).select("subject", "relation", "start", "end")
    queries.write_csv(place / "queries.tsv", separator="\t")
    facts.head(30)[:, :3].write_csv(place / "facts.tsv", separator="\t")
    write_scores(popularity(graph), graph, place / "scores.tsv", "valid")
    (place / "plan.toml").write_text(PLAN)


def count_facts(model: Path) -> int:
    """Count in a child, since threads of this process would not be in its later children."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, str(len(tilp.load(model).graph)).encode())
        os._exit(0)
    finish(child)
    os.close(write)
    with os.fdopen(read) as count:
        return int(count.read())


def fresh(base: Path, temporary: Path, name: str) -> Path:
    place = temporary / "place"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place)
    if name in IN_PLACE:
        shutil.copytree(base / IN_PLACE[name], place / "out")
    return place


def measure_windows(temporary: Path, most: int, seed: int) -> bool:
    chance, base, good, kills = random.Random(seed), temporary / "base", True, 0
    for name, arguments in COMMANDS.items():
        place = fresh(base, temporary, name)
        if run(place, arguments) != 0:
            raise SystemExit(f"{name} failed: {(temporary / 'log').read_text()[-500:]}")
        expected = digests(place / "out")
        count = int((temporary / "windows").read_text())
        # Half of them among the last, where what was made gets its name.
        last = chance.sample(range(count)[-12:], min(most // 2, count))
        others = sorted({*range(count)} - {*last})
        moments = sorted([*last, *chance.sample(others, min(most - len(last), len(others)))])
        wrong = []
        for moment in moments:
            place = fresh(base, temporary, name)
            before = {path.name for path in place.iterdir()} | {"out", "out-estimates.parquet"}
            if run(place, arguments, kill_at=moment) != -signal.SIGKILL:
                wrong.append(f"not killed at {moment}")
            kills += 1
            again = run(place, arguments)
            # What was finished before the kill is not written over.
            refused = again == 2 and digests(place / "out") == expected
            left = {path.name for path in place.iterdir()} - before
            if again != 0 and not refused:
                wrong.append(f"run again after {moment}: exit {again}")
            if digests(place / "out") != expected:
                wrong.append(f"other files after {moment}")
            if left:
                wrong.append(f"left after {moment}: {', '.join(sorted(left))}")
        print(
            f"{name:19} {count:3} windows, {len(moments)} kills: {'; '.join(wrong) or 'whole'}",
            flush=True,
        )
        good &= not wrong
    print(f"{kills} kills")
    return good


def measure_writers(temporary: Path) -> bool:
    base, good = temporary / "base", True
    for name, arguments in COMMANDS.items():
        expected = None
        if name not in IN_PLACE:
            place = fresh(base, temporary, name)
            run(place, arguments)
            expected = digests(place / "out")
        place = fresh(base, temporary, name)
        others = ["newer.tsv" if each == "new.tsv" else each for each in arguments]
        second = others if name in IN_PLACE else arguments
        codes = sorted(map(finish, [start(place, arguments), start(place, second)]))
        if expected is not None:
            is_whole = digests(place / "out") == expected
        else:
            added = count_facts(place / "out") - count_facts(base / IN_PLACE[name])
            is_whole = added == 20 * codes.count(0)
        fine = is_whole and codes in ([0, 0], [0, 2])
        hidden = [path.name for path in place.iterdir() if path.name.startswith(".")]
        print(
            f"{name:19} exits {codes}, {'whole' if is_whole else 'NOT WHOLE'}, left: {hidden}",
            flush=True,
        )
        good &= fine and not hidden
    return good


def measure_fit(temporary: Path, data: Path | None, kills: int, seed: int) -> bool:
    chance, options = random.Random(seed), [] if data else ["--sample", "200", "--top", "200"]
    if data is None:
        data = temporary / "world"
        tilp.write(tilp.datasets.world(0, 10_000).graph, data)
    command = [sys.executable, "-m", "tilp", "--quiet", "fit", str(data), "--out"]
    subprocess.run([*command, str(temporary / "warm"), *options], check=True)  # compiles
    began = time.perf_counter()
    subprocess.run([*command, str(temporary / "whole"), *options], check=True)
    whole, killed = time.perf_counter() - began, 0
    while killed < kills:
        fit = subprocess.Popen([*command, str(temporary / "killed"), *options])
        moment = chance.uniform(0.0, whole)
        try:
            fit.wait(moment)
            print(f"finished before it could be killed at {moment:.1f} s; begun anew")
            shutil.rmtree(temporary / "killed")
        except subprocess.TimeoutExpired:
            fit.kill()
            fit.wait()
            killed += 1
            left = temporary / "killed.unfinished"
            parts = ", ".join(sorted(path.name for path in left.glob("*"))) or "nothing"
            print(f"kill {killed} after {moment:.1f} s of {whole:.1f} s; left: {parts}")
    subprocess.run([*command, str(temporary / "killed"), *options], check=True)
    same = digests(temporary / "whole") == digests(temporary / "killed")
    print(f"{killed} kills; {len(digests(temporary / 'whole'))} files; equal: {same}")
    return same


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("fit", "windows", "writers")
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--kills", type=int, default=10, help="of a fit, and of each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    chosen = parser.parse_args()
    for name in {*COMMANDS} - {*chosen.commands}:
        del COMMANDS[name]
    with tempfile.TemporaryDirectory() as temporary:
        place, good = Path(temporary), True
        if "fit" in chosen.parts:
            good &= measure_fit(place, chosen.data, chosen.kills, chosen.seed)
        if {"windows", "writers"} & {*chosen.parts}:
            # In a child, since threads of this process would not be in its children.
            if (child := os.fork()) == 0:
                prepare(place / "base")
                os._exit(0)
            finish(child)
            forecast = ["--task", "forecast", "--threads", "1"]
            for name, options in (("model", FAST), ("forecaster", forecast)):
                if run(place / "base", ["fit", "world", "--out", name, *options]) != 0:
                    raise SystemExit((place / "log").read_text())
        if "windows" in chosen.parts:
            good &= measure_windows(place, chosen.kills, chosen.seed)
        if "writers" in chosen.parts:
            good &= measure_writers(place)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

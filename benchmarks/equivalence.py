"""Prove that a change of the code changed no behaviour: compare it with an older commit.

Both versions work on the same data through the command line: fit, rules, features, predict,
evaluate, explain and update. Everything they write is compared: numbers and arrays bit for bit,
and in the same order. Names that changed on purpose are in the tables below. They are applied
to what the older version wrote.

    python benchmarks/equivalence.py --baseline 324b996 --data world YAGO11k

`--keep FOLDER` stores what the versions wrote. The older version, and a newer one whose sources
are the same, then do not run again. TILP_DATA names the folder of published data sets.
The exit code is 1 if anything differs.
"""

import argparse
import csv
import hashlib
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from _baseline import REPOSITORY, Version, full_commit, installed

# Every value has a path: file, then keys; * is any index of a list:
# model/model.json/settings/training/steps, rules.json/*/weight, predictions/part-00000.parquet/rank

# Files and keys, old -> new: one part of a path, or several joined by /. The first entries first.
RENAMED_KEYS: dict[str, str] = {}

# Texts, by pattern of their (new) path: regular expressions, old -> new.
RENAMED_VALUES: dict[str, dict[str, str]] = {"*": {"soft walks": "random walks"}}

# Patterns of counts that the older version wrote as true or false in places.
COUNTS = ("*/walks",)

# Patterns of (new) paths that are not compared: versions, digests of sources or files, the model's
# description in words, choices that exist no longer, and a key that is new beside its old name.
IGNORED = (
    "*rules.json/*/body_support",
    "*/model.json/version",
    "*/tilp",
    "*/made_with/*",
    "*sha256",
    "*/predict.json/version",
    "*/predict.json/of/model",
    "*/evaluation.json/version",
    "*/evaluation.json/note",
    "*evaluate.json/note",
    "*/model.json/settings/training/cell",
    "*update.json/weights",
    "*update.json/rules",
    "*/updates/*/weights",
    "*/updates/*/rules",
)

# Words of a command line that the older version spells in another way, new -> old.
OLD_ARGS: dict[str, str] = {}

# What is run: the data set, and the options of the fit.
CASES = {
    "world": ("world", ["--max-length", "2"]),
    "world, paper": ("world", ["--max-length", "2", "--preset", "paper"]),
    "world, no features": ("world", ["--max-length", "2", "--features", "none"]),
    "YAGO11k": ("YAGO11k", []),
}
WORLD_SIZE = 3000
QUERIES, EXPLAINED, WITH_ANSWER, NEW_FACTS = 300, 20, 4, 60
COLUMNS = ("subject", "relation", "object", "start", "end")


# --- running a version ------------------------------------------------------------------------


def read_facts(data: Path, split: str) -> list[list[str]]:
    """Read the rows of a split as text; unknown dates become empty."""
    path = next(path for path in (data / f"{split}.tsv", data / f"{split}.txt") if path.exists())
    with path.open(encoding="utf-8", newline="") as lines:
        rows = [row[:5] for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    if rows[0] == list(COLUMNS):
        rows = rows[1:]
    return [[*row[:3], *("" if date.startswith("#") else date for date in row[3:])] for row in rows]


def write_facts(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(COLUMNS)
        writer.writerows(rows)


def steps(data: str, fit_options: list[str], facts: list[list[str]]) -> Iterator[list[str]]:
    """Yield the command lines of a case, in the words of the newer version."""
    yield ["fit", data, "--out", "model", "--seed", "0", *fit_options]
    yield ["rules", "model", "--top", "1000000", "--json"]
    yield ["predict", "model", "--queries", "queries.csv", "--out", "predictions"]
    yield ["predict", "model", "--queries", "few.csv", "--out", "explained", "--explain", "3"]
    yield ["evaluate", "model", "--out", "evaluation", "--json"]
    for index, (subject, relation, object_, start, end) in enumerate(facts[:WITH_ANSWER]):
        dates = [*(("--start", start) if start else ()), *(("--end", end) if end else ())]
        fact = ["--relation", relation, "--subject", subject, "--object", object_, *dates]
        ask = ["--ask", ("subject", "object")[index % 2]]
        limits = ["--reasons", "100", "--groundings", "10"]
        yield ["explain", "model", *fact, *ask, *limits, "--json"]
    if data == "world":
        yield ["update", "model", "new.csv", "--out", "updated", "--json"]
        yield ["predict", "updated", "--queries", "queries.csv", "--out", "after-update"]
        yield ["evaluate", "updated", "--out", "evaluation-after-update", "--json"]


def run_case(
    case: str, version: Version, folder: Path, spell: Callable[[str], str], progress: str
) -> None:
    """Write everything a version says of a case into a folder, unless it is there already."""
    data, fit_options = CASES[case]
    folder.mkdir(parents=True, exist_ok=True)
    if data == "world":
        location = "world"
        world = ["datasets", "world", "--out", "world", "--size", str(WORLD_SIZE)]
        if not (folder / "world").exists():
            version.run("--quiet", *map(spell, world), cwd=folder)
    else:
        location = str(Path(os.environ["TILP_DATA"]).resolve() / data)
    facts = read_facts(folder / location, "test")
    random.Random(0).shuffle(facts)
    commands = [list(map(spell, step)) for step in steps(location, fit_options, facts)]
    finished = folder / ".commands"
    text = json.dumps(commands)
    if finished.exists() and finished.read_text() == text:
        return
    for path in folder.iterdir():
        if path.name != "world":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, count in (("queries", QUERIES), ("few", EXPLAINED)):
        asked = [
            [*fact[:index], "", *fact[index + 1 :]] for fact in facts[:count] for index in (0, 2)
        ]
        write_facts(folder / f"{name}.csv", asked[:count])
    write_facts(folder / "new.csv", read_facts(folder / location, "valid")[:NEW_FACTS])
    for index, command in enumerate(commands):
        print(f"{progress} {case}: {command[0]}", file=sys.stderr, flush=True)
        run = version.run("--quiet", *command, cwd=folder)
        if "--json" in command:
            kind = "learned" if "--learned" in command else command[0]
            printed = run.stdout.replace(f"{folder.resolve()}/", "")
            (folder / f"{index:02} {kind}.json").write_text(printed, encoding="utf-8")
    finished.write_text(text)


# --- reading what was written -----------------------------------------------------------------

Indices = tuple[int, ...]  # the indices that stand for the * of a path
Values = dict[str, dict[Indices, Any]]  # by path


def read_file(path: Path) -> Any:
    """Read a file as nested dictionaries and lists, with arrays and single values in them."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        types = {"column types": {column.name: str(column.dtype) for column in frame}}
        return {column.name: column.to_list() for column in frame} | types
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text) if path.suffix == ".json" else text.splitlines()


def collect(tree: Any, path: str, indices: Indices, values: Values) -> None:
    """Add the single values of a tree to `values`."""
    if isinstance(tree, str) and tree.startswith('{"'):
        tree = json.loads(tree)
    if isinstance(tree, dict):
        for key, item in tree.items():
            collect(item, f"{path}/{key}", indices, values)
    elif isinstance(tree, list):
        collect(len(tree), f"{path}/length", indices, values)
        for index, item in enumerate(tree):
            collect(item, f"{path}/*", (*indices, index), values)
    else:
        values.setdefault(path, {})[indices] = tree


def read_values(folder: Path) -> Values:
    values: Values = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            collect(read_file(path), path.relative_to(folder).as_posix(), (), values)
    return values


def translate(values: Values) -> Values:
    """Return the values of the older version under the names of the newer one."""
    translated: Values = {}
    for path, by_indices in values.items():
        path = f"/{path}/"
        for old, new in RENAMED_KEYS.items():
            path = path.replace(f"/{old}/", f"/{new}/")
        path = path.strip("/")
        for pattern, texts in RENAMED_VALUES.items():
            if fnmatch(path, pattern):
                by_indices = {
                    indices: replace(value, texts) if isinstance(value, str) else value
                    for indices, value in by_indices.items()
                }
        if any(fnmatch(path, pattern) for pattern in COUNTS):
            by_indices = {
                indices: int(value) if isinstance(value, bool) else value
                for indices, value in by_indices.items()
            }
        translated.setdefault(path, {}).update(by_indices)
    return translated


def replace(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        text = re.sub(old, new, text)
    return text


# --- comparing --------------------------------------------------------------------------------


MISSING = Ellipsis  # stands for a value that one version did not write; no file has it


def same(old: Any, new: Any) -> bool:
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        return (old.dtype, old.shape, old.tobytes()) == (new.dtype, new.shape, new.tobytes())
    return type(old) is type(new) and repr(old) == repr(new)  # NaN is NaN, and 0.0 is not -0.0


def describe(old: Any, new: Any) -> str:
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            return f"{old.dtype}{old.shape} -> {new.dtype}{new.shape}"
        index = next(i for i in np.ndindex(old.shape) if old[i].tobytes() != new[i].tobytes())
        return f"at {[int(i) for i in index]}: {old[index]} -> {new[index]}"
    return f"{old!r:.200} -> {new!r:.200}"


def size(value: Any) -> int:
    return value.size if isinstance(value, np.ndarray) else 1


def compare(old: Values, new: Values) -> tuple[int, list[str]]:
    """Return how many values were compared, and the paths that differ with their first cases."""
    compared, differences = 0, []
    for path in sorted(old.keys() | new.keys()):
        if any(fnmatch(path, pattern) for pattern in IGNORED):
            continue
        if path not in new or path not in old:
            differences.append(f"{path}: only in the {'old' if path in old else 'new'} version")
            continue
        compared += sum(map(size, old[path].values()))
        pairs = [
            (indices, old[path].get(indices, MISSING), new[path].get(indices, MISSING))
            for indices in sorted(old[path].keys() | new[path].keys())
        ]
        unequal = [pair for pair in pairs if not same(*pair[1:])]
        if unequal:
            indices, *values = unequal[0]
            where = path.replace("*", "{}").format(*indices)
            case = describe(*values)
            differences.append(f"{where}: {case} ({len(unequal)} of {len(pairs)} differ)")
    return compared, differences


def digest(source: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(source.rglob("*.py")):
        found.update(f"{path.relative_to(source)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:12]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--baseline", default="324b996", help="the older commit")
    parser.add_argument("--source", type=Path, default=REPOSITORY, help="the newer worktree")
    parser.add_argument("--data", nargs="+", default=["world", "YAGO11k"], help="data sets")
    parser.add_argument(
        "--python", nargs=2, type=Path, metavar=("OLD", "NEW"),
        help="interpreters to use: OLD has the older commit installed, NEW the dependencies",
    )  # fmt: skip
    parser.add_argument("--keep", type=Path, help="a folder for all that was written")
    parser.add_argument("--all", action="store_true", help="list every path that differs")
    options = parser.parse_args()

    commit = full_commit(options.baseline)[:7]
    old_python, new_python = options.python or (None, Path(sys.executable))
    new = Version(new_python, options.source / "src")
    folder = options.keep or Path(tempfile.mkdtemp(prefix="tilp-equivalence-"))
    old_folder, new_folder = folder / commit, folder / digest(options.source / "src")
    print(f"old: {commit} in {old_folder}\nnew: {options.source} in {new_folder}\n", flush=True)
    old: Version | None = Version(old_python) if old_python else None
    equal = True
    print(f"{'case':20}{'compared':32}{'values':>10}  equal")
    for case, (data, _) in CASES.items():
        if data not in options.data:
            continue
        old = old or installed(commit)
        run_case(case, old, old_folder / case, lambda word: OLD_ARGS.get(word, word), "old")
        run_case(case, new, new_folder / case, lambda word: word, "new")
        before, after = translate(read_values(old_folder / case)), read_values(new_folder / case)
        for part in sorted({path.split("/")[0] for path in before.keys() | after.keys()}):
            count, differences = compare(*(
                {path: found for path, found in values.items() if path.split("/")[0] == part}
                for values in (before, after)
            ))  # fmt: skip
            equal &= not differences
            print(f"{case:20}{part:32}{count:10,}  {'no' if differences else 'yes'}", flush=True)
            for difference in differences if options.all else differences[:1]:
                print(f"{'':8}{difference}")
            if len(differences) > 1 and not options.all:
                print(f"{'':8}and {len(differences) - 1} more paths")
    print("\nAll equal." if equal else "\nNot equal.")
    sys.exit(not equal)


if __name__ == "__main__":
    main()

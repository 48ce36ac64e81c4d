"""Tables, queries and options with random damage: each is read, or refused with a clear error.

python benchmarks/mutated_tables.py [--cases 20000] [--seed 0] prints how often each kind of input
was read and refused. Any other outcome is printed with its seed, and the exit code is 1.
"""

import argparse
import contextlib
import io
import json
import random
import sqlite3
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
from typer.testing import CliRunner

import tilp
from tilp.cli import app

TOKENS = [
    *(b"\t", b"\n", b"\r", b'"', b",", b";", b"|", b"#", b"-", b"\x00", b"\xff", b"\xef\xbb\xbf"),
    *(b"None", b"9" * 5_000, b"[" * 2_000, b"{", b"}", b":", b"1/2/1999", b"13/1/2001", b"c. 1999"),
    *(b"2005-06", b"19th century", b"20200131", b"Jan 2001", b"present", b"99999999999999999999"),
]
VALUES = [
    *("", "0", "-1", "9" * 30, "9" * 5_000, "nan", "1e99", "%", "%d", "%Q", "%Y", "day-first"),
    *("subject=", "=", "subject=player", "subject=player,object=player", "x=player", "a,b", "\x00"),
    *("SELECT 1", "DROP TABLE facts", "SELECT * FROM facts", "playsFor", "p1", "3/1/1911", "1999"),
    *("size", "é", "⁻¹", "playsFor^-1", '"', "2001-02-03", "99GB", "raise", "skip", "month"),
]
OPTIONS = [
    *(
        "--columns",
        "--header",
        "--no-header",
        "--relation-name",
        "--wide",
        "--date-format",
        "--keep",
    ),
    *("--sql", "--unit", "--on-error", "--json", "--defects", "-q", "-v"),
]
QUERY_OPTIONS = [
    *("--relation", "--subject", "--object", "--start", "--end", "-k", "--new-only", "--json"),
]


def football(rows: int = 24) -> pl.DataFrame:
    """Return a table as a person would have it."""
    kinds = ("playsFor", "livesNear")
    cells = [
        (f"p{n % 7}", kinds[n % 2], f"c{n % 3}", f"{13 + n % 9}/{1 + n % 12}/{1990 + n}")
        for n in range(rows)
    ]
    return pl.DataFrame(cells, ["player", "kind", "club", "from"], orient="row")


def files(folder: Path) -> dict[str, bytes]:
    """Return undamaged tables by file name."""
    frame, parquet = football(), io.BytesIO()
    frame.write_parquet(parquet)
    with contextlib.closing(sqlite3.connect(folder / "facts.db")) as connection:
        connection.execute("CREATE TABLE facts (player, kind, club, since)")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?)", frame.rows())
        connection.commit()
    return {
        "f.csv": frame.write_csv().encode(),
        "f.tsv": frame.write_csv(separator="\t", quote_style="never").encode(),
        "f.jsonl": frame.write_ndjson().encode(),
        "f.json": json.dumps(frame.to_dicts()).encode(),
        "f.parquet": parquet.getvalue(),
        "f.db": (folder / "facts.db").read_bytes(),
    }


def mutate(content: bytes, chance: random.Random) -> bytes:
    """Return content with a few random cuts, insertions, flips and repetitions."""
    damaged = bytearray(content)
    for _ in range(chance.randint(0, 5)):
        at = chance.randrange(len(damaged) + 1)
        match chance.randrange(5):
            case 0:
                del damaged[at : at + chance.randint(1, 30)]
            case 1:
                damaged[at:at] = chance.choice(TOKENS) * chance.randint(1, 3)
            case 2:
                damaged[at : at + 1] = bytes([chance.randrange(256)])
            case 3:
                damaged[at:at] = damaged[at : at + chance.randint(1, 200)]
            case 4:
                del damaged[at:]
    return bytes(damaged)


def some_options(chance: random.Random, names: list[str]) -> list[str]:
    """Return a few options, with values or without."""
    chosen: list[str] = []
    for name in chance.sample(names, chance.randint(0, 3)):
        chosen += [name] if chance.random() < 0.4 else [name, chance.choice(VALUES)]
    return chosen


def outcome(work: Callable[[], object]) -> str:
    """Run something: 'read', 'refused', or what else happened."""
    try:
        work()
    except tilp.TilpError:
        return "refused"
    except BaseException as error:  # PanicException is none of Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}"[:300]
    return "read"


def run_command(arguments: list[str]) -> None:
    """Run a command; raise what it raises, and a TilpError for a usage error."""
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code:
        raise tilp.TilpError(result.output)


def attack(cases: int, seed: int, folder: Path) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Try damaged inputs; return counts by kind and outcome, and every other outcome."""
    warnings.simplefilter("ignore")
    undamaged = files(folder)
    (folder / "good.csv").write_bytes(undamaged["f.csv"])
    model = tilp.TILP(max_length=1, features="none", n_jobs=1).fit(tilp.read(folder / "good.csv"))
    saved = model.save(folder / "model")
    asked, parquet = football(6).select("player", "kind", "from"), io.BytesIO()
    asked.write_parquet(parquet)
    queries = {
        ".csv": asked.write_csv().encode(),
        ".tsv": asked.write_csv(separator="\t").encode(),
        ".jsonl": asked.write_ndjson().encode(),
        ".parquet": parquet.getvalue(),
    }
    counts, others = Counter[tuple[str, str]](), []
    for case in range(cases):
        chance = random.Random(f"{seed} {case}")
        kind = chance.choice(("table", "table", "table", "queries", "options", "query options"))
        name = chance.choice(list(undamaged))
        path, data = folder / name, folder / "good.csv"
        path.write_bytes(mutate(undamaged[name], chance))
        if kind == "table":
            work = partial(tilp.read, path, on_error=chance.choice(["repair", "skip"]))
        elif kind == "queries":
            path = folder / f"q{chance.choice(['.csv', '.jsonl', '.parquet', '.tsv'])}"
            path.write_bytes(mutate(queries[path.suffix], chance))
            work = partial(model.predict_to, folder / f"out-{case}", path, 1)
        elif kind == "options":
            data = path if chance.random() < 0.5 else data
            work = partial(run_command, ["inspect", str(data), *some_options(chance, OPTIONS)])
        else:
            given = ["--relation", "playsFor", "--subject", "p1"]
            given += some_options(chance, QUERY_OPTIONS)
            work = partial(run_command, ["predict", str(saved), *given])
        found = outcome(work)
        counts[kind, found if found in ("read", "refused") else "other"] += 1
        if found not in ("read", "refused"):
            others.append(f"case {case}, {kind}, {path.name}: {found}")
    return counts, others


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts, others = attack(arguments.cases, arguments.seed, Path(folder))
    for (kind, found), count in sorted(counts.items()):
        print(f"{kind:15}{found:10}{count:8,}")
    print(f"{sum(counts.values()):,} cases, {len(others):,} other than read or refused")
    print("\n".join(others))
    sys.exit(bool(others))


if __name__ == "__main__":
    main()

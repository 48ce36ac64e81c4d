"""Damaged and hostile inputs, drawn from a seed, for every reader; and what becomes of each."""

import io
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl

import tilp
from tilp import TILP, ForecastRules, TILPConfig
from tilp._utils.files import file_digest, note_digest
from tilp.bench.plan import load_plan
from tilp.errors import TilpError
from tilp.evaluation import evaluate, load_evaluation, popularity, read_scores
from tilp.evaluation.score_files import write_scores
from tilp.learning.rule_weights import TrainingSettings
from tilp.model.query_sources import QueryFile
from tilp.rules import Phrasings, RuleSet
from tilp.walks import MiningSettings, mine

TOKENS = [
    b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"'", b"\t", b"\n", b"\r", b",", b"#", b"{",
    b"NaN", b"-inf", b"1e400", b"9" * 30, b"9" * 5_000, b"-1", b"1.5", b"null", b"true", b"[]",
    b"[" * 3_000, b'{"a":' * 3_000, b"0001-00-00", b"2020-02-30", b"-9999999", b"20200131",
    b"19##", b"present", "⁻¹".encode(), b"^-1", b"\xed\xa0\x80", "\u202e".encode(), b"a" * 70_000,
]  # fmt: skip
VALUES = [
    None, True, 0, -1, 1.5, 10**30, float("nan"), float("inf"), "", "x", "\ud800", [], {}, [[]],
    {"a": {}}, "9" * 5_000, -(2**63), 2**31, ["x"] * 3,
]  # fmt: skip
DTYPES = ("int8", "uint64", "float16", "float64", "bool", "U4", "complex64", "datetime64[s]", "S3")
PLAN = b"""title = "Small"
[world]
size = 1000
seed = 1
[methods.one]
base = "rules"
max_length = 1
[[experiment]]
name = "side"
kind = "compare"
methods = [{ name = "one", seeds = 2 }, "popularity"]
figures = ["enumerate average"]
"""
_TIMEOUT = 600  # seconds for one input, on a busy machine too


class Inputs:
    """Whole inputs of every kind in a folder, which is made once."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.graph = tilp.datasets.world(0, 1_000).graph
        if not (self.folder / "whole").exists():
            partial = self.folder / "partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            self._make(partial)
            partial.rename(self.folder / "whole")
        self.whole = self.folder / "whole"

    def _make(self, folder):
        graph = self.graph
        small = graph.frame("train", names="ids").head(60)
        small.write_csv(folder / "table.tsv", separator="\t")
        small.write_csv(folder / "table.csv")
        small.write_parquet(folder / "table.parquet")
        small.write_ndjson(folder / "table.jsonl")
        book = openpyxl.Workbook()
        for row in (small.columns, *small.iter_rows()):
            book.active.append(row)
        book.save(folder / "table.xlsx")
        with sqlite3.connect(folder / "table.sqlite") as database:
            names = ", ".join(map('"{}"'.format, small.columns))
            database.execute(f"CREATE TABLE facts ({names})")
            marks = ", ".join("?" * small.width)
            database.executemany(f"INSERT INTO facts VALUES ({marks})", small.iter_rows())
        queries = small.select("subject", "relation", "start", "end").head(30)
        queries.write_csv(folder / "queries.tsv", separator="\t")
        queries.write_parquet(folder / "queries.parquet")
        tilp.write(graph, folder / "splits")
        write_scores(popularity(graph), graph, folder / "scores.tsv", "valid")
        scores = (folder / "scores.tsv").read_bytes().splitlines(keepends=True)
        (folder / "scores.tsv").write_bytes(b"".join(scores[:80]))
        (folder / "plan.toml").write_bytes(PLAN)
        (folder / "words.toml").write_bytes(b'livesIn = "{subject} lives in {object}"\n')
        tilp.pack(graph.frame("train", names="ids").head(300), folder / "packed")
        config = TILPConfig(sample=40, training=TrainingSettings(steps=10, dimension=8))
        choices = {"max_length": 1, "n_jobs": 1, "config": config}
        for features in ("none", "paper", "full"):
            weights = "attention" if features == "paper" else "free"
            model = TILP(features=features, rule_weights=weights, **choices).fit(graph)
            model.save(folder / f"model-{features}")
        model.rules().write(folder / "rules.jsonl")
        model.rules().write(folder / "rules.txt")
        ForecastRules(n_jobs=1).fit(graph).save(folder / "forecaster")
        packed = tilp.read(folder / "packed")
        TILP(features="none", **choices).fit(packed).save(folder / "model-packed")
        evaluate(popularity(graph), graph, "valid").save(folder / "evaluation")

    def kinds(self):
        """Return the function that reads each kind of input, by the name of its file or folder."""
        graph = self.graph

        def queries(path):
            for part in QueryFile(path).slices(7):
                part.columns.encode(graph)

        def model(path):
            loaded = tilp.load(path)
            loaded.rules()
            relation = str(loaded.graph.relations.ids[0])
            subject = str(loaded.graph.entities.ids[0])
            loaded.predict({"subject": subject, "relation": relation}, k=3)
            if "forecaster" not in path.name:
                loaded.predict_time(subject, relation, subject, k=3)

        def packed(path):
            opened = tilp.read(path)
            list(map(str, opened.facts()))
            mine(opened, settings=MiningSettings(max_length=2, sample=20, top=5))

        models = ("model-none", "model-paper", "model-full", "model-packed", "forecaster")
        tables = ("tsv", "csv", "parquet", "jsonl", "xlsx", "sqlite")
        return {
            **dict.fromkeys((*(f"table.{suffix}" for suffix in tables), "splits"), tilp.read),
            **dict.fromkeys(("queries.tsv", "queries.parquet"), queries),
            **dict.fromkeys(("rules.jsonl", "rules.txt"), RuleSet.read),
            "scores.tsv": lambda path: read_scores(path, graph, "valid"),
            "plan.toml": load_plan,
            "words.toml": lambda path: Phrasings.read(path, graph.relations),
            **dict.fromkeys(models, model),
            "evaluation": lambda path: load_evaluation(path).metrics(),
            "packed": packed,
        }

    def attempt(self, kind, seed):
        """Return what becomes of one damaged input: 'read', 'refused', or the other exception."""
        chance = random.Random(f"{kind} {seed}")
        source, target = self.whole / kind, self.folder / "damaged" / kind
        target.parent.mkdir(exist_ok=True)
        if source.is_file():
            target.write_bytes(_mutate(chance, source.name, source.read_bytes()))
        else:
            if not target.exists():
                shutil.copytree(source, target)
            files = [path for path in sorted(source.rglob("*")) if path.is_file()]
            damaged = chance.choice(files)
            path = target / damaged.relative_to(source)
            way = chance.randrange(60)
            if way < 3:
                path.unlink()
            if way == 1:
                os.mkfifo(path)
            elif way == 2:
                path.mkdir()
            elif way > 2:
                path.write_bytes(_mutate(chance, path.name, damaged.read_bytes()))
            if way > 2 and chance.random() < 0.7:
                _sign(target, chance)
        try:
            signal.alarm(_TIMEOUT)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.kinds()[kind](target)
            return "read"
        except TilpError:
            return "refused"
        except BaseException as failure:  # polars' panics are no Exception
            if isinstance(failure, KeyboardInterrupt):
                raise
            return f"{type(failure).__name__}: {str(failure)[:100]}"
        finally:
            signal.alarm(0)
            if source.is_dir():
                if path.is_dir():
                    path.rmdir()
                elif path.is_fifo():
                    path.unlink()
                path.write_bytes(damaged.read_bytes())
                for note in ("model.json", "pack.json", "evaluation.json"):
                    if (source / note).exists():
                        (target / note).write_bytes((source / note).read_bytes())


def _sign(folder, chance):
    """Sign the notes of a folder again, so that damage is not found by digests alone."""
    note = folder / "model.json"
    if (evaluation := folder / "evaluation.json").exists():
        with suppress(ValueError, TypeError, KeyError):  # it is no longer a note
            content = json.loads(evaluation.read_bytes())
            content["ranks_sha256"] = file_digest(folder / "ranks.parquet")
            evaluation.write_text(json.dumps(content))
    if not note.exists():
        return
    try:
        content = json.loads(note.read_bytes())
        names = {"rules": "rules.jsonl", "features": "features.npz", "attention": "attention.npz"}
        names |= {"weights": "weights.npz", "time": "time.npz"}
        for key, name in names.items():
            if content.get(f"{key}_sha256"):
                content[f"{key}_sha256"] = file_digest(folder / name)
        if chance.random() < 0.5:
            content = _mutate_json(chance, content)
        content.pop("sha256", None)
        note.write_text(json.dumps({**content, "sha256": note_digest(content)}))
    except (ValueError, AttributeError, TypeError, RecursionError, TilpError):  # no note any more
        return


def _mutate(chance, name, data):
    """Return the bytes of a file, changed once or a few times."""
    # What was changed before, or what a format has no room for, is changed byte by byte.
    unfit = (ValueError, TypeError, OverflowError, RecursionError, pl.exceptions.PolarsError)
    with warnings.catch_warnings(), suppress(*unfit):
        warnings.simplefilter("ignore")
        if name.endswith((".npz", ".npy")) and chance.random() < 0.7:
            return _mutate_arrays(chance, data, name.endswith(".npz"))
        if name.endswith(".json") and chance.random() < 0.5:
            return json.dumps(_mutate_json(chance, json.loads(data))).encode()
        if name.endswith(".parquet") and chance.random() < 0.5:
            return _mutate_frame(chance, pl.read_parquet(io.BytesIO(data)))
    for _ in range(chance.choice((1, 1, 2, 5))):
        data = _mutate_bytes(chance, data)
    return data


def _mutate_bytes(chance, data):
    begin = chance.randrange(len(data) + 1)
    end = min(len(data), begin + chance.choice((0, 1, 3, 30, 300)))
    way = chance.randrange(7)
    if way == 0:
        return data[:begin]
    if way == 1:
        return data[:begin] + data[end:]
    if way == 2:
        return data[:begin] + chance.choice(TOKENS) + data[end:]
    if way == 3:
        return data[:end] + data[begin:]
    if way == 4:
        numbers = list(re.finditer(rb"\d+", data[begin:][:500]))
        if numbers:
            found = chance.choice(numbers)
            first, last = begin + found.start(), begin + found.end()
            return data[:first] + chance.choice(TOKENS) + data[last:]
    if way == 5:
        rows = data.split(b"\n")
        chance.shuffle(rows)
        return b"\n".join(rows)
    changed = bytearray(data)
    for _ in range(chance.choice((1, 4, 20)) if changed else 0):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _mutate_json(chance, value):
    """Return a value with something in it replaced, removed or added."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        changed = {**value, key: _mutate_json(chance, value[key])}
        if chance.random() < 0.1:
            del changed[key]
        return changed
    if isinstance(value, list) and value and chance.random() < 0.8:
        index = chance.randrange(len(value))
        return [*value[:index], _mutate_json(chance, value[index]), *value[index + 1 :]]
    return chance.choice(VALUES)


def _mutate_arrays(chance, data, several):
    loaded = np.load(io.BytesIO(data), allow_pickle=False)
    arrays = dict(loaded) if several else {"only": loaded}
    name = chance.choice(sorted(arrays))
    array, way = np.array(arrays[name]), chance.randrange(6)
    if way == 0 and several:
        del arrays[name]
    elif way == 1:
        arrays[name] = array.astype(chance.choice(DTYPES))
    elif way == 2:
        arrays[name] = array[: len(array) // 2] if array.ndim else np.stack([array] * 2)
    elif way == 3:
        arrays[name] = array[..., None]
    elif array.size:
        flat = array.reshape(-1)
        values = [0, 1, 1000]
        values += [-1, 2**31 - 1] if array.dtype.kind in "if" and array.itemsize > 2 else []
        values += [np.nan, np.inf, 1e300] if array.dtype == np.float64 else []
        flat[chance.randrange(array.size)] = chance.choice(values)
        arrays[name] = flat.reshape(array.shape)
    written = io.BytesIO()
    if several:
        np.savez(written, **arrays)
        if way == 5:  # a method of compression that is not known
            with zipfile.ZipFile(written, "a") as archive:
                archive.writestr("more.npy", b"no array")
    else:
        np.save(written, arrays["only"])
    return written.getvalue()


def _mutate_frame(chance, frame):
    name = chance.choice(frame.columns)
    way = chance.randrange(5)
    if way == 0:
        frame = frame.drop(name)
    elif way == 1:
        frame = frame.rename({name: chance.choice(("", "split", "end", "x" * 300))}, strict=False)
    elif way == 2:
        size = len(frame)
        column = chance.choice(
            (
                pl.Series([2**31 - 1] * size, dtype=pl.Int32).cast(pl.Date),
                pl.Series([2**62] * size).cast(pl.Datetime("ms")),
                pl.Series([b"\xff"] * size),
                pl.Series([[1]] * size),
                pl.Series([{"a": 1}] * size),
                pl.Series([float("nan")] * size),
                pl.Series([2**64 - 1] * size, dtype=pl.UInt64),
                pl.Series([None] * size),
            )
        )
        frame = frame.with_columns(column.alias(name))
    else:
        frame = frame.head(chance.choice((0, 1)))
    written = io.BytesIO()
    frame.write_parquet(written)
    return written.getvalue()

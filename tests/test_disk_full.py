"""Commands that find no room on the disk: what they say, and what they leave."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilp
from models import contents, fitted
from strategies import small_world
from tilp._utils.files import new_file, new_folder
from tilp.errors import TilpError, WriteError

SCRIPT = """
import contextlib, io, json, resource, sys
import polars
from tilp.cli import main
polars.Series([1]).to_frame()
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))  # as on a full disk, writes fail
told = []
for command in json.loads(sys.argv[1]):
    sys.argv = ["tilp", *command]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
    told.append((code, err.getvalue()))
print(json.dumps(told))
"""
FAST = ["--max-length", "1", "--features", "none", "--sample", "40"]


@pytest.fixture
def place(tmp_path):
    tilp.write(small_world(), tmp_path / "world")
    fitted().save(tmp_path / "model")
    facts = small_world().frame("train", names="ids")
    facts.select("subject", "relation", "start", "end").write_csv(tmp_path / "queries.csv")
    return tmp_path


def test_every_command_names_the_path_and_keeps_what_was_there(place):
    commands = [
        ["fit", "world", "--out", "out", *FAST],
        ["update", "model", "world/train.tsv", "--in-place"],
        ["evaluate", "model", "--split", "valid", "--out", "out"],
        ["pack", "world", "--out", "out"],
        ["convert", "world", "--out", "out", "--format", "parquet"],
        ["rules", "model", "--out", "out"],
        ["predict", "model", "--queries", "queries.csv", "--out", "out"],
    ]
    sources = str(Path(tilp.__file__).parents[1])
    was = contents(place / "model")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(commands)],
        cwd=place, env={**os.environ, "PYTHONPATH": sources}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    for command, (code, err) in zip(commands, told, strict=True):
        if command[0] == "update" and code == 0:  # there was nothing new to write
            continue
        assert code == 2, (command, err)
        assert "there is no room for it" in err and " MB are free" in err, (command, err)
        assert "cannot be written" in err and ".partial" not in err
    assert "goes on from what is in" in told[0][1]
    assert contents(place / "model") == was
    left = {path.name for path in place.iterdir()} - {"world", "model", "queries.csv"}
    assert left <= {"out", "out.unfinished"}  # of predict and fit, which go on from them


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    told = r"file/out cannot be written: .*Choose another path"
    with pytest.raises(WriteError, match=told), new_folder(tmp_path / "file" / "out"):
        pass
    told = "there is no room .*; what was there is as it was"
    with pytest.raises(WriteError, match=told), new_file(tmp_path / "file") as partial:
        raise OSError(28, "No space left on device", str(partial))
    with pytest.raises(FileNotFoundError), new_folder(tmp_path / "new"):
        Path("/no/such/input").read_bytes()  # nothing that is written
    with pytest.raises(TilpError, match="not empty"), new_folder(tmp_path):
        pass

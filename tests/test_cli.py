"""The command line as a user meets it: results, help, warnings, errors, exit codes."""

import json
import subprocess
import sys

import pytest

import tilp
from tilp.cli import main

BAD = "a\tr\tb\t1990\t1980\nb\tr\tc\tsoon\t1970\n"


@pytest.fixture
def data(tmp_path, facts):
    path = tmp_path / "facts.csv"
    facts.write_csv(path)
    return path


def test_help_names_the_commands_and_version_what_a_report_needs(run):
    code, out, _ = run("--help")
    assert code == 0
    assert all(command in out for command in ("demo", "inspect", "datasets", "convert"))
    code, out, _ = run("--version")
    assert code == 0
    assert all(name in out for name in (f"tilp {tilp.__version__}", "python 3", "numba ", "jax "))


@pytest.mark.parametrize(
    "command",
    [("demo",), ("inspect",), ("convert",), ("pack",), ("datasets",), ("datasets", "get")],
)
def test_every_command_has_help(run, command):
    code, out, _ = run(*command, "--help")
    assert code == 0 and "Usage" in out and len(out) > 300


def test_alone_it_says_how_to_begin(run):
    code, out, err = run()
    assert code == 0 and err == "" and len(out.splitlines()) == 8
    assert all(f"tilp {word}" in out for word in ("demo", "inspect", "fit", "serve", "--help"))


@pytest.mark.parametrize("size", ["0", "-1", "x", "9" * 5000, "99999999999"])
def test_what_counts_something_is_a_whole_number_from_its_least_on(run, size):
    code, _, err = run("evaluate", "model", "--sample", size)
    assert code == 2 and "not a whole number from 1 on" in err and len(err) < 500


def test_inspect_as_tables_and_as_json(run, data):
    code, out, err = run("inspect", data)
    assert code == 0 and err == "" and "playsFor" in out and "times in years" in out
    code, out, _ = run("inspect", data, "--json")
    found = json.loads(out)
    assert found["unit"] == "year" and found["splits"]["all"]["facts"] == 5


def test_a_narrow_terminal_cuts_no_figure(run, data, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("inspect", data)
    assert "…" not in out and "playsFor" in out and "a wider terminal" in out


def test_a_table_without_facts_can_be_inspected(run, tmp_path):
    (tmp_path / "f.csv").write_text("subject,relation,object\n")
    code, out, err = run("inspect", tmp_path / "f.csv", "--json")
    assert code == 0 and json.loads(out)["splits"]["all"]["facts"] == 0
    assert "f.csv: no facts, so train is empty" in err


def test_names_are_shown_as_they_are(run, tmp_path):
    path = tmp_path / "f.tsv"
    path.write_text("a\t[red]:smile:[/oops]\tb\t1990\n")
    code, out, _ = run("inspect", path)
    assert code == 0 and "[red]:smile:[/oops]" in out


def test_defects_are_one_warning_line_and_a_list_when_asked_for(run, tmp_path):
    path = tmp_path / "f.tsv"
    path.write_text(BAD)
    code, out, err = run("inspect", path, "--defects")
    assert code == 0
    assert err.count("\n") == 1 and err.startswith(
        "warning: rows with defects: 1 × start after end"
    )
    assert "start after end" in out and "malformed start" in out and "soon" in out
    for quiet in ("--quiet", "-q"):
        code, out, err = run("inspect", path, "--defects", "--json", quiet)
        assert err == "" and [row["line"] for row in json.loads(out)] == [1, 2]
    code, _, err = run("inspect", path, "--on-error", "raise")
    assert code == 2 and "line 1: start after end" in err


def test_columns_and_units_can_be_chosen(run, tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("who,what,whom,when\nAda,met,Ben,1990-05\n")
    _, out, _ = run(
        "inspect", path, "--json", "--unit", "year",
        "--columns", "subject=who,relation=what,object=whom,date=when",
    )  # fmt: skip
    assert json.loads(out)["splits"]["all"]["dates"]["first"] == "1990"
    code, _, err = run("inspect", path, "--columns", "who,what")
    assert code == 2 and "write ROLE=NAME" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "nowhere.tsv"), "error: nowhere.tsv: no such file or folder"),
        (("inspect",), "Missing argument"),
        (("inspct", "x"), "No such command"),
        (("datasets", "get", "YAGO11"), "YAGO11k"),
        (("convert", "nowhere.csv", "--out", "x"), "nowhere.csv"),
        (("demo", "--size", "3"), "a world of 3 facts is not possible"),
    ],
)
def test_errors_are_a_paragraph_and_exit_code_2(run, arguments, message):
    code, _, err = run(*arguments)
    assert code == 2 and message in err and "Traceback" not in err


def test_debug_shows_the_traceback_wherever_it_stands(monkeypatch):
    for arguments in (["--debug", "inspect", "nowhere"], ["inspect", "nowhere", "--debug"]):
        monkeypatch.setattr(sys, "argv", ["tilp", *arguments])
        with pytest.raises(tilp.DataError):
            main()


def test_a_defect_of_the_program_is_called_one(run, data, monkeypatch):
    def fail(graph):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("tilp.data_quality.inspect", fail)
    code, _, err = run("inspect", data)
    assert code == 2 and "ZeroDivisionError: oops. This is a defect of tilp" in err


def test_convert(run, tmp_path, data):
    code, out, _ = run("convert", data, "--out", tmp_path / "out", "--format", "parquet")
    assert code == 0 and "5 train" in out
    assert tilp.read(tmp_path / "out") == tilp.read(data)


def test_datasets(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TILP_CACHE", str(tmp_path))
    code, out, _ = run("datasets", "list")
    assert code == 0 and "WIKIDATA12k" in out and "ICEWS14" in out
    code, out, _ = run("datasets", "world", "--out", tmp_path / "world", "--size", 1000)
    assert code == 0 and "rules planted" in out and "←" in out
    assert tilp.read(tmp_path / "world") == tilp.datasets.world(0, 1000).graph


def test_mine(run, tmp_path):
    tilp.write(tilp.datasets.world(0, 1000).graph, tmp_path / "world")
    out = tmp_path / "rules.jsonl"
    options = ("--max-length", 1, "--relation", "diedIn", "--grain", "pairs", "--threads", 2)
    code, printed, err = run("mine", tmp_path / "world", "--out", out, *options)
    assert code == 0 and err == "" and "the best of them" in printed
    assert "diedIn(E1,E2,I2) ← livesIn(E1,E2,I1) ∧ touching(I1,I2)" in printed
    assert len(tilp.RuleSet.read_jsonl(out)) > 0
    code, _, err = run("mine", tmp_path / "world", "--out", out, *options)
    assert code == 2 and "exists: choose another file" in err


def test_mine_stopped_by_hand(run, tmp_path, monkeypatch):
    tilp.write(tilp.datasets.world(0, 1000).graph, tmp_path / "world")

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tilp.walks.mining.mine_relations", stop)
    out = tmp_path / "rules.jsonl"
    code, _, err = run("mine", tmp_path / "world", "--out", out, "--max-length", 1)
    assert code == 2 and "0 of 20 relations" in err and "goes on from there" in err


def test_demo(run):
    code, out, err = run("demo", "--size", 1000)
    assert code == 0 and err.startswith("find rules …\n")
    assert "rules planted in this world" in out and "what to look at before learning" in out
    assert "the best for each of 10 relations" in out
    commands = [line.split()[:2] for line in out.splitlines()[-3:]]
    assert commands == [["tilp", "inspect"], ["tilp", "fit"], ["tilp", "serve"]]


def test_python_m_tilp():
    done = subprocess.run(
        [sys.executable, "-m", "tilp", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("tilp ")


def test_an_interrupt_in_a_callback_of_the_collector_is_not_lost():
    code = """
import gc, os, signal, sys, time
from tilp import cli

def callback(phase, info):
    if phase == "start":
        os.kill(os.getpid(), signal.SIGINT)  # an exception would be ignored here
        time.sleep(0.01)

def work(_):
    gc.callbacks.append(callback)
    gc.collect()
    gc.callbacks.remove(callback)
    time.sleep(20)

cli.app = work
sys.argv = ["tilp"]
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode not in (0, 2) and "KeyboardInterrupt" in done.stderr

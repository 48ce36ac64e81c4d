"""Commands that fit, measure and ask models: results, errors, and a fit that is killed."""

import json
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import polars as pl
import pytest

import tilp
from models import KilledError, kill_at
from tilp import TILP, Query, TILPConfig
from tilp.explanation.render import explanation_page
from tilp.rules import RuleSet
from tilp.rules.picture import draw_rule
from tilp.viz import standalone

EVIDENCE = "evidence: the facts of train, those after the query's time too\n"
OPTIONS = ("--max-length", 1, "--sample", 40, "--features", "none", "--threads", 2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tilp.write(tilp.datasets.world(1, 1_000).graph, tmp_path_factory.mktemp("d") / "world")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    """A model as the command would write it."""
    model = TILP(1, features="none", n_jobs=2, config=TILPConfig(sample=40)).fit(tilp.read(data))
    return model.save(tmp_path_factory.mktemp("m") / "model")


@pytest.fixture(scope="module")
def model(folder):
    return tilp.load(folder)


@pytest.fixture(scope="module")
def fact(model):
    """A dated fact of test."""
    facts = model.graph.frame("test").filter(pl.col("start") != "", pl.col("end") != "")
    return facts.filter(relation="livesIn").row(0, named=True)


def contents(folder):
    """Every file of a folder, byte for byte."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "fit",
            "DATA --out --preset --max-length --features --weights "
            "--grain --min-support --top --sample "
            "--limit --threads --seed --unit --on-error --columns --header attention free",
        ),
        ("evaluate", "MODEL --split --protocol --sample --out --json --threads --seed enumerate"),
        (
            "predict",
            "MODEL --relation --subject --object --start --end --queries --complete --out --data "
            "-k --new-only --explain --on-error --part-size --json --threads RELATION^-1",
        ),
        (
            "rules",
            "MODEL --relation --top --sentences --svg --out --phrasings --json name^-1 Gain Lift "
            ".txt",
        ),
        (
            "explain",
            "MODEL --relation --subject --object --start --end --candidate --ask --against "
            "--without --reasons --all --formal --groundings --html --phrasings --json FACT",
        ),
    ],
)
def test_help_names_every_option(run, command, words):
    code, out, err = run(command, "--help")
    assert code == 0 and err == ""
    assert [word for word in words.split() if word not in out] == []


# fit


def test_fit_writes_the_model_that_the_estimator_makes(run, tmp_path, data, folder):
    out = tmp_path / "deep" / "model"
    code, printed, err = run("fit", data, "--out", out, *OPTIONS)
    # Where there is no terminal for bars, a line for each stage as it begins, and no other.
    stages = ["find rules", "apply them to train", "keep few, distinct ones", "learn their weights"]
    assert code == 0 and err.splitlines()[:4] == [f"{stage} …" for stage in stages]
    assert len(err.splitlines()) == len(set(err.splitlines()))
    assert str(out) in printed and "rules)" in printed and "gradients" in printed
    assert contents(out) == contents(folder)
    assert [path.name for path in out.parent.iterdir()] == ["model"]  # nothing unfinished is left


def test_options_of_fit_reach_the_model(run, tmp_path, data, monkeypatch):
    models = []

    def stop(model, *_, **__):
        models.append(model)
        raise tilp.TilpError("enough")

    monkeypatch.setattr("tilp.cli.fit.fit_with_progress", stop)
    code, _, err = run(
        "fit", data, "--out", tmp_path / "m", "--max-length", 1, "--weights", "attention",
        "--grain", "static", "--grain", "gap", "--min-support", 3, "--top", 5, "--sample", 30,
        "--limit", 500, "--seed", 7, "--threads", 1, "--features", "full",
    )  # fmt: skip
    assert code == 2 and err.splitlines() == ["error: enough"]
    settings, mining = models[0].settings, models[0].settings.mining
    assert mining.grains == ("static", "gap") and settings.training.weights == "attention"
    assert (mining.max_length, mining.min_support, settings.max_rules, mining.top) == (1, 3, 5, 10)
    assert (mining.sample, mining.limit) == (30, 500)
    assert settings.seed == mining.seed == settings.training.seed == 7
    assert models[0].n_jobs == 1
    assert settings.features == "full"
    run("fit", data, "--out", tmp_path / "m", "--preset", "paper", "--max-length", 2)
    assert models[1].settings == TILP.paper(max_length=2).settings
    _, _, err = run("fit", data, "--out", tmp_path / "m")
    assert models[2].settings == TILP().settings and err == "error: enough\n"
    _, out, _ = run("fit", "--help")
    assert "--without" not in out and "--soft-length" not in out


def test_fit_says_how_to_make_a_test_split(run, tmp_path, data, monkeypatch):
    monkeypatch.setattr("tilp.cli.fit.fit_with_progress", lambda *_, **__: sys.exit(0))
    line = "there is no test split; to make one: tilp split DATA --out FOLDER --kind random\n"
    assert run("fit", data / "train.tsv", "--out", tmp_path / "m")[2] == line
    assert run("fit", data, "--out", tmp_path / "m")[2] == ""


def test_fit_writes_over_nothing(run, tmp_path, data):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    code, _, err = run("fit", data, "--out", out, *OPTIONS)
    assert code == 2 and f"error: {out} is not empty" in err
    assert contents(out) == {"thesis.txt": b"years of work"}
    assert not (tmp_path / "out.unfinished").exists()
    code, _, err = run("fit", data, "--out", out / "thesis.txt", *OPTIONS)
    assert code == 2 and "thesis.txt" in err and "defect" not in err
    work = tmp_path / "new.unfinished"
    work.mkdir()
    (work / "mine.txt").write_text("not a fit")
    code, _, err = run("fit", data, "--out", tmp_path / "new", *OPTIONS)
    assert code == 2 and f"{work} is in use" in err and contents(work) == {"mine.txt": b"not a fit"}


def test_fit_into_the_empty_folder_one_is_in(run, tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("fit", data, "--out", ".", *OPTIONS)
    assert "defect of tilp" not in err and code in (0, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere", "--out", "m"), "nowhere: no such file or folder"),
        (("DATA",), "--out"),
        (("DATA", "--out", "m", "--weights", "heavy"), "heavy"),
        (("DATA", "--out", "m", "--weights", "hybrid"), "hybrid"),
        (("DATA", "--out", "m", "--max-length", "9"), "max-length"),
        (("DATA", "--out", "m", "--grain", "fine"), "fine"),
        (("DATA", "--out", "m", "--preset", "best"), "best"),
    ],
)
def test_what_fit_cannot_do_is_said(run, tmp_path, data, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("fit", *(data if one == "DATA" else one for one in arguments))
    assert code == 2 and message in err and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_fit_stopped_by_hand_says_how_to_go_on(run, tmp_path, data, folder, monkeypatch):
    out = tmp_path / "m"

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tilp.model.fit.make_training_examples", stop)
        code, _, err = run("fit", data, "--out", out, *OPTIONS)
    assert code == 2 and f"goes on from what is in {out}.unfinished" in err and not out.exists()
    code, _, err = run("fit", data, "--out", out, *OPTIONS, "--seed", 5)
    assert code == 2 and "begun with other data or settings" in err
    code, _, err = run("fit", data, "--out", out, *OPTIONS)
    assert code == 0 and f"going on where {out}.unfinished stopped" in err
    assert contents(out) == contents(folder)
    assert not (tmp_path / "m.unfinished").exists()


def kill_when(command, path, size):
    """Run a command and kill it as soon as a file has grown to a size."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None and not (path.exists() and path.stat().st_size >= size):
            time.sleep(0.001)
    except FileNotFoundError:
        pass  # replaced or removed between two looks
    finally:
        process.kill()
        process.wait()
    return process.returncode


def test_a_fit_that_is_killed_again_and_again_makes_the_same_model(run, tmp_path, data):
    whole, out = tmp_path / "whole", tmp_path / "killed"
    work = tmp_path / "killed.unfinished"
    options = ("--max-length", 2, "--features", "none", "--threads", 1)
    assert run("fit", data, "--out", whole, *options)[0] == 0
    command = [sys.executable, "-m", "tilp", "fit", data, "--out", out, *options]
    left = []
    for name, size in (
        ("rules.jsonl.unfinished-rules", 10_000),
        ("entries-held-out.npz", 1),
        ("training-state.npz", 1),
    ):
        code = kill_when(list(map(str, command)), work / name, size)
        assert code == -signal.SIGKILL, name
        assert not out.exists()
        left.append({path.name for path in work.iterdir()})
    assert "rules.jsonl.unfinished" in left[0] and "entries-training.npz" not in left[0]
    assert "training-state.npz" in left[-1]
    code, _, err = run("fit", data, "--out", out, *options)
    assert code == 0 and "going on" in err
    assert contents(out) == contents(whole)
    assert not work.exists()


# evaluate


def test_evaluate_as_tables_as_json_and_as_a_folder_to_compare(run, tmp_path, folder, model):
    code, out, err = run("evaluate", folder)
    assert code == 0 and err == "" and "enumerate" in out and "MRR" in out.upper()
    code, out, err = run("evaluate", folder, "--json", "--out", tmp_path / "a", "--threads", 1)
    assert code == 0 and err == ""
    found = json.loads(out)
    expected = model.evaluate()
    assert found["split"] == "test" and found["queries"] == len(expected)
    assert set(found["protocols"]) == {str(one) for one in tilp.evaluation.Protocol}
    for protocol, ties in expected.protocols_and_ties():
        metrics = expected.metrics(protocol, ties)
        told = found["protocols"][protocol][ties]
        assert told["mrr"] == metrics.mrr
        assert (told["hits@1"], told["hits@10"]) == (metrics.hits_at_1, metrics.hits_at_10)
    assert tilp.evaluation.load_evaluation(tmp_path / "a") == expected
    code, _, err = run("evaluate", folder, "--out", tmp_path / "a")
    assert code == 2 and "not empty" in err


def test_evaluate_some_protocols_of_another_split(run, folder, model):
    code, out, _ = run(
        "evaluate", folder, "--split", "valid", "--json", "--protocol", "raw", "--protocol", "exact"
    )
    found = json.loads(out)
    assert code == 0 and found["split"] == "valid" and set(found["protocols"]) == {"raw", "exact"}
    assert found["protocols"]["raw"]["average"]["mrr"] == model.evaluate("valid").metrics("raw").mrr
    code, _, err = run("evaluate", folder, "--split", "tests")
    assert code == 2 and "tests" in err and "Traceback" not in err


def test_evaluate_a_sample(run, tmp_path, folder, model):
    facts = len(model.graph.rows("test"))
    options = ("--sample", 20, "--seed", 3)
    code, out, err = run("evaluate", folder, *options, "--json", "--out", tmp_path / "a")
    found, expected = json.loads(out), model.evaluate(sample=20, seed=3)
    assert code == 0 and err == "" and found["queries"] == 40
    assert found["sample"] == {"facts": 20, "of": facts, "seed": 3}
    assert found["protocols"]["exact"]["average"]["mrr"] == expected.metrics("exact").mrr
    assert tilp.evaluation.load_evaluation(tmp_path / "a") == expected
    code, out, _ = run("evaluate", folder, *options)
    assert code == 0 and f"measured on a random sample of 20 of {facts} facts (seed 3)" in out
    code, out, _ = run("evaluate", folder, "--sample", facts)
    assert code == 0 and "a random sample" not in out
    assert run("evaluate", folder, "--out", tmp_path / "b")[0] == 0
    code, _, err = run("compare", tmp_path / "a", tmp_path / "b")
    assert code == 2 and "(seed 3), the other of all facts" in err


def test_two_models_are_compared(run, tmp_path, folder, data):
    other = TILP(2, features="none", n_jobs=2, config=TILPConfig(sample=40)).fit(tilp.read(data))
    other = other.save(tmp_path / "other")
    for name, place in (("a", folder), ("b", other)):
        assert run("evaluate", place, "--out", tmp_path / name)[0] == 0
    code, out, err = run("compare", tmp_path / "a", tmp_path / "b", "--json")
    assert code == 0 and err == ""
    found = json.loads(out)
    assert found["first"] == str(tmp_path / "a")
    code, out, _ = run("compare", tmp_path / "a", tmp_path / "b")
    assert code == 0 and "livesIn" in out


# predict


def as_frame(out):
    return pl.DataFrame(json.loads(out), infer_schema_length=None)


def test_predict_the_object(run, folder, model, fact):
    query = Query("livesIn", fact["subject"], start=fact["start"], end=fact["end"])
    expected = model.predict(query, 4)
    options = ("--relation", "livesIn", "--subject", fact["subject"], "-k", 4)
    dates = ("--start", fact["start"], "--end", fact["end"])
    code, out, err = run("predict", folder, *options, *dates, "--json")
    assert code == 0 and err == EVIDENCE and json.loads(out) == expected.to_dicts()
    code, out, err = run("predict", folder, *options, *dates)
    assert code == 0 and err == EVIDENCE
    assert f"({fact['subject']}, livesIn, ?, [{fact['start']}, {fact['end']}])" in out
    assert all(name in out for name in expected["candidate"])
    assert ("known" in out) == expected["known"].any()
    code, out, _ = run("predict", folder, *options, "--json", "--threads", 1)
    assert json.loads(out) == model.predict(Query("livesIn", fact["subject"]), 4).to_dicts()


def test_predict_the_subject(run, folder, model, fact):
    options = ("--relation", "livesIn", "--object", fact["object"], "--start", fact["start"])
    code, out, _ = run("predict", folder, *options, "--json")
    expected = model.predict(Query("livesIn", object=fact["object"], start=fact["start"]))
    assert code == 0 and json.loads(out) == expected.to_dicts() and len(expected) == 10
    code, out, _ = run("predict", folder, *options)
    assert f"(?, livesIn, {fact['object']}, [{fact['start']}, ?])" in out
    assert expected["candidate"][0] in out


def test_predict_marks_what_is_known(run, folder, model):
    fact = model.graph.frame("train").filter(pl.col("start") != "").row(0, named=True)
    code, out, _ = run(
        "predict", folder, "--relation", fact["relation"], "--subject", fact["subject"],
        "--start", fact["start"], "-k", 200,
    )  # fmt: skip
    rows = [[cell.strip() for cell in line.split("│")] for line in out.splitlines()]
    marks = {cells[2]: cells[5] for cells in rows if len(cells) == 7}
    assert code == 0 and marks[fact["object"]] == "known" and "" in marks.values()


@pytest.mark.parametrize("suffix", ["tsv", "csv", "parquet"])
def test_predict_a_file_of_queries(run, tmp_path, folder, model, fact, suffix):
    queries = pl.DataFrame(
        {
            "relation": ["livesIn", "livesIn", "diedIn"],
            "subject": [fact["subject"], None, fact["subject"]],
            "object": [None, fact["object"], None],
            "start": [1950, None, 1970],
        }
    )
    path = tmp_path / f"queries.{suffix}"
    if suffix == "parquet":
        queries.write_parquet(path)
    else:
        queries.write_csv(path, separator="\t" if suffix == "tsv" else ",")
    expected = model.predict(queries, 3)
    code, out, err = run("predict", folder, "--queries", path, "-k", 3, "--json")
    found = as_frame(out)
    assert code == 0 and err == EVIDENCE and found["query"].to_list() == [0] * 3 + [1] * 3 + [2] * 3
    for column in ("candidate", "score", "rank", "known"):
        assert found[column].to_list() == expected[column].to_list()
    code, out, _ = run("predict", folder, "--queries", path, "-k", 3)
    assert code == 0 and out.count("rank") == 3 and f"(?, livesIn, {fact['object']}" in out


def test_predict_on_other_data(run, tmp_path, folder, model):
    facts = tilp.datasets.world(7, 1_000).graph.frame("train").reverse()
    renamed = facts.with_columns(pl.format("new {}", c).alias(c) for c in ("subject", "object"))
    renamed.write_csv(tmp_path / "other.csv")
    other = tilp.read(tmp_path / "other.csv")
    name = renamed.filter(relation="diedIn")["subject"][0]
    options = ("--relation", "diedIn", "--subject", name, "--json")
    code, out, err = run("predict", folder, *options, "--data", tmp_path / "other.csv")
    expected = model.predict(Query("diedIn", name), graph=other)
    assert code == 0 and err == EVIDENCE and json.loads(out) == expected.to_dicts()
    assert all(one.startswith("new ") for one in expected["candidate"])
    code, _, err = run("predict", folder, *options)
    assert code == 2 and f"no entity is named '{name}'" in err
    facts.with_columns(relation=pl.lit("dwells")).write_csv(tmp_path / "strange.csv")
    subject = facts["subject"][0]
    code, _, err = run(
        "predict", folder, "--relation", "dwells", "--subject", subject,
        "--data", tmp_path / "strange.csv",
    )  # fmt: skip
    assert code == 2 and "no rule of the model uses" in err and "dwells" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --relation and --subject or --object, or a file with --queries"),
        (("--subject", "NAME"), "give --relation and --subject or --object"),
        (("--relation", "livesIn"), "give its subject or its object; neither is there"),
        (("--relation", "livesIn", "--subject", "NAME", "--object", "NAME"), "not both"),
        (("--queries", "q.tsv", "--relation", "livesIn"), "--queries FILE, not both"),
        (("--queries", "q.tsv", "--subject", "NAME"), "--queries FILE, not both"),
        (("--queries", "q.tsv", "--start", "1950"), "--queries FILE, not both"),
        (("--queries", "nowhere.tsv"), "nowhere.tsv"),
        (("--queries", "q.txt"), "q.txt: a file of queries is .tsv, .csv or .parquet"),
        (("--queries", "empty.csv"), "empty.csv: no rows"),
        (("--queries", "torn.parquet"), "torn.parquet: cannot be read"),
        (("--queries", "other.tsv"), "'who', 'what' is none of a query's"),
        (("--queries", "wrong.tsv"), "wrong.tsv, line 3, (nobody, livesIn, ?, [?, ?]): no entity"),
        (("--relation", "livesin", "--subject", "NAME"), "did you mean 'livesIn'"),
        (("--relation", "livesIn", "--subject", "NAME!"), "did you mean 'NAME'"),
        (("--relation", "livesIn", "--subject", "NAME", "--start", "soon"), "'soon' is not a date"),
        (
            ("--relation", "livesIn", "--subject", "NAME", "--start", "1990", "--end", "1980"),
            "must not start (1990) after its end (1980)",
        ),
        (("--relation", "livesIn", "--subject", "NAME", "--data", "gone"), "gone: no such file"),
        (("--relation", "livesIn", "--subject", "NAME", "-k", "0"), "-k"),
    ],
)
def test_wrong_questions_are_a_paragraph(
    run, tmp_path, folder, fact, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    name = fact["subject"]
    (tmp_path / "q.tsv").write_text(f"relation\tsubject\nlivesIn\t{name}\n")
    (tmp_path / "q.txt").write_text("relation\tsubject\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1torn")
    (tmp_path / "other.tsv").write_text("who\twhat\na\tb\n")
    (tmp_path / "wrong.tsv").write_text(f"relation\tsubject\nlivesIn\t{name}\nlivesIn\tnobody\n")
    code, _, err = run("predict", folder, *(one.replace("NAME", name) for one in arguments))
    assert code == 2 and message.replace("NAME", name) in err
    assert "Traceback" not in err and "defect of tilp" not in err


# rules


def test_rules_of_a_relation(run, folder, model):
    expected = list(model.rules("livesIn"))
    code, out, err = run("rules", folder, "--relation", "livesIn", "--top", 3)
    assert code == 0 and err == "" and f"3 of {len(expected):,} rules" in out
    lines = [line for line in out.splitlines() if "←" in line]
    assert len(lines) == 3
    for line, one in zip(lines, expected, strict=False):
        first = one.weight if one.gain is None else one.gain
        assert str(one.rule) in line and f"{first:.3g}" in line


def test_rules_of_an_inverse_relation_as_sentences(run, folder, model):
    best = model.rules("livesIn⁻¹")[0]
    for name in ("livesIn^-1", "livesIn⁻¹"):
        code, out, _ = run("rules", folder, "--relation", name, "--top", 1)
        assert code == 0 and str(best.rule) in out
    code, out, _ = run("rules", folder, "--relation", "livesIn^-1", "--sentences", "--top", 1)
    assert code == 0 and "←" not in out and "Someone or something livesIn another, if" in out


def test_rules_as_json(run, folder, model):
    code, out, err = run("rules", folder, "--json", "--top", 2)
    found = json.loads(out)
    assert code == 0 and err == ""
    heads = [one["rule"].split("(")[0] for one in found]
    assert set(heads) == {str(one.rule.head) for one in model.rules()}
    assert all(heads.count(head) <= 2 for head in heads) and heads == sorted(heads)
    for one in found:
        mined = model.rules()[tilp.rules.parse_rule(one["rule"])]
        assert one["sentence"] == model.phrasings.rule(mined.rule, model.graph.unit)
        assert one == one | mined.statistics and {"gain", "lift"} <= one.keys()
        assert one["fired"] == mined.body_support
    code, _, err = run("rules", folder, "--relation", "liveIn")
    assert code == 2 and "did you mean 'livesIn'" in err


def test_rules_as_pictures(run, folder, model, tmp_path):
    out = tmp_path / "deep" / "pictures"
    code, _, err = run("rules", folder, "--relation", "livesIn", "--top", 3, "--svg", out)
    assert code == 0 and err == ""
    assert sorted(path.name for path in out.iterdir()) == ["1.svg", "2.svg", "3.svg"]
    for number, one in enumerate(list(model.rules("livesIn"))[:3], start=1):
        picture = (out / f"{number}.svg").read_text(encoding="utf-8")
        assert picture == standalone(draw_rule(one.rule))
        assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_rules_are_written_to_a_file(run, folder, model, tmp_path):
    jsonl, text = tmp_path / "rules.jsonl", tmp_path / "lives.txt"
    code, out, err = run("rules", folder, "--out", jsonl, "--top", 1)
    assert code == 0 and err == "" and f"{jsonl}: {model.rules()}" in out
    assert RuleSet.read(jsonl) == model.rules()
    code, out, _ = run("rules", folder, "--relation", "livesIn", "--out", text, "--json")
    assert code == 0 and json.loads(out)
    best = model.rules("livesIn")[0]
    assert text.read_text(encoding="utf-8").startswith(f"{best.rule}  # {best.figures}\n")
    assert [one.rule for one in RuleSet.read(text)] == [one.rule for one in model.rules("livesIn")]
    (tmp_path / "folder").mkdir()
    code, _, err = run("rules", folder, "--out", tmp_path / "folder")
    assert code == 2 and "folder" in err and "defect of tilp" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "folder",
        "lives.txt",
        "rules.jsonl",
    ]


# explain


def test_explanations_as_a_page(run, folder, model, fact, tmp_path):
    page = tmp_path / "why.html"
    asked = ("--subject", fact["subject"], "--start", fact["start"], "--end", fact["end"])
    command = ("explain", folder, "--relation", "livesIn", *asked, "--html", page)
    code, out, err = run(*command)
    assert code == 0 and err == f"wrote {page}\n"
    found = model.explain(Query("livesIn", fact["subject"], start=fact["start"], end=fact["end"]))
    assert out.startswith(f"{found.claim}?")
    assert page.read_text(encoding="utf-8") == explanation_page(found)
    code, out, _ = run(*command, "--json")
    assert code == 0 and json.loads(out)["candidate"] == found.candidate


def test_a_command_that_is_killed_leaves_pages_and_pictures_as_they_were(
    run, data, folder, fact, tmp_path, monkeypatch
):
    asked = ("--relation", "livesIn", "--subject", fact["subject"])
    for name, command in (
        ("why.html", ("explain", folder, *asked, "--html", tmp_path / "why.html")),
        ("1.svg", ("rules", folder, "--svg", tmp_path)),
    ):
        (tmp_path / name).write_text("before")
        with monkeypatch.context() as patched, pytest.raises(KilledError):
            kill_at(patched, name, 1, "before")
            run(*command)
        assert (tmp_path / name).read_text() == "before"
        assert run(*command)[0] == 0 and (tmp_path / name).read_bytes() != b"before"


# what is no model


@pytest.mark.parametrize("command", ["evaluate", "rules", "predict"])
def test_a_folder_without_a_model(run, tmp_path, command):
    more = ("--relation", "r", "--subject", "a") if command == "predict" else ()
    code, _, err = run(command, tmp_path, *more)
    assert code == 2 and f"{tmp_path}: no model; tilp fit DATA --out" in err
    (tmp_path / "model.json").write_text("{")
    code, _, err = run(command, tmp_path, *more)
    assert code == 2 and "model.json: damaged" in err and "defect of tilp" not in err


def test_rules_are_written_edited_and_fitted_again(run, data, folder, model, tmp_path):
    rules, own = tmp_path / "rules.txt", "diedIn(E1,E2,I2) <- marriedTo(E1,E2,I1)"
    assert run("rules", folder, "--out", rules)[0] == 0
    kept = RuleSet.read(rules)
    assert {mined.rule for mined in kept} == {mined.rule for mined in model.rules()}
    lines = [line for line in rules.read_text("utf-8").splitlines() if line.startswith("diedIn(")]
    rules.write_text("\n".join(["# mine", own, *lines[:2]]) + "\n", "utf-8")
    edited = RuleSet.read(rules)
    out = tmp_path / "edited"
    assert run("fit", data, "--rules", rules, "--out", out, *OPTIONS)[0] == 0
    fitted = tilp.load(out).rules()
    assert {mined.rule for mined in fitted} == {mined.rule for mined in edited}
    assert all(mined.given and mined.facts and mined.weight is not None for mined in fitted)
    by_rule = {mined.rule: mined for mined in model.rules()}
    for mined in fitted:  # counted in the data, whatever the file says of them
        if mined.rule in by_rule:
            assert mined.support == by_rule[mined.rule].support
    out = tmp_path / "both"
    assert run("fit", data, "--rules", rules, "--also-mine", "--out", out, *OPTIONS)[0] == 0
    both = tilp.load(out).rules()
    assert {mined.rule for mined in both if mined.given} == {mined.rule for mined in edited}
    assert len(both) > len(edited)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("diedIn(E1,E2,I2) <- bornAt(E1,E2,I1)", "bornAt"),
        ("diedIn(E1,E3,I3) <- bornIn(E1,E2,I1) & cityIn(E2,E3,I2)", "longer than 1"),
        ("diedIn(E1,E2,I2) <-", "Write a rule a line"),
    ],
)
def test_a_rule_that_cannot_be_used_is_an_error_with_its_line(run, data, tmp_path, text, message):
    rules = tmp_path / "rules.txt"
    rules.write_text(f"# mine\n\n{text}\n", "utf-8")
    code, _, err = run("fit", data, "--rules", rules, "--out", tmp_path / "m", *OPTIONS)
    assert code == 2 and "rules.txt, line 3" in err.replace("\n", " ") and message in err
    code, _, err = run("fit", data, "--also-mine", "--out", tmp_path / "m", *OPTIONS)
    assert code == 2 and "--rules" in err

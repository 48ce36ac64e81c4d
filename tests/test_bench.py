"""Runs of a plan: what is reused and resumed, and that reports say what was measured."""

import importlib
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import tilp
from bench_plans import SMALL, WORLD, written
from report_tables import Tables, markdown_tables
from tilp._utils.files import locked
from tilp.bench import (
    Source,
    WorldSize,
    load_plan,
    plan_jobs,
    run_plan,
    world_source,
)
from tilp.bench.data import Biased, Release
from tilp.bench.experiment import share_text
from tilp.bench.jobs import Job, Store, merge_jobs, run_jobs
from tilp.bench.methods import Method, ReachedOnly
from tilp.errors import TilpError
from tilp.forecasting import ForecastSettings, TimestampRules
from tilp.graph import QueryTable


class Recorder:
    """A watcher that remembers, and may stop the run."""

    def __init__(self, stop_after=None, stop_in=None):
        self.ended, self._after, self._in = {}, stop_after, stop_in

    def begins(self, job):
        self.job = job.name

    def advances(self, stage, share):
        if self._in == (self.job, stage):
            raise KeyboardInterrupt

    def ends(self, job, outcome, position, count):
        self.ended[job.name] = outcome
        if len(self.ended) == self._after:
            raise KeyboardInterrupt


def files(out):
    return {path.name: path.read_bytes() for path in (out / "runs").iterdir()}


def measured(out):
    """The results without what differs from run to run."""
    results = {name: json.loads(text) for name, text in files(out).items()}
    for result in results.values():
        for key in ("finished", "seconds", "resumed"):
            del result[key]
    return results


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small plan, run once."""
    folder = tmp_path_factory.mktemp("bench")
    plan = load_plan(written(folder, SMALL))
    recorder = Recorder()
    done = run_plan(plan, [WORLD], folder / "out", threads=1, command="tilp <x>", watcher=recorder)
    return plan, folder / "out", done, recorder


# Runs


def test_every_run_is_kept_with_what_decides_it(small):
    _, out, done, recorder = small
    results = measured(out)
    names = [name.removesuffix(".json") for name in results]
    (failed,) = set(recorder.ended) - set(names)
    assert failed.startswith("world.release-not-there")
    assert done.ran == len(done.results.done) == len(names)
    assert not (out / "unfinished").exists()
    for name in ("world.whole.one.0", "world.whole.one.1", "world.few-0.3-kept.timestamps.1"):
        assert name in names
    # What no seed changes is run once, unless the setting draws.
    assert "world.whole.popularity.1" not in names and "world.balanced.popularity.1" in names
    whole = results["world.whole.one.0.json"]
    assert whole["data"]["fingerprint"] == WORLD.fingerprint
    assert whole["method"]["decided"]["mining"]["max_length"] == 1
    few = results["world.few-0.3-kept.timestamps.0.json"]["data"]
    assert few["learned_from"]["targets"] == round(0.3 * whole["data"]["learned_from"]["targets"])


def test_figures_are_those_of_an_evaluation(small):
    _, out, _, _ = small
    graph = WORLD.graph
    result = measured(out)["world.whole.recurrence.0.json"]
    evaluation = tilp.evaluate(tilp.evaluation.recurrence(graph), graph)
    for protocol, ties in evaluation.protocols_and_ties():
        metrics = evaluation.metrics(protocol, ties).to_json()
        assert result["figures"][f"{protocol.value} {ties.value}"] == metrics
    ranks = evaluation.ranks.with_columns(gain=1.0 / pl.col(evaluation.column()))
    plain = {
        relation: sum(ranks.filter(relation=relation)["gain"])
        / len(ranks.filter(relation=relation))
        for relation in ranks["relation"].unique()
    }
    by_relation = {
        name: metrics["mrr"] for name, metrics in result["relations"]["enumerate average"].items()
    }
    assert by_relation == pytest.approx(plain)


def test_biased_data_are_measured_with_removed_facts_known(small):
    _, out, _, _ = small
    from tilp.splits import balanced, biased

    graph = WORLD.graph
    whole = balanced(graph, seed=1)
    relation = next(name for name in ("livesIn", "bornIn") if name in graph.relations.labels)
    made = biased(whole, relation, seed=1)
    evaluation = tilp.evaluate(tilp.evaluation.popularity(made), whole)
    result = measured(out)[f"world.biased-0.5-reduced-{relation}.popularity.1.json"]
    assert result["figures"]["enumerate average"] == evaluation.metrics().to_json()


def test_a_folder_that_another_process_works_in_is_refused(tmp_path):
    (tmp_path / "out" / "runs").mkdir(parents=True)
    with locked(tmp_path / "out"), pytest.raises(TilpError, match="another process is at work"):
        run_plan(load_plan("quick"), [WORLD], tmp_path / "out", threads=1)


def test_runs_of_other_code_are_not_taken(small, monkeypatch):
    plan, out, _, _ = small
    job = plan.experiments[0].jobs(WORLD)[0]
    monkeypatch.setattr("tilp.bench.jobs.code_versions", lambda: {"code": "another"})
    assert Store(out).load(job, job.key()) is None


def test_forecasts_know_all_that_is_dated_before_the_query(tmp_path):
    text = """
    title = "next"
    [methods.plain]
    base = "timestamps"
    plain = true
    [[experiment]]
    name = "next"
    kind = "compare"
    methods = ["forecast", "timestamps", "plain", "rules"]
    setting = "forecast"
    figures = ["exact average"]
    """
    done = run_plan(load_plan(written(tmp_path, text)), [WORLD], tmp_path / "out", threads=1)
    (failed,) = done.results.failed.values()
    assert "rules takes train as evidence" in failed
    results = measured(tmp_path / "out")
    models = {"forecast": ForecastSettings(), "timestamps": TimestampRules()}
    for name, rules in models.items():
        scorer = rules.fit(WORLD.graph).scorer(WORLD.graph, ("train", "valid", "test"))
        expected = tilp.evaluate(scorer, WORLD.graph).metrics("exact", "average").to_json()
        assert results[f"world.forecast.{name}.0.json"]["figures"]["exact average"] == expected
    plain, quick = (
        results[f"world.forecast.{method}.0.json"] for method in ("plain", "timestamps")
    )
    assert plain["figures"] == quick["figures"]


def test_candidates_that_no_rule_reaches_can_score_alike(world_model):
    graph = world_model.graph
    scorer = world_model.scorer()
    queries = QueryTable.of_facts(graph, np.asarray(graph.rows("test")), walked=False)
    scores, whole = ReachedOnly(scorer)(queries), scorer(queries)
    assert scores.default < scores.score.min()
    for index in range(len(queries)):
        row = np.array([index])
        applied = scorer.rule_scorer.apply_rules(queries[row])
        reached = np.unique(applied.end)
        listed, before = scores.take(row), whole.take(row)
        assert listed.candidate.tolist() == reached.tolist()
        assert (
            listed.score.tolist()
            == before.of_candidates(np.array([0, len(reached)]), reached).tolist()
        )
        assert scores.reached[index] == (queries.answer[index] in reached)


def jobs_of(tmp_path, *experiments, methods=""):
    text = (
        "title = 'x'\n"
        + methods
        + "".join(f"[[experiment]]\n{experiment}\n" for experiment in experiments)
    )
    return plan_jobs(load_plan(written(tmp_path, text)), [WORLD])[0]


def test_different_runs_have_different_names(tmp_path):
    release = "name = '{}'\nkind = 'compare'\nmethods = ['popularity']\nsetting = 'release'\n"
    jobs = jobs_of(
        tmp_path,
        release.format("a") + "folder = 'balanced'",
        release.format("b") + "folder = 'balanced'\nbackground = 'bg.txt'",
        "name = 'c'\nkind = 'compare'\nmethods = ['popularity']\nsetting = 'balanced'",
        "name = 'd'\nkind = 'curve'\nmethods = ['popularity']\nshares = [0.1234567, 0.1234568]",
    )
    assert len({job.name for job in jobs}) == len(jobs) == 5
    long = "http://data.example.org/ontology/organisations/relations/member"
    names = [Biased(relation).name for relation in (f"{long}OfTeam", f"{long}OfParty", "C++", "C#")]
    assert len(set(names)) == 4
    assert world_source(WorldSize(2_000, 1)).name != world_source(WorldSize(2_000)).name


def test_runs_of_one_name_that_differ_are_refused(tmp_path):
    job = jobs_of(tmp_path, "name = 'a'\nkind = 'compare'\nmethods = ['popularity']")[0]
    other = replace(job, method=Method("popularity", "recurrence"))
    assert other.name == job.name
    with pytest.raises(TilpError, match="two different runs"):
        merge_jobs([job, other])
    assert merge_jobs([job, replace(job)]) == [job]


def test_the_file_to_walk_on_is_part_of_what_decides(tmp_path):
    folder = tmp_path / "data" / "rel"
    (folder / "bg").mkdir(parents=True)
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text("a\tb\tc\t1\t2\n")
    walked = folder / "bg" / "walk.txt"
    source = Source("data", tmp_path / "data")
    seen = set()
    for text in ("a\tb\td\t1\t2\n", "a\tb\te\t1\t2\n"):
        walked.write_text(text)
        seen.add(Release("rel", "bg/walk.txt").identity(source)["files"])
    assert len(seen) == 2


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_folder_of_something_else_is_left_alone(tmp_path, kind):
    out = tmp_path / "mine"
    if kind == "file":
        out.write_text("x")
    else:
        (out / "unfinished" / "shared").mkdir(parents=True)
        (out / "unfinished" / "shared" / "mine.txt").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TilpError, match="no report"):
        run_plan(load_plan("quick"), [WORLD], out, threads=1)
    assert sorted(tmp_path.rglob("*")) == before


def test_data_that_cannot_be_read_are_refused_before_anything_is_run(tmp_path):
    (tmp_path / "empty").mkdir()
    recorder = Recorder()
    bad = Source("empty", tmp_path / "empty")
    with pytest.raises(TilpError):
        run_plan(load_plan("quick"), [WORLD, bad], tmp_path / "out", watcher=recorder)
    assert not recorder.ended


def test_the_quick_plan(run, tmp_path):
    out = tmp_path / "report"
    code, printed, _ = run("bench", "quick", "--out", out)
    assert code == 0 and "18 of them now" in printed
    assert (out / "quick.html").exists()
    figures = {
        method: json.loads((out / "runs" / f"world-2000.whole.{method}.0.json").read_text())
        for method in ("full", "rules", "static", "popularity")
    }
    values = [value["figures"]["enumerate average"]["mrr"] for value in figures.values()]
    assert values == sorted(values, reverse=True)  # each is worth what it adds
    text = (out / "quick.md").read_text(encoding="utf-8")
    assert all(f"{value:.3f}".lstrip("0") in text for value in (values[0], values[-1]))


def test_a_second_run_runs_nothing_and_changes_no_file(small, tmp_path):
    plan, out, _, _ = small
    before, recorder = files(out), Recorder()
    again = run_plan(plan, [WORLD], out, threads=1, command="tilp <x>", watcher=recorder)
    assert again.ran == 0 and files(out) == before
    reasons = set(again.results.failed.values())
    assert set(recorder.ended.values()) - {"reused"} == reasons and len(reasons) == 1


def test_runs_side_by_side_give_the_same(small, tmp_path):
    plan, out, _, _ = small
    recorder = Recorder()
    run_plan(plan, [WORLD], tmp_path, threads=2, side_by_side=2, watcher=recorder)
    whole, results = measured(out), measured(tmp_path)
    assert results.keys() == whole.keys() and set(recorder.ended) >= {name[:-5] for name in results}
    for name, result in results.items():
        for key in ("figures", "relations", "rules", "key"):
            assert result.get(key) == whole[name].get(key), (name, key)
    assert not (tmp_path / "unfinished").exists()


def test_a_process_that_dies_is_reported(tmp_path):
    with pytest.raises(TilpError, match="ended by itself"):
        list(run_jobs([Dying("one"), Dying("two")], Store(tmp_path), 2, 2))


@dataclass(frozen=True)
class Dying(Job):
    """A job whose process ends."""

    label: str

    @property
    def name(self):
        return self.label

    def identity(self):
        return {}

    def run(self, workspace):
        os._exit(3)


@pytest.mark.parametrize("stop", [{"stop_after": 2}, {"stop_in": ("world.whole.one.1", "train")}])
def test_a_run_that_was_stopped_goes_on_to_the_same(small, tmp_path, stop):
    plan, out, _, _ = small
    plan = plan.narrowed(only=("side",))
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, [WORLD], tmp_path, threads=1, watcher=Recorder(**stop))
    before, recorder = files(tmp_path), Recorder()
    left = (tmp_path / "unfinished").exists()
    done = run_plan(plan, [WORLD], tmp_path, threads=1, watcher=recorder)
    assert 0 < len(before) < len(files(tmp_path)) and done.ran == len(recorder.ended) - len(before)
    assert {name: content for name, content in files(tmp_path).items() if name in before} == before
    whole = measured(out)
    for name, result in measured(tmp_path).items():
        mine = {key: result[key] for key in ("figures", "relations", "rules", "key")}
        assert mine == {key: whole[name][key] for key in mine}, name
    assert left == ("stop_in" in stop) and not (tmp_path / "unfinished").exists()
    second = json.loads(files(tmp_path)["world.whole.one.1.json"])
    assert second["resumed"] == left


def test_a_result_of_other_data_or_choices_is_not_taken(small):
    plan, out, _, _ = small
    side = plan.experiments[0]
    store = Store(out)
    for job in side.jobs(WORLD):
        assert store.load(job, job.key()) is not None
        other = replace(job, source=Source("world", WorldSize(1_000, 2)))
        assert other.name == job.name and store.load(other, other.key()) is None
        if job.method.is_tilp:
            longer = replace(job, method=job.method.with_choices(max_length=2))
            assert longer.name == job.name and longer.key() != job.key()


# Reports


def test_markdown_and_html_have_the_same_tables(small):
    _, _, done, _ = small
    page, text = done.page.read_text(), done.text.read_text()
    tables = markdown_tables(text)
    assert tables == Tables(page).tables and len(tables) > 8


def test_the_report_says_what_the_runs_say(small):
    _, out, done, _ = small
    results = measured(out)
    first = next(
        table for table in markdown_tables(done.text.read_text()) if table[0][:2] == _HEADER
    )
    rows = {row[0]: row[1:] for row in first[1:]}
    for method in ("timestamps", "popularity", "recurrence"):
        figures = results[f"world.whole.{method}.0.json"]["figures"]["enumerate average"]
        wanted = [share_text(figures[name]) for name in ("mrr", "hits@1", "hits@10")]
        assert rows[method] == [*wanted, "1"]
    runs = [results[f"world.whole.one.{n}.json"]["figures"]["enumerate average"] for n in range(2)]
    both = [metrics["mrr"] for metrics in runs]
    mean, spread = sum(both) / 2, abs(both[0] - both[1]) / 2**0.5
    assert rows["one"][0] == f"{share_text(mean)} ± {share_text(spread)}"
    assert f"| one | **{rows['one'][0]}** |" in done.text.read_text()


_HEADER = ["method", "world MRR"]


def test_the_report_tells_of_others_of_what_failed_and_how_it_was_made(small):
    _, _, done, _ = small
    for report in (done.page, done.text):
        text = report.read_text()
        for words in ("their own", "not really", ".432", "not/there", "tilp-release, best ties"):
            assert words in text.replace("\\", ""), (report, words)
    page = done.page.read_text()
    assert "Others &lt;1&gt; (published)" in page and "tilp &lt;x&gt;" in page
    assert WORLD.fingerprint[:16] in page and f"tilp {tilp.__version__}" in page
    assert "script" not in Tables(page).tags and "http" not in re.sub(r"http://www.w3", "", page)


def test_pictures_lie_beside_the_markdown(small):
    _, out, done, _ = small
    named = re.findall(r"!\[.*?\]\((.+?)\)", done.text.read_text())
    assert len(named) == 1  # of the curve
    for name in named:
        assert ElementTree.parse(out / name).getroot().tag.endswith("svg")
    page = done.page.read_text()
    assert page.count('<img src="data:image/svg') == len(named)


# Costs, and the command


def test_costs_are_measured_in_a_process_of_their_own(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    efficiency = importlib.import_module("efficiency")
    monkeypatch.setitem(efficiency.PUBLISHED, "world", {"search": 571.9})
    one = Method("one", "rules")
    cost = efficiency.Efficiency(name="cost", title="Cost", methods=(one,), lengths=(1,))
    plan = replace(efficiency.plan(), experiments=(cost,))
    done = run_plan(plan, [WORLD], tmp_path / "out", threads=1)
    (one,) = done.results.done.values()
    assert set(one["seconds"]) == {"search", "arriving", "training"} | {
        "distributions", "application", "scoring"
    }  # fmt: skip
    assert set(one["megabytes"]) == set(one["seconds"]) <= set(efficiency.STAGES)
    assert min(one["megabytes"].values()) > 50 and one["positives"] == 2 * one["facts"]
    said = done.text.read_text()
    assert "571.9" in said and f"| rules | {one['rules']:,} |" in said
    assert [each.name for each in efficiency.plan().experiments] == ["threads", "sizes", "lengths"]
    sizes = efficiency.plan().experiments[1].jobs(WORLD)
    assert [job.source.location.size for job in sizes] == [1_000, 2_000, 4_000, 8_000]


def test_bench_names_its_plans_and_its_runs(run, tmp_path):
    code, out, _ = run("bench", "--list")
    assert code == 0 and {"quick", "table1", "few"} <= {
        line.split()[0] for line in out.splitlines()
    }
    plan = written(tmp_path, SMALL)
    code, out, _ = run("bench", plan, "--dry-run", "--only", "few", "--rounds", "1")
    named = ["world-1000-1.few-0.3-kept.timestamps.0", "world-1000-1.whole.timestamps.0"]
    assert out.split() == named
    code, _, err = run("bench", plan)
    assert code == 2 and "--out" in err
    code, _, err = run("bench", plan, "--only", "fex", "--dry-run")
    assert code == 2 and "side, few, bias" in err
    code, _, err = run("bench")
    assert code == 2 and "--list" in err


def test_bench_runs_a_plan_on_data_and_says_what_it_did(run, tmp_path):
    text = """
    title = "Baselines"
    [[experiment]]
    name = "baselines"
    kind = "compare"
    methods = ["popularity", "recurrence"]
    """
    data, out = tmp_path / "my <data>", tmp_path / "report"
    tilp.write(WORLD.graph, data)
    plan = written(tmp_path, text, "baselines.toml")
    for ran in (2, 0):
        code, said, err = run("bench", plan, data, "--out", out)
        assert code == 0, err
        assert f"2 runs, {ran} of them now" in said and "baselines.html" in said
        line = f"1/2 my-data-[0-9a-f]+.whole.popularity.0: {'run' if ran else 'reused'}"
        assert re.match(line, err)
    page = (out / "baselines.html").read_text()
    assert "my &lt;data&gt; MRR" in page and "tilp bench" in page

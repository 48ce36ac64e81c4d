"""Mining: the planted rules found again, the same result for any threads, stopped and resumed."""

import json

import numpy as np
import polars as pl
import pytest

import tilp
from tilp.errors import TilpError
from tilp.graph import QueryTable
from tilp.rules import RuleSet
from tilp.types import Grain
from tilp.walks import MiningSettings, mine
from tilp.walks.mining import MiningCheckpoint, mining_walker

PAIRS = MiningSettings(grains=(Grain.PAIRS,))


@pytest.fixture(scope="module")
def world():
    return tilp.datasets.world(seed=1, size=3_000)


@pytest.fixture(scope="module")
def mined(world):
    heads = sorted({rule.relation for rule in world.rules})
    return mine(world.graph, heads, PAIRS, threads=2)


def test_planted_rules_are_at_the_top_of_their_relations(world, mined):
    planted = {}
    for rule in world.rules:
        planted.setdefault(rule.relation, []).append(rule.text)
    for relation, texts in planted.items():
        rules = [str(one.rule) for one in mined.filter(relation=relation)]
        ranks = sorted(rules.index(text) + 1 for text in texts)
        assert ranks[0] <= 3, (relation, ranks)
        assert ranks[-1] <= 25, (relation, ranks)


def test_confidences_come_near_the_true_ones(world, mined):
    for rule in world.rules:
        found = mined[tilp.rules.parse_rule(rule.text)]
        # Noise and lost dates lower what is seen of a rule; a small world leaves chance its play.
        assert rule.confidence - 0.3 < found.confidence < rule.confidence + 0.15, rule.text


def test_only_time_tells_the_right_home_of_a_player_from_a_wrong_one(world, mined):
    static = mine(world.graph, ["livesIn"], MiningSettings(grains=(Grain.STATIC,)), threads=2)
    body = "livesIn(E1,E3,I3) ← playsFor(E1,E2,I1) ∧ basedIn(E2,E3,I2)"
    times = " ∧ touching(I1,I2) ∧ touching(I1,I3) ∧ touching(I2,I3)"
    without = static[tilp.rules.parse_rule(body)].confidence
    assert mined[tilp.rules.parse_rule(body + times)].confidence > 1.5 * without


def test_both_directions_are_mined(mined):
    heads = {str(one.rule.head) for one in mined}
    assert {"livesIn", "livesIn⁻¹"} <= heads


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_do_not_change_the_result(world, threads):
    settings = MiningSettings(max_length=2, limit=200, seed=3)
    one = mine(world.graph, ["livesIn", "marriedTo"], settings, threads=1)
    assert mine(world.graph, ["livesIn", "marriedTo"], settings, threads=threads) == one
    assert any(rule.sampled for rule in one) and not all(rule.sampled for rule in one)


def test_statistics_are_those_of_the_walker(world):
    settings = MiningSettings(max_length=2, top=50)
    rules = mine(world.graph, ["diedIn"], settings)
    walker = mining_walker(world.graph, settings)
    relation = world.graph.relations.find("diedIn")
    rows = np.flatnonzero(world.graph.relation[world.graph.span("train")] == relation)
    queries = QueryTable.of_facts(world.graph, rows, walked=True)
    statistics, _ = walker.tally(queries, walker.compile([one.rule for one in rules]))
    for one, (support, fired, rate) in zip(rules, statistics, strict=True):
        assert (one.support, one.body_support, one.facts) == (support, fired, len(rows))
        assert one.confidence == pytest.approx(rate / fired)


def test_facts_and_rules_can_be_limited(world):
    settings = MiningSettings(max_length=1, sample=20, top=3, min_support=1)
    rules = mine(world.graph, ["livesIn"], settings)
    assert {one.facts for one in rules} == {20}
    assert len(rules.filter(relation="livesIn")) <= 3
    assert mine(world.graph, ["livesIn"], settings) == rules


def test_a_graph_without_rules():
    frame = pl.DataFrame({"subject": ["a"], "relation": ["r"], "object": ["b"]})
    assert len(mine(tilp.read(frame))) == 0


class StoppedError(Exception):
    pass


def stop_after_first(run):
    """Mine one relation, and be stopped in the next."""

    def progress(share):
        if run.done:
            raise StoppedError

    with pytest.raises(StoppedError):
        run.finish(progress=progress)


def test_a_stopped_run_resumes_to_the_same_file(world, tmp_path):
    relations = ["diedIn", "marriedTo", "wonTitle"]
    settings = MiningSettings(max_length=2)
    whole, stopped = tmp_path / "whole.jsonl", tmp_path / "stopped.jsonl"
    MiningCheckpoint(world.graph, relations, settings, whole).finish()
    assert not whole.with_name("whole.jsonl.unfinished").exists()
    run = MiningCheckpoint(world.graph, relations, settings, stopped)
    stop_after_first(run)
    assert not stopped.exists()  # half a file is not a whole one
    finished = RuleSet.read_jsonl(tmp_path / "stopped.jsonl.unfinished-rules")
    assert {one.rule.head.relation for one in finished} == set(run.done) < set(relations)
    again = MiningCheckpoint(world.graph, relations, settings, stopped)
    assert again.done == run.done
    assert again.finish(threads=2) == RuleSet.read_jsonl(whole)
    assert stopped.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stopped.jsonl", "whole.jsonl"]


def test_a_file_begun_with_other_settings_is_not_touched(world, tmp_path):
    out = tmp_path / "rules.jsonl"
    run = MiningCheckpoint(world.graph, ["diedIn", "marriedTo"], MiningSettings(max_length=1), out)
    stop_after_first(run)
    kept = tmp_path / "rules.jsonl.unfinished-rules"
    before = kept.read_bytes()
    with pytest.raises(TilpError, match="begun with other data or settings"):
        MiningCheckpoint(world.graph, ["diedIn", "marriedTo"], MiningSettings(max_length=2), out)
    assert kept.read_bytes() == before
    run.notes.write_text("{")
    with pytest.raises(TilpError, match="cannot be read; remove it"):
        MiningCheckpoint(world.graph, ["diedIn", "marriedTo"], MiningSettings(max_length=1), out)
    run.notes.unlink()
    out.touch()
    with pytest.raises(TilpError, match="exists: choose another"):
        MiningCheckpoint(world.graph, ["diedIn"], MiningSettings(max_length=1), out)
    with pytest.raises(TilpError, match="did you mean 'diedIn'"):
        MiningCheckpoint(world.graph, ["dieIn"], MiningSettings(), tmp_path / "other.jsonl")


def test_a_file_of_rules_has_only_rules_and_counts(world, tmp_path):
    out = tmp_path / "rules.jsonl"
    MiningCheckpoint(world.graph, ["diedIn"], MiningSettings(max_length=1), out).finish()
    keys = {key for line in out.read_text().splitlines() for key in json.loads(line)}
    assert keys == {"rule", "support", "fired", "confidence", "facts", "sampled"}

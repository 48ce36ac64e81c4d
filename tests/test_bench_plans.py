"""Plans: what they refuse, and with what words."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench_plans import SMALL, WORLD, written
from tilp.bench import Source, WorldSize, find_source, load_plan, run_plan, shipped_plans
from tilp.errors import TilpError


def changed(old, new):
    assert old in SMALL
    return SMALL.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", ["not TOML"]),
        ("about = 'x'", ["'title' is missing", "a text in quotes"]),
        ("title = 'x'", ["no experiment", "[[experiment]]"]),
        (changed('kind = "curve"', 'kind = "line"'), ["'few'", "kind is 'line'", "compare, curve"]),
        (changed("seed = 1", "seeds = 1"), ["world", "no key 'seeds'", "perhaps 'seed'"]),
        (changed("shares =", "share ="), ["'few'", "'shares' is missing", "a list"]),
        (changed("[0.3, 1.0]", "[0.3, 1.5]"), ["'few'", "shares is [0.3, 1.5]", "at most 1"]),
        (changed("[0.3, 1.0]", "0.3"), ["'few'", "shares is 0.3", "a list"]),
        (changed('"recurrence"]', '"magic"]'), ["'side'", "methods is", "recurrence, one"]),
        (changed("seeds = 2 }", "rounds = 2 }"), ["'side', method 'one'", "no key 'rounds'"]),
        (changed("seeds = 2 }", "seeds = 0 }"), ["seeds is 0", "from 1 on"]),
        (changed('"popularity", "rec', '"timestamps", "rec'), ["each method once"]),
        (changed("max_length = 1", "max_lenght = 1"), ["method 'one'", "max_lenght", "max_length"]),
        (changed("max_length = 1", "max_length = 9"), ["method 'one'", "9"]),
        (changed("max_length = 1", "max_length = 'one'"), ["'one'", "max_length is 'one'"]),
        (
            changed('setting = "release"', 'setting = "time-shift"\nlatest = "20x2"'),
            ["latest is '20x2'", "a date"],
        ),
        (changed('base = "rules"', 'base = "rule"'), ["method 'one'", "base is 'rule'", "full"]),
        (changed('base = "rules"', 'base = "popularity"'), ["method 'one'", "no key 'max_length'"]),
        (
            changed('"enumerate average"', '"tilp-release worst"'),
            ["figures is", "tilp-release best"],
        ),
        (changed('figure = "tilp-release best"', 'figure = "raw best"'), ["published", "raw best"]),
        (changed("mrr = 0.4321", "mrr = 'high'"), ["published", "mrr is 'high'", "a number"]),
        (changed('folder = "not/there"', ""), ["'elsewhere'", "'folder' is missing"]),
        (
            changed('setting = "release"', 'setting = "resale"'),
            ["setting is 'resale'", "time-shift"],
        ),
        (changed('name = "few"', 'name = "side"'), ["two experiments are named 'side'"]),
        (changed('name = "few"', ""), ["'name' is missing"]),
        (changed('name = "few"', 'name = ""'), ["name is ''", "letters, digits"]),
        (changed('name = "few"', 'name = "../few"'), ["name is '../few'", "letters, digits"]),
        (changed("removed = 0.5", "refit = 0.01"), ["'bias'", "no key 'refit'"]),
        (changed("max_length = 1", "min_support = 'two'"), ["min_support is 'two'", "like 2"]),
        (changed("max_length = 1", "share = true"), ["share is True", "like 1.0"]),
        (changed('kind = "compare"', 'kind = "compare"\nsplit = "train"'), ["one of valid, test"]),
        (changed('[{ name = "one"', '[{ name = ["one"]'), ["'side'", "methods is"]),
        ("methods = 3\ntitle = 'x'", ["methods is 3", "a table"]),
    ],
)
def test_a_plan_with_a_mistake_is_refused_with_what_is_possible(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(TilpError) as refused:
        load_plan(path)
    message = str(refused.value)
    assert str(path) in message
    assert [words for words in said if words not in message] == []


@given(st.text("abcdefgh_", min_size=1, max_size=12), st.sampled_from(["[world]", "[methods.one]"]))
def test_no_key_is_passed_over(tmp_path_factory, key, table):
    assume(key not in {"size", "seed", "base", "about"})
    path = written(tmp_path_factory.getbasetemp(), SMALL.replace(table, f"{table}\n{key} = 1"))
    with pytest.raises(TilpError, match=f"no key '{key}'"):
        load_plan(path)


def test_shipped_plans_load():
    plans = shipped_plans()
    known = {"quick", "table1", "table2", "few", "biased", "forecasting", "time"}
    assert known == set(plans)
    assert load_plan("icews14") == plans["forecasting"]  # the name it had before
    assert all(plan.title and plan.name == name for name, plan in plans.items())
    published = {one.data for one in plans["table1"].experiments[0].published}
    assert published == {"WIKIDATA12k", "YAGO11k"}
    with pytest.raises(TilpError, match=r"there are .*quick"):
        load_plan("slow")


def test_a_plan_is_narrowed(tmp_path):
    plan = load_plan(written(tmp_path, SMALL)).narrowed(seeds=3, only=("few",))
    assert [one.name for one in plan.experiments] == ["few"]
    assert [one.seeds for one in plan.experiments[0].methods] == [3]
    with pytest.raises(TilpError, match=r"no experiment 'fee'; it has few"):
        plan.narrowed(only=("fee",))


def test_data_is_a_place_or_a_name(tmp_path):
    assert find_source(str(tmp_path)).location == tmp_path.resolve()
    with pytest.raises(TilpError, match="YAGO11k"):
        find_source(str(tmp_path / "nothing"))


def test_data_sets_of_one_name_are_refused(tmp_path):
    plan = load_plan(written(tmp_path, SMALL))
    with pytest.raises(TilpError, match="two data sets are named world"):
        run_plan(plan, [WORLD, Source("world", WorldSize(1_000, 2))], tmp_path / "out")

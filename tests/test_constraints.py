"""User-defined constraints: a planted rule about heights is found, printed and read back."""

import numpy as np
import polars as pl
import pytest

import tilp
from tilp.errors import TilpError
from tilp.graph import QueryTable
from tilp.time import temporal_relation_codes
from tilp.types import Grain
from tilp.walks import MiningSettings, PairConstraint, StepConstraint, Walker, compare, mine

HEIGHT = compare("height", ("shorter", "as tall as", "taller"))
STATIC = MiningSettings(grains=(Grain.STATIC,), max_length=2, min_support=2)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """People meet; the taller one of a pair guards the other, which only heights can tell."""
    rng = np.random.default_rng(0)
    heights = rng.integers(150, 200, 60)
    rows = []
    for year in range(400):
        a, b = rng.choice(60, 2, replace=False)
        rows.append((f"p{a}", "meets", f"p{b}", str(1500 + year)))
        if heights[a] > heights[b] and rng.random() < 0.9:
            rows.append((f"p{a}", "guards", f"p{b}", str(1500 + year)))
    folder = tmp_path_factory.mktemp("people")
    columns = ["subject", "relation", "object", "date"]
    pl.DataFrame(rows, columns, orient="row").write_csv(folder / "train.tsv", separator="\t")
    table = pl.DataFrame({"id": [f"p{i}" for i in range(60)], "height": heights})
    table.write_csv(folder / "attributes.tsv", separator="\t")
    return tilp.read(folder)


def test_a_planted_rule_about_numbers_is_found(graph):
    rules = mine(graph, ["guards"], STATIC, constraints=[HEIGHT])
    best = rules.filter(relation="guards").sort()[0]
    assert str(best.rule) == "guards(E1,E2,I2) ← meets(E1,E2,I1) ∧ taller(E1,E2)"
    plain = mine(graph, ["guards"], STATIC)
    without = plain[tilp.rules.parse_rule("guards(E1,E2,I2) ← meets(E1,E2,I1)")]
    assert best.confidence > 1.3 * without.confidence
    assert best.rule == tilp.rules.parse_rule(str(best.rule))


def test_rules_with_words_are_applied(graph):
    walker = Walker(graph, grains=["static"], max_length=2, constraints=[HEIGHT])
    rules = [one.rule for one in mine(graph, ["guards"], STATIC, constraints=[HEIGHT])]
    queries = QueryTable.of_facts(graph, np.arange(30), walked=True)
    applied, _ = walker.apply(queries, walker.compile(rules))
    heights = graph.attributes["height"]
    rule = rules.index(tilp.rules.parse_rule("guards(E1,E2,I2) ← meets(E1,E2,I1) ∧ taller(E1,E2)"))
    ends = applied[applied[:, 1] == rule]
    assert len(ends)
    assert (heights[queries.subject[ends[:, 0]]] > heights[ends[:, 2]]).all()


def test_words_about_intervals(graph):
    early = StepConstraint(
        ("early",), lambda steps: np.where(steps.start < 1700, 0, -1), of_interval=True
    )
    rules = mine(graph, ["guards"], STATIC, constraints=[early])
    texts = {str(one.rule) for one in rules}
    assert "guards(E1,E2,I2) ← meets(E1,E2,I1) ∧ early(I1)" in texts
    assert "guards(E1,E2,I2) ← meets(E1,E2,I1)" in texts


def test_classes_of_intervals_that_equal_the_usual_ones_change_nothing(graph):
    usual = PairConstraint(("before", "touching", "after"), temporal_relation_codes)
    settings = MiningSettings(grains=(Grain.PAIRS, Grain.ADJACENT, Grain.GAP), max_length=2)
    rules = mine(graph, ["guards"], settings)
    assert mine(graph, ["guards"], settings, classes=usual) == rules


def test_user_defined_classes_of_intervals(graph):
    """Whoever meets in an even year does so in an even year: same or other parity of starts."""
    parity = PairConstraint(("in step with", "out of step with"), lambda s, e, t, f: (s + t) % 2)
    rules = mine(graph, ["guards"], MiningSettings(grains=(Grain.PAIRS,), max_length=2, top=9),
                 classes=parity)  # fmt: skip
    best = rules.filter(relation="guards").sort()[0]
    assert str(best.rule) == "guards(E1,E2,I2) ← meets(E1,E2,I1) ∧ in step with(I1,I2)"
    assert best.rule == tilp.rules.parse_rule(str(best.rule))
    wrong = PairConstraint(("odd",), lambda s, e, t, f: (s + t) % 2)
    with pytest.raises(TilpError, match="has 1 words, numbered from 0, but returned 0 to 1"):
        mine(graph, ["guards"], STATIC, classes=wrong)


def test_mistakes_are_named(graph):
    with pytest.raises(TilpError, match="no entity has a weight; there are attributes: height"):
        mine(graph, ["guards"], STATIC, constraints=[compare("weight", ("a", "b", "c"))])
    wild = StepConstraint(("odd",), lambda steps: np.full(len(steps.start), 7))
    with pytest.raises(TilpError, match="has 1 words, numbered from 0, but returned 7 to 7"):
        mine(graph, ["guards"], STATIC, constraints=[wild])
    short = StepConstraint(("odd",), lambda steps: np.zeros(3, dtype=np.int64))
    with pytest.raises(TilpError, match="one whole number a step"):
        mine(graph, ["guards"], STATIC, constraints=[short])

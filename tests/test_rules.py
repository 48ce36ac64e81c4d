"""Rules: canonical, printed and parsed in every notation, sets in and out of files."""

import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import KilledError, kill_at
from tilp.errors import DataError, TilpError
from tilp.rules import (
    FORMS,
    Atom,
    Constraint,
    MinedRule,
    Notation,
    Rule,
    RuleSet,
    format_rule,
    parse_rule,
)
from tilp.types import Grain

TEXT = (
    "receivedAward(E1,E4,I4) ← nominatedFor(E1,E2,I1) ∧ nominatedFor⁻¹(E2,E3,I2) "
    "∧ receivedAward(E3,E4,I3) ∧ before(I1,I2) ∧ after(I1,I3) ∧ 3-4 before(I3,I4)"
)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12)


@st.composite
def rules(draw):
    length = draw(st.integers(1, 5))
    atoms = st.builds(Atom, NAMES, st.booleans())
    places = st.integers(1, length + 1)
    kinds = st.sampled_from("EI")
    variables = st.one_of(
        st.tuples(kinds, places).map(lambda one: (f"{one[0]}{one[1]}",)),
        st.tuples(kinds, places, places).map(
            lambda one: (f"{one[0]}{one[1]}", f"{one[0]}{one[2]}")
        ),
    )
    return Rule(
        draw(atoms),
        tuple(draw(st.lists(atoms, min_size=length, max_size=length))),
        tuple(draw(st.lists(st.builds(Constraint, NAMES, variables), max_size=5))),
    )


@given(rules())
def test_rules_are_read_back_as_written(rule):
    assert parse_rule(str(rule)) == rule
    assert parse_rule(format_rule(rule, Notation.ASCII)) == rule


@given(rules())
def test_the_order_of_constraints_does_not_matter(rule):
    again = Rule(rule.head, rule.body, (*reversed(rule.constraints), *rule.constraints))
    assert again == rule and hash(again) == hash(rule) and str(again) == str(rule)


def test_notations():
    rule = parse_rule(TEXT)
    assert str(rule) == TEXT
    assert format_rule(rule, Notation.ASCII).startswith(
        "receivedAward(E1,E4,I4) <- nominatedFor(E1,E2,I1) & nominatedFor^-1(E2,E3,I2) & "
    )
    assert format_rule(rule, Notation.LATEX).startswith(
        r"\text{receivedAward}(E_{1}, E_{4}, I_{4}) \leftarrow "
        r"\text{nominatedFor}(E_{1}, E_{2}, I_{1}) \wedge "
        r"\text{nominatedFor}^{-1}(E_{2}, E_{3}, I_{2})"
    )
    assert format_rule(rule, Notation.SENTENCE) == (
        "Someone or something receivedAward another, if the first nominatedFor A, and B "
        "nominatedFor A, and B receivedAward the other 3 to 4 time units before that, and the "
        "first of these before the second of these, and the first of these after the third of "
        "these."
    )


def test_names_that_look_like_the_grammar_are_quoted():
    rule = Rule(Atom("a, b (c)"), (Atom('say "∧" & <-', True), Atom("member of team")))
    assert str(rule) == (
        '"a, b (c)"(E1,E3,I3) ← "say \\"∧\\" & <-"⁻¹(E1,E2,I1) ∧ member of team(E2,E3,I2)'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a term"),
        ("p(E1,E2,I2)", "expected an arrow"),
        ("p(E1,E2,I2) ←", "expected a term"),
        ("p(E1,E2,I2) ← before(I1,I2)", "at least one body atom"),
        ("p(E1,E2,I2) ← q(E1,E2,I1) r(E1,E2,I1)", "expected ∧ or &"),
        ("p(E1,E3,I3) ← q(E1,E2,I1)", "not a chain"),
        ("p(E1,E3,I3) ← q(E1,E2,I1) ∧ q(E1,E3,I2)", "not a chain"),
        ("p(E1,E2,I2) ← q(E1,E2,I1) ∧ before(I1,I3)", "lacks"),
        ("p(E1,E2,I2) ← q(E1,E2,I1) ∧ before(X,I2)", "variables are"),
        ("p(E1,E2,I2) ← q(E1,E2,I1) ∧ before⁻¹(I1,I2)", "no inverse"),
        ('"p(E1,E2,I2) ← q(E1,E2,I1)', "expected a term"),
    ],
)
def test_errors_say_where_a_text_is_no_rule(text, message):
    with pytest.raises(TilpError, match=message):
        parse_rule(text)


@given(st.text(max_size=60))
def test_any_text_is_a_rule_or_an_error(text):
    with contextlib.suppress(TilpError):
        assert parse_rule(str(parse_rule(text)))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_forms_speak_of_the_pairs_of_the_paper(length):
    form = FORMS[Grain.PAIRS]
    pairs = {*form.body_pairs(length), *form.query_pairs(length)}
    assert len(pairs) == length * (length + 1) // 2  # with l atoms: l + l(l+1)/2 constraints
    for grain in (Grain.QUERY, Grain.ADJACENT, Grain.ALLEN, Grain.GAP, Grain.STATIC):
        other = FORMS[grain]
        assert {*other.body_pairs(length), *other.query_pairs(length)} <= pairs


@given(st.sampled_from(list(FORMS.values())), st.integers(1, 5), st.data())
def test_codes_become_constraints_and_back(form, length, data):
    digits = data.draw(st.integers(0, 3 ** len(form.body_pairs(length)) - 1))
    code = data.draw(
        st.integers(0, max(len(form.query_relations), 1) ** len(form.query_pairs(length)) - 1)
    )
    constraints = form.constraints(length, digits, code)
    assert form.codes(length, constraints) == (digits, code)


def test_codes_are_read_place_by_place():
    # I1 before I2 in the body; I1 touching, I2 after the query.
    constraints = FORMS[Grain.PAIRS].constraints(2, 0, 1 * 3 + 2)
    assert str(Rule(Atom("h"), (Atom("p"), Atom("q")), constraints)) == (
        "h(E1,E3,I3) ← p(E1,E2,I1) ∧ q(E2,E3,I2) ∧ before(I1,I2) ∧ touching(I1,I3) ∧ after(I2,I3)"
    )
    assert FORMS[Grain.QUERY].codes(2, constraints) is None


def mined(text, support=3, body_support=4, confidence=0.5, sampled=False):
    return MinedRule(parse_rule(text), support, body_support, confidence, 10, sampled)


@pytest.fixture
def some():
    return RuleSet(
        [
            mined("p(E1,E2,I2) ← q(E1,E2,I1) ∧ before(I1,I2)", confidence=0.1),
            mined("p(E1,E2,I2) ← q(E1,E2,I1) ∧ after(I1,I2)", confidence=1 / 3, sampled=True),
            mined("a(E1,E3,I3) ← q(E1,E2,I1) ∧ q(E2,E3,I2)", support=9, body_support=9),
        ]
    )


@st.composite
def rule_sets(draw):
    """Sets of rules of which some have no statistics, gain, lift or weight."""
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    counts = st.integers(0, 10**9)
    optional = st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("weight", "gain", "lift"), numbers)
    )
    figures = st.tuples(counts, counts, numbers, counts, st.booleans())
    kept = draw(st.lists(rules(), max_size=4, unique=True))
    return RuleSet(MinedRule(rule, *draw(figures), **draw(optional)) for rule in kept)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rules")


@given(rule_sets())
def test_sets_are_read_back_as_written(folder, kept):
    kept.write_jsonl(folder / "rules.jsonl")
    assert RuleSet.read_jsonl(folder / "rules.jsonl") == kept
    kept.write(folder / "rules")
    assert (folder / "rules").read_bytes() == (folder / "rules.jsonl").read_bytes()
    assert RuleSet.read(folder / "rules") == kept


@given(rule_sets(), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_rules_are_read_back_from_text(folder, kept, ending, marked):
    path = folder / "rules.txt"
    kept.write(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert len(lines) == len(kept) + 1
    edited = ending.join(["# ours", "", *(f"  {line}" for line in lines), "#"])
    path.write_bytes(edited.encode("utf-8-sig" if marked else "utf-8"))
    assert list(RuleSet.read(path)) == [MinedRule(one.rule) for one in kept]


def test_a_file_may_have_records_and_text(tmp_path, some):
    path = tmp_path / "rules"
    own = "p(E1,E2,I2) <- r(E1,E2,I1)  # ours"
    path.write_text(some.to_jsonl() + own, encoding="utf-8")
    *others, last = RuleSet.read(path)
    assert others == list(some) and last == MinedRule(parse_rule(own))
    assert str(last) == "p(E1,E2,I2) ← r(E1,E2,I1)  (not counted)"


def test_files_of_rules_that_cannot_be_read_say_where_and_what_to_do(tmp_path, some):
    path = tmp_path / "rules.txt"
    own = "p(E1,E2,I2) <- r(E1,E2,I1)"
    path.write_text(f"# ours\n{own}\np <- r\n")
    with pytest.raises(DataError, match=r"rules.txt, line 3: 'p <- r' is not a rule.*Write a rule"):
        RuleSet.read(path)
    path.write_text(f"{own}\n\n{own} # again\n")
    with pytest.raises(DataError, match="line 3: the rule of line 1 again; remove one"):
        RuleSet.read(path)
    path.write_text(some.to_jsonl() + str(some[1].rule), encoding="utf-8")
    with pytest.raises(DataError, match="line 4: the rule of line 2 again"):
        RuleSet.read(path)
    path.write_bytes(f"{own}\n".encode() + b"caf\xe9(E1,E2,I2) <- r(E1,E2,I1)\n")
    with pytest.raises(DataError, match="line 2: not UTF-8 text; save the file as UTF-8"):
        RuleSet.read(path)
    record = json.loads(some.to_jsonl().splitlines()[0])
    path.write_text(json.dumps(record | {"gain": float("nan")}))
    with pytest.raises(DataError, match=r"line 1.*should be finite"):
        RuleSet.read(path)
    with pytest.raises(FileNotFoundError):
        RuleSet.read(tmp_path / "none.txt")


def test_rules_for_people_are_sorted_by_gain_then_weight_then_measure(some):
    first, second, third = some
    kept = RuleSet([first, replace(second, weight=0.1), replace(third, rule=rule_of("q"))])
    assert [one.weight for one in kept.sort()] == [0.1, None, None]
    assert kept.sort()[1].rule == rule_of("q")  # the higher measure
    kept = RuleSet([replace(first, gain=-0.5), replace(second, weight=0.1)])
    assert [one.gain for one in kept.sort()] == [-0.5, None]
    assert [one.gain for one in kept.sort(lambda one: one.confidence)] == [None, -0.5]


def rule_of(relation):
    return parse_rule(f"p(E1,E2,I2) <- {relation}(E1,E2,I1)")


def test_a_table_of_rules():
    rule = parse_rule("p^-1(E1,E3,I3) <- q(E1,E2,I1) & q(E2,E3,I2)")
    full = MinedRule(rule, 3, 4, 0.5, 9, True, weight=0.25, gain=0.125, lift=2.0)
    table = RuleSet([MinedRule(rule_of("q")), full]).frame()
    assert table.row(1, named=True) == {
        "rule": str(rule), "relation": "p", "inverse": True, "length": 2, "gain": 0.125,
        "weight": 0.25, "support": 3, "body_support": 4, "confidence": 0.5, "lift": 2.0,
        "facts": 9, "sampled": True,
    }  # fmt: skip
    assert table["gain"].to_list() == [None, 0.125]
    assert RuleSet().frame().schema == table.schema
    assert str(full).endswith(
        "(gain 0.125, confidence 0.50, lift 2.00, support 3 of 9, weight 0.25)"
    )


def test_files_that_hold_no_rules_are_named_by_line(tmp_path, some):
    path = tmp_path / "rules.jsonl"
    some.write_jsonl(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], '{"rule": "nonsense"}']))
    with pytest.raises(DataError, match=r"rules.jsonl, line 2: not a rule"):
        RuleSet.read_jsonl(path)
    path.write_text(json.dumps(json.loads(lines[0]) | {"support": "many"}))
    with pytest.raises(DataError, match=r"line 1"):
        RuleSet.read_jsonl(path)


def test_filter_sort_and_merge(some):
    assert len(some.filter(relation="p")) == 2
    assert len(some.filter(relation="p", min_confidence=0.2)) == 1
    assert len(some.filter(max_length=1, min_support=3)) == 2
    assert len(some.filter(lambda one: one.sampled)) == 1
    assert [one.confidence for one in some.sort()] == [0.5, 1 / 3, 0.1]
    other = RuleSet([mined(str(some[0].rule), confidence=0.9), mined("z(E1,E2,I2) ← z(E1,E2,I1)")])
    both = some.merge(other)
    assert len(both) == 4 and both[some[0].rule].confidence == 0.1
    with pytest.raises(TilpError, match="each rule once"):
        RuleSet([some[0], some[0]])


@pytest.mark.parametrize("write", ["write", "write_jsonl"])
def test_a_writer_that_is_stopped_leaves_the_file_as_it_was(tmp_path, monkeypatch, write):
    path = tmp_path / "rules.csv"
    path.write_text("before")
    with monkeypatch.context() as patched, pytest.raises(KilledError):
        kill_at(patched, path.name, 1, "before")
        getattr(RuleSet(), write)(path)
    assert [one.name for one in tmp_path.iterdir()] == ["rules.csv"]
    assert path.read_text() == "before"
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    getattr(RuleSet(), write)(link)
    assert link.is_symlink() and path.read_text() != "before"

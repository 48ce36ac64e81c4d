"""Sentences: rules without variables, paths with names and dates, phrasings from a file."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilp
from tilp.errors import DataError
from tilp.explanation import Grounding, Member, WalkedFact
from tilp.explanation.sentences import Sentences
from tilp.graph import Fact
from tilp.rules import FORMS, Atom, MinedRule, Phrasing, Phrasings, Rule, parse_rule
from tilp.scoring.scorer import Evidence, ReasonKind
from tilp.time import OPEN_END, UNKNOWN, Interval, format_length, relation_words
from tilp.types import Grain, Unit

WORDS = Phrasings(
    {
        "won": Phrasing("{subject} won {object}", "{object} went to {subject}", "person", "prize"),
        "plays": Phrasing("{subject} plays for {object}", subject="player", object="club"),
    }
)


# rules


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "won(E1,E2,I2) <- plays(E1,E2,I1) & 1 before(I1,I2)",
            "A person won a prize, if the person plays for the prize 1 year before that.",
        ),
        (
            "plays^-1(E1,E4,I4) <- plays^-1(E1,E2,I1) & plays(E2,E3,I2) & plays^-1(E3,E4,I3)",
            "A player plays for a club, if another player plays for the first club, and the "
            "second player plays for another club, and the first player plays for the second club.",
        ),
        (
            "x(E1,E4,I4) <- x(E1,E2,I1) & y(E2,E3,I2) & x^-1(E3,E4,I3) & taller(E1,E2)",
            "Someone or something x another, if the first x A, and A y B, and the other x B, and "
            "the first taller A.",
        ),
        (
            "x(E1,E2,I2) <- y(E1,E2,I1) & 33+ after(I1,I2)",
            "Someone or something x another, if the first y the other 33 or more years after that.",
        ),
    ],
)
def test_rules_in_words(text, sentence):
    assert WORDS.rule(parse_rule(text), Unit.YEAR) == sentence


@given(st.data(), st.sampled_from(list(Grain)), st.integers(1, 5))
def test_no_variable_is_left_in_the_words_of_a_rule(data, grain, length):
    form = FORMS[grain]
    body = tuple(
        Atom(f"r{data.draw(st.integers(0, 2))}", data.draw(st.booleans())) for _ in range(length)
    )
    n_digits = len(form.body_relations) ** len(form.body_pairs(length))
    n_codes = len(form.query_relations) ** len(form.query_pairs(length))
    digits, code = (data.draw(st.integers(0, n - 1)) for n in (n_digits, n_codes))
    rule = Rule(Atom("h"), body, form.constraints(length, digits, code))
    sentence = Phrasings().rule(rule, Unit.DAY)
    assert not re.search(r"\b[EI][0-9]\b", sentence) and sentence.endswith(".")
    assert sentence.count(" r") >= length and sentence.count(", and ") >= length - 1
    if any(constraint.word[0].isdigit() for constraint in rule.constraints):
        assert re.search(r"[0-9]+ (or more )?days? (before|after) that", sentence)


# phrasings


def relations():
    return tilp.datasets.world(0, 1_000).graph.relations


def test_phrasings_are_read_from_a_file(tmp_path):
    path = tmp_path / "words.toml"
    path.write_text(
        'livesIn = "{subject} lives in {object}"\n'
        '[diedIn]\ntext = "{subject} died in {object}"\nobject = "town"\n',
        "utf-8",
    )
    words = Phrasings.read(path, relations())
    assert words.clause("livesIn", "Ada", "Leeds") == "Ada lives in Leeds"
    assert words["diedIn"].object == "town" and words.clause("bornIn", "a", "b") == "a bornIn b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("livesIn = 3", "give a text, or a table of text, inverse, subject, object"),
        ("livesIn = {texts = 'a'}", "give a text, or a table"),
        ("livesIn = {subject = 3}", "subject should be text"),
        ("livesIn = '{subject} lives'", "should have {subject} and {object}"),
        ("livesIn = '{subject} {object} {time}'", "should have {subject} and {object}"),
        ("livesIn = '{subject} {object'", "should have {subject} and {object}"),
        ("livesim = '{subject} {object}'", "did you mean 'livesIn'"),
        ("livesIn =", "cannot be read as TOML"),
    ],
)
def test_wrong_files_are_named(tmp_path, text, message):
    path = tmp_path / "words.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
        Phrasings.read(path, relations())


# time


@pytest.mark.parametrize(
    ("interval", "other", "words"),
    [
        ((1985, 1988), (1990, 1991), "2 years before"),
        ((2012, 2012), (2013, 2013), "the year before"),
        ((1995, OPEN_END), (1990, 1991), "4 years after"),
        ((1990, 1990), (1990, 1990), "the same year"),
        ((1990, UNKNOWN), (1990, UNKNOWN), "the same year"),
        ((1990, 1992), (1990, 1992), "over the same time"),
        ((1985, 1992), (1990, 1991), "already for 5 years then"),
        ((1990, 1999), (1990, 1991), "at that time"),
        ((1985, UNKNOWN), (1990, 1991), "beginning 5 years before"),
        ((1985, 1990), (1990, 1991), "ending as that time begins"),
        ((1991, 1999), (1990, 1991), "beginning as that time ends"),
        ((1991, 1991), (1990, 1991), "at that time"),
        ((UNKNOWN, UNKNOWN), (1990, 1991), ""),
        ((1990, 1991), (UNKNOWN, UNKNOWN), ""),
    ],
)
def test_how_a_fact_lies_to_the_query(interval, other, words):
    assert relation_words(Interval(*interval), Interval(*other), Unit.YEAR) == words


@given(st.integers(0, 10**6), st.sampled_from(list(Unit)))
def test_lengths_always_have_a_unit(length, unit):
    assert re.fullmatch(
        r"(about )?[0-9,]+ (year|month|day|time unit)s?", format_length(length, unit)
    )


# paths


def step(subject, relation, object_, start=UNKNOWN, end=UNKNOWN, *, inverse=False):
    return WalkedFact(7, Fact(subject, relation, object_, Interval(start, end)), inverse)


def sentences(phrasings=WORDS, start=1990, end=1990):
    return Sentences(phrasings, Interval(start, end), Unit.YEAR, "IJCAI Award", "Kyoto Prize")


WALK = (
    step("McCarthy", "won", "IJCAI Award", 1985, 1985, inverse=True),
    step("McCarthy", "won", "Kyoto Prize", 1988, 1988),
    step("Lamport", "won", "Kyoto Prize", inverse=True),
    step("Lamport", "plays", "Rovers", 1980, OPEN_END),
    step("Ada", "plays", "Rovers", UNKNOWN, 1991, inverse=True),
)


def test_paths_of_one_to_five_facts():
    plain = sentences(Phrasings())
    assert plain.path(WALK[:1], {0}) == "McCarthy won IJCAI Award in 1985, 5 years before"
    assert plain.path(WALK[:2], {1}) == (
        "McCarthy won IJCAI Award (in 1985), and won Kyoto Prize in 1988, 2 years before 1990"
    )
    assert plain.path(WALK, {0, 3}) == (
        "McCarthy won IJCAI Award (in 1985, 5 years before), won Kyoto Prize (in 1988), Lamport "
        "won Kyoto Prize too (no date), Lamport plays Rovers (since 1980, already for 10 years "
        "then), and Ada plays Rovers too until 1991"
    )
    assert sentences().path(WALK[:2], {1}) == (
        "IJCAI Award went to McCarthy (in 1985), and McCarthy won Kyoto Prize in 1988, 2 years "
        "before 1990"
    )


@pytest.mark.parametrize(
    ("support", "body_support", "confidence", "told"),
    [
        (50, 54, 0.9, "In 50 of 54 such cases (93 %) this gave the answer."),
        (
            50,
            100,
            0.25,
            "such cases (50 %) this led to the answer and, on average, to 1 other.",
        ),
        (50, 100, 0.05, "this led to the answer and, on average, to 9 others."),
    ],
)
def test_counts_in_words(support, body_support, confidence, told):
    rule = Rule(Atom("won"), (Atom("won", inverse=True), Atom("won")))
    mined = MinedRule(rule, support, body_support, confidence, 200)
    members = [Member("rule", 1.0, "", 12, mined)]
    text = sentences().of_reason(
        Evidence(ReasonKind.CHAIN, rule.body), members, [Grounding(WALK[:2])], of_rival=False
    )
    assert text.endswith(told) and "This is one of 12 such paths." in text


def test_other_reasons_in_words():
    def told(kind, members, walks=(), *, of_rival=False):
        return sentences().of_reason(Evidence(kind), members, walks, of_rival=of_rival)

    against, for_it = Member("prior", -1.0, "it is rare"), Member("prior", 1.0, "it is common")
    assert told(ReasonKind.PRIOR, [for_it, for_it]) == "it is common."
    assert told(ReasonKind.PRIOR, [against]) == "Against Kyoto Prize: it is rare."
    assert told(ReasonKind.PRIOR, [for_it], of_rival=True) == "For Kyoto Prize: it is common."
    near = told(ReasonKind.CONNECTION, [for_it], [Grounding(WALK[1:2])])
    assert near.startswith("IJCAI Award and Kyoto Prize are well connected around 1990,")
    assert near.endswith("The shortest path: McCarthy won Kyoto Prize in 1988.")
    own = told(ReasonKind.CANDIDATE, [for_it], [Grounding(WALK[1:2])])
    assert own == "Known of Kyoto Prize: McCarthy won Kyoto Prize in 1988, 2 years before."

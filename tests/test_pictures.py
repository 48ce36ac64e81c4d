"""Pictures and HTML: well formed, escaped, in order, and no more certain than what is known."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise, product
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tilp.explanation import (
    AblationEffect,
    Explanation,
    Grounding,
    Member,
    Reason,
    WalkedFact,
)
from tilp.explanation.render import draw_grounding, explanation_page
from tilp.graph import Fact
from tilp.rules import FORMS, Atom, Constraint, MinedRule, Rule, RuleSet, parse_rule
from tilp.rules.phrasings import Phrasing, Phrasings
from tilp.rules.picture import draw_rule
from tilp.rules.temporal import possible_classes, satisfying_intervals
from tilp.scoring import Prediction, Predictions, Query
from tilp.time import (
    GAP_CLASSES,
    OPEN_END,
    OPEN_START,
    UNKNOWN,
    Allen,
    Interval,
    TemporalRelation,
    allen_code,
    gap_code,
    parse_date,
    possible_relations,
    temporal_relation_code,
)
from tilp.types import Grain, Unit
from tilp.viz import Chain, Link, draw_chain, standalone
from tilp.viz.chain import Axis, known_times
from tilp.viz.svg import clean, shorten, text_width, wrap

SVG = "{http://www.w3.org/2000/svg}"
SCRIPT = "<script>alert(1)</script>"
ANY_TEXT = st.text(st.characters(), max_size=40)  # surrogates and control characters among it
TIMES = st.one_of(
    st.integers(1900, 2020), st.integers(-(10**6), 10**6), st.integers(-(2**62), 2**62)
)


@st.composite
def intervals(draw, times=TIMES):
    start, end = sorted((draw(times), draw(times)))
    start = draw(st.sampled_from([start, start, UNKNOWN, OPEN_START]))
    end = draw(st.sampled_from([end, end, start, UNKNOWN, OPEN_END]))
    return Interval(start, end)


@st.composite
def chains(draw):
    unit = draw(st.sampled_from(Unit))
    asked = draw(intervals())
    steps = draw(st.lists(st.tuples(ANY_TEXT, intervals(), st.booleans()), min_size=1, max_size=5))
    links = tuple(
        Link.dated(label, interval, unit, asked, inverse=inverse, mark=str(number))
        for number, (label, interval, inverse) in enumerate(steps, start=1)
    )
    return Chain(
        nodes=tuple(draw(ANY_TEXT) for _ in range(len(links) + 1)),
        links=links,
        query=Link.dated(draw(ANY_TEXT), asked, unit, None, mark="?"),
        ends=(0, len(links)),
        unit=unit,
        notes=tuple(draw(st.lists(ANY_TEXT, max_size=2))),
    )


def parsed(picture):
    root = ElementTree.fromstring(picture)
    assert root.tag == f"{SVG}svg" and root.get("role") == "img"
    return root


def shown(root):
    """Every text, with its whole one where it is cut."""
    texts = set()
    for text in root.iter(f"{SVG}text"):
        texts.add(" ".join(part.text or "" for part in text.iter(f"{SVG}tspan")))
        texts |= {title.text for title in text.iter(f"{SVG}title")}
    return texts


# --- drawing ---------------------------------------------------------------------------------


PROPERTY = re.compile(r"var\(--tilp-\w+, (#\w+)\)")


def assert_standalone(picture):
    """The file has the same shapes, in plain colours, on a sheet that covers all of it."""
    file, drawn = parsed(standalone(picture)), parsed(picture)
    sheet = file[2]
    assert sheet.attrib == {"width": "100%", "height": "100%", "fill": "#ffffff"}
    file.remove(sheet)
    assert file.attrib == drawn.attrib and len(file) == len(drawn)
    for shape, other in zip(file.iter(), drawn.iter(), strict=True):
        assert (shape.tag, shape.text) == (other.tag, other.text)
        plain = {name: PROPERTY.sub(r"\1", value) for name, value in other.attrib.items()}
        assert shape.attrib == plain
        assert all("var(" not in value for value in shape.attrib.values())


@given(chains())
def test_any_chain_gives_a_sound_picture(chain):
    picture = draw_chain(chain)
    root = parsed(picture)
    assert draw_chain(chain) == picture
    assert_standalone(picture)
    texts = shown(root)
    for label in (*chain.nodes, chain.query.label, *(link.label for link in chain.links)):
        assert clean(label) in texts | {""}, label
    assert root.find(f"{SVG}title").text and root.find(f"{SVG}desc").text
    width, height = float(root.get("width")), float(root.get("height"))
    for shape in root.iter():
        for name, least, most in (("x", -1, width), ("cx", 0, width), ("y", 0, height)):
            assert least <= float(shape.get(name, 0)) <= most, ElementTree.tostring(shape)
        assert float(shape.get("width", 0)) >= 0


def test_nothing_in_a_picture_can_run_or_clash():
    picture = draw_chain(replace(football(), nodes=(SCRIPT, '"/onload="x', "&amp;")))
    tags = {element.tag.removeprefix(SVG) for element in parsed(picture).iter()}
    assert tags <= {"svg", "title", "desc", "rect", "circle", "polyline", "polygon", "path"} | {
        "text",
        "tspan",
    }
    names = {name for element in parsed(picture).iter() for name in element.attrib}
    assert not {name for name in names if name.startswith("on") or name in ("id", "href")}
    assert SCRIPT in parsed(picture).find(f"{SVG}desc").text


ASKED, FIRST = Interval(1993, 1996), Interval(1990, 1993)


def football(asked=ASKED, first=FIRST, unit=Unit.YEAR):
    return Chain(
        nodes=("Ada", "Rovers", "Leeds"),
        links=(
            Link.dated("playsFor", first, unit, asked, mark="1"),
            Link.dated("basedIn", Interval(1980, OPEN_END), unit, asked, inverse=True, mark="2"),
        ),
        query=Link.dated("livesIn", asked, unit, None, mark="?"),
        ends=(0, 2),
        unit=unit,
    )


def test_a_picture_says_how_each_interval_lies():
    texts = shown(parsed(draw_chain(football())))
    assert {"Ada", "Rovers", "Leeds", "playsFor", "basedIn", "livesIn"} <= texts
    assert {"1990 – 1993", "1980 – present", "1993 – 1996", "touching", "↔", "1", "2", "?"} <= texts
    assert "←" not in texts and "no date is known" not in texts
    earlier = shown(parsed(draw_chain(football(first=Interval(1990, 1990)))))
    assert {"1990", "3 years before", "←"} <= earlier


@pytest.mark.parametrize(
    ("first", "unit", "word"),
    [
        (Interval(1990, 1992), Unit.YEAR, "1 year before"),
        (Interval(1999, OPEN_END), Unit.DAY, "3 days after"),
        (Interval(1999, UNKNOWN), Unit.MONTH, "3 months after"),
        (Interval(-1007, -1000), Unit.INTEGER, "2,993 before"),
        (Interval(OPEN_START, 1994), Unit.YEAR, "touching"),
        (Interval(1990, UNKNOWN), Unit.YEAR, "before or touching"),
        (Interval(UNKNOWN, 2000), Unit.YEAR, "touching or after"),
        (Interval(UNKNOWN, 1990), Unit.YEAR, "3 years before"),
        (Interval(), Unit.YEAR, "not known"),
    ],
)
def test_words_are_as_certain_as_the_dates(first, unit, word):
    asked = Interval(1993, 1996)
    link = Link.dated("r", first, unit, asked)
    assert link.word == word
    assert (link.relation is None) == (len(possible_relations(first, asked)) > 1)


def test_what_is_not_known_is_not_drawn_as_known():
    known = parsed(draw_chain(football()))
    doubtful = parsed(draw_chain(football(first=Interval(1990, UNKNOWN))))
    pale = [shape for shape in doubtful.iter() if shape.get("opacity")]
    assert pale and not [shape for shape in known.iter() if shape.get("opacity")]
    nothing = parsed(draw_chain(football(asked=Interval(), first=Interval())))
    assert "no dates" in shown(nothing) and marks(nothing) == marks(known) + 2


def marks(root):
    """The question marks of a picture; what is asked for has two of its own."""
    return sum(part.text == "?" for part in root.iter(f"{SVG}tspan"))


def test_no_dates_at_all():
    chain = football(asked=Interval(), first=Interval())
    links = (chain.links[0], replace(chain.links[1], interval=Interval()))
    texts = shown(parsed(draw_chain(replace(chain, links=links))))
    assert "no date is known" in texts


def test_points_are_dots_and_open_ends_arrows():
    def shapes(first):
        root = parsed(draw_chain(football(first=first)))
        return [len(root.findall(f"{SVG}{tag}")) for tag in ("circle", "polygon")]

    circles, arrows = shapes(Interval(1985, 1987))
    assert shapes(Interval(1985, 1985)) == [circles + 1, arrows]
    assert shapes(Interval(OPEN_START, 1987)) == [circles, arrows + 1]


# --- labels and axes -------------------------------------------------------------------------


@given(ANY_TEXT.map(clean), st.floats(20, 300), st.integers(1, 3))
@example("memberOfSportsTeam", 60.0, 2)
def test_lines_fit_and_lose_nothing_that_has_room(text, width, lines):
    found = wrap(text, width, 12, lines)
    assert len(found) <= lines
    assert all(text_width(line, 12) <= width for line in found)
    if text_width(text, 12) <= width:
        assert found == [text] * bool(text)
    elif not found[-1].endswith("…"):
        assert re.sub(r"\s", "", "".join(found)) == re.sub(r"\s", "", text)
    assert text_width(shorten(text, width, 12), 12) <= width


@given(st.lists(intervals(), max_size=6), st.sampled_from(Unit), st.booleans())
def test_times_stand_in_their_order(some, unit, dated):
    axis = Axis.of_times(some, 100, 400, 10, unit if dated else None)
    times = known_times(some)
    places = [axis.x(time) for time in (OPEN_START, *times, OPEN_END)]
    assert places == sorted(places) and places[0] == 100 and places[-1] == 400
    assert all(one < other for one, other in pairwise(places))
    assert not times or not dated or axis.ticks


@given(st.lists(st.integers(-10_000, 60_000), min_size=1, max_size=8), st.sampled_from(Unit))
def test_dates_below_an_axis_stand_where_they_are(times, unit):
    axis = Axis.of_times([Interval.point(time) for time in times], 0, 330, 10, unit)
    edges = []
    for x, text in axis.ticks:
        first, last = parse_date(text).span(unit)
        assert x == pytest.approx(axis.x(first))
        half = text_width(text, 10.5) / 2
        edges += [x - half, x + half]
        assert first <= last
    assert edges == sorted(edges)  # no two run into each other


def test_a_long_time_takes_more_room_than_a_short_one_but_leaves_it_some():
    axis = Axis.of_times([Interval(1066, 1066), Interval(1990, 1995)], 0, 300, 10, Unit.YEAR)
    long, short = axis.x(1990) - axis.x(1066), axis.x(1995) - axis.x(1990)
    assert short < long < 5 * short


# --- rules -----------------------------------------------------------------------------------

WORDS = [*TemporalRelation, *Allen, *GAP_CLASSES]


def holds(constraint, by_number):
    """Whether intervals satisfy a constraint, by the functions that rules are applied with."""
    first, second = (by_number[place] for place in constraint.indices)
    return constraint.word in words_between(first, second)


def constraint(word, first, second):
    return Constraint(str(word), (f"I{first}", f"I{second}"))


def words_between(first, second):
    ends = first.start, first.end, second.start, second.end
    return (
        list(TemporalRelation)[temporal_relation_code(*ends)],
        list(Allen)[allen_code(*ends)],
        GAP_CLASSES[gap_code(*ends)],
    )


@given(st.data())
def test_what_some_intervals_satisfy_is_arranged_so(data):
    n = data.draw(st.integers(2, 6))
    times = st.integers(0, data.draw(st.sampled_from([4, 12, 90])))
    real = [Interval(*sorted((data.draw(times), data.draw(times)))) for _ in range(n)]
    said = [
        constraint(
            data.draw(st.sampled_from(words_between(real[one], real[two]))), one + 1, two + 1
        )
        for one, two in product(range(n), repeat=2)
        if data.draw(st.booleans())
    ]
    found = satisfying_intervals(said)
    assert found is not None
    assert all(holds(one, found) for one in said)
    assert set(found) == {place for one in said for place in one.indices}


ORDERS = [*TemporalRelation, *Allen]  # words for which six times are enough for three intervals
SMALL = [Interval(start, end) for start in range(6) for end in range(start, 6)]


@settings(max_examples=30)
@given(
    st.lists(
        st.builds(constraint, st.sampled_from(ORDERS), st.integers(1, 3), st.integers(1, 3)),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_not_arranged_cannot_be(said):
    numbers = sorted({place for one in said for place in one.indices})
    choices = (
        dict(zip(numbers, some, strict=True)) for some in product(SMALL, repeat=len(numbers))
    )
    possible = any(all(holds(one, choice) for one in said) for choice in choices)
    assert (satisfying_intervals(said) is not None) == possible


@pytest.mark.parametrize("word", ["before", "touching", "meets", "contains", "met-by"])
def test_possible_classes_are_those_of_some_arrangement(word):
    said = [constraint(word, 1, 2), constraint("touching", 2, 3)]
    classes = {
        words_between(one, three)[0]
        for one, two, three in product(SMALL, repeat=3)
        if all(holds(each, {1: one, 2: two, 3: three}) for each in said)
    }
    assert set(possible_classes(said, 1, 3)) == classes


@given(st.sampled_from(WORDS))
def test_every_word_means_what_it_says(word):
    found = satisfying_intervals([constraint(word, 1, 2)])
    assert found is not None and holds(constraint(word, 1, 2), found)
    if word not in ("equals", "starts", "started-by", "finishes", "finished-by", "meets", "met-by"):
        ends = [time for one in found.values() for time in (one.start, one.end)]
        assert len(set(ends)) == len(ends)  # nothing falls together that need not


@given(st.data())
def test_any_rule_has_a_picture(data):
    grain = data.draw(st.sampled_from(Grain))
    length = data.draw(st.integers(1, 5))
    form = FORMS[grain]
    said = [
        constraint(data.draw(st.sampled_from(words)), *pair)
        for pairs, words in (
            (form.body_pairs(length), form.body_relations),
            (form.query_pairs(length), form.query_relations),
        )
        for pair in pairs
    ]
    body = tuple(Atom(data.draw(ANY_TEXT), data.draw(st.booleans())) for _ in range(length))
    rule = Rule(Atom(data.draw(ANY_TEXT)), body, tuple(said))
    texts = shown(parsed(draw_rule(rule)))
    assert draw_rule(rule) == draw_rule(rule)
    assert {"the first", *"ABCD"[: length - 1], "the other"} <= texts
    contradicts = satisfying_intervals(said) is None
    assert (
        "The constraints contradict each other: no intervals satisfy them." in texts
    ) == contradicts
    if said and not contradicts:
        assert "time: one arrangement that fits" in texts


def texts_of(rule):
    return shown(parsed(draw_rule(parse_rule(rule))))


def test_a_rule_s_picture_names_entities_as_its_sentence_does():
    rule = parse_rule("playsFor⁻¹(E1,E3,I3) ← livesIn(E1,E2,I1) ∧ basedIn⁻¹(E2,E3,I2)")
    start = "Someone or something playsFor another, if the other livesIn A"
    assert Phrasings().rule(rule).startswith(start)
    assert Phrasings().entity_names(rule) == ("the other", "A", "the first")
    nouns = Phrasings({"livesIn": Phrasing(subject="person", object="place")})
    assert nouns.rule(rule).endswith(
        "if the person livesIn a place, and the first basedIn the place."
    )
    assert {"the person", "the place", "the first"} <= shown(parsed(draw_rule(rule, nouns)))


def test_a_rule_that_says_nothing_of_time_shows_none():
    texts = texts_of("a(E1,E2,I2) ← b(E1,E2,I1) ∧ taller(E1,E2) ∧ long(I1)")
    assert {"The rule has no temporal constraint.", "taller(E1,E2)", "long(I1)"} <= texts
    assert "time: one arrangement that fits" not in texts


def test_a_rule_s_picture_says_no_more_than_the_rule():
    body = "a(E1,E3,I3) ← b(E1,E2,I1) ∧ c(E2,E3,I2) ∧ "
    gap = texts_of(body + "3-4 before(I2,I3)")
    assert {"any time", "3-4 before", "←"} <= gap and "touching" not in gap
    query = texts_of(body + "before(I1,I3) ∧ before(I2,I3)")
    assert "The order of these is free: 1 and 2." in query
    implied = texts_of(body + "before(I1,I2) ∧ before(I2,I3)")
    assert not [text for text in implied if text.startswith("The order") or text == "not said"]
    apart = texts_of(body + "before(I1,I2) ∧ touching(I2,I3)")
    assert {"not said", "before 2", "touching"} <= apart


def test_converses_are_read_from_the_body():
    rule = "a(E1,E2,I2) ← b(E1,E2,I1) ∧ {}(I2,I1)"
    assert "5-8 after" in texts_of(rule.format("5-8 before"))
    assert "contains" in texts_of(rule.format("during"))


# --- groundings and HTML ---------------------------------------------------------------------


def step(subject, relation, object_, start=1990, end=1992, inverse=False):
    return WalkedFact(0, Fact(subject, relation, object_, Interval(start, end)), inverse)


QUERY = Query("livesIn", "Ada", start="1993", end="1996")
WALK = Grounding(
    (step("Ada", "playsFor", "Rovers"), step("Leeds", "hosts", "Rovers", inverse=True))
)


@pytest.mark.parametrize(
    ("grounding", "query", "candidate", "names", "head"),
    [
        (WALK, QUERY, "Leeds", ["Ada", "Rovers", "Leeds"], (0, 2)),
        (WALK, Query("livesIn", "Q7"), "Leeds", ["Ada", "Rovers", "Leeds"], (0, 2)),
        (
            Grounding((step("Leeds", "near", "York"),)),
            QUERY,
            "Leeds",
            ["Ada", "Leeds", "York"],
            (0, 1),
        ),
        (Grounding((step("Leeds", "knows", "Ada"),)), QUERY, "Leeds", ["Ada", "Leeds"], (0, 1)),
        (
            Grounding((step("Ada", "knows", "Eve"),)),
            QUERY,
            "Leeds",
            ["Ada", "Eve", "Leeds"],
            (0, 2),
        ),
        (Grounding(()), QUERY, "Leeds", ["Ada", "Leeds"], (0, 1)),
        (Grounding((step("Ada", "knows", "Ada"),)), QUERY, "Ada", ["Ada", "Ada"], (0, 1)),
        (Grounding((step("Ada", "knows", "Eve"),)), QUERY, "Ada", ["Ada", "Eve", "Ada"], (0, 2)),
    ],
)
def test_groundings_are_laid_out_from_what_is_given(grounding, query, candidate, names, head):
    root = parsed(draw_grounding(grounding, query, candidate))
    nodes = [one for one in root.findall(f"{SVG}circle") if one.get("stroke")]
    drawn = [one for one in root.findall(f"{SVG}text") if one.get("font-weight") in ("400", "600")]
    by_x = {
        one.get("x"): "".join(part.text for part in one) for one in drawn if one.get("y") == "108"
    }
    assert [by_x[one.get("cx")] for one in nodes] == names
    bold = [place for place, one in enumerate(nodes) if "--tilp-ink" in one.get("fill")]
    assert tuple(bold) == head
    facts = len(grounding.steps)
    assert {str(number) for number in range(1, facts + 1)} <= shown(root)


def test_arrows_lead_from_subject_to_object():
    def tips(query, grounding):
        root = parsed(draw_grounding(grounding, query, "Leeds"))
        return [one.get("points").split()[0] for one in root.findall(f"{SVG}polygon")]

    forward, turned = (
        Grounding((step("Ada", "r", "Leeds"),)),
        Grounding((step("Leeds", "r", "Ada", inverse=True),)),
    )
    asks_object = tips(QUERY, forward)
    asks_subject = tips(Query("livesIn", object="Ada", start="1993", end="1996"), forward)
    assert asks_object[0] != asks_subject[0]  # of what is asked for
    assert asks_object[1] == asks_subject[1] != tips(QUERY, turned)[1]


class Reader(HTMLParser):
    """Tags, attributes and text of HTML, and whether its elements are nested well."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data


def read(html):
    reader = Reader(html)
    assert not reader.open
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    names = [name for name, _ in reader.attributes]
    assert not [name for name in names if name.startswith("on") or name in ("src", "href")]
    return reader


def mined(rule, **more):
    numbers = {"support": 7, "body_support": 9, "confidence": 0.61, "facts": 1_234}
    return MinedRule(rule, **{**numbers, **more})


def explained(name):
    rule = mined(Rule(Atom(name), (Atom(name, inverse=True),)), weight=0.25)
    walk = Grounding((step(name, name, "b", UNKNOWN, 1999), step("b", name, name)))
    own = Grounding((step(name, name, "c"),))
    members = (Member("rule", 1.25, f"{name} if", 12, rule),)
    by_rule = Reason("chain", (Atom(name),), 1.25, 1.75, f"So it is: {name}", members, (walk,))
    alone = Reason("candidate", (Atom(name),), -0.5, 0.0, f"Against {name}", (), (own,))
    prior = Reason("prior", (), 0.125, 0.125, f"of {name}", (Member("prior", 0.125, name),))
    return Explanation(
        query=Query(name, name, start="1993"),
        claim=f"{name} is",
        candidate=name,
        rank=2,
        score=0.875,
        share=0.1,
        known=True,
        reasons=(by_rule, alone, prior),
        ablation=AblationEffect(walk.steps, 0.4, 0.5, 0.375),
        winner=f"{name}!",
        rival=f"{name}!",
        rival_rank=1,
        rival_score=1.875,
    )


@pytest.mark.parametrize("name", [SCRIPT, '"><img src=x onerror=alert(1)>', "a\0\ud800 & b", ""])
def test_names_in_html_are_never_html(name):
    one = explained(name)
    rules = RuleSet([one.reasons[0].members[0].rule])
    answers = Predictions(one.query, (Prediction(1, name, name, 2.0, 0.75, True),))
    displays = [one.html(), explanation_page(one), answers._repr_html_()]
    displays += [rules._repr_html_(), rules[0]._repr_html_(), rules[0].rule._repr_html_()]
    for html in displays:
        html.encode()
        reader = read(html)
        assert re.sub("[\0\ud800]", "\ufffd", name) in reader.text


def test_an_explanation_in_html_says_what_there_is_to_say():
    one = explained("Ada")
    reader = read(one.html())
    assert one._repr_html_() == one.html() and one.html() in explanation_page(one)
    for words in (
        "Ada is?",
        "Rank 2, score 0.88, share 10.0%. The data already have it",
        "Compared with Ada!: rank 1, score 1.88.",
        "+1.25 (Ada!: +1.75)",
        "-0.50",
        "So it is: Ada",
        "rule: Ada(E1,E2,I2) ← Ada⁻¹(E1,E2,I1)  (confidence 0.61, support 7 of 1,234, weight 0.25)",
        "1 × reason with nearly the same weight for Ada!: +0.12",
        "falls by 0.38 to 0.50.",
    ):
        assert words in reader.text, words
    # Two reasons have a picture each; each reason opens, its amount too, and what is the same.
    assert reader.tags.count("svg") == 2 and reader.tags.count("details") == 7
    minus = [value for name, value in reader.attributes if name == "class" and "minus" in value]
    assert len(minus) == 1


def test_a_candidate_without_reasons_has_html():
    bare = replace(explained("Ada"), reasons=(), ablation=None)
    assert "Ada is?" in read(bare.html()).text


def test_rule_sets_show_their_first_rules():
    rules = RuleSet(
        mined(parse_rule(f"a(E1,E2,I2) ← b{n}(E1,E2,I1) ∧ before(I1,I2)")) for n in range(12)
    )
    reader = read(rules._repr_html_())
    assert "RuleSet(12 rules for 1 relations)" in reader.text and "… and 2 more" in reader.text
    assert "Someone or something a another, if the first b0 the other before that." in reader.text
    assert reader.tags.count("svg") == 10 and reader.tags.count("tr") == 11
    opened = [name for name, _ in reader.attributes if name == "open"]
    assert len(opened) == 3
    assert "weight" not in reader.text and "0.61" in reader.text
    some = RuleSet([replace(rules[0], weight=0.5, gain=0.0123, lift=3.456), rules[1]])
    text = read(some._repr_html_()).text
    for words in ("gain", "0.0123", "lift", "3.46", "body support"):
        assert words in text
    assert "weight" not in text  # gain takes its place
    assert read(RuleSet()._repr_html_()).tags.count("tr") == 1


def test_answers_in_html_have_bars():
    answers = Predictions(
        QUERY,
        (Prediction(1, "Leeds", "7", 2.5, 0.5, True), Prediction(2, "York", "8", 1.5, 0.25, False)),
    )
    reader = read(answers._repr_html_())
    assert "1Leeds50.0 %2.5000known2York25.0 %1.5000" in reader.text
    widths = [value for name, value in reader.attributes if name == "style" and "width" in value]
    assert [value.rpartition("width:")[2] for value in widths] == ["100.00%", "50.00%"]
    assert "tr" in read(Predictions(QUERY, ())._repr_html_()).tags

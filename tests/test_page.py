"""The page in a real browser: each view, by keyboard, on narrow screens, with hostile names."""

import os
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlencode

import numpy as np
import polars as pl
import pytest

pytest.importorskip("fastapi", reason='the page needs pip install "tilp[web]"')
pytest.importorskip("selenium", reason="the page is looked at with pip install selenium")

from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import tilp
from browser import Page, start_browser
from serving import running
from tilp.model.fitted_model import FittedModel
from tilp.rules import RuleSet

HOSTILE = "<script>alert(1)</script>"
MARKUP = "<b onclick='alert(3)'>Prize</b>"
HOSTILE_RELATION = '<img src=x onerror="alert(2)">'
VIEWS = ("ask", "rules", "data")


@pytest.fixture(scope="session")
def shots(tmp_path_factory):
    """Where pictures are kept; TILP_SCREENSHOTS names a folder that stays."""
    folder = os.environ.get("TILP_SCREENSHOTS")
    return Path(folder) if folder else tmp_path_factory.mktemp("screenshots")


@pytest.fixture(scope="session")
def browser():
    driver = start_browser()
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def world(browser, world_model, shots):
    with running(world_model) as base:
        rights = {"origin": base, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
        browser.execute_cdp_cmd("Browser.grantPermissions", rights)
        yield Page(browser, base, shots)


@pytest.fixture
def page(world):
    """The page of the world; whatever a test does, nothing goes wrong unseen."""
    world.resize(1200)
    world.prefer("light")
    world.complaints()
    world.requests()
    yield world
    assert not world.complaints()
    urls = [url for url in world.requests() if not url.startswith(("about:", "data:"))]
    assert urls and all(url.startswith(world.base + "/") for url in urls)


@pytest.fixture(scope="session")
def one_rule(browser, shots):
    """A model with a single rule, of facts with names that look like markup."""
    years = [str(year) for year in range(1990, 2000)]
    people = [HOSTILE, *(f"Person {number}" for number in range(1, 10))]
    facts = pl.DataFrame(
        {
            "subject": people * 2,
            "relation": ["nominatedFor"] * 10 + [HOSTILE_RELATION] * 10,
            "object": ["Prize", MARKUP] * 10,
            "start": years * 2,
            "end": years * 2,
        }
    )
    model = tilp.TILP(
        1,
        temporal_detail=["pairs"],
        features="none",
        n_jobs=1,
        config=tilp.TILPConfig(select=False),
    )
    model.fit(tilp.read(facts))
    rules = model.rules(HOSTILE_RELATION)
    chosen = next(one for one in rules if one.rule.body[0].relation == "nominatedFor")
    weights = replace(model.weights, rule=model.weights.rule[:1])
    measured = replace(chosen, gain=0.0123, lift=3.456)
    fitted = FittedModel(RuleSet([measured]), weights, model.curve)
    only = tilp.TILP.from_parts(model.settings, model.graph, fitted)
    with running(only, name=HOSTILE) as base:
        yield Page(browser, base, shots)


def ask(**question):
    return f"#/ask?{urlencode(question, doseq=True)}"


@pytest.fixture(scope="session")
def question(world):
    """A question that has several answers."""
    example = world.get("model")["example"]
    return {key: value for key, value in example.items() if value}


# Ask


def test_the_first_visit_shows_an_example(page, world_model, question):
    page.open()
    assert page.driver.title == "Ask · tilp"
    assert page.field("Subject").get_attribute("value") == question["subject"]
    expected = world_model.ask(tilp.Query(**question))
    assert page.texts(".candidate .name") == [answer.candidate for answer in expected]
    first = page.all(".answer")[0]
    assert f"{expected[0].share:.1%}".replace("%", " %") in first.text
    page.shot("ask-first-visit")


def test_questions_are_written_by_keyboard_with_completion(page, world_model):
    page.open("#/ask")
    assert "Ask something." in page.text()
    plays = world_model.graph.relations.find("playsFor")
    player = world_model.graph.entities.label(
        int(world_model.graph.subject[world_model.graph.relation == plays][0])
    )
    page.complete("Subject", player[:-2])
    page.complete("Relation", "playsf")
    page.field("From (year)").send_keys("1990")
    page.press(Keys.ENTER)
    assert page.one("h2").text == f"{player} playsFor ?, from 1990"
    query = tilp.Query("playsFor", subject=player, start="1990")
    assert page.texts(".candidate .name") == [one.candidate for one in world_model.ask(query)]


def test_suggestions_follow_the_arrows_and_go_away_with_escape(page):
    page.open("#/ask")
    field = page.field("Relation")
    page.hit(lambda: [field])
    page.wait(page.options)
    assert len(page.options()) == len(page.get("relations"))
    assert field.get_attribute("aria-expanded") == "true"
    field.send_keys(Keys.ARROW_UP)
    chosen = page.one("[role=option][aria-selected=true]")
    assert chosen.text.startswith(page.options()[-1])
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    field.send_keys(Keys.ARROW_DOWN)
    assert page.one("[role=option][aria-selected=true]").text.startswith(page.options()[0])
    page.shot("ask-completion")
    field.send_keys(Keys.ESCAPE)
    assert not page.options()
    assert field.get_attribute("aria-expanded") == "false"
    assert field.get_attribute("value") == ""


def test_subjects_are_predicted_too(page, world_model, question):
    best = world_model.ask(tilp.Query(**question))[0].candidate
    page.open("#/ask")
    page.hit(lambda: page.all(".segments label")[1:])
    page.complete("Object", best)
    page.complete("Relation", question["relation"])
    page.press(Keys.ENTER)
    query = tilp.Query(question["relation"], object=best)
    assert page.texts(".candidate .name") == [one.candidate for one in world_model.ask(query)]
    assert page.one("h2").text.startswith("? ")


def test_times_are_predicted_by_keyboard(page, world_model):
    graph = world_model.graph
    row = int(np.flatnonzero(graph.relation == graph.relations.find("playsFor"))[0])
    fact = graph.fact(row)
    page.open("#/ask")
    page.hit(lambda: page.all(".segments label")[1:])
    page.press(Keys.ARROW_RIGHT)  # from the subject to the time
    page.complete("Subject", fact.subject)
    page.complete("Relation", fact.relation)
    page.complete("Object", fact.object)
    page.press(Keys.ENTER)
    answer = world_model.predict_time(fact.subject, fact.relation, fact.object)
    assert page.one("h2").text == f"{fact.subject} {fact.relation} {fact.object}"
    start, end = answer.dates(answer.intervals[0][0])
    assert start in page.one(".when-best").text and end in page.one(".when-best").text
    reasons = page.texts(".when-reasons li")
    assert [r.sentence in text for r, text in zip(answer.reasons, reasons, strict=False)] == [
        True
    ] * 6
    assert len(page.all("rect.when-interval")) == 1 and page.all("rect.when-start")
    page.shot("ask-time")
    page.resize(390)
    assert not page.overflows()
    page.shot("ask-time-phone")
    page.field("From (year)").send_keys(start, Keys.ENTER)
    given = world_model.predict_time(fact.subject, fact.relation, fact.object, start=start)
    page.wait(lambda: len(page.all(".when-bounds li")) == 1)  # the end alone
    assert page.texts(".when-bounds li")[0].startswith(
        f"end: most likely {given.to_json()['end']['most_likely']}"
    )


def test_answers_open_their_reasons(page, world_model, question):
    page.open(ask(**question))
    first, second = page.all(".answer")[:2]
    first.send_keys(Keys.ENTER)
    page.settle()
    assert first.get_attribute("aria-expanded") == "true"
    explained = world_model.explain(tilp.Query(**question))
    panel = page.one(".panel:not([hidden])")
    assert f"rank 1 with a score of {explained.score:.2f}" in panel.text
    assert page.one(".claim").text == f"{explained.claim}?"
    assert page.one(".why").text == f"Why {explained.candidate} comes before {explained.rival}"
    reasons = deciding(explained)
    assert page.texts(".panel > section > .reasons .sentence") == [r.text for r in reasons[:3]]
    reason = reasons[0]
    assert page.texts(".amount .term")[0] == f"{reason.margin:+.2f} more than for {explained.rival}"
    shown = page.texts(".amount .number")[:2]
    assert shown == [signed(reason.score), signed(reason.rival)]
    page.wait(lambda: page.all(".grounding svg.picture"))
    for step in reason.groundings[0].steps:
        assert f"{step.fact.subject} {step.fact.relation} {step.fact.object}" in panel.text
    page.shot("ask-reasons")
    page.hit(lambda: [second])
    assert f"comes after {explained.candidate}" in page.text()
    page.hit(lambda: [first])
    assert len(page.all(".panel:not([hidden])")) == 1


def deciding(explanation):
    """The reasons that set a candidate apart; the first in any case."""
    first, *others = explanation.reasons
    return [first, *(reason for reason in others if not reason.same)]


def signed(number):
    return f"{number:+.2f}".replace("-", "−") if number else "0.00"


def contents(page, selector):
    """Texts, also those that are folded."""
    script = "return [...document.querySelectorAll(arguments[0])].map((node) => node.textContent)"
    return page.run(script, selector)


def test_groups_open_their_members_and_formulas(page, world_model, question):
    asked = tilp.Query(**question)
    explained = world_model.explain(asked, max_reasons=8)
    page.open(ask(**question, why=explained.candidate))
    reason = deciding(explained)[0]
    opened = ".panel > section > ol > :first-child > details:last-child"
    assert page.texts(f"{opened} .members") == [""]  # folded
    page.hit(lambda: page.all(f"{opened} > summary")[:1])
    rows = page.texts(".panel > section > ol > :first-child .members > li")
    assert len(rows) == len(reason.members)
    for row, member in zip(rows, reason.members, strict=True):
        assert member.text in row and row.startswith(signed(member.score)[:4])
    formulas = [str(one.rule.rule) for one in reason.members if one.rule is not None]
    assert formulas
    selector = ".panel > section > ol > :first-child .formula"
    assert contents(page, f"{selector} code") == formulas
    assert page.texts(f"{selector} code")[0] == ""
    page.hit(lambda: page.all(f"{selector} summary")[:1])
    assert page.texts(f"{selector} code")[0] == formulas[0]


def test_what_is_the_same_for_both_is_folded(page, world_model, question):
    explained = world_model.explain(tilp.Query(**question), max_reasons=8)
    page.open(ask(**question, why=explained.candidate))
    listed = [reason.text for reason in explained.reasons[:8]]
    assert sorted(contents(page, ".reason .sentence")) == sorted(listed)
    same = [reason.text for reason in explained.reasons[1:8] if reason.same]
    folded = contents(page, ".folded:last-of-type .sentence")
    assert not same or folded == same
    visible = [text for text in page.texts(".reason .sentence") if text]
    assert visible == [reason.text for reason in deciding(explained)[:3]]


def test_a_fact_that_is_unticked_is_left_out(page, world_model, question):
    asked = tilp.Query(**question)
    first = world_model.explain(asked)
    page.open(ask(**question, why=first.candidate))
    fact = deciding(first)[0].groundings[0].steps[0]
    page.all(".reason input[type=checkbox]")[0].send_keys(Keys.SPACE)
    page.wait(lambda: page.all(".what-if"))
    page.settle()
    without = world_model.explain(asked, first.candidate, without=[fact.fact_id])
    assert f"without={fact.fact_id}" in page.driver.current_url
    text = page.one(".what-if").text
    assert "If this fact were not known" in text
    assert f"from {first.score:.2f} to {without.score:.2f}" in text
    assert fact.fact.object in text
    assert page.driver.switch_to.active_element.get_attribute("class") == "notice what-if"
    assert "not known" in page.one("#announcements").get_attribute("textContent")
    page.shot("ask-what-if")
    page.all(".what-if input[type=checkbox]")[0].send_keys(Keys.SPACE)
    page.wait(lambda: not page.all(".what-if"))
    page.settle()
    assert "without" not in page.driver.current_url
    assert page.texts(".claim") and page.one(".why").text.startswith("Why")


def test_answers_are_compared_with_any_other(page, world_model, question):
    asked = tilp.Query(**question)
    names = [answer.candidate for answer in world_model.ask(asked)]
    page.open(ask(**question, why=names[0]))
    field = page.field(f"Compare {names[0]} with")
    assert field.get_attribute("value") == names[1]
    page.hit(lambda: [field])
    page.wait(page.options)
    assert page.options() == names[2:]
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.BACKSPACE, names[4], Keys.ARROW_DOWN)
    page.wait(
        lambda: page.all("[role=option][aria-selected=true]") and page.options()[0] == names[4]
    )
    field.send_keys(Keys.ENTER)  # the field goes with the explanation
    page.wait(lambda: page.one(".why").text == f"Why {names[0]} comes before {names[4]}")
    expected = deciding(world_model.explain(asked, names[0], against=names[4]))[0]
    assert page.texts(".amount .term")[0] == f"{expected.margin:+.2f} more than for {names[4]}"
    assert page.driver.switch_to.active_element.get_attribute("class") == "why"
    page.open(page.driver.current_url.partition("/#")[2].join(["#", ""]))
    assert page.one(".why").text == f"Why {names[0]} comes before {names[4]}"


def test_known_facts_come_first_with_their_source(browser, shots, world_model, tmp_path):
    folder = tilp.write(world_model.graph, tmp_path / "data")
    # The same facts, read from files.
    graph = tilp.read(folder)
    model = tilp.TILP.from_parts(world_model.settings, graph, world_model._fitted)
    fact = next(f for f in graph.facts("train") if f.relation == "livesIn")
    with running(model) as base:
        page = Page(browser, base, shots)
        page.resize(1200)
        page.open(ask(subject=fact.subject, relation="livesIn"))
        known = model.known_facts(tilp.Query("livesIn", fact.subject))
        shown = page.texts(".known-facts li")
        assert len(shown) == len(known) > 0
        for text, one in zip(shown, known, strict=True):
            assert text.startswith(f"{one.subject} livesIn {one.object}, ")
            assert text.endswith(one.source) and one.source.startswith("train.tsv:")
        headings = page.texts("h2, main h3")
        assert headings[1:3] == ["The data already say", "Predictions"]
        page.shot("ask-known")
        page.open(f"#/data?entity={quote(fact.subject)}")
        assert all(".tsv:" in row for row in page.texts(".timeline tbody tr"))
        assert not page.complaints()


def test_the_page_says_that_only_earlier_facts_are_evidence(browser, shots):
    graph = tilp.datasets.world(1, 1_000).graph
    model = tilp.TILP(1, features="none", only_earlier=True).fit(graph)
    fact = next(f for f in graph.facts("test") if f.relation == "livesIn" and f.interval.start > 0)
    with running(model) as base:
        page, answers = Page(browser, base, shots), []
        page.resize(1200)
        for year in (fact.interval.start, fact.interval.start + 30):
            query = tilp.Query("livesIn", fact.subject, start=year)
            page.open(ask(subject=fact.subject, relation="livesIn", start=year))
            assert f"Evidence: {model.evidence_note}." in page.texts("p.kind")
            answers.append(page.texts(".candidate .name"))
            assert answers[-1] == [answer.candidate for answer in model.ask(query)]
        page.shot("ask-only-earlier")
        assert not page.complaints()
    assert answers[0] != answers[1]  # by then, more is known


def test_an_explanation_shows_the_effect_of_its_top_grounding(page, world_model, question):
    asked = tilp.Query(**question)
    effect = world_model.explain(asked, max_reasons=8).ablation  # as the page asks
    page.open(ask(**question, why=world_model.ask(asked)[0].candidate))
    shown = f"would fall by {effect.drop:.2f} to {effect.score_without:.2f}."
    assert shown in page.one(".ablation").text


def test_any_other_candidate_is_explained(page, question):
    page.open(ask(**question))
    other = page.get("entities?text=&limit=100")[-1]["name"]
    assert other not in page.texts(".candidate .name")
    page.complete("Explain another candidate", other)
    assert f"{other} has rank" in page.one(".panel:not([hidden])").text
    assert quote(other.split()[0]) in page.driver.current_url


def test_a_link_that_is_copied_shows_the_same_elsewhere(page, question):
    page.open(ask(**question))
    page.hit(lambda: page.all(".answer")[1:])
    page.click("Copy link")
    page.wait(lambda: "Link copied" in page.text())
    link = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    candidates, reasons = page.texts(".candidate .name"), page.texts(".sentence, .facts")
    assert reasons
    home = page.driver.current_window_handle
    page.driver.switch_to.new_window("window")
    try:
        page.resize(1200)
        page.driver.get(link)
        page.settle()
        assert page.texts(".candidate .name") == candidates
        assert page.texts(".sentence, .facts") == reasons
    finally:
        page.driver.close()
        page.driver.switch_to.window(home)


def test_more_answers(page, question):
    page.open(ask(**question))
    page.click("More answers")
    page.wait(lambda: len(page.all(".answer")) == 20)
    focused = page.driver.switch_to.active_element
    assert focused.text.startswith("11")
    page.driver.back()
    page.wait(lambda: len(page.all(".answer")) == 10)


def test_an_unknown_name_shows_near_ones_to_choose_from(page, world_model, question):
    wrong = question["subject"][:-1]
    page.open(ask(**{**question, "subject": wrong}))
    notice = page.one(".notice")
    assert f"no entity is named '{wrong}'" in notice.text
    announced, shown = page.texts("[role=status], .notice > :first-child")
    assert announced.lower() == shown.lower()
    page.shot("ask-unknown-name")
    page.click(question["subject"])
    page.wait(lambda: page.all(".answer"))
    assert page.field("Subject").get_attribute("value") == question["subject"]
    page.open(ask(**{**question, "relation": question["relation"] + "s"}))
    page.click(question["relation"])
    page.wait(lambda: page.all(".answer"))


def test_an_unreadable_date_is_an_error(page, question):
    page.open(ask(**{**question, "start": "sometime"}))
    assert "sometime" in page.one(".notice").text


def test_a_server_that_is_gone_can_be_tried_again(page, question):
    page.open(ask(**question))
    away = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.driver.execute_cdp_cmd("Network.enable", {})
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**away, "offline": True})
    page.click("Ask")
    page.field("From (year)").send_keys("0")
    page.click("Ask")
    assert "The server does not answer" in page.one(".notice").text
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**away, "offline": False})
    page.click("Try again")
    assert "does not answer" not in page.text()


def test_ask_for_the_readme(page):
    """TILP_SCREENSHOTS=docs/images pytest tests/test_page.py -k readme draws docs/images/*.png."""
    page.resize(1200, 1360)
    player = {"subject": "Greta Cherdale", "relation": "playsFor", "start": 1936, "end": 1940}
    page.open(ask(**player, why="Husley Eagles"))
    assert page.texts(".candidate .name")[0] == "Husley Eagles"
    page.wait(lambda: page.all("svg.picture"))
    page.shot("page-ask")
    page.resize(1200, 1600)
    parts = ("main h2", ".answers h3", ".reason")
    page.shot("answer", *(page.all(part)[0] for part in parts))


# Rules


def percents(texts):
    return [float(re.match(r"[\d.]+", text)[0]) for text in texts]


def figures(page, name):
    return [
        re.search(rf"{name}\n(.*)", text)[1].replace(",", "")
        for text in page.texts(".rule .figures")
    ]


def test_rules_are_chosen_sorted_and_paged(page, world_model):
    page.open("#/rules")
    total = sum(not mined.rule.head.inverse for mined in world_model.rules())
    assert page.one(".count").text == f"{total:,} rules"
    sentences = page.texts(".sentence")
    assert len(sentences) == 20
    page.click("Next →")
    page.wait(lambda: "Page 2" in page.text())
    assert not set(contents(page, ".formula code")) & set(sentences)
    page.driver.back()
    page.wait(lambda: page.texts(".sentence") == sentences)

    Select(page.field("Relation")).select_by_value("playsFor")
    page.wait(lambda: page.one(".count").text == f"{len(world_model.rules('playsFor')):,} rules")
    expected = [str(mined.rule) for mined in list(world_model.rules("playsFor"))[:20]]
    assert contents(page, ".formula code") == expected
    assert "E1" not in " ".join(page.texts(".sentence"))
    assert set(page.texts(".formula code")) == {""}
    page.hit(lambda: page.all(".formula summary"))
    assert page.texts(".formula code")[0] == expected[0]
    page.wait(lambda: len(page.all(".rule svg.picture")) >= 2)
    page.shot("rules")
    page.hit(lambda: page.all(".segments label")[1:])
    page.wait(lambda: contents(page, ".formula code")[0].startswith("playsFor⁻¹("))
    Select(page.field("Sort by")).select_by_value("confidence")
    page.settle()
    page.wait(lambda: percents(figures(page, "Confidence"))[0] == 100)
    shares = percents(figures(page, "Confidence"))
    assert shares == sorted(shares, reverse=True)


def test_rules_are_filtered(page, world_model):
    page.open("#/rules?relation=playsFor")
    page.field("Support at least").send_keys("30", Keys.ENTER)
    page.wait(lambda: "min_support=30" in page.driver.current_url)
    Select(page.field("Length")).select_by_value("2")
    Select(page.field("Body has")).select_by_value("livesIn")
    Select(page.field("Time")).select_by_value("touching")
    expected = [
        mined
        for mined in world_model.rules("playsFor")
        if mined.support >= 30
        and mined.rule.length == 2
        and "livesIn" in {atom.relation for atom in mined.rule.body}
        and "touching" in {constraint.word for constraint in mined.rule.constraints}
    ]
    assert expected
    page.wait(lambda: page.one(".count").text == f"{len(expected)} rules")
    assert contents(page, ".formula code") == [str(mined.rule) for mined in expected[:20]]
    page.field("Confidence at least").send_keys("1", Keys.ENTER)
    page.wait(lambda: "No rule matches." in page.text())
    page.shot("rules-none")


def test_rules_for_the_readme(page):
    page.resize(1200, 1080)
    page.open("#/rules?relation=playsFor&min_support=20")
    page.wait(lambda: len(page.all(".rule svg.picture")) > 2)
    page.shot("page-rules")


# Data


def test_data_shows_the_inspection(page, world_model):
    page.open("#/data")
    inspection = tilp.inspect(world_model.graph)
    everything = inspection.splits["all"]
    assert page.texts(".tiles dd")[:3] == [
        f"{everything.facts:,}",
        f"{everything.entities:,}",
        f"{len(inspection.relations):,}",
    ]
    names = page.texts("tbody th")
    assert names == [*inspection.splits, *(relation.name for relation in inspection.relations)]
    most = inspection.relations[0].facts.values()
    assert f"{inspection.relations[0].name}\t{sum(most):,}\t" in page.text()
    for splits, count in inspection.defects.same_triple.items():
        if count:
            assert f"{splits}: {count}" in page.text()
    bars = page.all(".chart rect.split-train")
    assert len(bars) == len(page.get("data")["over_time"]["bins"]) - 1
    page.resize(1200, 2400)
    page.shot("data")


def test_an_entity_has_its_facts_on_a_timeline(page, question):
    page.open("#/data")
    name = page.complete("Entity", question["subject"])
    page.wait(lambda: page.all(".timeline tbody tr"))
    facts = page.get(f"facts?entity={quote(name)}")["facts"]
    rows = page.texts(".timeline tbody tr")
    assert len(rows) == len(facts)
    dated = [fact for fact in facts if fact["from"] is not None and fact["to"] is not None]
    assert len(page.all(".timeline .span")) == len(dated)
    earliest = min(dated, key=lambda fact: fact["from"])
    assert earliest["start"] in rows[facts.index(earliest)]
    page.shot("data-entity")
    page.hit(lambda: page.all(".timeline .fact a"))
    page.wait(lambda: page.field("Entity").get_attribute("value") != name)


def test_an_unknown_entity_has_near_ones(page, question):
    page.open(f"#/data?entity={quote(question['subject'][:-1])}")
    page.click(question["subject"])
    page.wait(lambda: page.all(".timeline"))


# Everywhere


def test_views_get_the_focus_and_links_keep_their_state(page):
    page.open("#/rules?relation=playsFor")
    page.hit(lambda: page.all("[data-view=data]"))
    assert page.driver.switch_to.active_element.text == "Data"
    assert page.one("[aria-current=page]").text == "Data"
    page.hit(lambda: page.all("[data-view=rules]"))
    assert page.driver.current_url.endswith("#/rules?relation=playsFor")
    page.run("document.activeElement.blur()")
    page.one("body").send_keys(Keys.TAB)
    page.one("#skip").send_keys(Keys.ENTER)
    assert page.driver.switch_to.active_element.get_attribute("id") == "main"
    page.open("#/nowhere")
    assert page.driver.title == "Ask · tilp"


@pytest.mark.parametrize("view", VIEWS)
def test_all_that_can_be_used_has_a_name(page, view, question):
    page.open({"ask": ask(**question), "data": "#/data", "rules": "#/rules"}[view])
    tree = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    used = [
        node
        for node in tree
        if any(
            item["name"] == "focusable" and item["value"].get("value")
            for item in node.get("properties", ())
        )
    ]
    nameless = [node["role"]["value"] for node in used if not node.get("name", {}).get("value")]
    assert len(used) > 5
    assert set(nameless) <= {"RootWebArea", "main"}


@pytest.mark.parametrize("view", VIEWS)
def test_narrow_screens_are_not_scrolled_sideways(page, view, question, world_model):
    page.resize(320, 800)
    best = world_model.ask(tilp.Query(**question))[1].candidate
    entity = quote(question["subject"])
    page.open(
        {
            "ask": ask(**question, why=best),
            "rules": "#/rules?relation=playsFor",
            "data": f"#/data?entity={entity}",
        }[view]
    )
    assert not page.overflows()
    if view == "ask":  # pictures would be too small
        assert not any(one.is_displayed() for one in page.all(".grounding .picture-place"))
        shown = [one for one in page.all(".facts .lane") if one.is_displayed()]
        assert shown and all(one.find_elements("css selector", ".lane-band") for one in shown)
    page.shot(f"{view}-narrow")


@pytest.mark.parametrize("view", VIEWS)
def test_dark_is_dark(page, view, question, world_model):
    page.prefer("dark")
    best = world_model.ask(tilp.Query(**question))[0].candidate
    page.open(ask(**question, why=best) if view == "ask" else f"#/{view}?relation=playsFor")
    light = page.run("return getComputedStyle(document.documentElement).color")
    dark = page.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert min(channels(light)) > 200 and max(channels(dark)) < 60
    if view != "data":
        page.wait(lambda: page.all("svg.picture text"))
        drawn = page.run("return getComputedStyle(document.querySelector('.picture text')).fill")
        assert min(channels(drawn)) > 140
    page.shot(f"{view}-dark")


def channels(colour):
    return [int(channel) for channel in re.findall(r"\d+", colour)[:3]]


# Names that look like markup; one rule


def test_a_model_with_one_rule(one_rule):
    one_rule.resize(1200)
    one_rule.open("#/rules")
    assert one_rule.one(".count").text == "1 rule"
    one_rule.wait(lambda: one_rule.all(".rule svg.picture"))
    assert not one_rule.all(".pager")
    assert [figures(one_rule, name) for name in ("Gain", "Lift")] == [["0.012"], ["3.46"]]
    one_rule.shot("rules-one")


@pytest.mark.parametrize(
    ("address", "texts"),
    [
        (
            ask(subject=HOSTILE, relation=HOSTILE_RELATION, start="1990", why=[MARKUP, HOSTILE]),
            [HOSTILE, MARKUP, HOSTILE_RELATION],
        ),
        (
            ask(subject=HOSTILE, relation=HOSTILE, why=HOSTILE),
            [f"no relation is named '{HOSTILE}'"],
        ),
        (f"#/rules?relation={quote(HOSTILE_RELATION)}", [HOSTILE_RELATION]),
        (f"#/data?entity={quote(HOSTILE)}", [HOSTILE, "nominatedFor Prize"]),
        (f"#/{HOSTILE}", ["What is missing?"]),
    ],
    ids=["why", "unknown", "rules", "data", "view"],
)
def test_names_are_text_and_never_markup(one_rule, address, texts, request):
    one_rule.resize(1200, 1600)
    one_rule.prefer("light")
    one_rule.open(address)
    one_rule.shot(f"names-{request.node.callspec.id}")
    with pytest.raises(NoAlertPresentException):
        _ = one_rule.driver.switch_to.alert.text
    assert one_rule.one("#model-name").text == HOSTILE
    shown = one_rule.text().lower()
    assert [text for text in texts if text.lower() not in shown] == []
    assert not one_rule.all("main script, main img, svg script, svg image")
    assert not [message for message in one_rule.complaints() if "Content Security" in message]


def test_hostile_names_are_completed_as_text(one_rule):
    one_rule.open("#/ask")
    assert one_rule.complete("Subject", "<scr") == HOSTILE
    assert one_rule.complete("Relation", "<im") == HOSTILE_RELATION
    one_rule.press(Keys.ENTER)
    assert HOSTILE in one_rule.one("h2").text
    assert not one_rule.complaints()

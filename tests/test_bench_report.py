"""Reports: names stand for themselves, HTML says what Markdown says, and charts are optional."""

import base64
import re
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from report_tables import Tables, markdown_tables
from tilp.bench.report import Report, bold, escape
from tilp.viz.charts import Line, Point, draw_lines
from tilp.viz.svg import clean

NASTY = [
    "<script>alert(1)</script>",
    "a|b",
    "*bold* _it_ `code`",
    "# no title",
    "[x](y) & <b> &lt;",
    "1. x",
    "---",
    "$a$ _b",
]


POINTS = (Point(1.0, 0.5), Point(2.0, 0.7))


def report_of(label):
    report = Report("x", label)
    report.heading(label)
    report.text(label)
    report.items([label])
    with report.folded(label):
        report.table(["name", label], [[label, bold(label)]], 2, label)
    report.chart("chart", lambda: draw_lines([Line(label, POINTS)], label, label), label)
    return report


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("1. x", r"1\. x"),
        ("- x", r"\- x"),
        ("23.3", "23.3"),
        ("-.020", "-.020"),
        ("7) x", r"7\) x"),
    ],
)
def test_only_what_would_begin_a_list_is_escaped(label, written):
    assert escape(label) == written


@pytest.mark.parametrize("label", NASTY)
def test_labels_stand_for_themselves(label):
    report = report_of(label)
    page, text = Tables(report.html()), report.markdown()
    assert page.tables == [[["name", label], [label, label]]] == markdown_tables(text)
    assert not {"script", "b", "hr", "a"} & page.tags
    # Title, heading, text, item, summary, caption of the table, and of the chart.
    assert page.said.count(label) == 7
    assert not re.search(r"(?<!\\)<script", text)


@given(st.text(st.characters(), max_size=40))
@example("<details>")
@example("&amp;")
@example("= x")
def test_any_text_is_a_paragraph(text):
    report = Report("x", "")
    report.text(f"a {text}")
    page = Tables(report.html())
    said = " ".join("".join(page.said).split())
    assert said.endswith(clean(f"a {text}"))
    assert page.tags == {"html", "head", "meta", "title", "style", "body", "div", "p"}


def test_a_chart_is_the_same_every_time_and_names_what_it_shows():
    points = tuple(Point(x, 0.1 * x, 0.02) for x in range(1, 5))
    lines = [Line(f"line {n}", points) for n in range(7)] + [Line("", points, 1, faint=True)]
    for log in (False, True):
        drawn, again = (draw_lines(lines, "across", "up", x_log=log, y_log=log) for _ in range(2))
        assert drawn == again
        assert {"across", "up", "1", "4", *(line.name for line in lines[:-1])} <= texts(drawn)
        assert not [text for text in texts(drawn) if "$" in text]
    assert {"_$theirs$", "中"} <= texts(draw_lines([Line("_$theirs$", POINTS)], "中", "up"))


def texts(svg):
    root = ElementTree.fromstring(svg)
    return {
        "".join(one.itertext()).strip() for one in root.iter("{http://www.w3.org/2000/svg}text")
    }


@pytest.mark.parametrize("values", [(), ((0.0, 0.0),), ((1e-9, 0.0), (1e9, 1e8))])
def test_any_points_have_a_chart(values):
    points = tuple(Point(*value) for value in values)
    assert {"x", "y"} <= texts(draw_lines([Line("one", points)], "x", "y", x_log=True, y_log=True))


def test_charts_are_files_and_part_of_the_page(tmp_path):
    report = Report("plan", "title")
    report.chart("kètté", lambda: draw_lines([Line("b", POINTS)], "x", "y"), "two")
    page, text = report.write(tmp_path)
    files = re.findall(r"!\[.*?\]\((.+?)\)", text.read_text(encoding="utf-8"))
    assert files == ["plan-figures/kètté.svg"]
    assert ElementTree.parse(tmp_path / files[0]).getroot().tag.endswith("svg")
    html = page.read_text(encoding="utf-8")
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,(.+?)" alt="two"', html)
    assert base64.b64decode(data) == (tmp_path / files[0]).read_bytes()


def test_without_matplotlib_the_report_names_the_missing_charts(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    report = report_of("MRR of *all*")
    page, text = report.write(tmp_path)
    assert report.missing_charts == ["MRR of *all*"]
    for file in (page, text):
        said = file.read_text().replace("\\", "")
        assert "Missing chart: MRR of *all*" in said and "tilp[plot]" in said

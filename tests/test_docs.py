"""The README and the documentation: every block of code runs, or says why not."""

import copy
import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tilp

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
BLOCK = re.compile(
    r"(?P<reason><!-- not run: [^\n]+ -->\n)?^(?P<indent> *)```(?P<language>\w+)(?P<info>[^\n]*)\n"
    r"(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
MAX_WORDS = 960
ELSEWHERE = {"data.md", "table-formats.md"}  # tests/test_tables.py runs it
ALONE = {"README.md", "start.md"}  # these make their world and their model


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found = [*BLOCK.finditer(text)]
    assert text.count("```") == 2 * len(found)
    return found


@pytest.fixture(scope="session")
def fits():
    """Fitted models by their parameters and data: two pages that fit the same model fit once."""
    done, fit = {}, tilp.TILP.fit

    def fit_once(model, graph, *arguments, **options):
        key = (repr(model.get_params()), graph.fingerprint, repr((arguments, options)))
        if "folder" in options or key not in done:
            done[key] = fit(model, graph, *arguments, **options)
        model.__dict__.update(copy.copy(done[key]).__dict__)
        return model

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tilp.TILP, "fit", fit_once)
        yield


@pytest.fixture(scope="session")
def material(tmp_path_factory, fits):
    """What pages take for granted: a world, a model of it, a forecaster, and a table."""
    folder = tmp_path_factory.mktemp("material")
    graph = tilp.datasets.world(seed=0, size=1_000).graph
    tilp.write(graph, folder / "world")
    tilp.TILP(max_length=2, n_jobs=2).fit(graph).save(folder / "model")
    tilp.ForecastRules().fit(graph).save(folder / "forecaster")
    return folder


@pytest.fixture
def place(tmp_path, page, fits, request, monkeypatch):
    """The folder that a page works in."""
    if page not in ALONE:
        shutil.copytree(request.getfixturevalue("material"), tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(code):
    """The commands of a block: comments cut off, continued lines joined."""
    lines = re.sub(r"\\\n", " ", code).splitlines()
    split = (shlex.split(line, comments=True) for line in lines)
    return [words for words in split if words]


def run_shell(block, run):
    for words in commands(block["code"]):
        assert words[0] == "tilp", f"{words}: not a command of tilp, and no '<!-- not run: … -->'"
        code, out, err = run(*words[1:])
        assert code == 0, (words, out, err)


def run_python(block, names):
    code = block["code"]
    if code.startswith(">>>"):
        parsed = doctest.DocTestParser().get_doctest(code, names, "page", None, None)
        assert doctest.DocTestRunner().run(parsed).failed == 0
    else:
        exec(compile(code, "page", "exec"), names)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The built documentation."""
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.filterwarnings("ignore::tilp.TilpWarning")
@pytest.mark.parametrize("page", sorted(PAGES.keys() - ELSEWHERE))
def test_the_code_of_a_page_runs(page, place, run):
    names = {"__name__": "page"}
    for block in blocks(PAGES[page]):
        if title := re.search('title="(.*?)"', block["info"]):
            (place / title[1]).write_text(block["code"], encoding="utf-8")
        if block["reason"]:
            continue
        if block["language"] in ("sh", "bash", "console"):
            run_shell(block, run)
        elif block["language"] == "python":
            run_python(block, names)
        elif block["language"] == "toml":
            tomllib.loads(block["code"])
        elif block["language"] == "json":
            json.loads(block["code"])


def test_no_page_is_long():
    own = {"data.md", "forecasting.md", "when.md", "table-formats.md"}
    words = {name: len(path.read_text(encoding="utf-8").split()) for name, path in PAGES.items()}
    assert not {name for name, count in words.items() if count > MAX_WORDS} - own


def test_every_page_has_a_place_in_the_menu():
    menu = re.findall(r": (\S+\.(?:md|ipynb))$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(menu) == len(set(menu))
    pages = {path.name for path in (ROOT / "docs").iterdir() if path.suffix in (".md", ".ipynb")}
    assert set(menu) == pages


def test_the_first_two_commands_of_the_readme_are_what_must_hold():
    first, second = [b["code"] for b in blocks(PAGES["README.md"]) if b["language"] == "sh"][:2]
    assert first == "pip install . && tilp demo\n" and "pytest" in second


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {tilp.__version__}\n" in citation
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == tilp.__version__


def test_the_built_site_needs_no_network(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:[^"]*)"', text)
        assert not loaded, page
    assert (site / "search" / "search_index.json").is_file()


def headings(page):
    """The anchors of a page."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    plain = (re.sub(r"[^\w\s-]", "", line.lower()) for line in re.findall("^#+ (.*)$", text, re.M))
    return {re.sub(r"[\s-]+", "-", line.strip()) for line in plain}


@pytest.mark.parametrize("page", ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(PAGES)])
def test_links_lead_somewhere(page):
    path = PAGES.get(page, ROOT / page)
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not anchor or anchor in headings(target), link

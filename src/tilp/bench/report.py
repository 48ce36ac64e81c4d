"""Reports: Markdown with its figures beside it, and one HTML page rendered from that."""

import base64
import html
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from urllib.parse import unquote

from tilp._utils.files import write_text
from tilp.bench.jobs import Job, Result, Results
from tilp.viz.charts import MissingMatplotlibError
from tilp.viz.html import Markup, page
from tilp.viz.svg import clean, legal

_FILES = resources.files("tilp.bench")
TEXTS = tomllib.loads(_FILES.joinpath("texts.toml").read_text("utf-8"))

_SIGNS = re.compile(r"([\\`*_{}\[\]<>|#~$])")
# The sign that begins a list or a rule, where it comes first.
_FIRST = re.compile(r"^((?:\d+(?=[.)]))?)([-+.)])(?=\s|$|-+$)")


class Marked(str):
    """Text that is Markdown already."""

    __slots__ = ()


def escape(text: str) -> Marked:
    """Return Markdown that shows a text as it is, on one line."""
    if isinstance(text, Marked):
        return text
    return Marked(_FIRST.sub(r"\1\\\2", _SIGNS.sub(r"\\\1", clean(text).replace("&", "&amp;"))))


def bold(text: str) -> Marked:
    """Return bold text."""
    return Marked(f"**{escape(text)}**" if text else "")


def italic(text: str) -> Marked:
    """Return italic text."""
    return Marked(f"*{escape(text)}*" if text else "")


class Report:
    """A report of results, under construction; its files have the name."""

    def __init__(self, name: str, title: str, results: Results | None = None) -> None:
        self._name, self._title, self.results = name, title, results or Results()
        self._blocks: list[str] = []
        self._files: dict[str, str] = {}  # SVG files of figures, by their path
        self._shown: dict[str, Markup] = {}  # the same figures as HTML
        self.missing_charts: list[str] = []

    def heading(self, text: str, level: int = 2) -> None:
        """Add a heading; level 1 is the title."""
        self._blocks.append(f"{'#' * level} {escape(text)}")

    def text(self, text: str) -> None:
        self._blocks.append(escape(text))

    def items(self, lines: Iterable[str]) -> None:
        self._blocks.append("\n".join(f"- {escape(line)}" for line in lines))

    def failures(self, jobs: Sequence[Job]) -> list[Result]:
        """Say which jobs could not be run, and why; return the results of the others."""
        failed = self.results.failed
        if reasons := dict.fromkeys(failed[job.name] for job in jobs if job.name in failed):
            self.text("Not run:")
            self.items(reasons)
        return self.results.of_all(jobs)

    def code(self, text: str) -> None:
        """Add a command, or what a command printed."""
        self._blocks.append(f"```text\n{legal(text).replace('```', '` ` `')}\n```")

    def table(
        self, header: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1, title: str = ""
    ) -> None:
        """Add a table; the first `texts` columns hold text, the others numbers."""
        if title:
            self._blocks.append(bold(title))
        rule = ["---" if column < texts else "---:" for column in range(len(header))]
        lines: list[Sequence[str]] = [[escape(cell) for cell in header], rule]
        lines += [[escape(cell) for cell in row] for row in rows]
        self._blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))

    def chart(self, name: str, draw: Callable[[], str], caption: str) -> None:
        """Add a matplotlib chart, or say that it is missing if matplotlib is."""
        try:
            svg = draw()
        except MissingMatplotlibError as failure:
            self.missing_charts.append(caption)
            self.text(f"Missing chart: {caption}; {failure}")
            return
        data = base64.b64encode(svg.encode()).decode()
        image = f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(clean(caption))}">'
        path = f"{self._name}-figures/{name}.svg"
        self._files[path], self._shown[path] = svg, Markup(image)
        self._blocks += [f"![{escape(caption)}]({path})", escape(caption)]

    @contextmanager
    def folded(self, summary: str) -> Iterator[None]:
        """Fold what is added meanwhile under a summary."""
        text = html.escape(clean(summary), quote=False)
        self._blocks.append(f"<details><summary>{text}</summary>")
        yield
        self._blocks.append("</details>")

    def markdown(self) -> str:
        return "\n\n".join(self._blocks) + "\n"

    def html(self) -> str:
        """Return the report as one page that needs nothing else."""
        from markdown_it import MarkdownIt
        from markdown_it.renderer import RendererHTML

        def image(_self: RendererHTML, tokens, index, _options, _env) -> str:  # type: ignore[no-untyped-def]
            return self._shown[unquote(tokens[index].attrs["src"])]

        # Raw HTML is for <details>; whatever else a report says is escaped.
        renderer = MarkdownIt("commonmark", {"html": True}).enable("table")
        renderer.add_render_rule("image", image)
        style = _FILES.joinpath("report.css").read_text("utf-8")
        return page(self._title, Markup(renderer.render(self.markdown())), style=f"\n{style}")

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write the report, and return the paths of the HTML and of the Markdown."""
        (folder / f"{self._name}-figures").mkdir(parents=True, exist_ok=True)
        page, text = f"{self._name}.html", f"{self._name}.md"
        for path, content in {**self._files, page: self.html(), text: self.markdown()}.items():
            write_text(folder / path, content)
        return folder / page, folder / text

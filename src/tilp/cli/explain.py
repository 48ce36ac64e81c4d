"""The command that explains an answer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli.console import output, print_json, say
from tilp.cli.options import EndOption, JsonOption, Model, StartOption, load_model
from tilp.errors import TilpError
from tilp.types import End

if TYPE_CHECKING:
    from rich.table import Table

    from tilp.explanation import Explanation
    from tilp.explanation.render import Line
    from tilp.scoring import Query


def explain_command(
    model: Model,
    relation: Annotated[str, typer.Option("--relation", help="The relation of the fact.")],
    subject: Annotated[
        str | None, typer.Option("--subject", show_default=False, help="Its subject.")
    ] = None,
    object: Annotated[
        str | None, typer.Option("--object", show_default=False, help="Its object.")
    ] = None,
    start: StartOption = None,
    end: EndOption = None,
    candidate: Annotated[
        str | None,
        typer.Option(
            "--candidate",
            show_default="the best",
            help="Who is explained as an answer, where one end is given.",
        ),
    ] = None,
    ask: Annotated[
        End | None,
        typer.Option(
            "--ask",
            show_default="object",
            help="Where both ends are given: which of them is asked for and explained.",
        ),
    ] = None,
    groundings: Annotated[
        int, typer.Option("--groundings", min=0, help="Walks of each reason at the most.")
    ] = 3,
    reasons: Annotated[
        int, typer.Option("--reasons", min=1, help="How many reasons, the largest first.")
    ] = 10,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="A file for it as a page, with pictures of the facts."),
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", help="A file for a picture of the facts that count most."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say why: the rules, facts and walks behind an answer, which add up to its score.

    With --subject and --object the object is explained as an answer to the subject's question;
    with one of them the best answer is, or the --candidate. Of one that is not the best, it says
    what the best has more.
    """
    from tilp.explanation.render import explanation_page

    query, wanted = _asked(relation, subject, object, start, end, candidate, ask)
    found = load_model(model, None).explain(query, wanted, groundings=groundings, top=reasons)
    for path, drawn in ((html, explanation_page), (svg, _picture)):
        if path is not None:
            path.write_text(drawn(found), encoding="utf-8", newline="\n")
            say(f"wrote {path}")
    if json:
        print_json(found.to_json())
    else:
        print_explanation(found)


def _picture(one: Explanation) -> str:
    """The grounding that the score hangs on most."""
    from tilp.explanation.attribution import top_grounding
    from tilp.explanation.render import draw_grounding
    from tilp.viz import standalone

    top = top_grounding(one.shown)
    if top is None:
        raise TilpError(
            "there is nothing to draw: no reason that is shown has facts that speak for it; ask "
            "for more --reasons or --groundings"
        )
    return standalone(draw_grounding(top[0], one.query, one.candidate))


def _asked(
    relation: str,
    subject: str | None,
    object: str | None,
    start: str | None,
    end: str | None,
    candidate: str | None,
    ask: End | None,
) -> tuple[Query, str | None]:
    """The query, and who is explained as an answer to it."""
    from tilp.scoring import Query

    if subject is None and object is None:
        raise TilpError("give --subject or --object, or both")
    if subject is None or object is None:
        given = End.OBJECT if subject is None else End.SUBJECT
        if ask is given:
            raise TilpError(f"the {given.value} is given, and cannot be asked for")
        return Query(relation, subject, object, start, end), candidate
    if candidate is not None:
        raise TilpError("with --subject and --object one of them is explained, not --candidate")
    if ask is End.SUBJECT:
        return Query(relation, None, object, start, end), subject
    return Query(relation, subject, None, start, end), object


def print_explanation(one: Explanation) -> None:
    """Reasons, and what the best has more, as tables."""
    from tilp.explanation.render import ablation_text, contrast_lines, reason_lines, summary_line

    console = output()
    console.print(f"{one.query}: why {one.candidate}?", style="bold")
    console.print(summary_line(one))
    console.print(_table("adds", reason_lines(one)))
    if one.ablation is not None:
        console.print(ablation_text(one.ablation))
    if one.contrasts:
        console.print(f"What {one.winner} has more than {one.candidate}:", style="bold")
        console.print(_table("more", contrast_lines(one)))


def _table(title: str, lines: Iterable[Line]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
    table.add_column(title, justify="right", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for line in lines:
        style = "green" if line.score > 0 else "red"
        notes = "".join(f"\n  {note}" for note in line.notes)
        table.add_row(
            Text(f"{line.score:+.4f}", style=style), Text(line.text).append(notes, style="dim")
        )
    return table

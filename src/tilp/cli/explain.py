"""`tilp explain`: the reasons for an answer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilp.cli import options
from tilp.cli.console import output, print_json, print_table, say
from tilp.errors import TilpError
from tilp.types import End

if TYPE_CHECKING:
    from tilp.explanation import Explanation
    from tilp.explanation.render import Line
    from tilp.scoring import Query


def explain_command(
    model: options.ModelArgument,
    relation: Annotated[str, typer.Option("--relation", help="Relation of the fact.")],
    subject: Annotated[
        str | None, typer.Option("--subject", show_default=False, help="Its subject.")
    ] = None,
    object: Annotated[
        str | None, typer.Option("--object", show_default=False, help="Its object.")
    ] = None,
    start: options.StartOption = None,
    end: options.EndOption = None,
    candidate: Annotated[
        str | None,
        typer.Option(
            "--candidate",
            show_default="the best",
            help="The candidate to explain, if only --subject or --object is given.",
        ),
    ] = None,
    ask: Annotated[
        End | None,
        typer.Option(
            "--ask",
            show_default="object",
            help="If both --subject and --object are given: which of them to explain.",
        ),
    ] = None,
    groundings: Annotated[
        int, typer.Option("--groundings", min=0, help="Greatest number of walks per reason.")
    ] = 3,
    reasons: Annotated[
        int, typer.Option("--reasons", min=1, help="Number of reasons, the largest first.")
    ] = 10,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write an HTML page with pictures of the facts.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Draw the facts that contribute most.")
    ] = None,
    json: options.JsonOption = False,
) -> None:
    """Explain an answer: the rules, facts and walks whose contributions add up to its score.

    With --subject and --object, the object is explained as an answer for the subject. With one
    of them, the best answer is, or the --candidate. If it is not the best, the explanation also
    shows what the best has more.
    """
    from tilp.explanation.render import explanation_page

    query, answer = _parse_query(relation, subject, object, start, end, candidate, ask)
    explanation = options.load_model(model).explain(
        query, answer, groundings=groundings, max_reasons=reasons
    )
    for path, render in ((html, explanation_page), (svg, _picture)):
        if path is not None:
            path.write_text(render(explanation), encoding="utf-8", newline="\n")
            say(f"wrote {path}")
    if json:
        print_json(explanation.to_json())
    else:
        print_explanation(explanation)


def _parse_query(
    relation: str,
    subject: str | None,
    object: str | None,
    start: str | None,
    end: str | None,
    candidate: str | None,
    ask: End | None,
) -> tuple[Query, str | None]:
    """Return the query and the candidate to explain; None is the best one."""
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


def _picture(explanation: Explanation) -> str:
    """Draw the grounding with the largest contribution."""
    from tilp.explanation.attribution import top_grounding
    from tilp.explanation.render import draw_grounding
    from tilp.viz import standalone

    top = top_grounding(explanation.shown)
    if top is None:
        raise TilpError(
            "there is nothing to draw: no reason shown has facts in its favour; raise --reasons "
            "or --groundings"
        )
    return standalone(draw_grounding(top[0], explanation.query, explanation.candidate))


def print_explanation(explanation: Explanation) -> None:
    """Print the reasons as a table, and what the best candidate has more."""
    from tilp.explanation.render import ablation_text, contrast_lines, reason_lines, summary_line

    console = output()
    console.print(f"{explanation.query}: why {explanation.candidate}?", style="bold")
    console.print(summary_line(explanation))
    _print_reasons("adds", reason_lines(explanation))
    if explanation.ablation is not None:
        console.print(ablation_text(explanation.ablation))
    if explanation.contrasts:
        console.print(
            f"What {explanation.winner} has more than {explanation.candidate}:", style="bold"
        )
        _print_reasons("more", contrast_lines(explanation))


def _print_reasons(score: str, lines: Iterable[Line]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.text import Text

    rows = (
        (
            Text(f"{line.score:+.4f}", style="green" if line.score > 0 else "red"),
            Text(line.text).append("".join(f"\n  {note}" for note in line.notes), style="dim"),
        )
        for line in lines
    )
    print_table(
        None,
        (score, "reason"),
        rows,
        right=(score,),
        box=SIMPLE_HEAD,
        pad_edge=False,
        header_style="dim",
    )

"""Explanations for people: a few lines for each reason."""

from __future__ import annotations

from collections.abc import Iterator

from tilp.explanation.parts import Explanation, Grounding, Reason
from tilp.rules import MinedRule

__all__ = ["explanation_text", "grounding_line", "rule_line", "standing_line"]


def explanation_text(one: Explanation) -> str:
    """What `str(explanation)` gives."""
    return "\n".join([_title(one), standing_line(one), "", *_reasons(one), *_lacking(one)])


def _title(one: Explanation) -> str:
    return f"{one.query}: why {one.candidate}?"


def standing_line(one: Explanation) -> str:
    """Rank, score and share, and who is first."""
    known = "; already known as an answer at that time" if one.known else ""
    first = "" if one.rank == 1 else f"; first is {one.winner}"
    return f"rank {one.rank:,}, score {one.score:.4g}, share {one.share:.1%}{first}{known}"


def rule_line(rule: MinedRule) -> str:
    """What was counted of a rule, and its weight."""
    weight = "" if rule.weight is None else f", weight {rule.weight:.3g}"
    return f"confidence {rule.confidence:.2f}, support {rule.support:,} of {rule.facts:,}{weight}"


def grounding_line(one: Grounding) -> str:
    """The facts of a grounding, in order."""
    return ", ".join(str(step.fact) for step in one.steps)


def _reasons(one: Explanation) -> Iterator[str]:
    for reason in one.shown:
        yield from _reason_lines(reason, f"{reason.score:+.4f}")
    hidden = one.reasons[len(one.shown) :]
    if hidden:
        score = sum(reason.score for reason in hidden)
        yield f"{score:+.4f}  {len(hidden):,} further reasons"


def _lacking(one: Explanation) -> Iterator[str]:
    if not one.lacks:
        return
    yield ""
    yield f"What {one.winner} has that it lacks, the score of either:"
    for lack in one.shown_lacks:
        if lack.winner > lack.candidate:
            yield from _reason_lines(lack.reason, f"{lack.winner:+.4f} / {lack.candidate:+.4f}")


def _reason_lines(one: Reason, scores: str) -> Iterator[str]:
    yield f"{scores}  {one.kind}: {one.words}"
    indent = " " * len(scores)
    if one.rule is not None:
        yield f"{indent}    {rule_line(one.rule)}"
    for grounding in one.groundings:
        yield f"{indent}    {grounding_line(grounding)}"
    if one.walks > len(one.groundings) > 0:
        yield f"{indent}    … {one.walks:,} walks in all"

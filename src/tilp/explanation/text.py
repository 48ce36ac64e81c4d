"""Explanations for people: what each reason adds, in words, and the facts behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilp.explanation.parts import Explanation, Fall, Grounding, Lack, Reason

__all__ = [
    "Line",
    "explanation_text",
    "fall_text",
    "grounding_text",
    "lack_lines",
    "reason_lines",
    "standing",
]

_FAR = 0.1  # of the score


@dataclass(frozen=True, slots=True)
class Line:
    """One reason as it is shown.

    Attributes:
        score: what it adds; of lacks, what the winner has more.
        words: what it is.
        notes: what stands below it: counts, and the facts of its groundings.
        reason: itself; None for several in one line.
        whom: the candidate that its groundings speak of.
    """

    score: float
    words: str
    notes: tuple[str, ...] = ()
    reason: Reason | None = None
    whom: str = ""


def explanation_text(one: Explanation) -> str:
    """What `str(explanation)` gives."""
    found = [f"{one.query}: why {one.candidate}?", standing(one), "", *_written(reason_lines(one))]
    if one.fall is not None:
        found += ["", fall_text(one.fall)]
    if one.lacks:
        found += ["", f"What {one.winner} has more than {one.candidate}:"]
        found += _written(lack_lines(one))
    return "\n".join(found)


def standing(one: Explanation) -> str:
    """Rank, score and share, and who is first."""
    first = "" if one.rank == 1 else f"; first is {one.winner}"
    known = "; already known as an answer at that time" if one.known else ""
    return f"rank {one.rank:,}, score {one.score:.4f}, share {one.share:.1%}{first}{known}"


def reason_lines(one: Explanation) -> Iterator[Line]:
    """The reasons that are shown, and all others in one line; the scores add up to the whole."""
    for reason in one.shown:
        words, notes = f"{reason.kind}: {reason.words}", tuple(_notes(reason))
        yield Line(reason.score, words, notes, reason, one.candidate)
    hidden = one.reasons[len(one.shown) :]
    if hidden:
        words = f"{_many(len(hidden), 'further reason')}: {_kinds(hidden)}"
        yield Line(sum(reason.score for reason in hidden), words)


def lack_lines(one: Explanation) -> Iterator[Line]:
    """The lacks that are shown where the winner has more, the others in one line or two."""
    shown = [lack for lack in one.shown_lacks if lack.winner > lack.candidate]
    for lack in shown:
        words = f"{lack.reason.kind}: {lack.reason.words}"
        if lack.candidate:
            words += f" ({lack.winner:+.4f} against {lack.candidate:+.4f})"
        whom = one.winner if lack.winner else one.candidate
        notes = tuple(_notes(lack.reason))
        yield Line(lack.winner - lack.candidate, words, notes, lack.reason, whom)
    rest = one.lacks[len(shown) :]
    hidden = [lack for lack in rest if lack.winner > lack.candidate]
    against = [lack for lack in rest if lack.winner < lack.candidate]
    if hidden:
        words = f"{_many(len(hidden), 'further difference')}: {_kinds(hidden)}"
        yield Line(sum(lack.winner - lack.candidate for lack in hidden), words)
    if against:
        words = f"what {one.candidate} has more: {_kinds(against)}"
        yield Line(sum(lack.winner - lack.candidate for lack in against), words)


def grounding_text(one: Grounding) -> str:
    """The facts of a walk, an arrow for each: against it, where one is read backwards."""
    found = one.steps[0].source
    for step in one.steps:
        arrow = "←" if step.inverse else "→"
        dates = step.fact.interval.format(step.fact.unit)
        found += f" {arrow} {step.fact.relation} {dates} {arrow} {step.target}"
    return found


def fall_text(one: Fall) -> str:
    """What happens to the score without the facts of the top grounding."""
    change = "falls" if one.fall >= 0 else "rises"
    return (
        f"Without {grounding_text(one.grounding)} the score {change} by {abs(one.fall):.4f} to "
        f"{one.score:.4f}; by plain shares {one.share:.1%} of it hangs on these facts"
        f"{_why_apart(one)}"
    )


def _why_apart(one: Fall) -> str:
    """Why what is lost is not what plain shares say, where the two are far apart."""
    before = one.score + one.fall
    apart = one.fall - one.share * before
    if before <= 0 or abs(apart) < _FAR * before:  # of such a score nothing hangs by shares
        return ""
    if apart < 0:
        return ", but without them other walks and facts take over much of it"
    return ", and more goes with them: other rules lose walks too"


def _notes(one: Reason) -> Iterator[str]:
    if one.rule is not None:
        rule = one.rule
        weight = "" if rule.weight is None else f", weight {rule.weight:.3g}"
        support = f"support {rule.support:,} of {rule.facts:,}"
        yield f"confidence {rule.confidence:.2f}, {support}{weight}"
    for grounding in one.groundings:
        yield grounding_text(grounding)
    if one.walks > len(one.groundings):
        yield f"{'… ' if one.groundings else ''}{one.walks:,} walks in all"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _kinds(some: Sequence[Reason] | Sequence[Lack]) -> str:
    """How many of which kinds are not shown one by one."""
    reasons = [one.reason if isinstance(one, Lack) else one for one in some]
    kinds = Counter(reason.kind for reason in reasons)
    return ", ".join(f"{count:,} × {kind}" for kind, count in kinds.most_common())


def _written(lines: Iterator[Line]) -> Iterator[str]:
    for line in lines:
        yield f"{line.score:+9.4f}  {line.words}"
        for note in line.notes:
            yield f"{' ' * 13}{note}"

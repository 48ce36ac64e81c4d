"""Render explanations as text, JSON, HTML and pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any

from tilp.explanation.types import (
    AblationEffect,
    Contrast,
    Explanation,
    Grounding,
    Reason,
    WalkedFact,
)
from tilp.pictures import Chain, Link, draw_chain
from tilp.pictures.markup import Markup, bar, element, fragment, page
from tilp.rules import MinedRule, Notation, format_rule
from tilp.scoring import Query
from tilp.time import format_time
from tilp.types import Unit

Json = dict[str, Any]


def explanation_json(one: Explanation) -> Json:
    """All of an explanation that is shown; `rest` and `lacks_rest` tell what is not."""
    hidden, more = one.reasons[len(one.shown) :], one.lacks[len(one.shown_lacks) :]
    return {
        "query": asdict(one.query),
        "candidate": one.candidate,
        "rank": one.rank,
        "score": one.score,
        "share": one.share,
        "known": one.known,
        "winner": one.winner,
        "reasons": [_reason(reason) for reason in one.shown],
        "rest": {"count": len(hidden), "score": sum(reason.score for reason in hidden)},
        "fall": None if one.fall is None else _fall(one.fall),
        "lacks": [_lack(lack) for lack in one.shown_lacks],
        "lacks_rest": {
            "count": len(more),
            "winner": sum(lack.winner for lack in more),
            "candidate": sum(lack.candidate for lack in more),
        },
    }


def _reason(one: Reason) -> Json:
    return {
        "kind": one.kind,
        "score": one.score,
        "words": one.words,
        "walks": one.walks,
        "rule": None if one.rule is None else _rule(one.rule),
        "groundings": [_grounding(grounding) for grounding in one.groundings],
    }


def _rule(one: MinedRule) -> Json:
    return {
        "text": str(one.rule),
        "sentence": format_rule(one.rule, Notation.SENTENCE),
        "confidence": one.confidence,
        "support": one.support,
        "fired": one.body_support,
        "facts": one.facts,
        "weight": one.weight,
    }


def _grounding(one: Grounding) -> Json:
    return {
        "facts": [
            {
                "number": step.number,
                "subject": step.fact.subject,
                "relation": step.fact.relation,
                "object": step.fact.object,
                "start": format_time(step.fact.interval.start, step.fact.unit) or None,
                "end": format_time(step.fact.interval.end, step.fact.unit) or None,
                "inverse": step.inverse,
            }
            for step in one.steps
        ]
    }


def _fall(one: AblationEffect) -> Json:
    return {
        "grounding": _grounding(one.grounding),
        "share": one.share,
        "score": one.score,
        "fall": one.fall,
    }


def _lack(one: Contrast) -> Json:
    return {"reason": _reason(one.reason), "winner": one.winner, "candidate": one.candidate}


def draw_grounding(grounding: Grounding, query: Query, candidate: str) -> str:
    """A picture of a grounding, as SVG.

    Args:
        grounding: a walk from the query's subject (or the object, where that is given) to the
            candidate; or a fact that one of these two has.
        query: as it was asked.
        candidate: the answer that the grounding speaks for.
    """
    unit = grounding.steps[0].fact.unit if grounding.steps else Unit.YEAR
    asked = query.interval(unit)
    nodes, steps, ends = _laid_out(grounding.steps, query.given, candidate)
    numbers = count(1)
    links = tuple(
        None
        if step is None
        else Link.dated(
            step.fact.relation,
            step.fact.interval,
            unit,
            asked,
            inverse=step.inverse,
            mark=str(next(numbers)),
        )
        for step in steps
    )
    inverse = query.subject != query.given
    head = Link.dated(query.relation, asked, unit, None, inverse=inverse, mark="?")
    return draw_chain(Chain(tuple(nodes), links, head, ends, unit))


def _laid_out(
    steps: Sequence[WalkedFact], given: str, candidate: str
) -> tuple[list[str], list[WalkedFact | None], tuple[int, int]]:
    """Names in a row, the facts between them, and the places of what is given and asked for."""
    path = [step.source for step in steps[:1]] + [step.target for step in steps]
    walked: list[WalkedFact | None] = list(steps)
    if path and path[-1] == candidate:
        # What is given may be told by its id, but a walk to the candidate begins there.
        return path, walked, (0, len(steps))
    if path and (path[0], path[-1]) == (candidate, given):
        back = [replace(step, inverse=not step.inverse) for step in reversed(steps)]
        return path[::-1], [*back], (0, len(steps))
    if not path:
        return [given, candidate], [None], (0, 1)
    if path[0] != given:
        path, walked = [given, *path], [None, *walked]
    if candidate not in path[1:]:
        path, walked = [*path, candidate], [*walked, None]
    return path, walked, (0, path.index(candidate, 1))


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


def fall_text(one: AblationEffect) -> str:
    """What happens to the score without the facts of the top grounding."""
    change = "falls" if one.fall >= 0 else "rises"
    return (
        f"Without {grounding_text(one.grounding)} the score {change} by {abs(one.fall):.4f} to "
        f"{one.score:.4f}; by plain shares {one.share:.1%} of it hangs on these facts"
        f"{_why_apart(one)}"
    )


def _why_apart(one: AblationEffect) -> str:
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


def _kinds(some: Sequence[Reason] | Sequence[Contrast]) -> str:
    """How many of which kinds are not shown one by one."""
    reasons = [one.reason if isinstance(one, Contrast) else one for one in some]
    kinds = Counter(reason.kind for reason in reasons)
    return ", ".join(f"{count:,} × {kind}" for kind, count in kinds.most_common())


def _written(lines: Iterator[Line]) -> Iterator[str]:
    for line in lines:
        yield f"{line.score:+9.4f}  {line.words}"
        for note in line.notes:
            yield f"{' ' * 13}{note}"


def explanation_html(one: Explanation) -> str:
    """What stands within a page or a notebook."""
    return fragment(*_parts(one))


def explanation_page(one: Explanation) -> str:
    """A page of its own, which needs nothing else."""
    return page(f"{one.query}: why {one.candidate}?", *_parts(one))


def _parts(one: Explanation) -> Iterator[Markup]:
    yield element("h2", f"Why {one.candidate}?")
    yield element("p", str(one.query))
    yield element("p", standing(one), class_="tilp-soft")
    yield element("h3", "Reasons, which add up to the score")
    yield from _reasons(one.query, list(reason_lines(one)), opened=1)
    if one.fall is not None:
        yield element("h3", "Without the facts of the top grounding")
        yield element("p", fall_text(one.fall))
        yield _figure(one.fall.grounding, one.query, one.candidate)
    if one.lacks:
        yield element("h3", f"What {one.winner} has more than {one.candidate}")
        yield from _reasons(one.query, list(lack_lines(one)), opened=0)


def _reasons(query: Query, lines: Sequence[Line], opened: int) -> Iterator[Markup]:
    """Reasons with their bars, the first few with their facts in sight."""
    scores = [0.0, *(line.score for line in lines)]
    for number, line in enumerate(lines):
        row = element(
            "span",
            bar(line.score, min(scores), max(scores)),
            element("span", f"{line.score:+.4f}", class_="tilp-number"),
            element("span", line.words),
            class_="tilp-row",
        )
        inner = list(_behind(query, line))
        if inner:
            opening = {"open": None} if number < opened else {}
            box = element("div", *inner, class_="tilp-inner")
            row = element("details", element("summary", row), box, **opening)
        yield element("div", row, class_="tilp-reason")


def _behind(query: Query, line: Line) -> Iterator[Markup]:
    """What was counted of a reason, and the facts behind it."""
    groundings = () if line.reason is None else line.reason.groundings
    captions = [grounding_text(one) for one in groundings]
    for note in line.notes:
        if note in captions:
            yield _figure(groundings[captions.index(note)], query, line.whom, note)
        else:
            yield element("p", note, class_="tilp-soft")


def _figure(grounding: Grounding, query: Query, candidate: str, caption: str = "") -> Markup:
    picture = Markup(draw_grounding(grounding, query, candidate))
    return element("figure", *([element("figcaption", caption)] if caption else []), picture)

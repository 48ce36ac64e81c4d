"""Render explanations as text, JSON, HTML and pictures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any

from tilp.explanation.types import AblationEffect, Explanation, Grounding, Reason, WalkedFact
from tilp.rules import Notation, format_rule
from tilp.scoring import Query
from tilp.time import format_time
from tilp.types import Unit
from tilp.viz import Chain, Link, draw_chain
from tilp.viz.html import Markup, bar, element, page

Json = dict[str, Any]

_FAR = 0.1  # share of the score
_PLAIN = ("candidate", "rank", "score", "share", "known", "winner")


def explanation_json(explanation: Explanation) -> Json:
    """Return what is shown of an explanation; `rest` and `lacks_rest` sum up the others."""
    effect, fall = explanation.ablation, None
    if effect is not None:
        figures = {"share": effect.share, "score": effect.score_without, "fall": effect.drop}
        fall = {"grounding": _grounding_json(effect.grounding), **figures}
    hidden = explanation.reasons[len(explanation.shown) :]
    hidden_contrasts = explanation.contrasts[len(explanation.shown_contrasts) :]
    return {
        "query": asdict(explanation.query),
        **{name: getattr(explanation, name) for name in _PLAIN},
        "reasons": [_reason_json(reason) for reason in explanation.shown],
        "rest": {"count": len(hidden), "score": sum(reason.score for reason in hidden)},
        "fall": fall,
        "lacks": [
            {"reason": _reason_json(c.reason), "winner": c.winner, "candidate": c.candidate}
            for c in explanation.shown_contrasts
        ],
        "lacks_rest": {
            "count": len(hidden_contrasts),
            "winner": sum(contrast.winner for contrast in hidden_contrasts),
            "candidate": sum(contrast.candidate for contrast in hidden_contrasts),
        },
    }


def _reason_json(reason: Reason) -> Json:
    mined, rule = reason.rule, None
    if mined is not None:
        rule = {
            "text": str(mined.rule),
            "sentence": format_rule(mined.rule, Notation.SENTENCE),
            "confidence": mined.confidence,
            "support": mined.support,
            "fired": mined.body_support,
            "facts": mined.facts,
            "weight": mined.weight,
        }
    return {
        "kind": reason.kind,
        "score": reason.score,
        "words": reason.text,
        "walks": reason.walks,
        "rule": rule,
        "groundings": [_grounding_json(grounding) for grounding in reason.groundings],
    }


def _grounding_json(grounding: Grounding) -> Json:
    facts = []
    for step in grounding.steps:
        fact, times = step.fact, step.fact.interval
        names = {"subject": fact.subject, "relation": fact.relation, "object": fact.object}
        start, end = (format_time(time, fact.unit) or None for time in (times.start, times.end))
        dates = {"start": start, "end": end}
        facts.append({"number": step.fact_id, **names, **dates, "inverse": step.inverse})
    return {"facts": facts}


def draw_grounding(grounding: Grounding, query: Query, candidate: str) -> str:
    """Draw as SVG a walk from the query's given end to a candidate, or a fact of one of them."""
    unit = grounding.steps[0].fact.unit if grounding.steps else Unit.YEAR
    interval = query.interval(unit)
    nodes, steps, ends = _layout(grounding.steps, query.given, candidate)
    marks = count(1)
    links = []
    for step in steps:
        link = None
        if step is not None:
            fact, mark = step.fact, str(next(marks))
            dates = fact.interval, unit, interval
            link = Link.dated(fact.relation, *dates, inverse=step.inverse, mark=mark)
        links.append(link)
    inverse = query.subject != query.given
    head = Link.dated(query.relation, interval, unit, None, inverse=inverse, mark="?")
    return draw_chain(Chain(tuple(nodes), tuple(links), head, ends, unit))


def _layout(
    steps: Sequence[WalkedFact], given: str, candidate: str
) -> tuple[list[str], list[WalkedFact | None], tuple[int, int]]:
    """Return names in a row, the facts between them, and the indices of the query's two ends."""
    path = [step.source for step in steps[:1]] + [step.target for step in steps]
    walked: list[WalkedFact | None] = list(steps)
    if path and path[-1] == candidate:
        # The query may give an id, but a walk to the candidate begins at what is given.
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


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an explanation."""

    score: float  # of contrasts, the difference in favour of the winner
    text: str
    notes: tuple[str, ...] = ()  # lines below it: counts, and the facts of groundings
    reason: Reason | None = None  # None if the line sums up several
    candidate: str = ""  # that the groundings are about


def explanation_text(explanation: Explanation) -> str:
    """Return an explanation as text."""
    name = explanation.candidate
    lines = [f"{explanation.query}: why {name}?", summary_line(explanation), ""]
    lines += _text_lines(reason_lines(explanation))
    if explanation.ablation is not None:
        lines += ["", ablation_text(explanation.ablation)]
    if explanation.contrasts:
        lines += ["", f"What {explanation.winner} has more than {name}:"]
        lines += _text_lines(contrast_lines(explanation))
    return "\n".join(lines)


def _text_lines(lines: Iterator[Line]) -> Iterator[str]:
    for line in lines:
        yield f"{line.score:+9.4f}  {line.text}"
        for note in line.notes:
            yield f"{' ' * 13}{note}"


def summary_line(explanation: Explanation) -> str:
    """Return rank, score and share, and the name of the winner."""
    rank, score, share = explanation.rank, explanation.score, explanation.share
    first = "" if rank == 1 else f"; first is {explanation.winner}"
    known = "; already known as an answer at that time" if explanation.known else ""
    return f"rank {rank:,}, score {score:.4f}, share {share:.1%}{first}{known}"


def reason_lines(explanation: Explanation) -> Iterator[Line]:
    """Return a line for each reason that is shown, and one for all others."""
    for reason in explanation.shown:
        text, notes = f"{reason.kind}: {reason.text}", tuple(_notes(reason))
        yield Line(reason.score, text, notes, reason, explanation.candidate)
    hidden = explanation.reasons[len(explanation.shown) :]
    if hidden:
        text = f"{_counted(len(hidden), 'further reason')}: {_kinds(hidden)}"
        yield Line(sum(reason.score for reason in hidden), text)


def contrast_lines(explanation: Explanation) -> Iterator[Line]:
    """Return a line for each shown contrast in favour of the winner, and one or two for others."""
    shown = [one for one in explanation.shown_contrasts if one.winner > one.candidate]
    for contrast in shown:
        text = f"{contrast.reason.kind}: {contrast.reason.text}"
        if contrast.candidate:
            text += f" ({contrast.winner:+.4f} against {contrast.candidate:+.4f})"
        name = explanation.winner if contrast.winner else explanation.candidate
        notes = tuple(_notes(contrast.reason))
        yield Line(contrast.winner - contrast.candidate, text, notes, contrast.reason, name)
    rest = explanation.contrasts[len(shown) :]
    hidden = [contrast for contrast in rest if contrast.winner > contrast.candidate]
    against = [contrast for contrast in rest if contrast.winner < contrast.candidate]
    for contrasts, title in (
        (hidden, _counted(len(hidden), "further difference")),
        (against, f"what {explanation.candidate} has more"),
    ):
        if contrasts:
            score = sum(contrast.winner - contrast.candidate for contrast in contrasts)
            yield Line(score, f"{title}: {_kinds([contrast.reason for contrast in contrasts])}")


def grounding_text(grounding: Grounding) -> str:
    """Return the facts of a walk, with an arrow for each in the direction of the fact."""
    text = grounding.steps[0].source
    for step in grounding.steps:
        arrow = "←" if step.inverse else "→"
        dates = step.fact.interval.format(step.fact.unit)
        text += f" {arrow} {step.fact.relation} {dates} {arrow} {step.target}"
    return text


def ablation_text(effect: AblationEffect) -> str:
    """Return a sentence on the score without the facts of the top grounding."""
    change = "falls" if effect.drop >= 0 else "rises"
    score = effect.score_without + effect.drop
    difference, why = effect.drop - effect.share * score, ""
    if score > 0 and abs(difference) >= _FAR * score:
        why = ", and more goes with them: other rules lose walks too"
        if difference < 0:
            why = ", but without them other walks and facts take over much of it"
    return (
        f"Without {grounding_text(effect.grounding)} the score {change} by {abs(effect.drop):.4f} "
        f"to {effect.score_without:.4f}; {effect.share:.1%} of the score is attributed to these "
        f"facts{why}"
    )


def _notes(reason: Reason) -> Iterator[str]:
    if reason.rule is not None:
        yield reason.rule.figures
    for grounding in reason.groundings:
        yield grounding_text(grounding)
    if reason.walks > len(reason.groundings):
        yield f"{'… ' if reason.groundings else ''}{reason.walks:,} walks in all"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _kinds(reasons: Sequence[Reason]) -> str:
    kinds = Counter(reason.kind for reason in reasons)
    return ", ".join(f"{count:,} × {kind}" for kind, count in kinds.most_common())


def explanation_page(explanation: Explanation) -> str:
    """Return an explanation as an HTML page of its own."""
    title = f"{explanation.query}: why {explanation.candidate}?"
    return page(title, *explanation_html(explanation))


def explanation_html(explanation: Explanation) -> Iterator[Markup]:
    """Yield the elements of an explanation as HTML."""
    query, name = explanation.query, explanation.candidate
    yield element("h2", f"Why {name}?")
    yield element("p", str(query))
    yield element("p", summary_line(explanation), class_="tilp-soft")
    yield element("h3", "Reasons, which add up to the score")
    yield from _html_lines(query, list(reason_lines(explanation)), opened=1)
    if explanation.ablation is not None:
        yield element("h3", "Without the facts of the top grounding")
        yield element("p", ablation_text(explanation.ablation))
        yield _figure(explanation.ablation.grounding, query, name)
    if explanation.contrasts:
        yield element("h3", f"What {explanation.winner} has more than {name}")
        yield from _html_lines(query, list(contrast_lines(explanation)), opened=0)


def _html_lines(query: Query, lines: Sequence[Line], opened: int) -> Iterator[Markup]:
    """Return lines with bars; the facts behind the first few are unfolded."""
    scores = [0.0, *(line.score for line in lines)]
    for index, line in enumerate(lines):
        row = element(
            "span",
            bar(line.score, min(scores), max(scores)),
            element("span", f"{line.score:+.4f}", class_="tilp-number"),
            element("span", line.text),
            class_="tilp-row",
        )
        notes = list(_html_notes(query, line))
        if notes:
            opening = {"open": None} if index < opened else {}
            box = element("div", *notes, class_="tilp-inner")
            row = element("details", element("summary", row), box, **opening)
        yield element("div", row, class_="tilp-reason")


def _html_notes(query: Query, line: Line) -> Iterator[Markup]:
    groundings = () if line.reason is None else line.reason.groundings
    captions = [grounding_text(grounding) for grounding in groundings]
    for note in line.notes:
        if note in captions:
            yield _figure(groundings[captions.index(note)], query, line.candidate, note)
        else:
            yield element("p", note, class_="tilp-soft")


def _figure(grounding: Grounding, query: Query, candidate: str, caption: str = "") -> Markup:
    picture = Markup(draw_grounding(grounding, query, candidate))
    return element("figure", *([element("figcaption", caption)] if caption else []), picture)

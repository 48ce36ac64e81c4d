"""Render explanations as text, JSON, HTML and pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import count
from typing import Any

from tilp.explanation.types import SHOWN, Explanation, Grounding, Member, Reason, WalkedFact
from tilp.scoring import Query
from tilp.time import format_time
from tilp.types import Unit
from tilp.viz import Chain, Link, draw_chain
from tilp.viz.html import Markup, bar, element, page

Json = dict[str, Any]

_PLAIN = (
    "claim", "candidate", "rank", "score", "share", "known", "winner",
    "rival", "rival_rank", "rival_score",
)  # fmt: skip


def explanation_json(explanation: Explanation) -> Json:
    """Return an explanation as plain values; `rest` sums up reasons past `max_reasons`."""
    effect, before = explanation.ablation, explanation.before
    n = explanation.max_reasons
    hidden = () if n is None else explanation.reasons[n:]
    return {
        "query": asdict(explanation.query),
        **{name: getattr(explanation, name) for name in _PLAIN},
        "reasons": [_reason_json(reason) for reason in explanation.reasons[:n]],
        "rest": {
            "count": len(hidden),
            "score": float(sum(reason.score for reason in hidden)),
            "rival": float(sum(reason.rival for reason in hidden)),
        },
        "ablation": effect and {
            "facts": [_fact_json(fact) for fact in effect.facts],
            "share": effect.share,
            "score": effect.score_without,
            "drop": effect.drop,
        },
        "removed": [_fact_json(fact) for fact in explanation.removed],
        "before": before and asdict(before),
    }  # fmt: skip


def _reason_json(reason: Reason) -> Json:
    return {
        "kind": reason.kind.value,
        "relations": [str(atom) for atom in reason.relations],
        "sentence": reason.text,
        "score": reason.score,
        "rival": reason.rival,
        "margin": reason.margin,
        "same": reason.same,
        "of_rival": reason.of_rival,
        "walks": reason.walks,
        "groundings": [
            {"facts": [_fact_json(step) for step in grounding.steps]}
            for grounding in reason.groundings
        ],
        "members": [_member_json(member) for member in reason.members],
    }


def _member_json(member: Member) -> Json:
    rule = member.rule and {"text": str(member.rule.rule), **member.rule.statistics}
    plain = {name: getattr(member, name) for name in ("kind", "score", "text", "walks")}
    return {**plain, "rule": rule, "picture": member.picture or None}


def _fact_json(step: WalkedFact) -> Json:
    fact, times = step.fact, step.fact.interval
    start, end = (format_time(time, fact.unit) or None for time in (times.start, times.end))
    names = {"subject": fact.subject, "relation": fact.relation, "object": fact.object}
    return {"id": step.fact_id, **names, "start": start, "end": end, "inverse": step.inverse,
            "hidden_end": step.hidden_end}  # fmt: skip


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
            if step.hidden_end:
                link = replace(link, detail=link.detail.replace("?", "…"))
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


def explanation_text(
    explanation: Explanation, max_reasons: int | None = SHOWN, *, formal: bool = False
) -> str:
    """Return an explanation as text."""
    shown, rest, same = _parts(explanation, max_reasons)
    lines = [f"{explanation.claim}?", *summary_lines(explanation), ""]
    for index, reason in enumerate(shown, start=1):
        prefix, indent = f"{index}. ", " " * (len(str(index)) + 2)
        lines += [prefix + amounts(explanation, reason), indent + reason.text]
        lines += [indent + note for note in reason_notes(reason, formal=formal)]
    lines += rest_lines(explanation, rest, same)
    effect = explanation.ablation
    listed = {
        step.fact_id for reason in shown for one in reason.groundings[:1] for step in one.steps
    }
    if effect is not None and listed.issuperset(fact.fact_id for fact in effect.facts):
        lines += ["", ablation_text(explanation)]
    return "\n".join(lines)


def _parts(
    explanation: Explanation, max_reasons: int | None
) -> tuple[Sequence[Reason], Sequence[Reason], Sequence[Reason]]:
    """Return the reasons to show, the others, and those that are the same for both candidates."""
    if max_reasons is None:
        return explanation.reasons, (), ()
    first, *others = explanation.reasons or (None,)
    deciding = [*filter(None, [first]), *(reason for reason in others if not reason.same)]
    same = [reason for reason in others if reason.same]
    return deciding[:max_reasons], deciding[max_reasons:], same


def summary_lines(explanation: Explanation) -> Iterator[str]:
    """Yield rank, score and share, those of the rival, and how they were with removed facts."""
    rank, score, share = explanation.rank, explanation.score, explanation.share
    known = " The data already have it as an answer at that time." if explanation.known else ""
    yield f"Rank {rank:,}, score {score:.2f}, share {share:.1%}.{known}"
    if explanation.rival:
        at = f"rank {explanation.rival_rank:,}, score {explanation.rival_score:.2f}"
        yield f"Compared with {explanation.rival}: {at}."
    before = explanation.before
    if before is not None:
        facts = ", ".join(map(fact_text, explanation.removed))
        first = f", first was {before.winner}" if before.winner != explanation.winner else ""
        yield f"Without {facts}. With it, rank {before.rank:,}, score {before.score:.2f}{first}."


def amounts(explanation: Explanation, reason: Reason) -> str:
    """Return what a reason adds to the score, and what to that of the rival."""
    return _both_scores(explanation, reason.score, reason.rival)


def _both_scores(explanation: Explanation, score: float, rival: float) -> str:
    return f"{score:+.2f}" + f" ({explanation.rival}: {rival:+.2f})" * bool(explanation.rival)


def reason_notes(reason: Reason, *, formal: bool) -> Iterator[str]:
    """Yield the facts of a reason's sentence with their ids; if formal, its members and rules."""
    for grounding in reason.groundings[:1]:
        yield from map(fact_text, grounding.steps)
    for member in reason.members if formal else ():
        rule = member.rule
        text = member.text if rule is None else f"{rule.rule}  ({rule.figures})"
        yield f"{member.score:+.4f}  {member.kind}: {text}"


def fact_text(step: WalkedFact) -> str:
    """Return a fact with its id."""
    fact = step.fact
    dates = fact.interval.format(fact.unit)
    if step.hidden_end:
        dates = dates.replace("?]", "…]")
    return f"#{step.fact_id} {fact.subject} {fact.relation} {fact.object} {dates}"


def rest_lines(
    explanation: Explanation, rest: Sequence[Reason], same: Sequence[Reason]
) -> Iterator[str]:
    """Yield a line for all reasons that are not shown, and one for those without a difference."""
    if rest:
        score, rival = (sum(getattr(one, name) for one in rest) for name in ("score", "rival"))
        both = _both_scores(explanation, score, rival)
        yield f"{_counted(len(rest), 'further reason')}, together {both}"
    if same:
        score = sum(reason.score for reason in same)
        which = _counted(len(same), "reason")
        yield f"{which} with nearly the same weight for {explanation.rival}: {score:+.2f}"


def ablation_text(explanation: Explanation) -> str:
    """Return a sentence on the score without the facts of the first reason."""
    effect = explanation.ablation
    if effect is None:
        return ""
    ids = [f"#{fact.fact_id}" for fact in effect.facts]
    listed = ", ".join(ids[:-1]) + " and " * (len(ids) > 1) + ids[-1]
    change = "falls" if effect.drop >= 0 else "rises"
    drop, left = abs(effect.drop), effect.score_without
    replaced = effect.drop < 0.5 * effect.share * explanation.score  # of what the reason adds
    others = ": other facts say much the same" if replaced else ""
    return f"Without {listed} the score {change} by {drop:.2f} to {left:.2f}{others}."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def explanation_page(explanation: Explanation) -> str:
    """Return an explanation as an HTML page of its own."""
    return page(f"{explanation.claim}?", *explanation_html(explanation))


def explanation_html(explanation: Explanation) -> Iterator[Markup]:
    """Yield the elements of an explanation as HTML."""
    shown, rest, same = _parts(explanation, SHOWN)
    low = min([0.0, *(reason.score for reason in explanation.reasons)])
    high = max([0.0, *(reason.score for reason in explanation.reasons)])
    yield element("h2", f"{explanation.claim}?")
    for line in summary_lines(explanation):
        yield element("p", line, class_="tilp-soft")
    for index, reason in enumerate(shown):
        yield _html_reason(explanation, reason, (low, high), opened=not index)
    for title, reasons in (
        ("further reason", rest),
        (f"reason with nearly the same weight for {explanation.rival}", same),
    ):
        if reasons:
            score = sum(reason.score for reason in reasons)
            summary = element("summary", f"{len(reasons):,} × {title}: {score:+.2f}")
            inner = [_html_reason(explanation, one, (low, high), opened=False) for one in reasons]
            yield element("details", summary, *inner, class_="tilp-reason")
    if explanation.ablation is not None:
        yield element("p", ablation_text(explanation))


def _html_reason(
    explanation: Explanation, reason: Reason, scale: tuple[float, float], *, opened: bool
) -> Markup:
    """Return a reason that opens to its facts, and those to its members."""
    amount = element("span", amounts(explanation, reason), class_="tilp-number")
    cells = bar(reason.score, *scale), amount, element("span", reason.text)
    row = element("span", *cells, class_="tilp-row")
    name = explanation.rival if reason.of_rival else explanation.candidate
    inner = []
    for grounding in reason.groundings:
        caption = element("figcaption", "; ".join(map(fact_text, grounding.steps)))
        picture = Markup(draw_grounding(grounding, explanation.query, name))
        inner.append(element("figure", caption, picture))
    inner += [element("figure", Markup(one.picture)) for one in reason.members if one.picture]
    notes = reason_notes(replace(reason, groundings=()), formal=True)
    parts = [element("p", note, class_="tilp-soft") for note in notes]
    inner.append(element("details", element("summary", "How the amount is made up"), *parts))
    opening = {"open": None} if opened else {}
    box = element("div", *inner, class_="tilp-inner")
    body = element("details", element("summary", row), box, **opening)
    return element("div", body, class_="tilp-reason")

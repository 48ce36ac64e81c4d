"""Explanations for programs: mappings, lists, texts and numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tilp.explanation.parts import Explanation, Fall, Grounding, Lack, Reason
from tilp.intervals import format_time
from tilp.rules import MinedRule, Notation, format_rule

__all__ = ["explanation_json"]

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
        "fired": one.fired,
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


def _fall(one: Fall) -> Json:
    return {
        "grounding": _grounding(one.grounding),
        "share": one.share,
        "score": one.score,
        "fall": one.fall,
    }


def _lack(one: Lack) -> Json:
    return {"reason": _reason(one.reason), "winner": one.winner, "candidate": one.candidate}

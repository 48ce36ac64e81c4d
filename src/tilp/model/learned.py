"""What phase two learned, as a table: every weight with what it counts for."""

from __future__ import annotations

import numpy as np
import polars as pl

from tilp.choices import EvidenceKind
from tilp.errors import TilpError
from tilp.features.evidence import KINDS as EVIDENCE
from tilp.features.joint import COLUMNS, JointWeights
from tilp.features.own_facts import KINDS, OwnFacts, fact_edges, unit_word
from tilp.features.scoring import TERMS
from tilp.features.weights import FEATURES, FeatureWeights
from tilp.graph import TemporalGraph
from tilp.model.fitting import Fitted
from tilp.rules import RuleSet

__all__ = ["learned_weights"]

_COLUMNS = {
    "query": pl.String,
    "part": pl.String,
    "of": pl.String,
    "words": pl.String,
    "weight": pl.Float64,
    "sentence": pl.String,
}
_WHOSE = {KINDS[0]: "of the candidate", KINDS[1]: "of the candidate with the subject"}
_KINDS = {
    EvidenceKind.BETWEEN: "in facts between candidate and subject",
    EvidenceKind.OTHERS: "in the candidate's other facts",
    EvidenceKind.WALKS: "on walks to the candidate",
}
_MEANING = {
    COLUMNS[0]: "the logarithm of what the rules say together",
    COLUMNS[1]: "walks of any facts, longer than rules, nearer in time likelier",
}


def learned_weights(graph: TemporalGraph, fitted: Fitted) -> pl.DataFrame:
    """The weights of phase two that are not 0, relation by relation, the strongest first.

    Columns:
        query: the relation as it is asked for; null where weights hold for all.
        part: of the score that the weight is in; `mixing`: how much of what was learned counts.
        of: the rule, or the candidate's relation, read from it.
        words: what is said of the candidate's fact and the query's time.
        weight: what is added to the score, for each unit of evidence.
        sentence: all of it in words.

    Args:
        graph: what the model was fitted to.
        fitted: what was learned.

    Raises:
        TilpError: the model has no features.
    """
    if fitted.features is None:
        raise TilpError(
            "the model has rules alone, and learned nothing of features; fit one with "
            "--features full (features='full')"
        )
    if isinstance(fitted.features, JointWeights):
        labels = [graph.relations.label(head) for head in range(2 * len(graph.relations))]
        return pl.concat(
            [
                _of_columns(labels, fitted.features),
                _of_rules(fitted.rules, fitted.features),
                _of_facts(graph, labels, fitted.features),
            ]
        ).sort(
            pl.col("query").replace_strict(
                {label: place for place, label in enumerate(labels)}, return_dtype=pl.Int64
            ),
            maintain_order=True,
        )
    return _of_paper(fitted.features.weights)


def _of_columns(labels: list[str], weights: JointWeights) -> pl.DataFrame:
    rows = []
    for head, label in enumerate(labels):
        mixing = float(weights.mixing[head])
        counts = f"{100 * mixing:.0f} %" if mixing else "nothing"
        rows.append((label, "mixing", None, None, mixing, f"{counts} of what was learned counts"))
        for place, name in enumerate(COLUMNS):
            weight = float(weights.columns[head, place])
            if weight:
                rows.append(
                    (label, name, None, None, weight, f"{name} ({_MEANING[name]}): {weight:+.2f}")
                )
    return pl.DataFrame(rows, _COLUMNS, orient="row")


def _of_rules(rules: RuleSet, weights: JointWeights) -> pl.DataFrame:
    strongest = np.argsort(-np.abs(weights.rule), kind="stable")
    rows = []
    for number in strongest[weights.rule[strongest] != 0].tolist():
        rule, weight = rules[number].rule, float(weights.rule[number])
        words = str(rule)
        rows.append(
            (str(rule.head), "rule evidence", words, None, weight, f"{words}: {weight:+.2f}")
        )
    return pl.DataFrame(rows, _COLUMNS, orient="row")


def _of_facts(graph: TemporalGraph, labels: list[str], weights: JointWeights) -> pl.DataFrame:
    facts = OwnFacts(fact_edges(graph), len(labels), weights.bounds)
    said = [facts.describe(word, unit_word(graph.unit)) for word in range(facts.width)]
    head, group = np.nonzero(weights.row_of >= 0)
    of_row = weights.words[weights.row_of[head, group]]
    row, word = np.nonzero(of_row)
    found = of_row[row, word]
    order = np.argsort(-np.abs(found), kind="stable")
    row, word, found = row[order], word[order], found[order]
    kind, relation = np.divmod(group[row], len(labels))
    names = pl.Series(labels, dtype=pl.String)
    return (
        pl.DataFrame(
            {
                "query": names.gather(head[row]),
                "part": pl.Series(KINDS).gather(kind),
                "of": names.gather(relation),
                "words": pl.Series(said).gather(word),
                "weight": found,
            }
        )
        .with_columns(
            sentence=pl.format(
                "{} {}: {}: {}",
                "of",
                pl.col("part").replace_strict(_WHOSE, return_dtype=pl.String),
                "words",
                pl.Series([f"{one:+.2f}" for one in found], dtype=pl.String),
            )
        )
        .select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())
    )


def _of_paper(weights: FeatureWeights) -> pl.DataFrame:
    """γ_TLR, and the products of γ that each feature counts by (eq. 14, 16, 19-21)."""
    share = weights.features * weights.evidence[:, None] * weights.mixing
    found = {
        f"{feature}_{kind}": float(share[number, place])
        for number, kind in enumerate(EVIDENCE)
        for place, feature in enumerate(FEATURES)
    }
    found["rules"] = weights.rules
    rows = [(None, name, None, None, found[name], _in_words(name)) for name in TERMS if found[name]]
    return pl.DataFrame(rows, _COLUMNS, orient="row")


def _in_words(term: str) -> str:
    feature, _, kind = term.partition("_")
    return f"{feature} {_KINDS[EvidenceKind(kind)]}" if kind else feature

"""Views of a model for requests: its predictions, its rules, its data."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from tilp._utils.arrays import Indices
from tilp.data_quality import facts_over_time, inspect
from tilp.errors import TilpError, UnknownNameError
from tilp.explanation import Explanation, Grounding, WalkedFact
from tilp.explanation.render import draw_grounding
from tilp.graph import SPLITS, KnownFact, TemporalGraph, Vocabulary
from tilp.model import TILP
from tilp.rules import Phrasings, RuleSet
from tilp.rules.picture import draw_rule
from tilp.rules.temporal import gap_parts
from tilp.scoring import Predictions, Query, TopKPredictor
from tilp.scoring.queries import plain_dates, query_table, read_queries, with_dates
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, format_time
from tilp.time.bins import parse_length
from tilp.types import RuleOrder, Unit

_EXAMPLES_TRIED = 32


class ModelView:
    """Predictions and explanations of a model; may be used from several threads at once."""

    def __init__(self, model: TILP) -> None:
        self._model, self._graph, self._scorer = model, model.evidence(), model.scorer()

    def predict(self, query: Query, k: int) -> Predictions:
        """Return the k best candidates of a query."""
        return self._predict(read_queries(query), k)[0]

    def predict_each(self, queries: Sequence[Query], k: int) -> list[Predictions | TilpError]:
        """Return the k best candidates of each query, or why it has none."""
        checked: list[Query | TilpError] = []
        for query in queries:
            try:
                query_table(self._graph, read_queries(query))
                checked.append(query)
            except TilpError as failure:
                checked.append(failure)
        valid = [query for query in checked if isinstance(query, Query)]
        predictions = iter(self._predict(valid, k))
        return [next(predictions) if isinstance(query, Query) else query for query in checked]

    def _predict(self, queries: list[Query], k: int) -> list[Predictions]:
        return TopKPredictor(self._graph, self._scorer, k).predict(queries) if queries else []

    def explain(
        self, query: Query, candidate: str | None, *, against: str | None = None,
        without: Sequence[int] = (), groundings: int, reasons: int, pictures: bool,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the explanation of a candidate (None: the best) as JSON."""
        found = self._model.explain(
            query, candidate, against=against, without=without, groundings=groundings,
            max_reasons=reasons,
        )  # fmt: skip
        known = self._model.known_facts(query, without=without)[:reasons]
        json = found.to_json() | {"known_facts": [asdict(fact) for fact in known]}
        _add_pictures(found, json, drawn=pictures)
        return json

    def when(
        self, subject: str, relation: str, object: str, start: Any, end: Any, at: Any, k: int
    ) -> dict[str, Any]:
        """Return when a fact holds as JSON, and perhaps whether it holds at a date."""
        query = Query(relation, subject, object, start, end)
        predictor = self._model.time_predictor()
        answer = predictor.ask(query, k).to_json()
        return answer if at is None else {**answer, "holds": predictor.holds(query, at)}

    def draw_facts(self, query: Query, candidate: str, steps: Iterable[tuple[int, bool]]) -> str:
        """Draw facts, each a row and whether to read it backwards, as a candidate's grounding."""
        graph = self._graph
        (parsed,) = (plain_dates(query, graph) for query in read_queries([query]))
        table = query_table(graph, [parsed])  # refuses unknown names and dates
        table, walked = self._scorer.rule_scorer.resolve_dates(table), []
        for row, inverse in steps:
            if row >= len(graph):
                raise UnknownNameError(f"no fact has the id {row}; there are {len(graph):,}")
            step = WalkedFact(row, graph.fact(row), inverse)
            walked.append(step.as_of(int(table.latest[0])))
        asked = with_dates(parsed, table, graph.unit)
        name = graph.entities.label(graph.entities.find(candidate))
        return draw_grounding(Grounding(tuple(walked)), asked, name)

    def warm_up(self) -> Query:
        """Compile and load all that answers and explanations need; return an example query."""
        example = self._find_example()
        for answer in self.predict(example, 2):  # the winner, and one to contrast with it
            self.explain(example, answer.id, groundings=3, reasons=20, pictures=True)
        return example

    def _find_example(self) -> Query:
        """Return the query of a held-out fact whose right answer gets the largest share."""
        graph = self._model.graph
        rows = next(np.array(rows) for rows in map(graph.rows, reversed(SPLITS)) if len(rows))
        start, end = graph.start[rows], graph.end[rows]
        dated = rows[(start != UNKNOWN) & (end != UNKNOWN) & (end != OPEN_END)]
        rows = dated if len(dated) else rows
        examples = []
        for row in rows[:: -(-len(rows) // _EXAMPLES_TRIED)].tolist():
            fact, subject = KnownFact.of(graph, row), self._name(int(graph.subject[row]))
            query = Query(fact.relation, subject, None, fact.start or None, fact.end or None)
            best = self.predict(query, 1)[0]
            correct = best.id == graph.entities.id(int(graph.object[row]))
            examples.append((not correct, -best.share, row, query))
        return min(examples)[-1]

    def _name(self, entity: int) -> str:
        """Return the label of an entity, or its id if others have the same label."""
        label = self._graph.entities.label(entity)
        try:
            self._graph.entities.find(label)
        except UnknownNameError:
            return self._graph.entities.id(entity)
        return label


def _add_pictures(explanation: Explanation, json: dict[str, Any], *, drawn: bool) -> None:
    """Add a picture to the JSON of every grounding, `svg`; None unless it is drawn."""
    for reason, listed in zip(explanation.reasons, json["reasons"], strict=False):
        name = explanation.rival if reason.of_rival else explanation.candidate
        for grounding, shown in zip(reason.groundings, listed["groundings"], strict=True):
            picture = draw_grounding(grounding, explanation.query, name) if drawn else None
            shown["svg"] = picture


class DataView:
    """Names, facts and statistics of a graph, all splits together."""

    def __init__(self, graph: TemporalGraph) -> None:
        self.graph = graph
        self._names = pl.Series([name.casefold() for name in graph.entities])
        self._index = graph.index(SPLITS)
        # The index lists a fact of an entity with itself twice.
        loops = graph.subject[graph.subject == graph.object]
        self._counts = np.diff(self._index.offsets) - np.bincount(loops, minlength=len(self._names))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The inspection of the graph, and a histogram of its starts."""
        try:
            histogram = facts_over_time(self.graph)
            texts = [format_time(time, self.graph.unit) for time in histogram.bins]
            over_time = {**asdict(histogram), "texts": texts}
        except TilpError:  # there are no dates
            unknown = len(self.graph)
            over_time = {"bins": [], "texts": [], "splits": {}, "unknown": unknown, "outside": 0}
        return {"inspection": inspect(self.graph).to_json(), "over_time": over_time}

    def warm_up(self) -> None:
        """Do what the first request would wait for."""
        _ = self.summary
        self.entities("a", 1)
        self.facts(self.graph.entities.id(0), 0, 1)

    def entities(self, text: str, limit: int) -> list[dict[str, Any]]:
        """Return the entity with this id, those whose names start with a text, or contain it.

        Case does not matter, and those with most facts come first.
        """
        wanted = text.strip().casefold()
        group = np.full(len(self._names), 3)
        group[self._names.str.contains(wanted, literal=True).to_numpy()] = 2
        group[self._names.str.starts_with(wanted).to_numpy()] = 1
        group[(self.graph.entities.ids == text.strip()).to_numpy()] = 0
        matches = np.flatnonzero(group < 3)
        best = matches[np.lexsort((matches, -self._counts[matches], group[matches]))[:limit]]
        names = self.graph.entities
        return [
            {"name": names.label(entity), "id": names.id(entity), "facts": facts}
            for entity, facts in zip(best.tolist(), self._counts[best].tolist(), strict=True)
        ]

    def facts(self, name: str, offset: int, limit: int) -> dict[str, Any]:
        """Return the facts of an entity, by their start, those without a date last."""
        graph = self.graph
        entity = graph.entities.find(name)
        begin, stop = self._index.offsets[entity : entity + 2]
        rows = np.unique(self._index.fact[begin:stop])
        start, end = graph.start[rows], graph.end[rows]
        first = np.where(start == UNKNOWN, np.where(end == UNKNOWN, OPEN_END, end), start)
        ordered = rows[np.lexsort((rows, end, first))]
        return {
            "entity": graph.entities.label(entity),
            "id": graph.entities.id(entity),
            "total": len(rows),
            "facts": [self._fact_json(row) for row in ordered[offset : offset + limit].tolist()],
        }

    def _fact_json(self, row: int) -> dict[str, Any]:
        graph = self.graph
        return {
            **asdict(KnownFact.of(graph, row)),
            "from": _known_time(int(graph.start[row])),
            "to": _known_time(int(graph.end[row])),
            "split": SPLITS[int(np.searchsorted(graph.bounds[1:], row, side="right"))],
        }


def _known_time(time: int) -> int | None:
    return None if time in (UNKNOWN, OPEN_START, OPEN_END) else time


class RuleView:
    """Rules by index, in a table to filter and sort them by."""

    def __init__(
        self, rules: RuleSet, relations: Vocabulary, phrasings: Phrasings, unit: Unit
    ) -> None:
        self.rules, self._relations = rules, relations
        self._phrasings, self._unit = phrasings, unit
        best = rules.best_of_chains()
        orders = [(mined.rule in best, *mined.order) for mined in rules]
        ranks = {order: rank for rank, order in enumerate(sorted(set(orders)))}
        each = [mined.rule for mined in rules]
        words = [list({constraint.word for constraint in rule.constraints}) for rule in each]
        names = pl.List(pl.String)
        self._table = rules.frame().with_columns(
            pl.Series("gain", [ranks[order] for order in orders], pl.Int64),
            pl.col("weight").fill_null(0.0),
            pl.Series("body", [[atom.relation for atom in rule.body] for rule in each], names),
            pl.Series("words", words, names),
            pl.int_range(pl.len()).alias("index"),
        )
        counts = Counter(word for own in words for word in own)

        def by_length(word: str) -> tuple[float, int, str]:
            parts = gap_parts(word)
            length = parse_length(parts[0]) if parts else None
            return length[1] if length else 0.0, -counts[word], word

        self.temporal_relations = tuple(sorted(counts, key=by_length))
        """Temporal relations in rules, the most frequent first, then gap classes by length."""

    def json(self, index: int) -> dict[str, object]:
        """Return a rule with its statistics."""
        mined = self.rules[index]
        return {
            "text": str(mined.rule),
            "sentence": self._phrasings.rule(mined.rule, self._unit),
            "head": str(mined.rule.head),
            "body": [str(atom) for atom in mined.rule.body],
            **mined.statistics,
            "fired": mined.body_support,  # the name of body_support in 0.1
            "length": mined.rule.length,
        }

    def picture(self, index: int) -> str:
        """Draw a rule, in the words of its sentence."""
        return draw_rule(self.rules[index].rule, self._phrasings)

    def counts(self) -> dict[tuple[str, bool], int]:
        """Return how many rules predict each relation's object, and how many its subject."""
        rows = self._table.group_by("relation", "inverse").len().iter_rows()
        return {(relation, inverse): count for relation, inverse, count in rows}

    def select(
        self, *, relation: str = "", inverse: bool | None = None, body: str = "",
        temporal: str = "", length: int | None = None, min_confidence: float = 0.0,
        min_support: int = 0, sort: RuleOrder = RuleOrder.GAIN, descending: bool = True,
    ) -> Indices:  # fmt: skip
        """Return the indices of the rules that meet all conditions, sorted; ties by index."""
        if temporal and temporal not in self.temporal_relations:
            known = ", ".join(self.temporal_relations)
            message = f"no rule has the temporal relation {temporal!r}; there are {known}"
            near = get_close_matches(temporal, self.temporal_relations)
            raise UnknownNameError(message, tuple(near))
        met = [pl.col("confidence") >= min_confidence, pl.col("support") >= min_support]
        if relation:
            met.append(pl.col("relation") == self._label(relation))
        if inverse is not None:
            met.append(pl.col("inverse") == inverse)
        if body:
            met.append(pl.col("body").list.contains(self._label(body)))
        if temporal:
            met.append(pl.col("words").list.contains(temporal))
        if length is not None:
            met.append(pl.col("length") == length)
        found = self._table.filter(met).sort(sort, descending=descending, maintain_order=True)
        return found["index"].to_numpy()

    def _label(self, relation: str) -> str:
        return self._relations.label(self._relations.find(relation))

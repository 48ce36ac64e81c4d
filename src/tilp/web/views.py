"""Pictures of groundings: of all in an explanation, or of one that it told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tilp.data_quality import facts_over_time, inspect
from tilp.errors import TilpError, UnknownNameError
from tilp.explanation import Explanation, Grounding, WalkedFact
from tilp.explanation.render import draw_grounding
from tilp.graph import SPLITS, TemporalGraph, Vocabulary
from tilp.model import TILP
from tilp.rules import MinedRule, Notation, RuleSet, format_rule
from tilp.scoring import Predictions, Query, TopKPredictor
from tilp.scoring.queries import query_table, read_queries
from tilp.time import OPEN_END, OPEN_START, UNKNOWN, format_time
from tilp.types import RuleOrder


def add_pictures(one: Explanation, told: dict[str, Any]) -> None:
    """Give every grounding of an explanation's reasons, and of its fall, a picture, as `svg`.

    Args:
        one: the explanation.
        told: what its `to_json` gave.
    """
    drawn = [
        (grounding, place)
        for reason, shown in zip(one.shown, told["reasons"], strict=True)
        for grounding, place in zip(reason.groundings, shown["groundings"], strict=True)
    ]
    if one.ablation is not None:
        drawn.append((one.ablation.grounding, told["fall"]["grounding"]))
    for grounding, place in drawn:
        place["svg"] = draw_grounding(grounding, one.query, one.candidate)


def draw_facts(
    graph: TemporalGraph, query: Query, candidate: str, steps: Iterable[tuple[int, bool]]
) -> str:
    """A picture of some facts as the grounding of a candidate.

    Args:
        graph: whose facts.
        query: as it was asked.
        candidate: its name.
        steps: the number of each fact, and whether it is read from object to subject.

    Raises:
        TilpError: an unknown name, a date that cannot be read, or no such fact.
    """
    walked = []
    for number, inverse in steps:
        if number >= len(graph):
            raise UnknownNameError(f"no fact has the number {number}; there are {len(graph):,}")
        walked.append(WalkedFact(number, graph.fact(number), inverse))
    (asked,) = read_queries([query])
    query_table(graph, [asked])  # so that what cannot be asked is not drawn either
    name = graph.entities.label(graph.entities.find(candidate))
    return draw_grounding(Grounding(tuple(walked)), asked, name)


_TRIED = 32


class Asker:
    """Answers queries; may be asked from several threads at once.

    What a scorer keeps between queries does not depend on who asked first, so neither do answers.

    Args:
        model: a fitted model.
    """

    def __init__(self, model: TILP) -> None:
        self._model = model
        self._graph = model.graph
        self._scorer = model.scorer()

    def ask(self, query: Query, k: int) -> Predictions:
        """The k best candidates.

        Raises:
            TilpError: the query cannot be asked.
        """
        return self._predict(read_queries(query), k)[0]

    def ask_each(self, queries: Sequence[Query], k: int) -> list[Predictions | TilpError]:
        """For each query the k best candidates, or why it cannot be asked."""
        checked: list[Query | TilpError] = []
        for query in queries:
            try:
                query_table(self._graph, read_queries(query))
                checked.append(query)
            except TilpError as failure:
                checked.append(failure)
        found = iter(self._predict([one for one in checked if isinstance(one, Query)], k))
        return [one if isinstance(one, TilpError) else next(found) for one in checked]

    def explain(
        self, query: Query, candidate: str | None, *, groundings: int, reasons: int, pictures: bool
    ) -> dict[str, Any]:
        """Why a candidate is where it is, for programs.

        Args:
            query: as it is asked.
            candidate: its name; the best one for None.
            groundings: shown of each reason, at most.
            reasons: shown, at most.
            pictures: whether each grounding has one, as `svg`.

        Raises:
            TilpError: the query cannot be asked, or the candidate is not known.
        """
        found = self._model.explain(query, candidate, groundings=groundings, max_reasons=reasons)
        told = found.to_json()
        if pictures:
            add_pictures(found, told)
        return told

    def warm_up(self) -> Query:
        """Compile and load all that answers and explanations need; gives a query to begin with."""
        example = self.find_example()
        for answer in self.ask(example, 2):  # the winner, and one that lacks something
            self.explain(example, answer.id, groundings=3, reasons=20, pictures=True)
        return example

    def find_example(self) -> Query:
        """A query to begin with: of some held-out facts, the one that is answered best."""
        graph = self._graph
        rows = next(np.array(rows) for rows in map(graph.rows, reversed(SPLITS)) if len(rows))
        start, end = graph.start[rows], graph.end[rows]
        dated = rows[(start != UNKNOWN) & (end != UNKNOWN) & (end != OPEN_END)]
        rows = dated if len(dated) else rows
        best = []
        for row in rows[:: -(-len(rows) // _TRIED)].tolist():
            query = Query(
                graph.relations.label(int(graph.relation[row])),
                subject=self._name(int(graph.subject[row])),
                start=str(graph.texts[int(graph.start_text[row])]) or None,
                end=str(graph.texts[int(graph.end_text[row])]) or None,
            )
            first = self.ask(query, 1)[0]
            right = first.id == graph.entities.id(int(graph.object[row]))
            best.append((not right, -first.share, row, query))
        return min(best)[-1]

    def _name(self, entity: int) -> str:
        """The label of an entity, or its id where others have the same label."""
        try:
            self._graph.entities.find(self._graph.entities.label(entity))
        except UnknownNameError:
            return self._graph.entities.id(entity)
        return self._graph.entities.label(entity)

    def _predict(self, queries: list[Query], k: int) -> list[Predictions]:
        return TopKPredictor(self._graph, self._scorer, k).predict(queries) if queries else []


class DataView:
    """Names, facts and figures of a graph, all splits together.

    Args:
        graph: the graph.
    """

    def __init__(self, graph: TemporalGraph) -> None:
        self.graph = graph
        self._names = pl.Series([name.casefold() for name in graph.entities])
        index = graph.index(SPLITS)
        self._offsets, self._fact = index.offsets, index.fact
        with_itself = graph.subject[graph.subject == graph.object]
        twice = np.bincount(with_itself, minlength=len(graph.entities))
        self._counts = np.diff(index.offsets) - twice

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `inspect` finds, and how many facts start when."""
        try:
            found = facts_over_time(self.graph)
            texts = [format_time(time, self.graph.unit) for time in found.bins]
            over_time = {**asdict(found), "texts": texts}
        except TilpError:  # no date at all
            unknown = len(self.graph)
            over_time = {"bins": [], "texts": [], "splits": {}, "unknown": unknown, "outside": 0}
        return {"inspection": inspect(self.graph).to_json(), "over_time": over_time}

    def warm_up(self) -> None:
        """Do what the first request would wait for."""
        _ = self.summary
        self.entities("a", 1)
        self.facts(self.graph.entities.id(0), 0, 1)

    def relations(self) -> list[tuple[str, int]]:
        """Each relation and how many facts it has, in the order of their numbers."""
        counts = np.bincount(self.graph.relation, minlength=len(self.graph.relations))
        return list(zip(self.graph.relations, counts.tolist(), strict=True))

    def entities(self, text: str, limit: int) -> list[dict[str, Any]]:
        """Entities whose names begin with a text, then those that have it inside.

        Capital letters or not; of each kind those with most facts first. An entity whose id is
        the text comes before all.
        """
        wanted = text.strip().casefold()
        rank = np.full(len(self._names), 3)
        rank[self._names.str.contains(wanted, literal=True).to_numpy()] = 2
        rank[self._names.str.starts_with(wanted).to_numpy()] = 1
        rank[(self.graph.entities.ids == text.strip()).to_numpy()] = 0
        found = np.flatnonzero(rank < 3)
        best = found[np.lexsort((found, -self._counts[found], rank[found]))[:limit]]
        return [
            {
                "name": self.graph.entities.label(number),
                "id": self.graph.entities.id(number),
                "facts": int(self._counts[number]),
            }
            for number in best.tolist()
        ]

    def facts(self, entity: str, offset: int, limit: int) -> dict[str, Any]:
        """The facts of an entity, by their start, those without a date last.

        Raises:
            UnknownNameError: no such entity.
        """
        graph = self.graph
        number = graph.entities.find(entity)
        # What an entity has with itself stands twice in the index.
        rows = np.unique(self._fact[self._offsets[number] : self._offsets[number + 1]])
        start, end = graph.start[rows], graph.end[rows]
        first = np.where(start == UNKNOWN, np.where(end == UNKNOWN, OPEN_END, end), start)
        ordered = rows[np.lexsort((rows, end, first))]
        return {
            "entity": graph.entities.label(number),
            "id": graph.entities.id(number),
            "total": len(rows),
            "facts": [self._fact_json(row) for row in ordered[offset : offset + limit].tolist()],
        }

    def _fact_json(self, row: int) -> dict[str, Any]:
        graph = self.graph
        return {
            "subject": graph.entities.label(int(graph.subject[row])),
            "relation": graph.relations.label(int(graph.relation[row])),
            "object": graph.entities.label(int(graph.object[row])),
            "start": str(graph.texts[int(graph.start_text[row])]),
            "end": str(graph.texts[int(graph.end_text[row])]),
            "from": _number(graph.start, row),
            "to": _number(graph.end, row),
            "split": SPLITS[int(np.searchsorted(graph.bounds[1:], row, side="right"))],
        }


def _number(times: NDArray[np.int64], row: int) -> int | None:
    time = int(times[row])
    return None if time in (UNKNOWN, OPEN_START, OPEN_END) else time


Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """Which rules are wanted; what is None leaves all.

    Attributes:
        relation: that they predict.
        inverse: whether they ask for its subject rather than its object.
        body: a relation that their bodies have, in either direction.
        temporal: a word that they say of two intervals.
        length: of their bodies.
        min_confidence: least confidence.
        min_support: least support.
        sort: by what.
        descending: whether the greatest come first.
    """

    relation: str | None = None
    inverse: bool | None = None
    body: str | None = None
    temporal: str | None = None
    length: int | None = None
    min_confidence: float = 0.0
    min_support: int = 0
    sort: RuleOrder = RuleOrder.WEIGHT
    descending: bool = True


class RuleView:
    """Rules by number, with columns to choose them by.

    Args:
        rules: in the order of their numbers.
        relations: the names that they may speak of.
    """

    def __init__(self, rules: RuleSet, relations: Vocabulary) -> None:
        self.rules = rules
        self._relations = relations
        place = {name: number for number, name in enumerate(relations)}
        bodies: list[list[int]] = [[] for _ in relations]
        words: dict[str, list[int]] = {}
        for number, one in enumerate(rules):
            for name in {atom.relation for atom in one.rule.body}:
                bodies[place[name]].append(number)
            for word in {constraint.word for constraint in one.rule.constraints}:
                words.setdefault(word, []).append(number)
        self._bodies = [np.array(numbers, np.int64) for numbers in bodies]
        self._words = {word: np.array(numbers, np.int64) for word, numbers in words.items()}
        self._head = np.array([place[one.rule.head.relation] for one in rules], np.int64)
        self._inverse = np.array([one.rule.head.inverse for one in rules], np.bool_)
        self._columns = {
            RuleOrder.WEIGHT: np.array([one.weight or 0.0 for one in rules]),
            RuleOrder.CONFIDENCE: np.array([one.confidence for one in rules]),
            RuleOrder.SUPPORT: np.array([one.support for one in rules], np.int64),
            RuleOrder.LENGTH: np.array([one.rule.length for one in rules], np.int64),
        }

    @property
    def words(self) -> tuple[str, ...]:
        """What rules say of two intervals, the most frequent first."""
        return tuple(sorted(self._words, key=lambda word: (-len(self._words[word]), word)))

    def counts(self) -> tuple[list[int], list[int]]:
        """How many rules ask for each relation's object, and how many for its subject."""
        n = len(self._relations)
        direct = np.bincount(self._head[~self._inverse], minlength=n).tolist()
        return direct, np.bincount(self._head[self._inverse], minlength=n).tolist()

    def choose(self, choice: RuleChoice) -> Numbers:
        """The numbers of the rules that are wanted, in order; equal ones by number.

        Raises:
            UnknownNameError: no such relation, or no rule has such a word.
        """
        wanted = np.ones(len(self.rules), np.bool_)
        if choice.relation is not None:
            wanted &= self._head == self._relations.find(choice.relation)
        if choice.inverse is not None:
            wanted &= self._inverse == choice.inverse
        if choice.body is not None:
            wanted &= self._among(self._bodies[self._relations.find(choice.body)])
        if choice.temporal is not None:
            wanted &= self._among(self._of_word(choice.temporal))
        if choice.length is not None:
            wanted &= self._columns[RuleOrder.LENGTH] == choice.length
        wanted &= self._columns[RuleOrder.CONFIDENCE] >= choice.min_confidence
        wanted &= self._columns[RuleOrder.SUPPORT] >= choice.min_support
        found = np.flatnonzero(wanted)
        key = self._columns[choice.sort][found]
        return found[np.argsort(-key if choice.descending else key, kind="stable")]

    def _of_word(self, word: str) -> Numbers:
        if word not in self._words:
            near = tuple(get_close_matches(word, self._words))
            raise UnknownNameError(
                f"no rule says {word!r} of two intervals; they say {', '.join(self.words)}", near
            )
        return self._words[word]

    def _among(self, numbers: Numbers) -> NDArray[np.bool_]:
        found = np.zeros(len(self.rules), np.bool_)
        found[numbers] = True
        return found


def rule_json(one: MinedRule) -> dict[str, object]:
    """A rule with its statistics, for programs."""
    return {
        "text": str(one.rule),
        "sentence": format_rule(one.rule, Notation.SENTENCE),
        "head": str(one.rule.head),
        "body": [str(atom) for atom in one.rule.body],
        "weight": one.weight,
        "confidence": one.confidence,
        "support": one.support,
        "fired": one.body_support,
        "facts": one.facts,
        "length": one.rule.length,
        "sampled": one.sampled,
    }

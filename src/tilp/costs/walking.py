"""The stages of a fit that walk: mining, applying rules, choosing on held-out queries."""

from __future__ import annotations

import tracemalloc

import numpy as np

from tilp.costs.amounts import steps_by_length
from tilp.costs.calibration import Walks, calibrate, cpu_seconds
from tilp.costs.situation import Situation
from tilp.costs.stage import StageCost
from tilp.evaluation import Ranker
from tilp.graph import QueryTable
from tilp.learning.examples import TrainingExamples, make_training_examples
from tilp.parallel import Workers
from tilp.rules import RuleSet
from tilp.scoring import RuleScorer
from tilp.types import Protocol
from tilp.walks import chunks_by
from tilp.walks.mining import one_end

__all__ = ["apply_stage", "batch_bytes", "choose_stage", "kept_bytes", "mine_stage"]

_SOME_RULES = 500
_BATCH = 512  # queries that candidates are ranked for at once
_POWERS = 5  # ways to score among which held-out queries choose
_FOUND_SHARE = 10  # finding takes a tenth of the limit
_MADE_FROM = 2 * 9 * 4 + 16  # bytes beside an entry while it is made: nine columns, twice; sums
_WEIGHED = 4 + 12  # bytes beside an entry while it is trained on: its walks' power, and sums
_ROW_BYTES = 200  # a row of query, rule, end and count: records grown, put in order and scored


def mine_stage(now: Situation, budget: float) -> StageCost:
    """Finding rules, counting them, putting them together and writing them down."""
    walker = now.walker
    queries = list(now.mined.values())
    # What a relation has no rules for is not counted.
    counted = [name for name, found in now.sample.of_relation.items() if found]
    rules = [walker.compile([one.rule for one in now.sample.of_relation[name]]) for name in counted]
    asked = [now.mined[name] for name in counted]
    tallied = _of_relations(
        now.steps_from, asked, sum(len(chunks_by(walker, one, one.subject)) for one in asked)
    )
    tally = calibrate(
        tallied,
        lambda part: walker.tally(part.queries, rules[int(part.apart[0])]),
        0.6 * budget,
        now.settings.seed,
    )
    ends = [one_end(walker, one) for one in queries] if walker.mirrors else queries
    found_steps = steps_by_length(walker, max(1, walker.limit // _FOUND_SHARE)).sum(axis=0)
    chunks = sum(len(chunks_by(walker, one, one.answer)) for one in ends)
    searched = _of_relations(found_steps, ends, chunks, answers=True)
    look = walker.find_both if walker.mirrors else walker.find
    find = calibrate(searched, lambda part: look(part.queries), 0.2 * budget, now.settings.seed)
    amounts = tallied.amounts()
    walked = find.seconds(searched.amounts()) + tally.seconds(amounts)
    written, size = _rules_written(now)
    counts = now.rules_of_all()
    return StageCost(
        "mine",
        amounts.steps,
        f"walks of {2 * now.facts:,} queries, {sum(counts.values()):,} rules found",
        cpu=walked + written,
        serial=written,
        peak=size * sum(counts.values()),
    )


def apply_stage(now: Situation, budget: float) -> StageCost:
    """Rules applied to training and held-out queries, and what training needs kept."""
    held_out = QueryTable.of_facts(now.graph, now.held_out, walked=now.walked)
    parts = [
        Walks.of_queries(now.steps_from, one, calls=len(chunks_by(now.walker, one, one.subject)))
        for one in (now.settling.fill_queries(now.training), now.settling.fill_queries(held_out))
    ]
    rates = calibrate(
        parts[0],
        lambda part: make_training_examples(now.walker, part.queries, now.compiled, Workers()),
        budget,
        now.settings.seed,
    )
    _, of_query = now.entries
    entries = of_query * len(now.training), of_query * len(held_out)
    amounts = [one.amounts() for one in parts]
    return StageCost(
        "apply",
        sum(one.steps_queried for one in amounts),
        f"walks for {len(now.training) + len(held_out):,} queries, "
        f"{sum(entries):,.0f} entries kept",
        cpu=sum(rates.seconds(one) for one in amounts),
        peak=_rule_bytes(now)
        + entries[0] * (_MADE_FROM + _entry_bytes(now.entries[0]))
        + entries[1] * _entry_bytes(now.entries[0]),
    )


def choose_stage(now: Situation, scorer: RuleScorer, budget: float, threads: int) -> StageCost:
    """Held-out queries ranked by each power of the number of walks."""
    ranker = Ranker(now.graph, now.held_out, walked=now.walked)
    order = np.argsort(np.argsort(ranker.queries.subject, kind="stable"), kind="stable")
    work = Walks.of_queries(
        now.steps_from, ranker.queries, apart=order // _BATCH, calls=len(order) / _BATCH
    )

    def probe(part: Walks) -> None:
        applied = scorer.apply_rules(part.queries)
        for power in np.linspace(0.0, 0.6, _POWERS):
            scores = scorer.score(part.queries, applied, float(power))
            ranker.rank(part.place, scores, [Protocol.ENUMERATE])

    rates = calibrate(work, probe, budget, now.settings.seed)
    amounts = work.amounts()
    return StageCost(
        "choose",
        amounts.steps_queried,
        f"walks for {len(ranker.queries):,} queries",
        cpu=rates.seconds(amounts),
        peak=kept_bytes(now) + batch_bytes(now, scorer, threads),
    )


def _entry_bytes(made: TrainingExamples) -> float:
    """What an entry takes."""
    columns = (made.rule, made.at_answer, made.excluded, made.at_known, made.at_others)
    return sum(one.dtype.itemsize * int(np.prod(one.shape[1:])) for one in columns)


def _rule_bytes(now: Situation) -> float:
    """What the rules take."""
    return _rules_written(now)[1] * sum(now.rules_of_all().values())


def kept_bytes(now: Situation) -> float:
    """What rules and entries take, and what training makes of the latter."""
    made, of_query = now.entries
    queries = len(now.training) + 2 * len(now.held_out)
    return _rule_bytes(now) + of_query * queries * (_entry_bytes(made) + _WEIGHED)


def batch_bytes(now: Situation, scorer: RuleScorer, threads: int) -> float:
    """What rules applied to a batch of queries take, in each thread."""
    queries = now.some_training()
    rows = len(scorer.apply_rules(queries).rows) / max(len(queries), 1) * now.more_entries
    return threads * min(_BATCH, len(now.training)) * rows * _ROW_BYTES


def _of_relations(
    steps: np.typing.NDArray[np.float64],
    queries: list[QueryTable],
    calls: float,
    *,
    answers: bool = False,
) -> Walks:
    """Queries of each relation, which are walked for apart."""
    joined = QueryTable.join(queries)
    apart = np.repeat(np.arange(len(queries)), [len(one) for one in queries])
    entity = joined.answer if answers else joined.subject
    return Walks.of_queries(steps, joined, entity=entity, apart=apart, calls=calls)


def _rules_written(now: Situation) -> tuple[float, float]:
    """Seconds to put all rules together and write them after each relation; bytes of a rule."""
    some = now.sample.rules[:_SOME_RULES]
    if not some:
        return 0.0, 0.0
    rows = now.walker.encoding.encode([one.rule for one in some])
    _, lifting = cpu_seconds(lambda: [now.walker.encoding.lift(row) for row in rows])
    _, writing = cpu_seconds(RuleSet(some).to_jsonl)
    tracemalloc.start()
    kept = [now.walker.encoding.lift(row) for row in rows]
    size = tracemalloc.get_traced_memory()[0] / len(kept)
    tracemalloc.stop()
    counts = np.array(sorted(now.rules_of_all().values(), reverse=True))
    total = counts.sum()
    # Each relation that is finished has all rules so far written anew.
    return float(total * lifting + (np.cumsum(counts).sum() + total) * writing) / len(some), size

"""Predicted times: overlap, calibration, held-out terms, planted gaps, cost and speed.

    python benchmarks/when.py TILP_DATA [--split valid] [--sample N] [--only SET …]

Prints a line for each figure of docs/when.md. Settings were chosen on valid and, for congress, on
the hold-outs of seeds 1 to 4; the figures of congress are those of seeds 11 to 15.
"""

import argparse
import resource
import time
import warnings
from pathlib import Path

import numpy as np

import tilp
from tilp.graph import TemporalGraph
from tilp.parallel import Workers
from tilp.rules import Phrasings
from tilp.time import Interval
from tilp.time_prediction import TimePredictor, TimeTraining, fit_time_model
from tilp.time_prediction.evaluate import evaluate_times
from tilp.time_prediction.evidence import DateTarget, finite

NAMES = ("WIKIDATA12k", "YAGO11k")
COLUMNS = {"subject": "member", "relation": "what", "object": "of", "start": "from", "end": "to"}
TERMS = ("senator for", "representative for")
SHOWN = (
    "aeiou@1", "aeiou@5", "aeiou@10", "giou", "gaeiou", "tac", "mae_start", "mae_end",
    "exact_start", "exact_end", "covered_start_80", "covered_end_80", "width_start_80",
    "prior_width_start_80", "width_end_80", "prior_width_end_80", "pit_start_deviation",
    "pit_end_deviation", "aeiou@1_median_interval", "aeiou@1_subject_fact",
)  # fmt: skip


def cpu() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def fitted(graph: TemporalGraph) -> tuple[TimePredictor, float]:
    before = cpu()
    with Workers(1) as workers:
        model = fit_time_model(graph, TimeTraining(), workers)
    return TimePredictor(model, graph, Phrasings()), cpu() - before


def published(folder: Path, name: str, split: str, sample: int | None) -> None:
    graph = tilp.read(folder / name)
    predictor, seconds = fitted(graph)
    print(f"{name}: time model learned in {seconds:.1f} CPU s")
    with Workers(1) as workers:
        found = evaluate_times(predictor, graph, split, workers, sample=sample).to_json()
    print(f"{name} {split}, {found['facts']:,} facts")
    for metric in SHOWN:
        low, high = found["intervals"].get(metric, (np.nan, np.nan))
        print(f"  {metric:26} {found['metrics'][metric]:8.4f}   {low:.4f} to {high:.4f}")
    for side, deciles in found["pit"].items():
        print(f"  deciles of {side}: {' '.join(f'{share:.3f}' for share in deciles)}")
    rows = list(graph.rows("valid"))[:100]
    began = time.perf_counter()
    for row in rows:
        ids = (int(column[row]) for column in (graph.subject, graph.relation, graph.object))
        predictor.predict(*ids, Interval())
    print(f"  a question with reasons: {(time.perf_counter() - began) * 10:.1f} ms")


def held_out_terms(graph: TemporalGraph, seed: int, share: float = 0.15) -> np.ndarray:
    """Return all facts of some members with some starts: those of whole terms."""
    pairs = np.stack([graph.subject.astype(np.int64), graph.start], axis=1)
    term = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    of_term = np.isin(graph.relation, [graph.relations.find(name) for name in TERMS])
    terms = np.unique(term[of_term & finite(graph.start)])
    chosen = terms[np.random.default_rng(seed).random(len(terms)) < share]
    return np.flatnonzero(np.isin(term, chosen) & finite(graph.start))


def congress(folder: Path, seeds: range) -> None:
    whole = tilp.read(folder / "congress" / "congress.csv", columns=COLUMNS)
    hits: dict[str, list[np.ndarray]] = {name: [] for name in TERMS}
    for seed in seeds:
        rows = held_out_terms(whole, seed)
        predictor, _ = fitted(whole.without(rows))
        for name in TERMS:
            relation = whole.relations.find(name)
            closed = rows[(whole.relation[rows] == relation) & finite(whole.end[rows])]
            columns = (whole.subject, whole.relation, whole.object)
            ids = (column[closed].astype(np.int64) for column in columns)
            start, end = whole.start[closed], whole.end[closed]
            target = DateTarget(*ids, np.full(len(closed), -1), start, end)
            predicted = [dates.mode for dates in predictor.dates.distributions(target, True)]
            lengths = predictor.dates.facts.lengths
            bounds = lengths.offsets[relation : relation + 2]
            median = start + int(np.median(lengths.value[slice(*bounds)]))
            hits[name].append(np.abs(np.stack([np.array(predicted), median]) - end) <= 31)
    for name, found in hits.items():
        of_seed = " ".join(f"{each[0].mean():.3f}" for each in found)
        model, median = np.concatenate(found, axis=1).mean(axis=1)
        count = sum(each.shape[1] for each in found)
        print(
            f"congress, {name}: {model:.4f} of {count} ends within 31 days, the relation's median "
            f"{median:.4f} (seeds {seeds.start} to {seeds.stop - 1}: {of_seed})"
        )


def planted() -> None:
    """Print what is recovered of the gaps and durations of the bundled world."""
    graph = tilp.datasets.world(seed=0, size=10_000).graph
    predictor, _ = fitted(graph)
    with Workers(1) as workers:
        found = evaluate_times(predictor, graph, "test", workers)
    for row in found.to_json()["relations"]:
        if row["relation"] in ("graduatedFrom", "playsFor", "livesIn", "memberOfClub"):
            print(
                f"world, {row['relation']}: start off by {row['mae_start']:.1f} years, end by "
                f"{row['mae_end']:.1f}, aeIOU@1 {row['aeiou@1']:.3f} (the relation's median "
                f"interval {row['aeiou@1_median_interval']:.3f})"
            )


def cost() -> None:
    for size in (5_000, 20_000, 80_000):
        graph = tilp.datasets.world(seed=0, size=size).graph
        seconds = fitted(graph)[1]
        print(f"world of {size:,} facts: {seconds:.1f} CPU s, {1e6 * seconds / size:.0f} µs a fact")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seeds", type=int, nargs=2, default=(11, 15), help="of congress")
    parser.add_argument("--only", nargs="*", default=[*NAMES, "congress", "planted", "cost"])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    fitted(tilp.datasets.world(seed=0, size=1_000).graph)  # compiles the loops
    for name in NAMES:
        if name in given.only:
            published(given.data, name, given.split, given.sample)
    if "congress" in given.only:
        congress(given.data, range(given.seeds[0], given.seeds[1] + 1))
    if "planted" in given.only:
        planted()
    if "cost" in given.only:
        cost()


if __name__ == "__main__":
    main()

"""What temporal features give and cost, on published sets.

TILP_DATA names the folder of published data sets. Parts:
  full      the default model: seconds of each stage, figures on valid and test;
  paper     the paper's own system, preset paper: the same;
  ablation  each feature alone, and each left out, of the paper's and of all; several seeds, mean
            and spread on valid, rules of length 3 in both cases;
  cost      CPU seconds to fit distributions and to score features of valid's queries, as a share
            of those to apply the rules to them, one thread.
Protocol enumerate with average ties; original dates; train alone is evidence; everything is chosen
on valid.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from learning import THREADS, figures
from published import load

import tilp
from tilp.evaluation import evaluate
from tilp.features.paper.features import PaperFeatures, walked_relations
from tilp.graph import QueryTable
from tilp.model import FitContext, ModelSettings
from tilp.model.fit import (
    learn_features,
    learn_rule_weights,
    prepare_training_data,
    select_from,
)
from tilp.model.fitted_model import FittedModel
from tilp.parallel import Workers
from tilp.types import Features, Part

OF_PAPER = (Part.RECURRENCE, Part.ORDER, Part.PAIR)
OF_FULL = (Part.RULE_EVIDENCE, Part.OWN_FACTS, Part.SOFT_WALKS, Part.COUNTS)


def part_model(name: str, preset: str) -> None:
    graph = load(name)
    model = tilp.TILP.from_options(preset, n_jobs=THREADS).fit(graph)
    taken = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in model.seconds.items())
    print(f"({preset}) {name}: {len(model.rules()):,} rules; seconds: {taken}", flush=True)
    for split in ("valid", "test"):
        began = time.perf_counter()
        found = model.evaluate(split, protocols=["enumerate", "exact"])
        taken = f"{time.perf_counter() - began:.1f} s"
        for protocol, ties in (
            ("enumerate", "average"),
            ("enumerate", "worst"),
            ("exact", "worst"),
        ):
            print(f"    {split}, {protocol} {ties}: {figures(found.metrics(protocol, ties))}; "
                  f"{taken}", flush=True)  # fmt: skip


def on_valid(graph: tilp.TemporalGraph, settings: ModelSettings, fitted: FittedModel) -> np.ndarray:
    scorer = fitted.scorer(graph, graph, settings)
    metrics = evaluate(scorer, graph, "valid", protocols=["enumerate"], threads=THREADS).metrics()
    return np.array([metrics.mrr, metrics.hits_at_1, metrics.hits_at_10])


def variants(kinds: list[str]) -> dict[str, tuple[Features, tuple[Part, ...]]]:
    """Features of some kinds and what is left out of them, by name."""
    found: dict[str, tuple[Features, tuple[Part, ...]]] = {"rules alone": (Features.NONE, ())}
    for features, parts in ((Features.PAPER, OF_PAPER), (Features.FULL, OF_FULL)):
        if features.value not in kinds:
            continue
        found[features.value] = (features, ())
        for part in parts:
            others = tuple(other for other in parts if other is not part)
            if features is Features.PAPER:
                found[f"{features.value}: {part.value} alone"] = (features, others)
            found[f"{features.value} without {part.value}"] = (features, (part,))
    if "full" in kinds:
        found["full without stacking"] = (Features.FULL, (Part.STACKING,))
    return found


def fits(
    graph: tilp.TemporalGraph, seed: int, folder: Path, kinds: list[str]
) -> Iterator[tuple[str, ModelSettings, FittedModel]]:
    """Models of all variants; rules, and what features are learned from, are found once."""
    first = tilp.TILP(random_state=seed).settings
    with Workers(THREADS) as workers:
        context = FitContext(first, workers, folder / "fit")
        prepared = select_from(prepare_training_data(graph, context), context)
        weighed, folds = learn_rule_weights(prepared, context)
        for number, (variant, (features, without)) in enumerate(variants(kinds).items()):
            # Valid is what is measured on, so that it must not adjust weights.
            settings = replace(first, features=features, without=(*without, Part.VALID))
            place = folder / str(number)
            place.mkdir()
            fitted = learn_features(prepared, weighed, folds, FitContext(settings, workers, place))
            yield variant, settings, fitted


def part_ablation(name: str, seeds: int, kinds: list[str]) -> None:
    graph = load(name)
    found: dict[str, list[np.ndarray]] = {variant: [] for variant in variants(kinds)}
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            for variant, settings, fitted in fits(graph, seed, Path(folder), kinds):
                found[variant].append(on_valid(graph, settings, fitted))
                print(f"    {name}, seed {seed}, {variant}: {found[variant][-1].round(4)}",
                      flush=True)  # fmt: skip
    for variant, rows in found.items():
        mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0)
        words = ", ".join(
            f"{figure} {a:.4f} ± {b:.4f}"
            for figure, a, b in zip(("MRR", "hits@1", "hits@10"), mean, spread, strict=True)
        )
        print(f"(ablation) {name}, {variant}, {seeds} seeds, valid: {words}", flush=True)


def part_cost(name: str) -> None:
    graph = load(name)
    rows = np.asarray(graph.rows("valid"), np.int64)
    queries = QueryTable.of_facts(graph, rows, walked=False)
    queries = queries[np.argsort(queries.subject, kind="stable")]
    parts = [
        queries[np.arange(at, min(at + 512, len(queries)))] for at in range(0, len(queries), 512)
    ]
    for features in (Features.PAPER, Features.FULL):
        model = tilp.TILP(features=features, n_jobs=THREADS).fit(graph)
        scorer = model.scorer()
        scorer(parts[0]), scorer.rule_scorer.apply_rules(parts[0])  # compiled before the clock runs
        fitting = 0.0
        if features is Features.PAPER:
            began = time.process_time()
            PaperFeatures.fit(graph, walked_relations(graph, model.rules()), 3)
            fitting = time.process_time() - began
        began = time.process_time()
        for part in parts:
            scorer.rule_scorer(part)
        applying = time.process_time() - began
        scorer = scorer.without(())  # nothing kept from before
        began = time.process_time()
        for part in parts:
            scorer(part)
        scoring = time.process_time() - began - applying
        print(f"(cost) {name}, {features.value}, valid, one thread, CPU seconds: rules applied in "
              f"{applying:.1f} s; distributions fitted in {fitting:.1f} s, features scored in "
              f"{scoring:.1f} s: {(fitting + scoring) / applying:.2f} ×", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="full,paper,ablation,cost")
    parser.add_argument("--sets", default="WIKIDATA12k,YAGO11k")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--features", default="paper,full", help="what to leave out parts of")
    arguments = parser.parse_args()
    for part in arguments.parts.split(","):
        for name in arguments.sets.split(","):
            if part == "ablation":
                part_ablation(name, arguments.seeds, arguments.features.split(","))
            elif part == "cost":
                part_cost(name)
            else:
                part_model(name, "default" if part == "full" else "paper")


if __name__ == "__main__":
    main()

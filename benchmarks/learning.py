"""What learning costs and gives: fit and evaluation of published sets, and kinds of weights.

TILP_DATA names the folder of published data sets. Parts:
  fit      default settings, seconds of each part, the training in gradients, figures on test;
  weights  attention and free, with all and with a tenth of the training facts as targets,
           several seeds: mean and spread on test;
  missing  what unknown ends are taken for: figures of each choice on valid, compared with those
           of the first;
  release  the files with filled dates that came with the paper, protocol tilp-release (best ties).
Protocol enumerate with average ties where nothing else is said; original dates; train alone is
evidence; everything is chosen on valid.
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from published import load

import tilp
from tilp._utils.progress import Stages
from tilp.evaluation import compare, evaluate
from tilp.learning import PopularityPrior
from tilp.learning.rule_weights import LogWeights, Objective
from tilp.model import FitContext, ModelSettings
from tilp.model.fit import TrainingData, learn_rule_weights, prepare_training_data
from tilp.model.fitted_model import FittedModel
from tilp.parallel import Workers
from tilp.types import Missing, Weights

THREADS = os.cpu_count() or 1


def prepared(graph: tilp.TemporalGraph, settings: ModelSettings, stages: Stages) -> TrainingData:
    with tempfile.TemporaryDirectory() as folder, Workers(THREADS) as workers:
        context = FitContext(settings, workers, Path(folder) / "fit", stages)
        return prepare_training_data(graph, context)


def weighed(part: TrainingData, settings: ModelSettings, stages: Stages) -> FittedModel:
    with tempfile.TemporaryDirectory() as folder, Workers(THREADS) as workers:
        return learn_rule_weights(part, FitContext(settings, workers, Path(folder), stages))[0]


def measured(
    graph: tilp.TemporalGraph,
    part: TrainingData,
    fitted: FittedModel,
    split: str,
    protocols: list[str],
):
    scorer = part.scorer(fitted.weights)
    return evaluate(scorer, graph, split, protocols=protocols, threads=THREADS)


def gradient_seconds(part: TrainingData, fitted: FittedModel, settings: ModelSettings) -> float:
    """The median time of a full gradient for rule weights, prior and factors."""
    prior = PopularityPrior.from_graph(part.walker.graph)
    power = settings.training.walks_power
    objective = Objective(part.training, prior, len(part.rules), power)
    weights = fitted.weights
    logs = LogWeights(
        np.log(np.maximum(weights.rule, 1e-300)), np.log(weights.prior), np.log(weights.factor)
    )
    times = []
    with Workers(THREADS) as workers:
        for _ in range(10):
            began = time.perf_counter()
            objective(logs, workers)
            times.append(time.perf_counter() - began)
    return float(np.median(times))


def part_fit(name: str) -> None:
    graph = load(name)
    settings = ModelSettings()
    stages = Stages()
    part = prepared(graph, settings, stages)
    fitted = weighed(part, settings, stages)
    one = gradient_seconds(part, fitted, settings)
    taken = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in fitted.seconds.items())
    print(f"(fit) {name}: {len(fitted.rules):,} rules, {len(part.training):,} entries; "
          f"seconds: {taken}")  # fmt: skip
    print(f"    training: {len(fitted.curve.train)} steps in the time of "
          f"{fitted.seconds['train'] / one:.0f} full gradients of {1e3 * one:.0f} ms")  # fmt: skip
    for split in ("valid", "test"):
        began = time.perf_counter()
        found = measured(graph, part, fitted, split, ["enumerate", "exact"])
        taken = f"{time.perf_counter() - began:.1f} s"
        for protocol, ties in (
            ("enumerate", "average"),
            ("enumerate", "worst"),
            ("exact", "worst"),
        ):
            print(
                f"    {split}, {protocol} {ties}: {figures(found.metrics(protocol, ties))}; {taken}"
            )


def figures(metrics) -> str:
    return (
        f"MRR {metrics.mrr:.4f}, hits@1 {metrics.hits_at_1:.4f}, hits@10 {metrics.hits_at_10:.4f}"
    )


def part_weights(name: str, seeds: int) -> None:
    graph = load(name)
    for share in (1.0, 0.1):
        found: dict[Weights, list[tuple[float, float, float]]] = {kind: [] for kind in Weights}
        for seed in range(seeds):
            first = ModelSettings()
            settings = replace(first, mining=replace(first.mining, share=share), seed=seed)
            part = prepared(graph, settings, Stages())
            for kind in Weights:
                training = replace(settings.training, weights=kind)
                fitted = weighed(part, replace(settings, training=training), Stages())
                metrics = measured(graph, part, fitted, "test", ["enumerate"]).metrics()
                found[kind].append((metrics.mrr, metrics.hits_at_1, metrics.hits_at_10))
        for kind, rows in found.items():
            mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0)
            words = ", ".join(
                f"{figure} {a:.4f} ± {b:.4f}"
                for figure, a, b in zip(("MRR", "hits@1", "hits@10"), mean, spread, strict=True)
            )
            print(f"(weights) {name}, {share:.0%} of the targets, {kind.value}, {seeds} seeds, "
                  f"test: {words}", flush=True)  # fmt: skip


def part_missing(name: str) -> None:
    graph = load(name)
    first = None
    for missing in Missing:
        settings = ModelSettings(missing=missing)
        part = prepared(graph, settings, Stages())
        fitted = weighed(part, settings, Stages())
        found = measured(graph, part, fitted, "valid", ["enumerate"])
        print(f"(missing) {name}, {missing.value}, valid: {figures(found.metrics())}", flush=True)
        first = first or found
        if found is first:
            continue
        mrr = compare(first, found).metrics["mrr"]
        print(f"    MRR {mrr.difference:+.4f}, 95 % from {mrr.low:+.4f} to {mrr.high:+.4f}, "
              f"p {mrr.p_value:.4f}", flush=True)  # fmt: skip


def part_release(name: str) -> None:
    graph = load(f"{name}/tilp-release")
    settings = ModelSettings()
    part = prepared(graph, settings, Stages())
    fitted = weighed(part, settings, Stages())
    found = measured(graph, part, fitted, "test", ["tilp-release", "enumerate"])
    print(f"(release) {name}, filled dates, test, tilp-release, best ties: "
          f"{figures(found.metrics('tilp-release', 'best'))}")  # fmt: skip
    print(f"    enumerate average on the same: {figures(found.metrics('enumerate', 'average'))}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="fit,weights,missing,release")
    parser.add_argument("--sets", default="WIKIDATA12k,YAGO11k")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    parts = {"fit": part_fit, "missing": part_missing, "release": part_release}
    for part in arguments.parts.split(","):
        for name in arguments.sets.split(","):
            if part == "weights":
                part_weights(name, arguments.seeds)
            else:
                parts[part](name)


if __name__ == "__main__":
    main()

"""Fidelity of explanations: the ablation effect that they state against facts really removed.

TILP_DATA names the folder of published data sets. The best candidate of a seeded sample of valid
queries, from either end, is explained. The facts of its first reason are removed from the files
of the graph, the files read again, and the model queried again on what they hold, without fitting.
Printed are
  agree     the share of cases in which the score drops as stated, within 1e-9 of the score,
            and the mean and the greatest difference, as shares of the score;
  predict   how well the reason's amount predicts the drop: correlation, and mean absolute error
            as a share of the score;
  first     how often the candidate is still the best without these facts;
  seconds   of an explanation, without and with the ablation, and of the query on the new files.
Models are fitted with default settings, or read from the folders of sets in --models.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Collection
from pathlib import Path

import numpy as np
import polars as pl
from learning import THREADS
from published import load

import tilp

AGREE = 1e-9


def sample(graph: tilp.TemporalGraph, count: int, seed: int) -> list[tilp.Query]:
    """Return random facts of valid, each a query from one end; names are ids."""
    facts = graph.frame("valid", names="ids").select(
        "subject", "relation", "object", "start", "end"
    )
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(facts))[:count])
    given = rng.choice(["subject", "object"], len(rows))
    return [
        tilp.Query(fact["relation"], start=fact["start"], end=fact["end"], **{end: fact[end]})
        for fact, end in zip(facts[rows].to_dicts(), given, strict=True)
    ]


def without_lines(folder: Path, header: str, lines: list[str], facts: Collection[int]):
    """Return the graph in a folder, read again without some facts of its train file."""
    left = (line for fact, line in enumerate(lines) if fact not in facts)
    (folder / "train.tsv").write_text("".join([header, *left]), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tilp.TilpWarning)
        return tilp.read(folder)


def measured(model: tilp.TILP, queries: list[tilp.Query]) -> pl.DataFrame:
    """Return a row for each query whose best candidate has a reason with facts.

    Its score, the share of its first reason, the drop as stated and as it really is,
    the new rank, and seconds.
    """
    rows = []
    size = len(model.graph.entities)
    model.explain(queries[0])  # compiled before the clock runs
    with tempfile.TemporaryDirectory() as temporary:
        folder = tilp.write(model.graph, Path(temporary) / "graph")
        header, *lines = (folder / "train.tsv").read_text("utf-8").splitlines(keepends=True)
        for query in queries:
            best = model.ask(query, 1)[0]
            clock = [time.perf_counter()]
            model.explain(query, best.id, ablation=False)
            clock.append(time.perf_counter())
            explained = model.explain(query, best.id)
            clock.append(time.perf_counter())
            if explained.ablation is None:
                continue
            effect = explained.ablation
            facts = {step.fact_id for step in effect.facts}
            left = without_lines(folder, header, lines, facts)
            (again,) = model.predict(query, size, graph=left).filter(id=best.id).to_dicts()
            clock.append(time.perf_counter())
            rows.append(
                {
                    "score": best.score,
                    "share": effect.share,
                    "stated": effect.drop,
                    "real": best.score - again["score"],
                    "rank": again["rank"],
                    "facts": len(facts),
                    **dict(zip(("plain", "explain", "again"), np.diff(clock), strict=True)),
                }
            )
    return pl.DataFrame(rows)


def figures(found: pl.DataFrame) -> dict[str, float]:
    """Return what is printed, by name."""
    of_score = found.select(
        "share",
        drop=pl.col("real") / pl.col("score"),
        error=(pl.col("stated") - pl.col("real")).abs() / pl.col("score").abs(),
    )
    share, drop, error = (of_score[name].to_numpy() for name in ("share", "drop", "error"))
    return {
        "agree": float((error <= AGREE).mean()),
        "mean error": float(error.mean()),
        "greatest error": float(error.max()),
        "mean drop": float(drop.mean()),
        "mean share": float(share.mean()),
        "correlation": float(np.corrcoef(share, drop)[0, 1]),
        "absolute error": float(np.abs(share - drop).mean()),
        "first": float((found["rank"] == 1).mean()),
    }


def part(name: str, model: tilp.TILP, count: int, seed: int) -> None:
    queries = sample(model.graph, count, seed)
    found = measured(model, queries)
    values = figures(found)
    seconds = ", ".join(
        f"{text} {1e3 * found[column].median():.0f} ms"
        for column, text in (
            ("plain", "an explanation"),
            ("explain", "with ablation"),
            ("again", "files read and queried again"),
        )
    )
    print(f"({model.settings.features.value}) {name}: {len(queries)} valid queries, {len(found)} "
          f"with facts of a reason, {found['facts'].mean():.1f} facts\n"
          f"    agree: {values['agree']:.1%}, mean error {values['mean error']:.1e}, greatest "
          f"{values['greatest error']:.1e} of the score\n"
          f"    predict: share {values['mean share']:.3f}, drop {values['mean drop']:.3f} of the "
          f"score on average; correlation {values['correlation']:.3f}, mean absolute error "
          f"{values['absolute error']:.3f} of the score\n"
          f"    first: {values['first']:.1%} stay the best\n"
          f"    seconds, median: {seconds}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default="WIKIDATA12k,YAGO11k")
    parser.add_argument("--models", type=Path, help="a folder of saved models, named as the sets")
    parser.add_argument("--features", default="full", help="of models that are fitted")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name in arguments.sets.split(","):
        if arguments.models is not None:
            part(name, tilp.load(arguments.models / name), arguments.queries, arguments.seed)
            continue
        for features in arguments.features.split(","):
            model = tilp.TILP(features=features, n_jobs=THREADS).fit(load(name))
            part(name, model, arguments.queries, arguments.seed)


if __name__ == "__main__":
    main()

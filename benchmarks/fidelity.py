"""Whether explanations are true: the fall that they state against facts that are really removed.

TILP_DATA names the folder of published data sets. Of a seeded sample of valid queries, asked from
either end, the best candidate is explained. The facts of its top grounding are then struck from
the files of the graph, the files read again, and the model asked again on what they hold, without
fitting. Printed are
  agree     the share of cases in which the score falls as was stated, within 1e-9 of the score,
            and the mean and the greatest difference, as shares of the score;
  predict   how well plain shares tell the fall: correlation, and mean absolute error as a share
            of the score;
  first     how often the candidate is still the best without these facts;
  seconds   that an explanation takes, without and with the fall, and asking again takes.
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
    """Facts of valid, each asked from one end, drawn; names are ids, which are never two."""
    facts = graph.frame("valid", names="ids").select(
        "subject", "relation", "object", "start", "end"
    )
    chance = np.random.default_rng(seed)
    rows = np.sort(chance.permutation(len(facts))[:count])
    given = chance.choice(["subject", "object"], len(rows))
    return [
        tilp.Query(one["relation"], start=one["start"], end=one["end"], **{end: one[end]})
        for one, end in zip(facts[rows].to_dicts(), given, strict=True)
    ]


def without_lines(folder: Path, header: str, lines: list[str], facts: Collection[int]):
    """The graph in a folder, read again after some facts were struck from its train file."""
    left = (line for number, line in enumerate(lines) if number not in facts)
    (folder / "train.tsv").write_text("".join([header, *left]), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tilp.TilpWarning)
        return tilp.read(folder)


def measured(model: tilp.TILP, queries: list[tilp.Query]) -> pl.DataFrame:
    """A row for each query whose best candidate has a grounding.

    Its score, the plain share of the top grounding, the fall as stated and as it really is, the
    new rank, and seconds.
    """
    rows = []
    size = len(model.graph.entities)
    model.explain(queries[0])  # compiled before the clock runs
    with tempfile.TemporaryDirectory() as place:
        folder = tilp.write(model.graph, Path(place) / "graph")
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
            fall = explained.ablation
            left = without_lines(folder, header, lines, fall.grounding.facts)
            (again,) = model.predict(query, size, graph=left).filter(id=best.id).to_dicts()
            clock.append(time.perf_counter())
            rows.append(
                {
                    "score": best.score,
                    "share": fall.share,
                    "stated": fall.drop,
                    "real": best.score - again["score"],
                    "rank": again["rank"],
                    "facts": len(fall.grounding.facts),
                    **dict(zip(("plain", "explain", "again"), np.diff(clock), strict=True)),
                }
            )
    return pl.DataFrame(rows)


def figures(found: pl.DataFrame) -> dict[str, float]:
    """What is printed, by name."""
    of_score = found.select(
        "share",
        fall=pl.col("real") / pl.col("score"),
        error=(pl.col("stated") - pl.col("real")).abs() / pl.col("score").abs(),
    )
    share, fall, error = (of_score[name].to_numpy() for name in ("share", "fall", "error"))
    return {
        "agree": float((error <= AGREE).mean()),
        "mean error": float(error.mean()),
        "greatest error": float(error.max()),
        "mean fall": float(fall.mean()),
        "mean share": float(share.mean()),
        "correlation": float(np.corrcoef(share, fall)[0, 1]),
        "absolute error": float(np.abs(share - fall).mean()),
        "first": float((found["rank"] == 1).mean()),
    }


def part(name: str, model: tilp.TILP, count: int, seed: int) -> None:
    queries = sample(model.graph, count, seed)
    found = measured(model, queries)
    told = figures(found)
    seconds = ", ".join(
        f"{words} {1e3 * found[column].median():.0f} ms"
        for column, words in (
            ("plain", "an explanation"),
            ("explain", "with the fall"),
            ("again", "files read and asked again"),
        )
    )
    print(f"({model.settings.features.value}) {name}: {len(queries)} valid queries, {len(found)} "
          f"with a grounding, of {found['facts'].mean():.1f} facts\n"
          f"    agree: {told['agree']:.1%}, mean error {told['mean error']:.1e}, greatest "
          f"{told['greatest error']:.1e} of the score\n"
          f"    predict: share {told['mean share']:.3f}, fall {told['mean fall']:.3f} of the score "
          f"on average; correlation {told['correlation']:.3f}, mean absolute error "
          f"{told['absolute error']:.3f} of the score\n"
          f"    first: {told['first']:.1%} stay the best\n"
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

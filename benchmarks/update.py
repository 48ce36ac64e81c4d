"""What an update gives and costs, against a fit of all facts from scratch, on published sets.

TILP_DATA names the folder of published data sets. A model is fitted to part of the training facts
and then given the others: a tenth of them drawn (--new drawn), or the tenth that starts last
(--new latest). Rows:
  without          the model as it was: the new facts are not even evidence;
  applied          the model as it was, applied to all facts;
  updated          what they touch mined and counted anew, weights kept;
  from scratch     a model fitted to all facts.
MRR of valid and test, protocol enumerate with average ties; other answers are removed by all facts
in every row; everything is chosen on valid. CPU seconds of one thread, loops compiled before.
"""

import argparse
import time

import numpy as np
from published import load

import tilp
from tilp.evaluation import evaluate
from tilp.splits.kinds import LEFT_OUT, TRAIN, reassign_splits
from tilp.time import OPEN_START, UNKNOWN


def new_rows(graph: tilp.TemporalGraph, kind: str, share: float, seed: int) -> np.ndarray:
    """The training facts that come later."""
    rows = np.asarray(graph.rows("train"))
    wanted = round(share * len(rows))
    if kind == "drawn":
        return np.sort(np.random.default_rng(seed).choice(rows, wanted, replace=False))
    start = graph.start[rows]
    start = np.where(start == UNKNOWN, OPEN_START, start)
    return np.sort(rows[np.argsort(start, kind="stable")[-wanted:]])


def parts(graph: tilp.TemporalGraph, rows: np.ndarray) -> tuple[tilp.TemporalGraph, ...]:
    """The facts that there are first, with valid and test; and the new ones."""
    place = np.full(len(graph), LEFT_OUT)
    place[rows] = TRAIN
    return graph.without(rows), reassign_splits(graph, place)


def told(name: str, seconds: float, scorer, graph: tilp.TemporalGraph, note: str = "") -> None:
    found = [
        evaluate(scorer, graph, split, protocols=["enumerate"], threads=1).metrics().mrr
        for split in ("valid", "test")
    ]
    print(f"    {name:18} valid {found[0]:.4f}  test {found[1]:.4f}  {seconds:6.1f} s{note}",
          flush=True)  # fmt: skip


def timed(work):
    began = time.process_time()
    return work(), time.process_time() - began


def measure(name: str, kind: str, features: str, share: float, seed: int) -> None:
    graph = load(name)
    first, new = parts(graph, new_rows(graph, kind, share, seed))

    def estimator() -> tilp.TILP:
        return tilp.TILP(features=features, n_jobs=1, random_state=seed)

    model, seconds = timed(lambda: estimator().fit(first))
    print(f"{name}, {kind}, features {features}: {len(first.rows('train')):,} training facts, then "
          f"{len(new):,} more", flush=True)  # fmt: skip
    told("without", seconds, model.scorer(), graph, " to fit")
    told("applied", 0.0, model.scorer(graph), graph)
    # Numbers of facts differ from those of the data, so that what is asked is asked of it.
    made, taken = timed(lambda: model.update(new))
    told("updated", taken, made.scorer(), made.graph, f"; {len(made.rules()):,} rules")
    made, taken = timed(lambda: estimator().fit(graph))
    told("from scratch", taken, made.scorer(), graph, f"; {len(made.rules()):,} rules")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default="YAGO11k,WIKIDATA12k")
    parser.add_argument("--features", default="none,full")
    parser.add_argument("--new", default="drawn,latest")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    # Compiles what is used below.
    world = tilp.datasets.world(0, 1_000).graph
    first, new = parts(world, new_rows(world, "drawn", 0.1, 0))
    tilp.TILP(n_jobs=1).fit(first).update(new).evaluate("test")
    for name in arguments.sets.split(","):
        for kind in arguments.new.split(","):
            for features in arguments.features.split(","):
                measure(name, kind, features, arguments.share, arguments.seed)


if __name__ == "__main__":
    main()

"""Facts that still hold: MRR of those whose end is open, asked with `present` and without an end.

python benchmarks/open_ends.py DATA [--open-ends] [--split valid] [--model FOLDER] [any columns]

DATA has splits (tilp split). With --open-ends, unknown ends of facts with a start are taken as
open first. The filter is the same for both questions.
"""

import argparse
import time
from dataclasses import replace

import numpy as np

import tilp
from tilp.evaluation import evaluate
from tilp.time import OPEN_END, UNKNOWN


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--open-ends", action="store_true")
    parser.add_argument("--split", default="test")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    graph = tilp.read(given.data)
    if given.open_ends:
        unknown = (graph.end == UNKNOWN) & (graph.start != UNKNOWN)
        graph = replace(graph, end=np.where(unknown, OPEN_END, graph.end))
    started = time.process_time()
    model = tilp.TILP(n_jobs=given.threads).fit(graph)
    print(f"{given.data}: fitted in {time.process_time() - started:.0f} CPU s, {model}")
    whole = model.evaluate(given.split, protocols=["enumerate"]).metrics()
    print(f"all facts of {given.split}: MRR {whole.mrr:.4f}")
    rows = np.array(graph.rows(given.split))
    is_open = graph.end[rows] == OPEN_END
    for name, removed in (("open", rows[~is_open]), ("other", rows[is_open])):
        asked = graph.without(removed)
        own = np.array(asked.rows(given.split))
        ends = asked.end.copy()
        ends[own] = UNKNOWN
        parts = [("with its end", asked), ("without an end", replace(asked, end=ends))]
        for words, known in parts:
            mrr = (
                evaluate(model.scorer(), known, given.split, protocols=["enumerate"]).metrics().mrr
            )
            print(f"{len(own):,} facts with {name} ends, asked {words}: MRR {mrr:.4f}")


if __name__ == "__main__":
    main()

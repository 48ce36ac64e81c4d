"""Ray against threads: the time of the same mining, and the memory that workers need for one graph.

    TILP_DATA=FOLDER python benchmarks/parallel.py [--parts time,memory] [--sets WIKIDATA12k]

time    mining with two threads and with two workers of Ray, taking turns: the ratio of medians,
        and whether the rules are equal; a first map has started the workers before
memory  a graph of so many facts as the bundled world's relations have, and its edges, held by four
        workers of Ray that read all of it: how much each has for itself, against what there is
"""

import argparse
import os
import time
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
from published import load

import tilp
from tilp.graph import Vocabulary
from tilp.parallel import Workers
from tilp.walks import MiningSettings, Walker, mine

MEGABYTE = 1e6


def part_time(name: str, max_length: int, rounds: int) -> None:
    graph = load(name)
    settings = MiningSettings(max_length=max_length)
    taken: dict[str, list[float]] = {"threads": [], "ray": []}
    found = {}
    with Workers(2) as threads, Workers(2, "ray") as processes:
        quick = MiningSettings(max_length=1, sample=10)
        for workers in (threads, processes):
            mine(graph, None, quick, workers=workers)
        for _ in range(rounds):
            for way, workers in (("threads", threads), ("ray", processes)):
                began = time.perf_counter()
                found[way] = mine(graph, None, settings, workers=workers)
                taken[way].append(time.perf_counter() - began)
    seconds = {way: median(times) for way, times in taken.items()}
    print(f"(time) {name}, mining at length <= {max_length}: two threads {seconds['threads']:.1f} "
          f"s, Ray with two workers {seconds['ray']:.1f} s, "
          f"{seconds['ray'] / seconds['threads']:.2f} times; "
          f"{len(found['ray']):,} rules, equal: {found['ray'] == found['threads']}")  # fmt: skip


def many_facts(facts: int) -> tilp.TemporalGraph:
    """Facts drawn at random."""
    chance = np.random.default_rng(0)
    entities, relations = facts // 10, 50
    start = chance.integers(1900, 2000, facts)
    columns = {
        "subject": chance.integers(0, entities, facts, np.int32),
        "relation": chance.integers(0, relations, facts, np.int32),
        "object": chance.integers(0, entities, facts, np.int32),
        "start": start,
        "end": start + chance.integers(0, 20, facts),
    }
    names = (
        Vocabulary.of(kind, pl.Series([f"{kind} number {one}" for one in range(size)]))
        for kind, size in (("entity", entities), ("relation", relations))
    )
    return tilp.TemporalGraph.from_arrays(*names, columns, np.zeros(facts, np.uint8))


def own_memory() -> float:
    """Megabytes that this process shares with no other."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024 / MEGABYTE
    raise SystemExit("this system does not tell what a process has for itself")


def read_all(walker: Walker | None, _: int) -> tuple[int, float, float]:
    """The process, what it has for itself, and megabytes of the arrays that it read."""
    arrays: list[np.ndarray] = []
    if walker is not None:
        graph = walker.graph
        arrays = [
            *walker.edges,
            graph.subject,
            graph.relation,
            graph.object,
            graph.start,
            graph.end,
        ]
        for array in arrays:
            array.max()
    time.sleep(0.5)  # long enough for every worker to have its turn
    held = sum({one.ctypes.data: one.nbytes for one in arrays}.values())
    return os.getpid(), own_memory(), held / MEGABYTE


def part_memory(facts: int) -> None:
    walker = Walker(many_facts(facts), max_length=2)
    with Workers(4, "ray") as workers:
        _, before, _ = _by_worker(workers, None)
        size, after, held = _by_worker(workers, walker)
        grown = sum(after.values()) - sum(before.get(one, 0.0) for one in after)
        print(f"(memory) {facts:,} facts: {size} workers of Ray read {held:.0f} MB of arrays each, "
              f"and have {grown:.0f} MB more for themselves, all together: "
              f"{grown / held:.2f} of the arrays; copies would be {size}")  # fmt: skip


def _by_worker(workers: Workers, walker: Walker | None) -> tuple[int, dict[int, float], float]:
    found = list(workers.map(partial(read_all, walker), range(24)))
    own = {process: memory for process, memory, _ in found}
    return len(own), own, max(held for *_, held in found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="time,memory")
    parser.add_argument("--sets", default="WIKIDATA12k")
    parser.add_argument("--max-length", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--facts", type=int, default=2_000_000)
    arguments = parser.parse_args()
    if "time" in arguments.parts:
        for name in arguments.sets.split(","):
            part_time(name, arguments.max_length, arguments.rounds)
    if "memory" in arguments.parts:
        part_memory(arguments.facts)


if __name__ == "__main__":
    main()

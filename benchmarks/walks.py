"""The engine: walks, mining and application, measured against a bare loop in the same run.

    TILP_DATA=FOLDER python benchmarks/walks.py [--parts a,b,c,d,e,check] [--sets WIKIDATA12k,…]

a      every training query, all walks of length <= 3, arriving rates of all rules (all pairs) and
       candidates, one thread, as a multiple of a loop that only counts the same walks; and mining
       with default settings as another multiple
b      mining at length <= 5, and the mined rules applied to the valid queries, two threads
c      two threads over one, mining at length <= 3 and 4
d      peak memory of b, in a process of its own
e      cost of mining a fixed number of facts as the bundled world grows
check  counts of 200 random facts against brute force
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numba
import numpy as np
from published import load

import tilp
from tilp.graph import QueryTable
from tilp.parallel import Workers
from tilp.walks import MiningSettings, Walker, chunks_by, mine
from tilp.walks.mining import mine_relations, mining_walker

ROUNDS = 5


@numba.njit(nogil=True)
def count_walks(offsets, target, fact, subject, own_fact):
    """Walks of length 1 to 3: a depth-first loop, the last step without a branch."""
    total = 0
    for query in range(len(subject)):
        own = own_fact[query]
        for i in range(offsets[subject[query]], offsets[subject[query] + 1]):
            first = fact[i]
            if first == own:
                continue
            total += 1
            for j in range(offsets[target[i]], offsets[target[i] + 1]):
                second = fact[j]
                if second in (own, first):
                    continue
                total += 1
                thirds = fact[offsets[target[j]] : offsets[target[j] + 1]]
                here = np.int32(0)
                for k in range(len(thirds)):
                    third = thirds[k]
                    here += np.int32((third != own) & (third != first) & (third != second))
                total += here
    return total


def seconds(function, *arguments) -> float:
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


def training_queries(graph: tilp.TemporalGraph) -> QueryTable:
    return QueryTable.of_facts(graph, np.arange(len(graph.rows("train"))), walked=True)


def count_candidates(walker: Walker, queries: QueryTable) -> tuple[int, int]:
    """Return the numbers of candidates of all rules, and of walks to them."""
    n_candidates = n_walks = 0
    for chunk in chunks_by(walker, queries, queries.subject):
        records, _ = walker.count(chunk)
        n_candidates += len(records)
        n_walks += int(records[:, 7].sum())
    return n_candidates, n_walks


def part_a(name: str) -> None:
    graph = load(name)
    walker = Walker(graph, grains=["pairs"], max_length=3, distinct=False)
    queries = training_queries(graph)
    edges = walker.edges
    bare = (edges.offsets, edges.target, edges.fact, queries.subject, queries.fact)
    total = count_walks(*bare)
    n_candidates, n_walks = count_candidates(walker, queries)
    assert n_walks == total, "the same walks are counted"
    mine(graph, list(graph.relations)[:1])
    times: dict[str, list[float]] = {"bare": [], "all rules": [], "mining": []}
    for _ in range(ROUNDS):
        times["bare"].append(seconds(count_walks, *bare))
        times["all rules"].append(seconds(count_candidates, walker, queries))
        times["mining"].append(seconds(mine, graph))
    unit = median(times["bare"])
    print(f"(a) {name}: {total:,} walks, {n_candidates:,} candidates of rules")
    print(f"    bare loop: {unit:.2f} s, {total / unit / 1e6:,.0f} million walks a second")
    for task in ("all rules", "mining"):
        taken = median(times[task])
        print(f"    {task}: {taken:.2f} s = {taken / unit:.1f} × the bare loop")


def part_b(name: str) -> None:
    graph = load(name)
    mine(graph, list(graph.relations)[:1])
    started = time.perf_counter()
    rules = mine(graph, None, MiningSettings(max_length=5), threads=2)
    mined = time.perf_counter()
    sampled = sum(mined.sampled for mined in rules)
    print(f"(b) {name}: mined at length <= 5 in {mined - started:.0f} s: {rules}, "
          f"{sampled:,} of them with sampled counts")  # fmt: skip
    walker = Walker(graph, max_length=5)
    queries = QueryTable.of_facts(graph, np.array(graph.rows("valid")), walked=False)
    compiled = walker.compile([mined.rule for mined in rules])
    rows = apply_in_chunks(walker, queries, compiled)
    print(f"    applied to {len(queries):,} valid queries in {time.perf_counter() - mined:.0f} s: "
          f"{rows:,} rows (query, rule, end)")  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"(d) peak memory of mining and application: {peak:,.0f} MB")


def apply_in_chunks(walker, queries, compiled) -> int:
    chunks = chunks_by(walker, queries, queries.subject)
    with Workers(threads=2) as workers:
        return sum(workers.map(lambda chunk: len(walker.apply(chunk, compiled)[0]), chunks))


def part_c(name: str) -> None:
    graph = load(name)
    for length in (3, 4):
        settings = MiningSettings(max_length=length)
        mine(graph, list(graph.relations)[:1], settings)
        ratios = []
        for _ in range(3 if length == 3 else 1):
            single = seconds(lambda: mine(graph, None, settings, threads=1))  # noqa: B023
            double = seconds(lambda: mine(graph, None, settings, threads=2))  # noqa: B023
            ratios.append(single / double)
        print(f"(c) {name}, length <= {length}: two threads are {median(ratios):.2f} × one "
              f"({single:.1f} s, {double:.1f} s)")  # fmt: skip


def part_e() -> None:
    for size in (10_000, 100_000, 1_000_000, 10_000_000):
        graph = tilp.datasets.world(seed=0, size=size).graph
        settings = MiningSettings(sample=300)
        walker = mining_walker(graph, settings)
        walker.edges  # noqa: B018 - built once for a graph, not for each fact
        list(mine_relations(walker, ["livesIn"], MiningSettings(sample=2), Workers()))
        relation = graph.relations.find("livesIn")
        rows = np.flatnonzero(graph.relation[graph.span("train")] == relation)
        rows = np.random.default_rng([0, relation]).choice(rows, 300, replace=False)
        queries = QueryTable.of_facts(graph, np.sort(rows), walked=True)
        subjects, cost = walker.cost(queries.subject)
        n_queries = np.unique(queries.subject, return_counts=True)[1]
        walks = (cost / (4 + n_queries)).sum()
        taken = seconds(lambda: list(mine_relations(walker, ["livesIn"], settings, Workers())))  # noqa: B023
        print(f"(e) world of {len(graph):,} facts, 300 facts mined: {1e3 * taken / 300:.1f} ms a "
              f"fact; {len(subjects)} neighbourhoods of {walks / len(subjects):,.0f} walks, "
              f"{1e9 * taken / walks:.0f} ns a walk in them")  # fmt: skip


def part_check(name: str) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from oracles import counted, counts, edges_of, pick, query_parts

    graph = load(name)
    walker, edges = Walker(graph, max_length=3), edges_of(graph)
    queries = QueryTable.of_facts(graph, pick(200, len(graph.rows("train"))), walked=True)
    subjects, cost = walker.cost(queries.subject)
    compared = skipped = 0
    for index in range(len(queries)):
        if cost[np.searchsorted(subjects, queries.subject[index])] > 100_000:
            skipped += 1  # brute force would take minutes for one of these
            continue
        parts = query_parts(walker, queries, index)
        assert counted(walker, queries, index) == counts(edges, *parts, 3, walker.grains)
        compared += 1
    print(f"(check) {name}: {compared} queries of 200 facts equal brute force; {skipped} skipped")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="a,c,b,e")
    parser.add_argument("--sets", default="WIKIDATA12k,YAGO11k")
    arguments = parser.parse_args()
    parts = {"a": part_a, "b": part_b, "c": part_c, "check": part_check}
    for part in arguments.parts.split(","):
        if part == "e":
            part_e()
            continue
        for name in arguments.sets.split(","):
            if part == "b" and arguments.parts != "b":
                # In a process of its own, so that the peak is of this alone.
                command = [sys.executable, __file__, "--parts", "b", "--sets", name]
                subprocess.run(command, check=True)
            else:
                parts["b" if part == "d" else part](name)


if __name__ == "__main__":
    main()

"""Ten million facts on one machine: packed, opened, mined and asked, with the memory of each step.

    python benchmarks/scale.py [--facts 10000000] [--parts make,pack,open,mine,ask,ray,share,read]

make   the bundled world written as TSV files, some facts at a time
pack   tilp.pack, in as much memory as --memory says
open   the packed graph opened, and names looked up in it
mine   rules of length <= 3 for one relation, --targets facts of it asked
ask    the rules, weighted by their confidence, applied to --queries test facts, given by names and
       asked for their object
ray    the same mining of half as many facts again, to take a minute or more, by two threads and by
       two workers of Ray, in turns: the ratio of their times, and whether the rules are equal; a
       first map has started the workers before
share  four workers of Ray read all of the graph and its edges: what they have in memory more than
       before, each for itself and all together, against what they read
read   for comparison: tilp.read of the same files, its index, and what walks need beside it

Every part runs in a process of its own, so that its peak is its own: the most that was resident at
once, maps of files among it, which processes share and the system can drop. Anonymous memory, which
it cannot, is told beside it as it is at the end. That of `ray` and `share` is of the process that
gives the work; what workers have is what `share` is about. Seconds are of the clock, and of the
processor. Linux only: memory is read from /proc.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

import tilp
from tilp.parallel import Workers

PART = 500_000  # facts that are written at once
RELATION = "livesIn"
SHOWN = 10
COMPARED = ("ray", "share", "read")


def memory_mb(field: str, file: str = "status") -> float:
    lines = Path("/proc/self", file).read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


@contextmanager
def timed(words: str) -> Iterator[None]:
    """Tell what something took."""
    clock, processor = time.perf_counter(), time.process_time()
    yield
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    print(f"       {words}: {clock:,.3g} s (processor {processor:,.3g} s)", flush=True)


def make(arguments: argparse.Namespace) -> None:
    from tilp.datasets.synthetic import make_tables
    from tilp.time import UNKNOWN

    folder = arguments.folder / "data"
    folder.mkdir()
    with timed("made and written"):
        world = make_tables(0, arguments.facts)
        entities = pl.Series(world.entity_labels)
        relations = pl.Series(world.relation_labels)
        for begin in range(0, len(world), PART):
            rows = slice(begin, begin + PART)
            frame = pl.DataFrame(
                {
                    "subject": entities.gather(world.subject[rows]),
                    "relation": relations.gather(world.relation[rows]),
                    "object": entities.gather(world.object[rows]),
                    "start": world.start[rows],
                    "end": world.end[rows],
                    "split": world.split[rows],
                }
            ).with_columns(
                pl.when(pl.col(end) != UNKNOWN).then(pl.col(end).cast(pl.String)).alias(end)
                for end in ("start", "end")
            )
            for number, split in enumerate(tilp.SPLITS):
                mine = frame.filter(pl.col("split") == number).drop("split")
                with (folder / f"{split}.tsv").open("a", encoding="utf-8") as file:
                    file.write(
                        mine.write_csv(
                            separator="\t", quote_style="never", include_header=not begin
                        )
                    )
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"       {len(world):,} facts, {len(entities):,} entities, {size / 1e6:,.0f} MB of text")


def pack(arguments: argparse.Namespace) -> None:
    with timed(f"packed in {arguments.memory / 1e6:,.0f} MB to work in"):
        graph = tilp.pack(
            arguments.folder / "data",
            arguments.folder / "packed",
            memory=arguments.memory,
        )
    size = sum(path.stat().st_size for path in (arguments.folder / "packed").iterdir())
    each = size / max(len(graph), 1)
    print(f"       {graph}; {size / 1e6:,.0f} MB on disk, {each:.0f} bytes a fact")


def opened(arguments: argparse.Namespace) -> tilp.TemporalGraph:
    import tilp.io  # importing is not opening

    with timed("opened"):
        return tilp.read(arguments.folder / "packed")


def open_(arguments: argparse.Namespace) -> None:
    graph = opened(arguments)
    numbers = np.random.default_rng(0).integers(0, len(graph.entities), 1_000).tolist()
    names = [graph.entities.label(number) for number in numbers]
    with timed("1,000 names looked up"):
        assert [graph.entities.find(name) for name in names] == numbers


def mined(graph: tilp.TemporalGraph, targets: int, workers: Workers) -> tilp.RuleSet:
    from tilp.walks import MiningSettings
    from tilp.walks import mine as mine_rules

    settings = MiningSettings(sample=targets, max_length=3)
    return mine_rules(graph, [RELATION], settings, workers=workers)


def mine(arguments: argparse.Namespace) -> None:
    graph = opened(arguments)
    number = graph.relations.find(RELATION)
    facts = int((graph.relation[graph.span("train")] == number).sum())
    asked = min(facts, arguments.targets)
    with Workers(arguments.threads) as workers:
        with timed("loops compiled or loaded"):
            mined(tilp.datasets.world(0, 1_000).graph, arguments.targets, workers)
        with timed(f"rules for {RELATION} from {asked:,} of its {facts:,} training facts"):
            rules = mined(graph, arguments.targets, workers)
    rules.write_jsonl(arguments.folder / "rules.jsonl")
    print(f"       {rules}; the best: {rules.sort(lambda one: one.measure)[0].rule}")


def ask(arguments: argparse.Namespace) -> None:
    from tilp.rules import RuleSet
    from tilp.scoring import Query, RuleScorer, RuleWeights
    from tilp.scoring.queries import query_table
    from tilp.walks import MiningSettings, chunks_by
    from tilp.walks.mining import mining_walker

    graph = opened(arguments)
    rules = RuleSet.read_jsonl(arguments.folder / "rules.jsonl")
    rows = np.array(graph.rows("test"))
    rows = rows[graph.relation[rows] == graph.relations.find(RELATION)][: arguments.queries]
    facts = [graph.fact(row) for row in rows.tolist()]
    asked = [
        Query(one.relation, one.subject, start=one.interval.start, end=one.interval.end)
        for one in facts
    ]
    with timed("scorer made"):
        heads = 2 * len(graph.relations)
        weights = RuleWeights(
            np.array([one.confidence for one in rules]),
            np.full(heads, 0.01),
            np.ones((heads, 4)),
        )
        walker = mining_walker(graph, MiningSettings(max_length=3))
        scorer = RuleScorer(walker, [one.rule for one in rules], weights)
    with timed("loops compiled or loaded"):
        scorer(query_table(graph, asked[:2]))
    with timed(f"{len(asked):,} queries scored"):
        table = query_table(graph, asked)
        chunks = chunks_by(walker, table, table.subject)
        with Workers(arguments.threads) as workers:
            best = list(workers.map(lambda chunk: (chunk, best_of(scorer(chunk))), chunks))
    answers = {
        (int(subject), int(start), int(end)): set(found.tolist())
        for chunk, several in best
        for subject, start, end, found in zip(
            chunk.subject, chunk.start, chunk.end, several, strict=True
        )
    }
    keys = zip(table.subject.tolist(), table.start.tolist(), table.end.tolist(), strict=True)
    right = sum(
        int(graph.object[row]) in answers[key] for row, key in zip(rows.tolist(), keys, strict=True)
    )
    print(f"       the answer is among the best {SHOWN} of {len(graph.entities):,} entities for "
          f"{right / max(len(rows), 1):.1%} (nothing removed)")  # fmt: skip


def best_of(scores: "tilp.evaluation.Scores") -> list[np.ndarray]:
    """The best candidates of each query."""
    found = []
    for begin, end in zip(scores.offsets[:-1], scores.offsets[1:], strict=True):
        order = np.argsort(-scores.score[begin:end], kind="stable")[:SHOWN]
        found.append(scores.candidate[begin:end][order])
    return found


def ray(arguments: argparse.Namespace) -> None:
    graph = opened(arguments)
    small = tilp.datasets.world(0, 1_000).graph
    targets = 3 * arguments.targets // 2
    found, seconds = {}, {}
    for way in ("threads", "ray"):
        with Workers(2, way) as workers:
            mined(small, targets, workers)
            began = time.perf_counter()
            found[way] = mined(graph, targets, workers)
            seconds[way] = time.perf_counter() - began
    print(f"       two threads {seconds['threads']:.1f} s, two workers of Ray "
          f"{seconds['ray']:.1f} s: {seconds['ray'] / seconds['threads']:.2f} times; rules equal: "
          f"{found['ray'] == found['threads']}", flush=True)  # fmt: skip


def share(arguments: argparse.Namespace) -> None:
    from tilp.walks import Walker

    walker = Walker(opened(arguments), max_length=3)
    small = Walker(tilp.datasets.world(0, 1_000).graph, max_length=3)
    with Workers(4, "ray") as workers:
        before = looked_at(workers, small)  # modules are loaded with it
        after = looked_at(workers, walker)
    if not after.keys() <= before.keys():
        raise SystemExit("a worker has died meanwhile")
    held = max(mb for mb, *_ in after.values())
    alone, together = (
        sum(after[worker][place] - before[worker][place] for worker in after) for place in (1, 2)
    )
    print(f"       {len(after)} workers of Ray read {held:,.0f} MB of arrays each; all together "
          f"they have {together:,.0f} MB more in memory, {together / held:.2f} of the arrays, of "
          f"which {alone:,.0f} MB for themselves; copies would be {len(after)}")  # fmt: skip


def looked_at(workers: Workers, walker: "tilp.walks.Walker") -> dict[int, tuple[float, ...]]:
    """What each worker has read, has for itself, and has with its share of what others have too."""
    return dict(workers.map(partial(read_all, walker), range(24)))


def read_all(walker: "tilp.walks.Walker", _: int) -> tuple[int, tuple[float, ...]]:
    graph = walker.graph
    columns = (graph.subject, graph.relation, graph.object, graph.start, graph.end)
    arrays = [*walker.edges, *columns]
    for array in arrays:
        array.max()
    time.sleep(1.0)  # long enough for every worker to have its turn
    held = sum({one.ctypes.data: one.nbytes for one in arrays}.values())
    own, shared = memory_mb("RssAnon"), memory_mb("Pss", "smaps_rollup")
    return os.getpid(), (held / 2**20, own, shared)


def read(arguments: argparse.Namespace) -> None:
    from tilp.walks import Walker

    with timed("read"):
        graph = tilp.read(arguments.folder / "data")
    with timed("index"):
        graph.index()
    with timed("what walks need beside it"):
        walker = Walker(graph)
        _ = walker.edges, walker._inverse
    with timed("fingerprint"):
        same = (
            graph.canonical().fingerprint() == tilp.read(arguments.folder / "packed").fingerprint()
        )
    print(f"       equal to the packed graph by fingerprint: {same}")


PARTS = {
    "make": make,
    "pack": pack,
    "open": open_,
    "mine": mine,
    "ask": ask,
    "ray": ray,
    "share": share,
    "read": read,
}


def run_part(arguments: argparse.Namespace) -> None:
    """One part, in this process."""
    started = time.perf_counter()
    print(f"{arguments.part}", flush=True)
    PARTS[arguments.part](arguments)
    peak, anonymous = memory_mb("VmHWM"), memory_mb("RssAnon")
    print(f"       {arguments.part}: {time.perf_counter() - started:,.1f} s in all, peak memory "
          f"{peak:,.0f} MB (anonymous at the end: {anonymous:,.0f} MB)", flush=True)  # fmt: skip
    with (arguments.folder / "peaks").open("a") as file:
        file.write(f"{arguments.part} {peak}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--facts", type=int, default=10_000_000)
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--memory", type=int, default=1_000_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="kept; a temporary one by default")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        run_part(arguments)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "peaks").unlink(missing_ok=True)
        for part in arguments.parts.split(","):
            given = ("facts", "targets", "queries", "memory", "threads")
            options = [f"--{name}={getattr(arguments, name)}" for name in given]
            command = [sys.executable, __file__, f"--part={part}", f"--folder={folder}", *options]
            subprocess.run(command, check=True)
        peaks = dict(line.split() for line in (folder / "peaks").read_text().splitlines())
    ours = {part: float(peak) for part, peak in peaks.items() if part not in COMPARED}
    if ours:
        greatest = max(ours, key=ours.__getitem__)
        print(f"greatest peak, {', '.join(COMPARED)} apart: {ours[greatest]:,.0f} MB ({greatest})")


if __name__ == "__main__":
    main()

"""The service, measured over HTTP on loopback, in a process of its own.

    TILP_DATA=… python benchmarks/serve.py [--parts latency load slow malformed schema]
        [--models FOLDER] [--set WIKIDATA12k] [--seconds 60] [--clients 8] [--requests 10000]

latency: of 1,000 random queries of the valid split, one after the other, once warm.
load: many clients at once for a while; throughput, latency, memory, and whether each answer is,
byte for byte, the one given when nobody else asked.
slow: the same load without the comparison, by turns alone and beside 300 connections that send a
byte a second (headers or bodies) and 100 that read no response; closed ones are made anew.
malformed: requests that no client should send; their statuses, and memory.
schema: what schemathesis finds.

A model is fitted first, unless a folder of saved ones has it. Linux only: memory is read from
/proc.
"""

import argparse
import asyncio
import json
import os
import random
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import numpy as np

import tilp
from tilp.scoring.queries import encode_query

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from malformed import Malformed, send
from serving import check_schema

ASKED = 1_000
MIX = (("predict", 8), ("explain", 1), ("rules", 1))
Body = dict[str, object]


@contextmanager
def served(folder: Path):
    """`tilp serve` of a model; gives its address and its process."""
    command = [sys.executable, "-m", "tilp", "serve", str(folder), "--port", "0"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        while "ready at " not in (line := process.stdout.readline()):
            if not line:
                raise SystemExit("the service did not start")
        print(f"ready after {time.perf_counter() - started:.1f} s, {memory(process)}")
        yield line.split()[-1], process
    finally:
        process.terminate()
        process.wait()


def memory(process: subprocess.Popen) -> str:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return f"{int(next(line.split()[1] for line in lines if line.startswith('VmRSS'))) // 1024} MB"


def find_queries(folder: Path, seed: int, count: int) -> list[Body]:
    """Random facts of the valid split, each asked for its object or its subject, if it can be."""
    graph = tilp.load(folder).graph
    ids, relations = graph.entities.ids, graph.relations.ids
    chance = random.Random(seed)
    found = []
    for row in chance.choices(graph.rows("valid"), k=count):
        end = chance.choice(("subject", "object"))
        query = {
            "relation": str(relations[int(graph.relation[row])]),
            end: str(ids[int(getattr(graph, end)[row])]),
            "start": str(graph.texts[int(graph.start_text[row])]) or None,
            "end": str(graph.texts[int(graph.end_text[row])]) or None,
        }
        with suppress(tilp.TilpError):  # a fact that starts after its end is refused, status 400
            encode_query(graph, tilp.Query(**query))
            found.append(query)
    return found


def quantiles(seconds: list[float]) -> str:
    named = zip(("p50", "p95", "p99"), np.percentile(seconds, (50, 95, 99)) * 1000, strict=True)
    return ", ".join(f"{name} {value:.1f} ms" for name, value in named)


def ask(client: httpx.Client, kind: str, query: Body) -> bytes:
    if kind == "rules":
        answer = client.get("/api/v1/rules", params={"relation": str(query["relation"])})
    else:
        answer = client.post(f"/api/v1/{kind}", json=query)
    answer.raise_for_status()
    return answer.content


def groundings(query: Body, told: dict) -> list[Body]:
    """The groundings that an explanation tells, as pictures of them are asked for."""
    walks = [one["facts"] for reason in told["reasons"] for one in reason["groundings"]]
    steps = [[{name: fact[name] for name in ("id", "inverse")} for fact in walk] for walk in walks]
    return [{**query, "candidate": told["candidate"], "facts": facts} for facts in steps]


def measure_latency(address: str, queries: list[Body], process: subprocess.Popen) -> None:
    with httpx.Client(base_url=address, timeout=60) as client:

        def timed(name: str, kind: str, bodies: list[Body]) -> list[bytes]:
            taken, found = [], []
            for body in bodies:
                started = time.perf_counter()
                found.append(ask(client, kind, body))
                taken.append(time.perf_counter() - started)
            print(
                f"{name}: {quantiles(taken)} of {len(taken):,}; {memory(process)}",
                flush=True,
            )
            return found

        timed("predict", "predict", queries)
        told = [json.loads(one) for one in timed("explain", "explain", queries)]
        pictures = [
            one
            for query, explanation in zip(queries, told, strict=True)
            for one in groundings(query, explanation)[:1]
        ]
        timed("picture of a grounding", "picture", pictures)
        drawn = [{**query, "pictures": True} for query in queries[: len(queries) // 5]]
        timed("explain, all groundings drawn", "explain", drawn)
        timed("rules", "rules", queries)


def measure_load(
    address: str,
    queries: list[Body],
    process: subprocess.Popen,
    clients: int,
    seconds: float,
) -> None:
    kinds = [kind for kind, times in MIX for _ in range(times)]
    with httpx.Client(base_url=address, timeout=60) as client:
        alone = {
            (kind, number): ask(client, kind, query)
            for kind, _ in MIX
            for number, query in enumerate(queries)
        }
    print(f"answers alone: {len(alone):,}; {memory(process)}")
    taken: dict[str, list[float]] = {kind: [] for kind, _ in MIX}
    other, refused = [], Counter[int]()
    end = time.perf_counter() + seconds

    def go_on(seed: int) -> None:
        chance = random.Random(seed)
        with httpx.Client(base_url=address, timeout=60) as client:
            while time.perf_counter() < end:
                kind, number = chance.choice(kinds), chance.randrange(len(queries))
                started = time.perf_counter()
                try:
                    found = ask(client, kind, queries[number])
                except httpx.HTTPStatusError as failure:
                    refused[failure.response.status_code] += 1
                    continue
                taken[kind].append(time.perf_counter() - started)
                if found != alone[kind, number]:
                    other.append((kind, number))

    threads = [threading.Thread(target=go_on, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = sum(map(len, taken.values()))
    print(f"{clients} clients for {seconds:g} s: {total / seconds:.1f} requests a second")
    for kind, times in taken.items():
        print(f"  {kind}: {len(times):,}, {quantiles(times)}")
    print(f"  refused: {dict(refused) or 'none'}; {memory(process)}")
    print(f"  answers that differ from those alone: {len(other)} of {total:,}")


async def _drip(port: int, head: bytes, rest: bytes, closed: Counter[str]) -> None:
    """Send the end of a request byte by byte; a new one whenever the connection is closed."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head)
            for byte in rest:
                writer.write(bytes([byte]))
                await writer.drain()
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        if not await reader.read(1_000):
                            break
        except OSError:
            await asyncio.sleep(0.1)
        closed["slow"] += 1


async def _leave_unread(port: int, request: bytes, closed: Counter[str]) -> None:
    """Send a request, and read nothing until the connection is closed; then anew."""
    loop = asyncio.get_running_loop()
    while True:
        with socket.socket() as connection, suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.setblocking(False)
            await loop.sock_connect(connection, ("127.0.0.1", port))
            await loop.sock_sendall(connection, request)
            closing = select.POLLHUP | select.POLLERR | select.POLLRDHUP
            poll = select.poll()
            poll.register(connection, closing)
            while not poll.poll(0):
                await asyncio.sleep(1.0)
        closed["unread"] += 1
        await asyncio.sleep(0.1)


def hold_connections(port: int, queries: list[Body], stop: threading.Event) -> Counter[str]:
    """Hold 300 slow and 100 unread connections in a thread until an event."""
    closed = Counter[str]()
    body = json.dumps(queries[0]).encode()
    post = b"POST /api/v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    post += b"Content-Length: %d\r\n\r\n"
    request = b"GET /api/v1/rules?limit=200 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    header = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", b"y" * 10_000

    async def hold() -> None:
        tasks = [_drip(port, *header, closed) for _ in range(200)]
        tasks += [_drip(port, post % (b"predict", len(body)), body, closed) for _ in range(100)]
        tasks += [_leave_unread(port, request, closed) for _ in range(100)]
        running = asyncio.gather(*tasks, return_exceptions=True)
        while not stop.is_set():
            await asyncio.sleep(0.2)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    threading.Thread(target=asyncio.run, args=(hold(),), daemon=True).start()
    return closed


def measure_slow(
    address: str, queries: list[Body], process: subprocess.Popen, clients: int, seconds: float,
    rounds: int,
) -> None:  # fmt: skip
    kinds = [kind for kind, times in MIX for _ in range(times)]
    every: dict[str, list[float]] = {}

    def load(name: str) -> None:
        taken, refused, end = list[float](), Counter[int](), time.perf_counter() + seconds

        def go_on(seed: int) -> None:
            chance = random.Random(seed)
            with httpx.Client(base_url=address, timeout=60) as client:
                while (started := time.perf_counter()) < end:
                    try:
                        ask(client, chance.choice(kinds), chance.choice(queries))
                        taken.append(time.perf_counter() - started)
                    except httpx.HTTPStatusError as failure:
                        refused[failure.response.status_code] += 1
                    time.sleep(0.05)

        threads = [threading.Thread(target=go_on, args=(seed,)) for seed in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        health = time.perf_counter()
        httpx.get(f"{address}/health", timeout=60).raise_for_status()
        health = time.perf_counter() - health
        every.setdefault(name, []).extend(taken)
        times = quantiles(taken) if taken else "none answered"
        print(f"{name}: {len(taken):,} requests, {times}; refused: {dict(refused)}; "
              f"health {health * 1000:.0f} ms; {memory(process)}", flush=True)  # fmt: skip

    for _ in range(rounds):
        load("alone")
        stop = threading.Event()
        closed = hold_connections(httpx.URL(address).port, queries, stop)
        time.sleep(5.0)
        load("beside 300 slow and 100 unread connections")
        stop.set()
        print(f"closed by the service meanwhile: {dict(closed)}")
        time.sleep(12.0)  # until those that are left are closed
    for name, taken in every.items():
        print(f"{name}, all rounds: {quantiles(taken)} of {len(taken):,}")


def measure_malformed(
    address: str, queries: list[Body], process: subprocess.Popen, requests: int
) -> None:
    drawn = Malformed(0, [*queries[:20], {"queries": queries[:3]}])
    port = httpx.URL(address).port
    statuses: Counter[int] = Counter()
    slowest = 0.0
    for number in range(requests):
        if number % (requests // 5) == 0:
            print(f"  after {number:,} requests: {memory(process)}")
        request, due = drawn.draw()
        started = time.perf_counter()
        statuses[send(port, request, due=due)] += 1
        slowest = max(slowest, time.perf_counter() - started)
    print(f"{requests:,} malformed requests: {memory(process)}; the slowest took {slowest:.2f} s")
    print(f"  statuses (0: closed without an answer): {dict(sorted(statuses.items()))}")
    print(f"  5xx: {sum(count for status, count in statuses.items() if status >= 500)}")
    httpx.get(f"{address}/ready").raise_for_status()


def measure_schema(address: str, examples: int, process: subprocess.Popen) -> None:
    done = check_schema(address, examples=examples)
    print("\n".join(line[:200] for line in done.stdout.splitlines()[-30:]))
    print(f"schemathesis found {'nothing' if done.returncode == 0 else 'SOMETHING'}; "
          f"{memory(process)}")  # fmt: skip


def find_model(name: str, models: Path | None, temporary: Path) -> Path:
    if models is not None and (models / name).is_dir():
        return models / name
    data = os.environ.get("TILP_DATA")
    if data is None:
        raise SystemExit("TILP_DATA names no folder of published data sets, nor --models a model")
    print(f"fitting a model of {name}")
    return tilp.TILP().fit(tilp.read(Path(data) / name)).save(temporary / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ("latency", "load", "slow", "malformed", "schema")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--set", default="WIKIDATA12k")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3, help="of slow: alone, then beside")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--examples", type=int, default=200)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = find_model(chosen.set, chosen.models, Path(temporary))
        queries = find_queries(folder, 0, ASKED)
        for part in chosen.parts:
            print(f"\n{part}, {chosen.set}")
            with served(folder) as (address, process):
                if part == "latency":
                    measure_latency(address, queries, process)
                elif part == "load":
                    measure_load(address, queries[:200], process, chosen.clients, chosen.seconds)
                elif part == "slow":
                    measure_slow(
                        address, queries, process, chosen.clients, chosen.seconds, chosen.rounds
                    )
                elif part == "malformed":
                    measure_malformed(address, queries, process, chosen.requests)
                else:
                    measure_schema(address, chosen.examples, process)


if __name__ == "__main__":
    main()

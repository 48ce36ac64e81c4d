"""One `map` over chunks of work, cut by cost, with results in the order of the chunks.

Chunks do not depend on how many workers there are, so neither does the result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["cut_by_cost", "map_chunks"]

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def cut_by_cost(cost: NDArray[np.float64], most: int = 64) -> list[slice]:
    """Cut a sequence into at most so many slices of about the same cost.

    >>> cut_by_cost(np.array([1.0, 1.0, 2.0, 4.0]), most=2)
    [slice(0, 3, None), slice(3, 4, None)]
    """
    if not len(cost):
        return []
    ends = np.cumsum(cost)
    numbers = np.minimum((ends - cost / 2) / ends[-1] * most, most - 1).astype(np.int64)
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    return [slice(int(a), int(b)) for a, b in zip(begins, [*begins[1:], len(cost)], strict=True)]


def map_chunks(
    function: Callable[[Chunk], Result], chunks: Sequence[Chunk], *, threads: int = 1
) -> Iterator[Result]:
    """The function's result for each chunk, in order; a bounded number is under way at a time."""
    if threads <= 1:
        yield from map(function, chunks)
        return
    with ThreadPoolExecutor(threads) as pool:
        under_way: deque[Future[Result]] = deque()
        try:
            for chunk in chunks:
                under_way.append(pool.submit(function, chunk))
                if len(under_way) > 2 * threads:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for waiting in under_way:
                waiting.cancel()

"""Parallel work: split into chunks by cost, run by `Workers`, results in the order of the chunks.

Chunks do not depend on the number or kind of workers, so neither does the result.
"""

from tilp.parallel.workers import Workers, split_by_cost, thread_count, use_workers

__all__ = ["Workers", "split_by_cost", "thread_count", "use_workers"]

"""One door for parallel work: chunks cut by cost, given to `Workers`, results in their order.

Chunks do not depend on how many workers there are or where they are, so neither does the result.
"""

from tilp.parallel.workers import Workers, split_by_cost, thread_count, use_workers

__all__ = ["Workers", "split_by_cost", "thread_count", "use_workers"]

"""`few`: fewer training facts to learn from."""

from __future__ import annotations

import numpy as np

from tilp._utils.random import sample_share
from tilp.errors import TilpError
from tilp.graph import TemporalGraph
from tilp.splits.reassign import set_aside
from tilp.types import Walked, choose

__all__ = ["SHARES", "few"]

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""The shares at which the paper's Figure 2 is measured."""


def few(
    graph: TemporalGraph,
    share: float,
    *,
    seed: int = 0,
    walked: Walked | str = Walked.KEPT,
) -> TemporalGraph:
    """The graph with a sample of its training facts to learn from; valid and test stay.

    Appendix D: 'we randomly reduce the number of training samples in training set', in five
    rounds, which are five seeds here. Of one seed a smaller sample is part of a greater one. The
    sample is the one that `TILPConfig(share=share)` draws with `random_state=seed`. The paper's
    shares are of all facts, so that its 80 % are all of train; here they are of the training facts.

    Args:
        graph: the facts.
        share: of the training facts.
        seed: for the sample.
        walked: whether the other training facts are `kept` to walk on, as in the files that came
            with the paper, or gone (`reduced`).

    Raises:
        TilpError: a share that is none, or a sample without any fact.

    >>> import tilp
    >>> graph = tilp.datasets.world(seed=0, size=1_000).graph
    >>> len(few(graph, 0.05).targets), len(few(graph, 0.1).targets), len(graph.targets)
    (41, 81, 812)
    """
    walked = choose(Walked, walked, "walked")
    if not 0.0 < share <= 1.0:
        raise TilpError(f"the share is {share:g}; it is above 0 and at most 1, such as 0.05")
    targets = graph.targets
    rows = targets[sample_share(len(targets), share, seed)]
    if not len(rows):
        raise TilpError(
            f"a share of {share:g} of {len(targets):,} training facts is none of them; choose a "
            "greater one"
        )
    return set_aside(graph, np.setdiff1d(np.asarray(graph.rows("train")), rows), walked)

"""What a fit will take, told before it begins: counted, tried on a sample, and carried on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilp.bench.memory import forget_peak, peak_megabytes
from tilp.costs.joint_features import joint_stage
from tilp.costs.learning import learning_stages
from tilp.costs.paper_features import paper_stage
from tilp.costs.situation import Situation
from tilp.costs.stage import StageCost
from tilp.costs.walking import apply_stage, choose_stage, mine_stage
from tilp.errors import NoRulesError, TilpError
from tilp.graph import TemporalGraph
from tilp.model import ModelSettings
from tilp.scoring import RuleScorer, RuleWeights
from tilp.types import Features, Part

__all__ = ["FitCost", "dry_run"]

_MEGABYTE = 1024.0**2
_LONG = 600.0  # seconds from which on there is advice
_BUDGET = 8.0  # CPU seconds to spend on samples, about


@dataclass(frozen=True)
class FitCost:
    """What a fit takes.

    Attributes:
        stages: in their order.
        threads: that it is to have.
        before: bytes that are taken before the first stage: the program, the facts, their index.
        walks: of one query of train: the mean, and the most from any entity.
        limited: entities whose walks of some length are more than the limit.
        sample: facts that were mined to know it, and how many will be.
        rules: about how many will be found.
        advice: what makes it shorter, where it is long.
        warnings: what would go wrong.
    """

    stages: tuple[StageCost, ...]
    threads: int
    before: float
    walks: tuple[float, float]
    limited: int
    sample: tuple[int, int]
    rules: int
    advice: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def cpu(self) -> float:
        """Seconds of one core, in all."""
        return sum(one.cpu for one in self.stages)

    @property
    def seconds(self) -> float:
        """What it takes with its threads, each with a core of its own."""
        return sum(one.seconds(self.threads) for one in self.stages)

    @property
    def peak(self) -> float:
        """Bytes at the most."""
        return self.before + max((one.peak for one in self.stages), default=0.0)

    @property
    def longest(self) -> StageCost:
        """The stage that takes most of the time."""
        return max(self.stages, key=lambda one: one.seconds(self.threads))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "stages": [one.to_json(self.threads) for one in self.stages],
            "threads": self.threads,
            "cpu": self.cpu,
            "seconds": self.seconds,
            "peak": self.peak,
            "before": self.before,
            "longest": self.longest.name,
            "walks": dict(zip(("mean", "most"), self.walks, strict=True)),
            "limited": self.limited,
            "sample": dict(zip(("facts", "of"), self.sample, strict=True)),
            "rules": self.rules,
            "advice": list(self.advice),
            "warnings": list(self.warnings),
        }


def dry_run(
    graph: TemporalGraph,
    settings: ModelSettings,
    *,
    threads: int = 1,
    reading: float = 0.0,
    budget: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> FitCost:
    """Predict what a fit of a graph takes; nothing is written.

    What there is to walk is counted from the degrees of all entities; what a unit of it takes is
    measured on samples of the very same work. Training is taken to go on to its last step.

    Args:
        graph: the facts.
        settings: of the fit.
        threads: that it is to have.
        reading: CPU seconds that it took to read the facts.
        budget: CPU seconds to spend on samples, about; some by default.
        progress: called with the share that is done.

    Raises:
        TilpError: there is nothing to learn from.
        NoRulesError: no rule was found in the sample.
    """
    if not len(graph.rows("train")):
        raise TilpError("there are no training facts to learn from")
    budget = _BUDGET if budget is None else budget
    tell = progress or (lambda _share: None)
    now = Situation.of(graph, settings)
    if not any(map(len, now.mined.values())):
        raise TilpError(
            f"no training fact would be asked: share is {settings.mining.share:g} of "
            f"{len(graph.targets):,}; choose a greater one"
        )
    tell(0.1)
    now = now.sampled(0.35 * budget)
    if not now.sample.rules:
        raise NoRulesError(
            f"no rule was found in a sample of {now.sample.facts:,} facts: no fact's ends are "
            "joined by other facts often enough; a greater max_length may find some"
        )
    tell(0.3)
    stages = [
        StageCost("read", len(graph), "facts", cpu=reading, serial=reading),
        StageCost("prepare", len(graph), "facts indexed", cpu=now.prepared, serial=now.prepared),
        mine_stage(now, 0.2 * budget),
    ]
    tell(0.5)
    stages.append(apply_stage(now, 0.15 * budget))
    tell(0.6)
    features = settings.features
    full = features is Features.FULL
    folds = full and Part.OUT_OF_FOLD not in settings.without
    training, *of_folds = learning_stages(now, folds=folds)
    stages.append(training)
    tell(0.7)
    weights = _weights(now)
    scorer = RuleScorer(now.walker, [one.rule for one in now.sample.rules], weights, now.settling)
    if settings.training.choose_power:
        stages.append(choose_stage(now, scorer, 0.1 * budget, threads))
    tell(0.8)
    stages += of_folds
    if full:
        stages.append(joint_stage(now, scorer, weights, 0.3 * budget, threads))
    elif features is Features.PAPER:
        stages.append(paper_stage(now, scorer, 0.3 * budget))
    tell(1.0)
    forget_peak()  # left are the program with its loops, the facts, their index, and some samples
    before = (peak_megabytes() or 0.0) * _MEGABYTE
    subjects = now.training.subject
    found = FitCost(
        stages=tuple(stages),
        threads=threads,
        before=before,
        walks=(float(now.steps_from[subjects].mean()) if len(subjects) else 0.0,
               float(now.steps_from.max(initial=0.0))),
        limited=int((now.steps >= settings.mining.limit).any(axis=0).sum()),
        sample=(now.sample.facts, now.facts),
        rules=sum(now.rules_of_all().values()),
    )  # fmt: skip
    return replace(found, advice=_advice(found, now), warnings=_warnings(found))


def _weights(now: Situation) -> RuleWeights:
    """Weights that score as learned ones do, at the same cost."""
    heads = 2 * len(now.graph.relations)
    rules = now.sample.rules
    made, _ = now.entries
    return RuleWeights(
        np.array([one.confidence for one in rules]) + 1e-6,
        np.full(heads, 0.2),
        np.ones((heads, made.at_known.shape[1])),
    )


def _warnings(found: FitCost) -> tuple[str, ...]:
    """Whether there is memory enough."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no system tells everything
        return ()
    if found.peak < there:
        return ()
    return (
        f"it needs {found.peak / 1e9:,.1f} GB of memory, and this machine has "
        f"{there / 1e9:,.1f} GB; what is kept of the queries to learn from takes most of it: "
        "a smaller --share or --max-length has less",
    )


def _advice(found: FitCost, now: Situation) -> tuple[str, ...]:
    """What would make a long fit shorter, the most useful first."""
    if found.seconds < _LONG:
        return ()
    settings = now.settings
    mining = settings.mining
    said = []
    per_length = now.steps[:, now.training.subject].sum(axis=1)
    total = per_length.sum()
    if mining.max_length > 1 and total > 0:
        left = per_length[:-1].sum() / total
        said.append(
            f"--max-length {mining.max_length - 1}: {left:.1%} of the walks, and rules that are "
            "shorter"
        )
    share = min(1.0, mining.share) * max(0.01, round(_LONG / found.seconds, 2))
    if found.seconds > 2 * _LONG:
        said.append(
            f"--share {share:.2g}: about {share / mining.share:.0%} of the queries to learn from; "
            "all facts are walked on"
        )
    if found.longest.name == "mine":
        facts = max(1, int(found.sample[1] * _LONG / found.seconds / len(now.graph.relations)))
        said.append(f"--sample {facts}: facts of each relation that rules are mined from")
    if found.limited:
        said.append(
            f"--limit {max(1, mining.limit // 10)}: {found.limited:,} entities have more walks of "
            "one length than the limit now; they are sampled past it"
        )
    if found.longest.name == "features":
        said.append("--features none: rules alone")
    return tuple(said)

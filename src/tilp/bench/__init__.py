"""The paper's experiments, and any others, on anybody's data: run from a plan, and reported."""

from tilp.bench.jobs import Job
from tilp.bench.loading import load_plan, shipped_plans
from tilp.bench.plans import Experiment, Plan
from tilp.bench.running import Outcome, plan_jobs, run_plan
from tilp.bench.side_by_side import Watcher
from tilp.bench.sources import Source, WorldSize, find_source, world_source

__all__ = [
    "Experiment",
    "Job",
    "Outcome",
    "Plan",
    "Source",
    "Watcher",
    "WorldSize",
    "find_source",
    "load_plan",
    "plan_jobs",
    "run_plan",
    "shipped_plans",
    "world_source",
]

"""Experiments from a plan, the paper's or any others, on any data: run and reported."""

from tilp.bench.experiments import Experiment
from tilp.bench.jobs import Job, Watcher
from tilp.bench.plan import Plan, load_plan, shipped_plans
from tilp.bench.run import Outcome, plan_jobs, run_plan
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

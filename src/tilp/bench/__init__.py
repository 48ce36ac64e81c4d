"""Experiments from a plan, the paper's or any others, on any data: run and reported."""

from tilp.bench.data import Source, WorldSize, find_source, world_source
from tilp.bench.experiment import Experiment
from tilp.bench.jobs import Job, Watcher
from tilp.bench.plan import Outcome, Plan, load_plan, plan_jobs, run_plan, shipped_plans

__all__ = [
    "Experiment", "Job", "Outcome", "Plan", "Source", "Watcher", "WorldSize", "find_source",
    "load_plan", "plan_jobs", "run_plan", "shipped_plans", "world_source",
]  # fmt: skip

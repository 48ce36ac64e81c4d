"""What several test modules share."""

import logging
import os
import sys
import warnings
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import settings

import tilp._kernels.jit  # noqa: F401  # before a test changes where compiled loops are kept
from tilp.cli import main

# A loaded machine is slow, not wrong; the same examples every time keep a failure repeatable.
settings.register_profile("tilp", deadline=None, derandomize=True)
settings.load_profile("tilp")


@pytest.fixture(scope="session")
def published():
    """The folder of published data sets, or a skip that says how to get it."""
    folder = os.environ.get("TILP_DATA")
    if not folder:
        pytest.skip("TILP_DATA names no folder of published data sets")
    return Path(folder)


@pytest.fixture(scope="module")
def quick_features():
    """Weights of features that need not be the best: few steps, few candidates."""
    from tilp.features.log_linear_training import LogLinearSettings
    from tilp.features.paper.fit import FeatureTrainingSettings

    few = {"n_best": 12, "n_sampled": 12}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "tilp.model.fit.LogLinearSettings", partial(LogLinearSettings, max_steps=4, **few)
        )
        patched.setattr(
            "tilp.features.paper.fit.FeatureTrainingSettings",
            partial(FeatureTrainingSettings, steps=5, **few),
        )
        yield


@pytest.fixture(scope="session")
def world_model():
    """A model of a small bundled world, with rules of length 2 and all features."""
    import tilp

    return tilp.TILP(2, n_jobs=2).fit(tilp.datasets.world(1, 1_000).graph)


@pytest.fixture
def facts():
    """Five facts of a small football world."""
    return pl.DataFrame(
        {
            "subject": ["Ada", "Ada", "Ben", "Ben", "Cleo"],
            "relation": ["playsFor", "playsFor", "playsFor", "coachOf", "playsFor"],
            "object": ["Rovers", "United", "Rovers", "Rovers", "United"],
            "start": ["1990", "1994", "1985", "1999", None],
            "end": ["1993", "present", "1992", "2004", "2001"],
        }
    )


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command; gives exit code, standard output and standard error."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(logging.getLogger("tilp"), "level", logging.NOTSET)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tilp", *map(str, arguments)])
        # As outside of tests: warnings are printed, and the printer is put back afterwards.
        with warnings.catch_warnings(), pytest.raises(SystemExit) as stopped:
            warnings.simplefilter("default")
            main()
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return run


@pytest.fixture(scope="session")
def rule_model():
    """A model of a small bundled world, with rules of length 2 alone."""
    from strategies import small_world
    from tilp import TILP

    return TILP(2, features="none", n_jobs=2).fit(small_world())


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory, rule_model):
    """The folder of `rule_model`, which no test may change."""
    return rule_model.save(tmp_path_factory.mktemp("model") / "saved")


@pytest.fixture
def football(facts):
    """The football world as a graph, with two facts in test and one in valid."""
    import tilp

    splits = ["train", "test", "train", "valid", "test"]
    return tilp.read(facts.with_columns(split=pl.Series(splits)))


@pytest.fixture(scope="session")
def service_model():
    """A model of a small world in which the busiest entity has a name that looks like markup."""
    import tilp
    from serving import SCRIPT
    from tilp.learning.rule_weights import TrainingSettings

    world = tilp.datasets.world(1, 1_000).graph
    busy = world.frame("train")["subject"].value_counts(sort=True)["subject"][0]
    renamed = {
        split: world.frame(split).with_columns(pl.col("subject", "object").replace(busy, SCRIPT))
        for split in ("train", "valid", "test")
    }
    training = TrainingSettings(steps=10)
    config = tilp.TILPConfig(sample=40, training=training)
    return tilp.TILP(2, max_rules=200, n_jobs=2, config=config).fit(tilp.read(renamed))


@pytest.fixture(scope="session")
def service_address(service_model):
    """The address of a running service."""
    from serving import SMALL_LIMITS, running

    with running(service_model, limits=SMALL_LIMITS) as address:
        yield address


@pytest.fixture(scope="module")
def client(service_address):
    """A client of the running service."""
    import httpx

    with httpx.Client(base_url=service_address, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def service_queries(service_model):
    """Queries both ways, from test facts."""
    queries = []
    for row in service_model.graph.frame("test").head(12).iter_rows(named=True):
        dates = {"start": row["start"] or None, "end": row["end"] or None}
        queries.append({"relation": row["relation"], "subject": row["subject"], **dates})
        queries.append({"relation": row["relation"], "object": row["object"], **dates})
    return queries

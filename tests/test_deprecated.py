"""Names of version 0.1 still work, and say that they are old."""

import importlib
import subprocess
import sys
from dataclasses import replace

import pytest

from tilp import TILP, Query, TILPConfig
from tilp._deprecated import MODULES, NAMES
from tilp.learning.rule_weights import TrainingSettings


@pytest.mark.parametrize("old", MODULES)
def test_an_old_module_name_is_the_new_module(old):
    code = (
        "import importlib, sys, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    old = importlib.import_module(sys.argv[1])\n"
        "messages = [str(w.message) for w in caught if w.category is DeprecationWarning]\n"
        "assert any(sys.argv[1] in text and sys.argv[2] in text for text in messages), messages\n"
        "new = importlib.import_module(sys.argv[2])\n"
        "assert old is new and new.__spec__.name == sys.argv[2]\n"
    )
    subprocess.run([sys.executable, "-c", code, old, MODULES[old]], check=True, timeout=120)


@pytest.mark.parametrize(
    ("package", "old", "new"),
    [(package, *names) for package, table in NAMES.items() for names in table.items()],
)
def test_an_old_name_is_the_new_one(package, old, new):
    module = importlib.import_module(package)
    with pytest.warns(DeprecationWarning, match=rf"{package}\.{old} is now {package}\.{new};"):
        assert getattr(module, old) is getattr(module, new)
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


def test_a_module_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tilp.interval_tools")


NEW_PARAMETERS = {
    "grains": (["pairs"], {"temporal_detail": ["pairs"]}),
    "weights": ("attention", {"rule_weights": "attention"}),
    "top": (7, {"max_rules": 7}),
    "seed": (3, {"random_state": 3}),
    "threads": (2, {"n_jobs": 2}),
    "without": (["mixing"], {"config": TILPConfig(without="mixing")}),
    "soft_length": (4, {"config": TILPConfig(walk_length=4)}),
    "share": (0.5, {"config": TILPConfig(share=0.5)}),
    "sample": (30, {"config": TILPConfig(sample=30)}),
    "limit": (90, {"config": TILPConfig(walk_limit=90)}),
    "training": (
        TrainingSettings(steps=9),
        {"config": TILPConfig(training=TrainingSettings(steps=9))},
    ),
}


@pytest.mark.parametrize("old", NEW_PARAMETERS)
def test_old_parameters_of_a_model_are_the_new_ones(old):
    value, new = NEW_PARAMETERS[old]
    with pytest.warns(DeprecationWarning, match=rf"TILP\({old}=…\) is now TILP\("):
        model = TILP(2, **{old: value})
    assert model.get_params() == TILP(2, **new).get_params()


def test_old_parameters_together_and_the_preset():
    with pytest.warns(DeprecationWarning) as caught:
        model = TILP(None, preset="paper", grains=None, features="none", sample=40, seed=1)
    assert sum("TILP.paper" in str(one.message) for one in caught) == 1
    paper = TILP.paper()
    config = replace(paper.config, sample=40)
    expected = TILP.paper(features="none", random_state=1, config=config)
    assert model.get_params() == expected.get_params()
    with pytest.warns(DeprecationWarning):
        assert TILP(preset="paper", max_length=3).max_length == 3
    for arguments, options in (((), {"colour": "red"}), ((1, 2), {}), ((1,), {"max_length": 2})):
        with pytest.raises(TypeError):
            TILP(*arguments, **options)
    assert TILP(None, features=None, missing=None).get_params() == TILP().get_params()


def test_old_attributes_and_methods_of_a_model(world_model):
    model = TILP(n_jobs=3)
    with pytest.warns(DeprecationWarning, match=r"TILP\.threads is now TILP\.n_jobs"):
        assert model.threads == 3
    with pytest.warns(DeprecationWarning, match=r"TILP\.threads"):
        model.threads = 2
    assert model.n_jobs == 2
    with pytest.warns(DeprecationWarning, match="feature_weights"):
        learned = world_model.learned("livesIn")
    assert learned.equals(world_model.feature_weights("livesIn"))


def test_old_keywords_of_explain(world_model):
    query = Query("livesIn", world_model.graph.frame("train")["subject"][0])
    with pytest.warns(DeprecationWarning, match=r"TILP\.explain\((top|fall)=…\) is now"):
        old = world_model.explain(query, top=2, fall=False)
    assert old == world_model.explain(query, max_reasons=2, ablation=False)

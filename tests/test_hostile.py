"""A few damaged inputs for every reader; `benchmarks/hostile.py` tries many more."""

import warnings

import pytest

from mutations import Inputs
from tilp.errors import TilpWarning

KINDS = (
    "table.tsv", "table.csv", "table.parquet", "splits", "queries.tsv", "queries.parquet",
    "rules.jsonl", "rules.txt", "scores.tsv", "plan.toml", "words.toml", "dump.json", "dump.nt",
    "model-none", "model-paper", "model-full", "forecaster",
)  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return Inputs(tmp_path_factory.mktemp("hostile"))


def test_every_reader_but_that_of_packed_graphs_is_tried(inputs):
    # A damaged packed graph may crash a process: the benchmark has one for it.
    assert {*KINDS, "packed"} == {*inputs.kinds()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_input_is_read_or_refused(inputs, kind):
    others = {seed: inputs.attempt(kind, seed) for seed in range(8)}
    assert not {seed: found for seed, found in others.items() if found not in ("read", "refused")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_input_is_read(inputs, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TilpWarning)  # the scores are of a few queries only
        inputs.kinds()[kind](inputs.whole / kind)

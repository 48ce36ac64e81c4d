"""A small plan and a small world, for the tests of experiments."""

from tilp.bench import Source, WorldSize

WORLD = Source("world", WorldSize(1_000, 1))

SMALL = """
title = "Small"
[world]
size = 1000
seed = 1
[methods.one]
base = "rules"
max_length = 1
[[experiment]]
name = "side"
kind = "compare"
methods = [{ name = "one", seeds = 2 }, "timestamps", "popularity", "recurrence"]
figures = ["enumerate average", "tilp-release best"]
[[experiment.published]]
method = "Others <1>"
data = "world"
figure = "tilp-release best"
protocol = "their own"
mrr = 0.4321
hits_at_10 = 0.9
note = "not really"
[[experiment]]
name = "few"
kind = "curve"
methods = ["timestamps"]
seeds = 2
shares = [0.3, 1.0]
[[experiment]]
name = "bias"
kind = "biased"
methods = ["popularity", "recurrence"]
seeds = 2
removed = 0.5
[[experiment]]
name = "elsewhere"
kind = "compare"
methods = ["popularity"]
setting = "release"
folder = "not/there"
"""


def written(tmp_path, text, name="plan.toml"):
    path = tmp_path / name
    path.write_text(text)
    return path

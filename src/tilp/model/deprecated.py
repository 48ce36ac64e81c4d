"""Names of 0.1 that `TILP` still accepts, with a warning; to be removed in 0.3."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, cast

from tilp._deprecated import warn_renamed
from tilp.model.config import tilp_arguments
from tilp.types import Preset

_PARAMETERS = {
    "grains": "temporal_detail",
    "weights": "rule_weights",
    "top": "max_rules",
    "seed": "random_state",
    "threads": "n_jobs",
}
_CONFIG = {
    "without": "without",
    "soft_length": "walk_length",
    "share": "share",
    "sample": "sample",
    "limit": "walk_limit",
    "training": "training",
}

OPTIONS_OF_0_1 = {**_PARAMETERS, **_CONFIG}
"""Names of 0.1 and those of `TILP.from_options`, which plans of benchmarks may still have."""

Parameters = ParamSpec("Parameters")


def parameters_of_0_1(init: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Let `TILP(...)` accept what it did in 0.1: old keywords, and None for a default."""

    @wraps(init)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        if len(args) > 2 or (len(args) == 2 and "max_length" in kwargs):
            init(*args, **kwargs)  # raises the usual TypeError
        model, *lengths = args
        given = cast(dict[str, Any], kwargs) | dict(zip(["max_length"], lengths, strict=False))
        for name in given:
            if name in _CONFIG:
                warn_renamed(f"TILP({name}=…)", f"TILP(config=TILPConfig({_CONFIG[name]}=…))")
            elif name in _PARAMETERS:
                warn_renamed(f"TILP({name}=…)", f"TILP({_PARAMETERS[name]}=…)")
            elif name == "preset":
                warn_renamed("TILP(preset=…)", "TILP.paper(…)")
        options = {OPTIONS_OF_0_1.get(name, name): value for name, value in given.items()}
        arguments = tilp_arguments(options.pop("preset", Preset.DEFAULT), options)
        cast(Any, init)(model, **arguments)

    return call

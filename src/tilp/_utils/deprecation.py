"""Old names that keep working for one version, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def warn_deprecated(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn the caller of a public function that a name was replaced."""
    text = f"{old} is deprecated and will be removed in 0.3; use {new}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)


def renamed_keywords(
    names: Mapping[str, str],
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Let a function accept old names of its keyword arguments, with a warning."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            given: dict[str, Any] = kwargs
            for old in names.keys() & given.keys():
                warn_deprecated(f"{function.__qualname__}({old}=…)", f"{names[old]}=…")
                given.setdefault(names[old], given.pop(old))
            return function(*args, **kwargs)

        return call

    return decorate

"""Names of version 0.1 that still work, with a `DeprecationWarning`, until version 0.3."""

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

MODULES = {
    "tilp.choices": "tilp.types",
    "tilp.features.durations": "tilp.time.durations",
    "tilp.inspection": "tilp.data_quality",
    "tilp.intervals": "tilp.time",
    "tilp.pictures": "tilp.viz",
    "tilp.plots": "tilp.figures",
    "tilp.ranking": "tilp.scoring",
    "tilp.timestamps": "tilp.forecasting",
}
"""Old name of a module -> new one."""

NAMES = {
    "tilp.evaluation": {"APART": "SUBSETS", "Scorer": "ScoreFunction"},
    "tilp.explanation": {"Fall": "AblationEffect"},
    "tilp.graph": {
        "Joined": "MergedGraph",
        "Origin": "StorageLocation",
        "join_facts": "merge_facts",
    },
    "tilp.parallel": {"cut_by_cost": "split_by_cost", "opened": "use_workers"},
    "tilp.rules": {"Form": "TemporalForm"},
    "tilp.scoring": {"Answer": "Prediction", "Answers": "Predictions"},
    "tilp.time": {"GAP_WORDS": "GAP_CLASSES", "readings": "possible_intervals"},
    "tilp.types": {"OnUnaskable": "OnInvalidQuery", "Walked": "WalkGraph"},
    "tilp.walks": {"Grounded": "Groundings"},
}
"""Package -> old name of something in it -> new one."""


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that an old name is in use."""
    warnings.warn(
        f"{old} is now {new}; the old name goes in version 0.3",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def renamed_attributes(module: str) -> Callable[[str], object]:
    """Return a module's `__getattr__` that finds attributes by their old `NAMES` too."""
    names = NAMES[module]

    def get(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", f"{module}.{names[name]}")
        return getattr(sys.modules[module], names[name])

    return get


def renamed_keywords(
    names: Mapping[str, str],
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Let a function accept old names of its keyword arguments too."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            given: dict[str, Any] = kwargs
            for old in names.keys() & given.keys():
                warn_renamed(f"{function.__qualname__}({old}=…)", f"{names[old]}=…")
                given.setdefault(names[old], given.pop(old))
            return function(*args, **kwargs)

        return call

    return decorate


class RenamedAttribute:
    """An attribute of a class under its old name: `fall = RenamedAttribute("ablation")`."""

    def __init__(self, new: str) -> None:
        self._new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._old = owner.__name__, name

    def __get__(self, instance: object, owner: type) -> Any:
        """Return the attribute under its new name, with a warning."""
        if instance is None:
            return self
        warn_renamed(f"{self._owner}.{self._old}", f"{self._owner}.{self._new}")
        return getattr(instance, self._new)

    def __set__(self, instance: object, value: object) -> None:
        """Set the attribute under its new name, with a warning."""
        warn_renamed(f"{self._owner}.{self._old}", f"{self._owner}.{self._new}")
        setattr(instance, self._new, value)


class RenamedModules(MetaPathFinder, Loader):
    """Import hook that finds modules by their old names."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return a spec for an old name, None for any other."""
        return ModuleSpec(fullname, self) if fullname in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module under its new name."""
        new = MODULES[spec.name]
        warn_renamed(spec.name, new)
        module = importlib.import_module(new)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the module's own spec back, which importing under another name replaced."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state

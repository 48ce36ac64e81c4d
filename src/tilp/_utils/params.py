"""`Params`: the parameters of an estimator, by the conventions of scikit-learn."""

import inspect
from dataclasses import is_dataclass
from html import escape
from typing import Any, ClassVar, Self

from tilp.errors import TilpError


class Params:
    """Base of estimators, whose parameters are attributes named like arguments of `__init__`."""

    _UNSHOWN: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def _default_params(cls) -> dict[str, Any]:
        arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {argument.name: argument.default for argument in arguments}

    def get_params(self) -> dict[str, Any]:
        """Return the parameters by name.

        Example:
            >>> import tilp
            >>> tilp.TILP(max_length=2).get_params()["max_length"]
            2
        """
        return {name: getattr(self, name) for name in self._default_params()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name; a fitted model changes when it is fitted again.

        Example:
            >>> import tilp
            >>> tilp.TILP().set_params(max_length=2, features="none")
            TILP(max_length=2, features='none'; not fitted)
        """
        known = self.get_params()
        unknown = [name for name in parameters if name not in known]
        if unknown:
            raise TilpError(f"there is no parameter {unknown[0]!r}; there are {', '.join(known)}")
        checked = type(self)(**{**known, **parameters})
        for name in known:
            setattr(self, name, getattr(checked, name))
        return self

    def _status(self) -> str:
        """Return what `repr` says of the fit."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = {k: value for k, value in self.get_params().items() if k not in self._UNSHOWN}
        changed = changed_values(shown, self._default_params())
        return f"{type(self).__name__}({'; '.join(filter(None, (changed, self._status())))})"

    def _repr_html_(self) -> str:
        """Return a table of the parameters, for notebooks."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th>"
            f"<td style='text-align:left'>{escape(_text(value))}</td></tr>"
            for name, value in self.get_params().items()
        )
        return f"<table><caption>{type(self).__name__}, {self._status()}</caption>{rows}</table>"


def changed_values(values: dict[str, Any], defaults: dict[str, Any]) -> str:
    """Return the values that differ from their defaults as the text of keyword arguments."""
    changed = {name: value for name, value in values.items() if value != defaults[name]}
    return ", ".join(f"{name}={_text(value)}" for name, value in changed.items())


def changed_fields(instance: Any) -> str:
    """Return a dataclass as the text of its constructor, without fields that have their default."""
    changed = changed_values(vars(instance), vars(type(instance)()))
    return f"{type(instance).__name__}({changed})"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return repr(str(value))
    if isinstance(value, tuple):
        return repr(tuple(str(item) if isinstance(item, str) else item for item in value))
    return changed_fields(value) if is_dataclass(value) else repr(value)

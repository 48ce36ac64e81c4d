"""What goes wrong in a way that a user can mend: one clear paragraph, never a traceback."""

__all__ = ["DataError", "NoRulesError", "TilpError", "TilpWarning", "UnknownNameError"]


class TilpError(Exception):
    """A failure whose message names what was found and what to do about it."""


class DataError(TilpError):
    """Input that cannot be read as a temporal graph: names the file, the line and the remedy."""


class NoRulesError(TilpError):
    """Facts in which no rule was found, so that nothing can be learned from them."""


class UnknownNameError(TilpError):
    """A name that stands for nothing, or for several things.

    Attributes:
        near: the nearest known names; of several things, their ids.
    """

    def __init__(self, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.near = near


class TilpWarning(UserWarning):
    """Something was repaired or looks wrong; the work goes on."""

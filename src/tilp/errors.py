"""What goes wrong in a way that a user can mend: one clear paragraph, never a traceback."""

__all__ = ["DataError", "TilpError", "TilpWarning"]


class TilpError(Exception):
    """A failure whose message names what was found and what to do about it."""


class DataError(TilpError):
    """Input that cannot be read as a temporal graph: names the file, the line and the remedy."""


class TilpWarning(UserWarning):
    """Something was repaired or looks wrong; the work goes on."""

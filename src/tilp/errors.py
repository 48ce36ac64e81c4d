"""Errors that a user can correct: the command line shows their message, never a traceback.

Anything that takes what a user gives may raise one; docstrings do not repeat what messages say.
"""


class TilpError(Exception):
    """Failure whose message says what is wrong and what to do about it."""


class DataError(TilpError):
    """Input that cannot be read as a temporal graph; names the file, the line and the remedy."""


class NoRulesError(TilpError):
    """Facts without any rule, so that nothing can be learned from them."""


class UnknownNameError(TilpError):
    """Name that nothing has, or that several things share.

    Attributes:
        near: the most similar names; ids of the things that share the name.
    """

    def __init__(self, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.near = near


class WriteError(TilpError):
    """File or folder that cannot be written; what was there is kept."""


class TilpWarning(UserWarning):
    """Something was repaired or looks wrong; work goes on."""


class TilpNotice(TilpWarning):
    """How something was read that could have been meant otherwise."""

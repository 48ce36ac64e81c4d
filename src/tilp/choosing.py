"""`choose`: one of the words that can be chosen, or an error that says which they are."""

from enum import StrEnum
from typing import TypeVar

from tilp.errors import TilpError

__all__ = ["choose"]

Word = TypeVar("Word", bound=StrEnum)


def choose(words: type[Word], word: str, name: str) -> Word:
    """The word of an enumeration.

    Raises:
        TilpError: it has no such word.
    """
    try:
        return words(word)
    except ValueError:
        raise TilpError(f"{name} is {word!r}; it can be {', '.join(words)}") from None

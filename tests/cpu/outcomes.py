"""Compares what two implementations do with the same arguments."""

from collections.abc import Callable
from typing import NamedTuple


class Outcome(NamedTuple):
    """A result, or an exception."""

    result: object = None
    exception: type[BaseException] | None = None
    message: str | None = None


def outcome(function: Callable, *arguments: object) -> Outcome:
    """Call a function and keep what it does."""
    try:
        return Outcome(result=function(*arguments))
    except BaseException as error:
        return Outcome(exception=type(error), message=str(error))

"""Exit codes, and what each error of the client means to a script."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate_client import TidegateError


class Exit(IntEnum):
    """What a script can rely on."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    TIMEOUT = 5


class CommandFailed(Exception):
    """Ends a command with a message and a code."""

    def __init__(self, message: str, code: Exit = Exit.FAILURE) -> None:
        super().__init__(message)
        self.code = code


def exit_of(error: TidegateError) -> Exit:
    """Returns the exit code that an error of the client stands for."""
    from tidegate_client import AnswerPending, Conflict, NotFound

    match error:
        case NotFound():
            return Exit.NOT_FOUND
        case Conflict():
            return Exit.CONFLICT
        case AnswerPending():
            return Exit.TIMEOUT
        case _:
            return Exit.FAILURE

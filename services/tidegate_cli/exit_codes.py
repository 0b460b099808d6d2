"""Exit codes of the commands, and the code of each client error."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate_client import TidegateError


class Exit(IntEnum):
    """Exit codes that scripts can rely on."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    """The input is wrong, found by this command, the API or a node. A repeat without a change is refused again."""
    NOT_FOUND = 3
    CONFLICT = 4
    TIMEOUT = 5
    TRY_LATER = 75
    """The API, Kafka or DynamoDB does not answer now. The same command may be run again (`EX_TEMPFAIL`)."""
    WRONG_SETTINGS = 78
    """A process cannot start with these settings (`EX_CONFIG`)."""


class CommandFailed(Exception):
    """Ends a command with a message and a code."""

    def __init__(self, message: str, code: Exit = Exit.FAILURE) -> None:
        super().__init__(message)
        self.code = code


def exit_of(error: TidegateError) -> Exit:
    """Returns the exit code of a client error."""
    from tidegate_client import AnswerPending, ApiUnavailable, ApiUnreachable, Conflict, InvalidRequest, NotFound

    match error:
        case InvalidRequest():
            return Exit.USAGE
        case NotFound():
            return Exit.NOT_FOUND
        case Conflict():
            return Exit.CONFLICT
        case AnswerPending():
            return Exit.TIMEOUT
        case ApiUnreachable() | ApiUnavailable():
            return Exit.TRY_LATER
        case _:
            return Exit.FAILURE

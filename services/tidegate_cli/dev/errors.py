"""The errors of a local stack."""

from __future__ import annotations

from tidegate_cli.exit_codes import Exit


class StackFailed(Exception):
    """The stack cannot be started or used.

    Attributes:
        problem: What happened, to which component, as a clause.
        remedy: What the user can do about it; may be empty.
        code: Exit code of the command that meets it.
    """

    code: Exit = Exit.FAILURE

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class SettingsWrong(StackFailed):
    """A process of the stack refused its start by its settings, or by what it found there: its log names it."""

    code = Exit.USAGE

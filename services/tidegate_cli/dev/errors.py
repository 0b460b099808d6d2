"""Errors of a local stack."""

from __future__ import annotations

from tidegate_cli.exit_codes import Exit


class StackFailed(Exception):
    """The stack cannot be started or used.

    Attributes:
        problem: Clause that names the component and the failure.
        remedy: Advice for the user; may be empty.
        code: Exit code of the command.
    """

    code: Exit = Exit.FAILURE

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy


class SettingsWrong(StackFailed):
    """A process of the stack refused to start because of a wrong setting. Its log names the setting."""

    code = Exit.USAGE

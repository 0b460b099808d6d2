"""The one error of a local stack."""

from __future__ import annotations


class StackFailed(Exception):
    """The stack cannot be started or used.

    Attributes:
        problem: What happened, to which component, as a clause.
        remedy: What the user can do about it; may be empty.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy

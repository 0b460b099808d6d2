"""The question before a command that only a person can answer for."""

from __future__ import annotations

import sys

from tidegate_cli.exits import CommandFailed


def ask(question: str) -> None:
    """Returns once somebody has said yes. On standard error: standard output is for data.

    Raises:
        CommandFailed: They have not, or there is nobody to ask.
    """
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    said = sys.stdin.readline() if sys.stdin is not None else ""
    if said.strip().lower() not in {"y", "yes"}:
        raise CommandFailed("nothing was done; --yes does without the question")

"""Figures that a test measured: shown with `-s`, in the report of a failure, and kept in a file where one is wanted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "TIDEGATE_TEST_FIGURES"
"""Names a file to which each figure is appended as a line."""


def show(line: str) -> None:
    """Writes one line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    if name := os.environ.get(VARIABLE):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(line + "\n")

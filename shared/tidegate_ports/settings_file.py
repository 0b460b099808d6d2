"""The YAML file of settings as it stands. No port, but nodes, API and the command line read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

CONFIG_VARIABLE: Final = "TIDEGATE_CONFIG"


class SettingsFileUnreadable(Exception):
    """The message names the file and the place, and nothing that stands there: it may be a password."""


def settings_document(path: Path) -> Any:
    """Returns what the file holds, None where it is empty. Raises SettingsFileUnreadable."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as failure:
        # The library's own words quote the line.
        mark = failure.problem_mark if isinstance(failure, yaml.MarkedYAMLError) else None
        place = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
        why = f"it is not YAML{place}; put a text with signs in it into single quotes"
    except (OSError, UnicodeDecodeError, RecursionError) as failure:
        why = str(failure)
    raise SettingsFileUnreadable(f"{CONFIG_VARIABLE} names {path}, which cannot be read: {why}")

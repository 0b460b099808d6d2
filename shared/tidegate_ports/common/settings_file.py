"""Reads the YAML file of settings. No port: nodes, API and the command line share it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from tidegate_ports.common.yaml_core_schema import CoreSchemaLoader
from tidegate_ports.common.yaml_unique_keys import TwinKeys

CONFIG_VARIABLE: Final = "TIDEGATE_CONFIG"


class SettingsFileUnreadable(Exception):
    """The file cannot be read. The message names the file and the place, but quotes no content: it may be a
    password.
    """


def settings_document(path: Path) -> Any:
    """Returns the file's content, None if it is empty. Raises SettingsFileUnreadable."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), CoreSchemaLoader)  # noqa: S506 - a safe one
    except TwinKeys as failure:
        why = f"{failure.problem}{_place(failure)}"
    except yaml.YAMLError as failure:
        why = f"it is not YAML{_place(failure)}; put a text with special characters into single quotes"
    except (OSError, ValueError, RecursionError) as failure:
        why = str(failure)
    raise SettingsFileUnreadable(f"{CONFIG_VARIABLE} names {path}, which cannot be read: {why}")


def _place(failure: yaml.YAMLError) -> str:
    # Not the library's own message, which quotes the line.
    mark = failure.problem_mark if isinstance(failure, yaml.MarkedYAMLError) else None
    return "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"

"""The settings of each process as views for the output. `tidegate config show` calls it; it writes nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from tidegate_bricks.ivy import SETTINGS_VARIABLE
from tidegate_bricks.jar_cache import cache_root_and_variable
from tidegate_cli.api_context import api_url_and_origin
from tidegate_cli.local_stacks import state_dir_and_variable
from tidegate_cli.service_processes import API_SETTINGS, NODE_SETTINGS, call
from tidegate_ports.common.settings_loader import Source
from tidegate_ports.common.settings_rows import SettingRow

SERVICES = {"node": NODE_SETTINGS, "api": API_SETTINGS}


class SettingView(BaseModel):
    """One setting; the fields are those of `SettingRow`."""

    process: str
    name: str
    value: Any
    unit: str
    source: str
    variable: str
    description: str

    @property
    def id(self) -> str:
        """Process and name, for `-o name`."""
        return f"{self.process}.{self.name}"


def setting_views(
    process: str, environment: Mapping[str, str] = os.environ, *, api_option: bool = False
) -> list[SettingView]:
    """Returns the settings of `node`, `api` or `cli`. Raises SettingsRefused and CommandFailed.

    Args:
        process: Name of the process.
        environment: `os.environ`; a test passes another one.
        api_option: Whether the API's address comes from --api and not from its variable.
    """
    if process in SERVICES:
        rows = call(SERVICES[process], environment=environment)
    else:
        rows = command_line_rows(environment, api_option=api_option)
    return [SettingView.model_validate(row, from_attributes=True) for row in rows]


def command_line_rows(environment: Mapping[str, str], *, api_option: bool = False) -> list[SettingRow]:
    """Returns the settings of the command line, its client and the local servers of `tidegate dev`. Raises CommandFailed."""
    url, origin = api_url_and_origin(environment)
    if origin == "given":
        origin = "option" if api_option else Source.ENVIRONMENT
    state, state_variable = state_dir_and_variable(environment)
    cache, cache_variable = cache_root_and_variable(environment)
    ivy = environment.get(SETTINGS_VARIABLE) or None
    return [
        SettingRow("cli", "api_url", url, "", origin, "TIDEGATE_API_URL", "Address of the API that commands talk to."),
        SettingRow(
            "cli",
            "state_dir",
            str(state),
            "",
            _origin(state_variable),
            state_variable or "TIDEGATE_STATE_DIR",
            "Folder with the pointers to running local stacks.",
        ),
        SettingRow(
            "cli",
            "cache",
            str(cache),
            "",
            _origin(cache_variable),
            cache_variable or "TIDEGATE_CACHE",
            "Folder with the jars of the local Kafka and DynamoDB.",
        ),
        SettingRow(
            "cli",
            "ivy_settings",
            ivy,
            "",
            _origin(ivy),
            SETTINGS_VARIABLE,
            "Ivy settings file, for a repository other than Ivy's default.",
        ),
    ]


def _origin(variable: str | None) -> str:
    return Source.ENVIRONMENT if variable else Source.DEFAULT

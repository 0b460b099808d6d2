"""Chooses the API that a command calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidegate_cli.local_stacks import chosen_stack, current_folder, pointer_dir, running_stacks

if TYPE_CHECKING:
    from tidegate_client import Client

DEFAULT_URL = "http://127.0.0.1:8080"

_chosen: dict[str, str | None] = {"api": None}
"""Value of the option `--api`; a process runs one command line."""


def set_api_url(url: str | None) -> None:
    _chosen["api"] = url


def api_client() -> Client:
    """Returns a client of the API that the command line, the environment or a running local stack names."""
    from tidegate_client import Client

    return Client(api_url_and_origin(os.environ)[0])


def api_url_and_origin(environment: Mapping[str, str]) -> tuple[str, str]:
    """Returns the API's address and its source: `given` (--api or TIDEGATE_API_URL), `local stack` or `default`."""
    if given := _chosen["api"]:
        return given, "given"
    if local := dev_url(environment):
        return local, "local stack"
    return DEFAULT_URL, "default"


def dev_url(environment: Mapping[str, str]) -> str | None:
    """Returns the address of the local stack for this folder, or None if none runs. Raises CommandFailed if several match."""
    stack = chosen_stack(running_stacks(pointer_dir(environment)), current_folder())
    return None if stack is None else stack.api_url

"""Which API a command talks to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidegate_client import Client

DEFAULT_URL = "http://127.0.0.1:8080"
POINTER_FILE = "dev.json"
"""Written by a running `tidegate dev`."""

_chosen: dict[str, str | None] = {"api": None}
"""The option `--api` of this command line; a process runs one."""


def set_api_url(url: str | None) -> None:
    _chosen["api"] = url


def api_client() -> Client:
    """Returns a client of the API that the command line, the environment or a running local stack names."""
    from tidegate_client import Client

    return Client(_chosen["api"] or dev_url(os.environ) or DEFAULT_URL)


def dev_url(environment: Mapping[str, str]) -> str | None:
    """Returns the address in a running local stack's pointer file, or None."""
    try:
        document = json.loads((state_dir(environment) / POINTER_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    url = document.get("api_url") if isinstance(document, dict) else None
    return url if isinstance(url, str) else None


def state_dir(environment: Mapping[str, str]) -> Path:
    """Returns the folder of the user's state, `TIDEGATE_STATE_DIR` or as the XDG rules say."""
    given = environment.get("TIDEGATE_STATE_DIR")
    if given:
        return Path(given)
    base = environment.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "tidegate"

"""Spark settings that no launcher of this release takes: said at the apply and in the API's dry run, not only by a run that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEPLOY_MODE: Final = "spark.submit.deployMode"
CLIENT: Final = "client"


def refused_conf(conf: Mapping[str, str]) -> str | None:
    """Returns why every launch with these settings is rejected, or None. A value that is a template is left to the launch."""
    mode = conf.get(DEPLOY_MODE, CLIENT)
    if mode == CLIENT or "${" in mode:
        return None
    return f"{DEPLOY_MODE} is {mode!r}, and the local launcher runs drivers in client mode only"

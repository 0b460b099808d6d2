"""Spark settings that every launcher of this release rejects, so that the apply and the API's dry run can already
refuse them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEPLOY_MODE: Final = "spark.submit.deployMode"
CLIENT: Final = "client"


def refused_conf(conf: Mapping[str, str]) -> str | None:
    """Returns why every launch with these settings is rejected, or None. A value with a template is checked at
    launch.
    """
    mode = conf.get(DEPLOY_MODE, CLIENT)
    if mode == CLIENT or "${" in mode:
        return None
    return f"{DEPLOY_MODE} is {mode!r}, and the local launcher runs drivers in client mode only"

"""`CRON_TZ=Europe/Rome 0 6 * * *`, as crontabs and Kubernetes write it, taken as expression and zone."""

from __future__ import annotations

import re
from typing import Any, Final

from tidegate_core.language.values.problems import MAX_SHOWN, refused

_WITH_ZONE: Final = re.compile(r"\s*(?:CRON_TZ|TZ)=(\S+)\s+(\S.*)", re.ASCII | re.DOTALL)


def with_zone_of_expression(given: Any) -> Any:
    """Returns the fields of a cron trigger, or of a cron exclusion, with the zone that stands before its expression in its own field."""
    expression = given.get("expression") if isinstance(given, dict) else None
    match = _WITH_ZONE.fullmatch(expression) if isinstance(expression, str) else None
    if match is None:
        return given
    if given.get("zone", match[1]) != match[1]:
        raise refused(
            f'"{match[1][:MAX_SHOWN]}" stands before the expression, and zone differs',
            field="zone",
            hint="keep one of them",
        )
    return {**given, "zone": match[1], "expression": match[2]}

"""`H` in a cron field: one place for each schedule, spread over all schedules and always the same (SEMANTICS 1.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from tidegate_core.language.time.cron_items import FieldKind, ItemFault, check_step
from tidegate_core.language.values.shard_hash import hash_of

HASHED_ITEM = re.compile(r"H(?:\((?P<low>\d{1,2})-(?P<high>\d{1,2})\))?(?:/(?P<step>\d{1,4}))?", re.ASCII)
_HIGHEST: Mapping[str, int] = {"day of month": 28, "day of week": 6}
"""`H` names a day that each month has, and Sunday once."""


@lru_cache(maxsize=2048)
def is_hashed(expression: str) -> bool:
    """Whether an `H` stands in it, so that it means something else for each schedule."""
    return any(HASHED_ITEM.fullmatch(item) is not None for item in re.split(r"[\s,]+", expression))


def hashed_values(kind: FieldKind, match: re.Match[str], start: int, identity: str) -> range:
    """Expands `H`, `H/15` and `H(0-29)`: one place for each schedule, spread over all of them and always the same."""
    place = f"{kind.name} (column {start + 1})"
    end = start + len(match[0])
    bottom, top = kind.low, _HIGHEST.get(kind.name, kind.high)
    low, high = int(match["low"] or bottom), top if match["high"] is None else int(match["high"])
    if not bottom <= low <= high <= top:
        problem = f'{place}: "{match[0]}" is not a range within {bottom}-{top}'
        raise ItemFault(problem, start=start, end=end, instead=None if match["step"] else "H")
    step = high - low + 1
    if match["step"] is not None:
        step = int(match["step"])
        check_step(kind, step, place, start + match.start("step"), start + match.end("step"), widest=high - low)
    first = low + int.from_bytes(hash_of("cron", identity, kind.name)[:8], "big") % step
    return range(first, high + 1, step)

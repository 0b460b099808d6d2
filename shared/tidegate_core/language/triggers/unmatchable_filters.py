"""Finds filters that no event can pass, when a schedule is parsed.

Without this check a schedule with `equals: 1.10` for a version, which is a text, would wait for ever. Values in `/data` may
have any type, so only comparisons that contradict each other are found there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, get_args

from tidegate_core.language.events.events import ChangeKind
from tidegate_core.language.triggers.on_event.counting_leaf import DatasetLeaf
from tidegate_core.language.triggers.on_event.custom_event import CustomEventTrigger
from tidegate_core.language.triggers.on_event.event_filter import Filter
from tidegate_core.language.values.comparison import BOUNDS, compared, contradiction, values_of
from tidegate_core.language.values.json_values import WrittenNumber
from tidegate_core.language.values.problems import MAX_SHOWN, Problem, did_you_mean

KINDS: Final[tuple[str, ...]] = get_args(ChangeKind)
TEXTS: Final = frozenset({"partition", "version", "producer", "subject"})
NUMBERS: Final = frozenset({"bytes", "rows"})
OF_DATA: Final = frozenset({"partition", "kind", "version", "producer", *NUMBERS})
"""Fields of data events; custom events have `subject` and `data`."""


def vain_filter_problems(leaf: DatasetLeaf | CustomEventTrigger, path: str) -> list[Problem]:
    """Returns a problem for each comparison of a leaf's filter that holds for no event.

    Args:
        leaf: Leaf with or without a filter.
        path: Path of the leaf.
    """
    found: list[Problem] = []
    for place, each, is_negated in () if leaf.where is None else compared(leaf.where, f"{path}.where"):
        wrong = list(_of_another_kind(each, place))
        # Under `not`, a comparison that never holds lets every event pass; a user may intend that. A wrong type is always an error.
        found += wrong if wrong or is_negated else _never_true(leaf, each, place)
    return found


def _of_another_kind(where: Filter, path: str) -> Iterator[Problem]:
    """Yields problems of values whose type differs from the compared field's."""
    field = str(where.field)
    if field in TEXTS or field == "kind":
        for place, value in values_of(where, path):
            if not isinstance(value, str):
                yield Problem(place, f"is {_shown(value)}, and {field} is a text", f'quote it: "{_shown(value)}"')
            elif field == "kind" and value not in KINDS:
                yield Problem(place, f'"{value[:MAX_SHOWN]}" is no kind of event', did_you_mean(value, KINDS))
        for name in BOUNDS:
            if getattr(where, name) is not None:
                yield Problem(f"{path}.{name}", f"is a number, and {field} is a text", "use equals, in or prefix")
    if field in NUMBERS:
        for place, value in values_of(where, path):
            if isinstance(value, str):
                yield Problem(place, f"is a text, and {field} is a number", "write it without quotes, such as 1024")
            elif isinstance(value, bool) or value != int(value) or value < 0:
                yield Problem(place, f"is {_shown(value)}, and {field} is a whole number from 0 on")
        if where.prefix is not None:
            yield Problem(f"{path}.prefix", f"is a text, and {field} is a number", "use equals, in, at_least or below")


def _never_true(leaf: DatasetLeaf | CustomEventTrigger, where: Filter, path: str) -> Iterator[Problem]:
    field = str(where.field)
    is_of_data = isinstance(leaf, DatasetLeaf)
    if (field in OF_DATA) != is_of_data:
        if where.exists is not False:
            whose, has = ("data", ", ".join(sorted(OF_DATA))) if is_of_data else ("custom", "subject and /data")
            yield Problem(f"{path}.field", f"{whose} events have no field {field[:MAX_SHOWN]}", f"they have {has}")
        return
    if wrong := contradiction(where, path, is_whole=field in NUMBERS):
        yield wrong
    elif where.exists is False and field in {"partition", "kind"}:
        yield Problem(f"{path}.exists", f"can never be true: each event has a {field}", "leave it out")
    elif isinstance(leaf, DatasetLeaf) and field == "kind":
        counted = [kind for kind in leaf.kinds if kind != "deleted"]
        if not any(where.holds_in({"kind": kind}) for kind in counted):
            problem = f"can never be true: of this trigger's kinds only {', '.join(counted)} are filtered"
            yield Problem(path, problem, "name the kind in kinds as well")


def _shown(value: Any) -> str:
    return value.written[:MAX_SHOWN] if isinstance(value, WrittenNumber) else json.dumps(value)[:MAX_SHOWN]

"""Filters that no event could pass: asked where a schedule is parsed, so that `equals: 1.10` for a version is told and not waited for.

What is compared within `/data` may be of any kind, and only comparisons that contradict each other are found there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, get_args

from tidegate_core.model.events import ChangeKind
from tidegate_core.model.exact_json import WrittenNumber
from tidegate_core.model.problems import MAX_SHOWN, Problem, did_you_mean
from tidegate_core.triggers.custom_event import CustomEventTrigger
from tidegate_core.triggers.dataset_leaf import DatasetLeaf
from tidegate_core.triggers.event_filter import Filter

KINDS: Final[tuple[str, ...]] = get_args(ChangeKind)
TEXTS: Final = frozenset({"partition", "version", "producer", "subject"})
NUMBERS: Final = frozenset({"bytes", "rows"})
OF_DATA: Final = frozenset({"partition", "kind", "version", "producer", *NUMBERS})
"""Fields of data events; custom events have `subject` and `data`."""
BOUNDS: Final = ("above", "at_least", "below", "at_most")


def vain_filter_problems(leaf: DatasetLeaf | CustomEventTrigger, path: str) -> list[Problem]:
    """Returns each comparison of a leaf's filter that holds for no event.

    Args:
        leaf: With a filter, or without one.
        path: Of the leaf.
    """
    found: list[Problem] = []
    for place, each, is_negated in _comparisons(leaf.where, f"{path}.where", is_negated=False):
        wrong = list(_of_another_kind(each, place))
        # What never holds lets everything pass under `not`, which somebody may mean; a number for a text nobody does.
        found += wrong if wrong or is_negated else _never_true(leaf, each, place)
    return found


def _comparisons(where: Filter | None, path: str, *, is_negated: bool) -> Iterator[tuple[str, Filter, bool]]:
    if where is None:
        return
    if where.field is not None:
        yield path, where, is_negated
    yield from _comparisons(where.negated, f"{path}.not", is_negated=not is_negated)
    for name, parts in (("all_of", where.all_of), ("any_of", where.any_of)):
        for place, each in enumerate(parts or ()):
            yield from _comparisons(each, f"{path}.{name}[{place}]", is_negated=is_negated)


def _of_another_kind(where: Filter, path: str) -> Iterator[Problem]:
    """Yields values that are compared with a field of another kind."""
    field = str(where.field)
    if field in TEXTS or field == "kind":
        for place, value in _values(where, path):
            if not isinstance(value, str):
                yield Problem(place, f"is {_shown(value)}, and {field} is a text", f'quote it: "{_shown(value)}"')
            elif field == "kind" and value not in KINDS:
                yield Problem(place, f'"{value[:MAX_SHOWN]}" is no kind of event', did_you_mean(value, KINDS))
        for name in BOUNDS:
            if getattr(where, name) is not None:
                yield Problem(f"{path}.{name}", f"is a number, and {field} is a text", "use equals, in or prefix")
    if field in NUMBERS:
        for place, value in _values(where, path):
            if isinstance(value, str):
                yield Problem(place, f"is a text, and {field} is a number", "write it without quotes, such as 1024")
            elif isinstance(value, bool) or value != int(value) or value < 0:
                yield Problem(place, f"is {_shown(value)}, and {field} is a whole number from 0 on")
        if where.prefix is not None:
            yield Problem(f"{path}.prefix", f"is a text, and {field} is a number", "use equals, in, at_least or below")


def _values(where: Filter, path: str) -> Iterator[tuple[str, Any]]:
    if where.equals is not None:
        yield f"{path}.equals", where.equals
    yield from ((f"{path}.in[{place}]", value) for place, value in enumerate(where.one_of or ()))


def _never_true(leaf: DatasetLeaf | CustomEventTrigger, where: Filter, path: str) -> Iterator[Problem]:
    field = str(where.field)
    is_of_data = isinstance(leaf, DatasetLeaf)
    if (field in OF_DATA) != is_of_data:
        if where.exists is not False:
            whose, has = ("data", ", ".join(sorted(OF_DATA))) if is_of_data else ("custom", "subject and /data")
            yield Problem(
                f"{path}.field", f"{field[:MAX_SHOWN]} is nothing that {whose} events have", f"they have {has}"
            )
        return
    others = [name for name, value in _given(where) if name != "exists"]
    if where.exists is False and others:
        yield Problem(path, f"can never be true: what does not exist has no {others[0]}", "leave one of them out")
    elif where.exists is False and field in {"partition", "kind"}:
        yield Problem(f"{path}.exists", f"can never be true: each event has a {field}", "leave it out")
    elif isinstance(leaf, DatasetLeaf) and field == "kind":
        counted = [kind for kind in leaf.kinds if kind != "deleted"]
        if not any(where.holds_in({"kind": kind}) for kind in counted):
            problem = f"can never be true: of this trigger's kinds only {', '.join(counted)} are filtered"
            yield Problem(path, problem, "name the kind in kinds as well")
    elif not _may_hold(where, is_whole=field in NUMBERS):
        yield Problem(path, "can never be true: its comparisons exclude each other", "look at its bounds and values")


def _given(where: Filter) -> Iterator[tuple[str, Any]]:
    for name in ("equals", "one_of", "prefix", *BOUNDS, "exists"):
        if (value := getattr(where, name)) is not None:
            yield name, value


def _may_hold(where: Filter, *, is_whole: bool) -> bool:
    """Whether some value passes all of a field's comparisons."""
    values = [value for _, value in _values(where, "")]
    if values:
        return any(where.holds_of(value) for value in values)
    bounds = [getattr(where, name) for name in BOUNDS]
    if where.prefix is not None or bounds == [None] * len(BOUNDS):
        return bounds == [None] * len(BOUNDS)
    return _has_number(where, is_whole=is_whole)


def _has_number(where: Filter, *, is_whole: bool) -> bool:
    """Whether a number lies within all bounds; of whole ones, which count something, one from 0 on."""
    low = max(
        (each for each in (where.above, where.at_least, 0 if is_whole else None) if each is not None), default=None
    )
    high = min((each for each in (where.below, where.at_most) if each is not None), default=None)
    if low is None or high is None:
        return True
    if not is_whole:
        is_open = where.above == low or where.below == high
        return bool(low < high or (low == high and not is_open))
    first = int(low) + (low != int(low) or where.above == low)
    return bool(first < high or (first == high and where.below != high))


def _shown(value: Any) -> str:
    return value.written[:MAX_SHOWN] if isinstance(value, WrittenNumber) else json.dumps(value)[:MAX_SHOWN]

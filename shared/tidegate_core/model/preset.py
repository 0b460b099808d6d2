"""Presets: one word for the defaults of another scheduler, for schedules that come from there.

A preset only fills in what a document leaves out, before it is read: what is stored says all of it, and not the word.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

Preset: TypeAlias = Literal["cdap"]

_CONSTRAINTS: Final[dict[Any, dict[str, Any]]] = {
    "concurrency": {"on_unmet": "abort", "scope": "program"},
    "since_last_run": {"on_unmet": "abort", "of": "success"},
}
"""Rows CD-080, CD-081, CD-084; delays and windows are waited for there as here. Row CD-006: a job that is being launched launches with the
snapshot of its schedule (`on_update: finish_admitted`)."""
_OF_TIME: Final = frozenset({"cron", "every", "at", "times"})


def with_preset(document: Any) -> Any:
    """Returns a schedule's document with what its preset fills in; one that cannot be read is left to the model."""
    if not isinstance(document, dict) or document.get("preset") != "cdap":
        return document
    given = {name: value for name, value in document.items() if name != "preset"}
    trigger, constraints = given.get("trigger"), given.get("constraints", [])
    filled = {"suspended": True, "overlap": "allow", **given}
    target = given.get("target")
    if isinstance(target, dict) and target.get("type") == "program":
        filled = {"on_update": "finish_admitted", **filled}
    if isinstance(trigger, dict) and trigger.get("type") in _OF_TIME:
        catchup = given.get("catchup", {})
        filled["catchup"] = {"mode": "last", **catchup} if isinstance(catchup, dict) else catchup
    if isinstance(constraints, list | tuple):
        filled["constraints"] = [_with_defaults(each) for each in constraints]
    return filled


def _with_defaults(constraint: Any) -> Any:
    if not isinstance(constraint, dict):
        return constraint
    kind = constraint.get("type")
    return {**_CONSTRAINTS.get(kind, {}), **constraint} if isinstance(kind, str) else constraint

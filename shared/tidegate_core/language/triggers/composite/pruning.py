"""What is left of a trigger when schedules that it waits for are deleted: OR is pruned, AND ends (row CD-017)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from tidegate_core.language.triggers.composite.composite import CompositeTrigger
from tidegate_core.language.triggers.on_event.run_status import RunStatusTrigger
from tidegate_core.language.triggers.trigger import EventTrigger


def without(trigger: EventTrigger, namespace: str, gone: AbstractSet[str]) -> EventTrigger | None:
    """Returns the trigger without the schedules that are gone, or None when it can never fire any more.

    A composite of which one child is left is that child.

    Args:
        trigger: As it was written.
        namespace: The schedule's own.
        gone: `<ns>/<name>` of the deleted schedules.
    """
    if isinstance(trigger, RunStatusTrigger):
        return None if trigger.upstream_ref(namespace) in gone else trigger
    if not isinstance(trigger, CompositeTrigger):
        return trigger
    kept = [(child, without(child, namespace, gone)) for child in trigger.triggers]
    left = tuple(after for _, after in kept if after is not None)
    if len(left) < trigger.children_needed:
        return None
    if len(left) == 1:
        return left[0]
    return trigger if all(child is after for child, after in kept) else trigger.model_copy(update={"triggers": left})

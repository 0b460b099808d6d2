"""Warnings of `tidegate simulate`: input that is valid, but probably a mistake. They go to stderr."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate_cli.output import note
from tidegate_core.language.definitions.dependency_cycles import circle_warning
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import schedule_warnings
from tidegate_core.language.formats.parsing import parse_events
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.language.values.problems import did_you_mean
from tidegate_simulator import Happening, PlannedRun, Report


def title_of(spec: ScheduleSpec) -> str:
    return f"{spec.namespace}/{spec.name}"


def note_warnings(specs: Iterable[ScheduleSpec], begin: Instant) -> None:
    """Notes the warnings that an apply of the schedules would give."""
    by_name = {title_of(spec): spec for spec in specs}
    for title, spec in by_name.items():
        for warning in (*schedule_warnings(spec, begin), circle_warning(spec, by_name)):
            if warning is not None:
                note(f"{title}: warning: {warning}")


def note_uncounted(placed: Iterable[tuple[str, Happening]], specs: Iterable[ScheduleSpec]) -> None:
    """Notes events that no schedule counts, because a mistyped dataset would otherwise be ignored silently."""
    triggers = [(spec.namespace, spec.trigger) for spec in specs if isinstance(spec.trigger, EventTrigger)]
    counted = {leaf.event_key(namespace) for namespace, trigger in triggers for leaf in trigger.leaves()}
    firsts: dict[str, Happening] = {}
    for place, happening in placed:
        if happening.topic == "events":
            firsts.setdefault(place, happening)
    uncounted: dict[str, list[str]] = {}
    for place, happening in firsts.items():
        for event in parse_events(happening.value):
            if event.event_key not in counted:
                uncounted.setdefault(event.event_key, []).append(place)
    for key, places in uncounted.items():
        further = f" and {len(places) - 1} further lines" if len(places) > 1 else ""
        meant = did_you_mean(key, sorted(counted))
        note(f"{places[0]}{further}: no simulated schedule counts {key}{f'; {meant}' if meant else ''}")


def note_unused(planned: Iterable[tuple[str, PlannedRun]], report: Report) -> None:
    """Notes planned runs that did not happen. This is no error: an occurrence may be merged into another one and have no run."""
    ran = {(each.schedule, each.nominal) for each in report.occurrences if each.started_at is not None}
    for place, run in planned:
        if run.nominal is not None and (run.schedule, run.nominal) not in ran:
            note(f"{place}: {run.schedule} had no run for {format_instant(run.nominal)}")

"""What `tidegate simulate` says beside its lines: no mistake as such, but what hardly anybody means."""

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
    """What an apply of them would be warned of."""
    by_name = {title_of(spec): spec for spec in specs}
    for title, spec in by_name.items():
        for warning in (*schedule_warnings(spec, begin), circle_warning(spec, by_name)):
            if warning is not None:
                note(f"{title}: warning: {warning}")


def note_unheard(placed: Iterable[tuple[str, Happening]], specs: Iterable[ScheduleSpec]) -> None:
    """Whoever mistypes a dataset would believe that its events were simulated."""
    triggers = [(spec.namespace, spec.trigger) for spec in specs if isinstance(spec.trigger, EventTrigger)]
    heard = {leaf.event_key(namespace) for namespace, trigger in triggers for leaf in trigger.leaves()}
    firsts: dict[str, Happening] = {}
    for place, happening in placed:
        if happening.topic == "events":
            firsts.setdefault(place, happening)
    unheard: dict[str, list[str]] = {}
    for place, happening in firsts.items():
        for event in parse_events(happening.value):
            if event.event_key not in heard:
                unheard.setdefault(event.event_key, []).append(place)
    for key, places in unheard.items():
        further = f" and {len(places) - 1} further lines" if len(places) > 1 else ""
        meant = did_you_mean(key, sorted(heard))
        note(f"{places[0]}{further}: no schedule that is simulated counts {key}{f'; {meant}' if meant else ''}")


def note_unmet(planned: Iterable[tuple[str, PlannedRun]], report: Report) -> None:
    """An occurrence may well be merged into another one, so that it has no run: this is no mistake, but worth a word."""
    ran = {(each.schedule, each.nominal) for each in report.occurrences if each.started_at is not None}
    for place, run in planned:
        if run.nominal is not None and (run.schedule, run.nominal) not in ran:
            note(f"{place}: {run.schedule} had no run for {format_instant(run.nominal)}")

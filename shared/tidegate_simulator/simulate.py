"""`simulate`: takes definitions and returns what they would have done."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import DEFAULT_MINIMUM_PERIOD_MS
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.triggers.preview import local_text, zone_of
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.problems import InvalidInput, Problem
from tidegate_simulator.external_events import Happening
from tidegate_simulator.occurrence_history import Stories, Story
from tidegate_simulator.occurrence_record import Occurrence, Wait
from tidegate_simulator.run_plan import RunPlan
from tidegate_simulator.simulation_report import Report
from tidegate_simulator.virtual_cluster import World

SETTING_UP_MS = 1
"""Time before the span at which definitions are applied, so that an occurrence at its begin counts."""


class DefinitionRefused(Exception):
    """A definition cannot be simulated, because no cluster would accept it.

    Attributes:
        index: Index of the definition in the given sequence.
        problems: At least one problem.
    """

    def __init__(self, index: int, problems: Sequence[Problem]) -> None:
        self.index = index
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, problems)))


@dataclass(frozen=True, slots=True)
class Outage:
    """A span without an owner. Instants in it become misfires and are caught up as the schedules say."""

    begin: Instant
    end: Instant


def simulate(
    definitions: Sequence[Mapping[str, Any]],
    begin: Instant,
    end: Instant,
    *,
    happenings: Iterable[Happening] = (),
    runs: RunPlan | None = None,
    outages: Iterable[Outage] = (),
    load: float | None = 0.0,
    minimum_period_ms: int = DEFAULT_MINIMUM_PERIOD_MS,
) -> Report:
    """Runs schedules over a span of virtual time, with the decisions of production.

    Args:
        definitions: Schedules as users write them; applied together, in this order, just before `begin`.
        begin: First instant of the span.
        end: First instant after the span.
        happenings: Events and requests, each before `end`; in any order, those of one instant in the given order.
        runs: Durations and ends of runs; without it each succeeds after a minute.
        outages: Outages within the span, without overlaps.
        load: Value of every load that a constraint reads, 0 to 1; None: unknown.
        minimum_period_ms: Setting of the cluster's nodes.

    Returns:
        All occurrences that were created in the span, including those still open at its end.

    Raises:
        DefinitionRefused: A cluster would refuse one of the definitions.
        TimeStandsStill: Schedules start each other for ever, with runs that take no time.
        ValueError: The span is empty, or a happening or an outage is outside of it.
    """
    if begin >= end:
        raise ValueError("the span is empty: its end must be after its begin")
    specs = [_spec(index, definition) for index, definition in enumerate(definitions)]
    _refuse_repeats(specs)
    world = World(begin - SETTING_UP_MS, runs or RunPlan(), load, minimum_period_ms)
    world.serve()
    for index, definition in enumerate(definitions):
        _apply(world, index, definition)
    asked = _lay_out(world, happenings, begin, end)
    for outage in _checked(outages, begin, end):
        world.advance(outage.begin)
        world.fall()
        world.advance(outage.end)
        world.serve()
    world.advance(end - 1)
    clocks = {f"{spec.namespace}/{spec.name}": spec for spec in specs}
    return Report(begin, end, _occurrences(world.stories, clocks), tuple(_answer(world, each) for each in asked))


def _spec(index: int, definition: Mapping[str, Any]) -> ScheduleSpec:
    try:
        return parse_schedule(definition)
    except InvalidInput as refusal:
        raise DefinitionRefused(index, refusal.problems) from refusal


def _refuse_repeats(specs: Sequence[ScheduleSpec]) -> None:
    """Raises for two definitions of one name: that is a mistake, because an update is a request among the
    happenings.
    """
    seen: set[tuple[str, str]] = set()
    for index, spec in enumerate(specs):
        if (spec.namespace, spec.name) in seen:
            problem = Problem("name", f"{spec.name} occurs twice", "give each schedule its own name")
            raise DefinitionRefused(index, [problem])
        seen.add((spec.namespace, spec.name))


def _apply(world: World, index: int, definition: Mapping[str, Any]) -> None:
    request_id = f"definition-{index}"
    world.give("requests", json.dumps({"id": request_id, "type": "schedule.apply", "spec": definition}).encode())
    receipt = json.loads(world.receipts[request_id])
    if receipt["status"] != "accepted":
        raise DefinitionRefused(index, [Problem(**error) for error in receipt["errors"]])


def _lay_out(world: World, happenings: Iterable[Happening], begin: Instant, end: Instant) -> list[dict[str, Any]]:
    """Adds happenings to the world's timeline; returns the requests among them, with their ids."""
    asked: list[dict[str, Any]] = []
    for number, happening in enumerate(happenings):
        if not begin <= happening.at < end:
            raise ValueError("a happening is outside of the span")
        value = happening.value
        if happening.topic == "requests":
            request = {"id": f"request-{number}", **json.loads(value)}
            if request["type"] == "message.send":
                request["receipt"] = True  # Other requests send a receipt without being asked.
            asked.append(request)
            value = json.dumps(request, ensure_ascii=False).encode()
        world.at(happening.at, partial(world.append, happening.topic, value))
    return asked


def _checked(outages: Iterable[Outage], begin: Instant, end: Instant) -> list[Outage]:
    ordered = sorted(outages, key=lambda outage: outage.begin)
    free = begin
    for outage in ordered:
        if not free <= outage.begin < outage.end <= end - 1:
            raise ValueError("an outage is empty, outside of the span, or overlaps another one")
        free = outage.end
    return ordered


def _answer(world: World, request: Mapping[str, Any]) -> str:
    subject = "/".join(str(request[name]) for name in ("namespace", "name") if request.get(name))
    receipt = world.receipts.get(str(request["id"]))
    status = "pending" if receipt is None else json.loads(receipt)["status"]
    return f"{request['type']} {subject}: {status}"


def _occurrences(stories: Stories, clocks: Mapping[str, ScheduleSpec]) -> tuple[Occurrence, ...]:
    told = [_occurrence(story, stories, clocks.get(story.schedule)) for story in stories.told.values()]
    return tuple(sorted(told, key=lambda each: (each.nominal, each.schedule, each.trigger, each.correlation or "")))


def _occurrence(story: Story, stories: Stories, spec: ScheduleSpec | None) -> Occurrence:
    zone = "UTC"
    if spec is not None and story.trigger != "manual":
        zone = zone_of(spec.trigger, story.nominal, story.schedule)
    return Occurrence(
        schedule=story.schedule,
        trigger=story.trigger,
        nominal=story.nominal,
        local=local_text(story.nominal, zone),
        zone=zone,
        result=story.result,
        correlation=None if story.correlation is None else stories.in_words(story.correlation),
        covered=story.covered,
        covered_from=story.covered_from,
        first_event_at=story.first_event_at,
        made_at=story.made_at,
        waits=tuple(_in_words(wait, stories) for wait in story.waits),
        admitted_at=story.admitted_at,
        started_at=story.started_at,
        ended_at=story.ended_at,
        attempts=story.attempts,
        detail=None if story.detail is None else stories.in_words(story.detail),
        missing=story.missing,
        forced=None if story.forced is None else stories.in_words(story.forced),
    )


def _in_words(wait: Wait, stories: Stories) -> Wait:
    verdicts = tuple(
        {name: stories.in_words(value) if isinstance(value, str) else value for name, value in verdict.items()}
        for verdict in wait.verdicts
    )
    return replace(wait, reason=stories.in_words(wait.reason), verdicts=verdicts)


__all__ = ["DefinitionRefused", "Outage", "simulate"]

"""A bench for stories as users tell them: wall-clock times in UTC, schedules by name, and when their programs began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.builders import MINUTE, SECOND, Doc, a_spec, an_apply, an_event
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.effects import LaunchOrder

DAY = "2025-11-13"
"""The day of a bench's first instant, 02:13:20."""
QUICK = Behaviour(starts_after=20, runs_for=200)


def schedule_of(order: LaunchOrder) -> str:
    schedule: Any = order.context["schedule"]
    return str(schedule["name"])


class Story(ActorHarness):
    """A bench with a calendar."""

    def __init__(self, behaviour: Behaviour = QUICK, **holding: Any) -> None:
        super().__init__(behaviour=behaviour, **holding)
        self.run(SECOND)

    def apply(self, name: str, trigger: Doc, *constraints: Doc, **more: Any) -> None:
        self.request(an_apply(a_spec(name, trigger, constraints=list(constraints), **more), f"apply-{name}-{self.now}"))
        self.run(10)

    def until(self, time_of_day: str, day: int = 0) -> None:
        """Lets time pass until so many days after the first one, at that time."""
        wanted = parse_instant(f"{DAY}T{time_of_day}:00Z") + day * 24 * 60 * MINUTE
        assert wanted >= self.now
        self.run(wanted - self.now)

    def data(self, *data_partitions: str, dataset: str = "raw", apart: int = 0, **more: Any) -> None:
        for each in data_partitions:
            self.event(an_event(each, dataset, **more))
            self.run(apart)

    def began(self, name: str | None = None) -> list[int]:
        """Instants at which the programs of a schedule passed the gate."""
        runs = {order.run_id for order in self.started if name in (None, schedule_of(order))}
        return [mark.at for mark in self.marks if mark.begins and mark.run_id in runs]

    def since_noon(self, instant: int) -> float:
        """Returns an instant as hours since the first day's noon."""
        return (instant - parse_instant(f"{DAY}T12:00:00Z")) / (60 * MINUTE)

    def words(self, name: str) -> list[str]:
        """What the ledger says of a schedule, in order of the nominal instants."""
        return [entry[0] for entry in sorted(self.ledger(), key=lambda entry: entry[2]) if entry[1] == name]


class QuietStory(Story):
    """A bench with a calendar for days in which little happens and nothing gets lost: it passes over routine."""

    def __init__(self, behaviour: Behaviour = QUICK, **holding: Any) -> None:
        super().__init__(behaviour, **holding)
        self.passes_over_routine = True


def brought(bench: ActorHarness, number: int = 0) -> Sequence[str]:
    """The data partitions that a program was told of, each once."""
    manifest: Any = bench.started[number].context["manifest"]
    return [*dict.fromkeys(str(row["partition"]) for row in manifest)]

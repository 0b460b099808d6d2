"""A new kind of cluster object: requests, stored form and transition are all that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Literal

import pytest

from tests.support.builders import SECOND, Doc
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.commands.cluster_object import ClusterObjectKind, Facts, Transition
from tidegate_core.commands.roll_out import RollOut
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.request_base import RequestBase
from tidegate_core.language.requests.requests import REQUEST_TYPES
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.names import Name, Namespace
from tidegate_core.language.values.problems import Problem
from tidegate_core.ownership import inbox
from tidegate_core.rows import keys

DAYS_MAX = 2


class CalendarAdd(RequestBase):
    """Adds a day to the calendar of all schedules."""

    CLUSTER_OBJECT: ClassVar = "calendars"
    type: Literal["calendar.add"] = "calendar.add"
    namespace: Namespace
    name: Name
    day: str


@dataclass(frozen=True)
class Calendar:
    version: int = 0
    days: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCalendar:
    version: int
    days: str

    @classmethod
    def of(cls, calendar: Calendar) -> StoredCalendar:
        return cls(version=calendar.version, days=" ".join(calendar.days))


class CalendarKind(ClusterObjectKind[Calendar]):
    name = "calendars"
    label = "move_calendars"
    empty = Calendar()
    record = StoredCalendar

    def value_of(self, stored: StoredCalendar) -> Calendar:
        return Calendar(stored.version, tuple(stored.days.split()))

    def about(self, request: CalendarAdd) -> str:
        return request.day

    def transition(self, before: Calendar, request: CalendarAdd, _: Position, facts: Facts) -> Transition[Calendar]:
        if request.day in before.days:
            return Transition(status=ReceiptStatus.UNCHANGED, after=before, version=before.version)
        if len(before.days) >= DAYS_MAX:
            problem = Problem("day", f"would be one of more than {DAYS_MAX} days", "delete others first")
            return Transition(status=ReceiptStatus.REJECTED, after=before, problems=(problem,))
        after = Calendar(before.version + 1, (*before.days, request.day))
        return Transition(status=ReceiptStatus.ACCEPTED, after=after, version=after.version)


class RolledOutCalendarKind(CalendarKind):
    """A calendar that every shard acknowledges; here a lease does so with its version of the scope suspensions."""

    def roll_out(self, writer: ShardWriter) -> RollOut:
        def nothing(*_: object) -> Any:
            yield from ()
            return {}

        return RollOut(writer, "settle_calendar", lambda lease: int(str(lease.get("controls_done", 0))), nothing)


def add(day: str, request_id: str | None = None) -> Doc:
    return {"id": request_id or day, "type": "calendar.add", "namespace": "flights", "name": "holidays", "day": day}


def ask(bench: ActorHarness, document: Doc) -> Doc:
    bench.request(document)
    bench.run(SECOND)
    return bench.receipts()[str(document["id"])]


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REQUEST_TYPES, "calendar.add", CalendarAdd)
    monkeypatch.setitem(inbox.CLUSTER_OBJECTS, "calendars", CalendarKind())


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def stored(bench: ActorHarness) -> Calendar:
    item = bench.store.peek(keys.cluster_object("calendars"))
    return Calendar() if item is None else CalendarKind().decode(item)


def test_given_requests_then_each_moves_the_item_and_is_answered_with_its_version(bench: ActorHarness) -> None:
    answers = [ask(bench, add(day)) for day in ("may-1", "may-2", "may-3")]
    assert [(each["status"], each["version"]) for each in answers] == [
        ("accepted", 1),
        ("accepted", 2),
        ("rejected", None),
    ]
    assert answers[2]["errors"][0]["field"] == "day"
    assert stored(bench) == Calendar(2, ("may-1", "may-2"))
    assert len(bench.commits("move_calendars")) == 3


def test_given_a_repeat_then_it_gets_the_first_answer_and_moves_nothing(bench: ActorHarness) -> None:
    first = ask(bench, add("may-1"))
    ask(bench, add("may-2"))
    assert ask(bench, add("may-1"))["version"] == first["version"] == 1
    assert stored(bench).version == 2


def test_given_the_owner_dies_after_any_effect_then_the_item_moves_once() -> None:
    for effects in count(1):
        bench = ActorHarness()
        bench.run(SECOND)
        bench.crash_after = bench.effects_outside + effects
        assert ask(bench, add("may-1"))["status"] == "accepted", effects
        assert stored(bench) == Calendar(1, ("may-1",)), effects
        if bench.lives == 1:
            return


def test_given_a_kind_that_waits_for_all_shards_then_the_answer_waits_for_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(inbox.CLUSTER_OBJECTS, "calendars", RolledOutCalendarKind())
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(add("may-1"))
    bench.run(10 * SECOND)
    assert "may-1" not in bench.receipts()
    bench.request({"id": "stop", "type": "control.suspend", "scope": "system"})
    bench.run(2 * SECOND)
    assert bench.receipts()["may-1"]["status"] == "accepted"
    assert len(bench.commits("settle_calendar")) == 1

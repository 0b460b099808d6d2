"""When firing wakes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tidegate_core.engine.operations import Signal
from tidegate_core.messages.wire.delivery_loop import Firing

NOW = 1_000


class _Alarms:
    """A host that only notes what alarms are set."""

    def __init__(self) -> None:
        self.now = NOW
        self.set: list[int] = []

    def call_at(self, instant: int, action: object) -> None:
        self.set.append(instant)


class _Slots:
    def __init__(self) -> None:
        self.next: int | None = None

    def next_slot(self) -> int | None:
        return self.next


def _firing() -> tuple[Firing, _Alarms, _Slots]:
    host, slots = _Alarms(), _Slots()
    plane = SimpleNamespace(host=host, slots=slots, changed=Signal("slots"))
    return Firing(cast(Any, plane)), host, slots


def test_given_many_looks_at_one_next_slot_then_one_alarm_is_set() -> None:
    firing, host, slots = _firing()
    slots.next = NOW + 500
    for _ in range(100):
        firing._wake_at_next_slot()
    assert host.set == [NOW + 500]


def test_given_an_earlier_slot_then_an_alarm_is_set_for_it_and_again_for_the_later_one() -> None:
    firing, host, slots = _firing()
    slots.next = NOW + 500
    firing._wake_at_next_slot()
    slots.next = NOW + 200
    firing._wake_at_next_slot()
    host.now = NOW + 200
    slots.next = NOW + 500
    firing._wake_at_next_slot()
    assert host.set == [NOW + 500, NOW + 200, NOW + 500]


def test_given_nothing_ahead_then_no_alarm_is_set() -> None:
    firing, host, slots = _firing()
    firing._wake_at_next_slot()
    slots.next = NOW
    firing._wake_at_next_slot()
    assert host.set == []

"""A group of due messages is produced, expired, tried again or dead-lettered; and when delivery wakes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.builders import HOUR, REQUESTS, SECOND, a_send
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.engine.operations import Signal
from tidegate_core.language.values.instants import format_instant
from tidegate_core.messages.wire.delivery import Firing
from tidegate_core.rows.effects import Effect, NotProduced, Produce

NOW = 1_000


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def tries(bench: ActorHarness) -> list[Produce]:
    return [effect for effect in bench.all_asked(Produce) if effect.topic == "out"]


def tally(bench: ActorHarness, name: str) -> int:
    return sum(int(str(row[name])) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")])


def test_given_a_delivery_then_it_is_guarded(bench: ActorHarness) -> None:
    bench.request(a_send(after="1s"))
    bench.run(SECOND)
    assert [effect.guarded for effect in tries(bench)] == [True]


@pytest.mark.parametrize("kind", ["guard", "unavailable"])
def test_given_a_lapsed_guard_or_a_broker_that_is_away_then_it_is_tried_again_soon_under_the_same_id(
    bench: ActorHarness, kind: str
) -> None:
    bench.answer_with(to_out, NotProduced(kind, "not now"), times=3)
    bench.request(a_send(after="1s"))
    bench.run(3 * SECOND)
    assert len(bench.on("out")) == 1
    assert len(tries(bench)) == 4
    assert len({effect.headers for effect in tries(bench)}) == 1


@pytest.mark.parametrize(
    ("away_for", "delivered"),
    [
        pytest.param(29 * SECOND, 1, id="within"),
        pytest.param(31 * SECOND, 0, id="beyond"),
    ],
)
def test_given_an_expiry_then_it_is_not_delivered_later_than_that(
    bench: ActorHarness, away_for: int, delivered: int
) -> None:
    bench.request(a_send(after="1s", expire_after="30s"))
    bench.now += SECOND + away_for
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == delivered
    assert tally(bench, "expired") == 1 - delivered


def test_given_many_due_at_once_then_all_are_delivered_in_the_order_of_their_slots(bench: ActorHarness) -> None:
    for number in range(60):
        bench.request(a_send(f"m-{number:03d}", after=f"{2_000 - number}ms"))
    bench.run(10 * SECOND)
    sent = bench.on("out")
    assert len(sent) == 60
    assert [each.at for each in sent] == sorted(each.at for each in sent)
    assert tally(bench, "delivered") == 60


def test_given_messages_of_one_instant_then_they_are_sent_in_the_order_in_which_they_came(bench: ActorHarness) -> None:
    """SEMANTICS 14: order per key by (deliver_at, sequence)."""
    bench.append(REQUESTS, 0, *(a_send(f"m-{number}", key="k" * (number + 1), after="5s") for number in range(40)))
    bench.run(10 * SECOND)
    by_shard: dict[str, list[int]] = {}
    for sent in bench.on("out"):
        by_shard.setdefault(sent.headers["tidegate-id"][:4], []).append(int(sent.document["of"][2:]))
    assert sum(map(len, by_shard.values())) == 40
    assert all(numbers == sorted(numbers) for numbers in by_shard.values())


def test_given_messages_of_the_past_then_they_are_sent_in_the_order_of_their_times() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m", after="0s"))
    bench.run(10 * SECOND)
    past = bench.now - HOUR
    order = [3, 1, 4, 0, 2, 5]
    bench.append(REQUESTS, 0, *(a_send(f"{n}", deliver_at=format_instant(past + n)) for n in order))
    bench.run(SECOND)
    assert [sent.document["of"] for sent in bench.on("out")[1:]] == ["0", "1", "2", "3", "4", "5"]


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
    messages = SimpleNamespace(host=host, queue=slots, changed=Signal("slots"))
    return Firing(cast(Any, messages)), host, slots


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

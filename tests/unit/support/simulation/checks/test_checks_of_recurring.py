"""Lies about recurring messages: the judge objects to a fire that is lost, and excuses what faults explain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.checks.case import Case
from tests.simulation.checks.fires import at_text
from tests.simulation.checks.recurring_messages import SETTLE_MS, UNDER_WAY, check_recurring, turn_of
from tests.simulation.users.requests import Asked
from tests.simulation.users.schedule_definitions import NAMESPACE
from tests.simulation.world.classic_coordinator import Coordinator
from tests.simulation.world.fault_waits import FaultWait
from tests.simulation.world.observations import Delivery, ReceiptSeen
from tests.simulation.world.timeline import START
from tests.unit.support.simulation.checks.lying import found
from tests.unit.support.simulation.checks.worlds import calm_world
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows import keys

SEED = 0
SEED_WITH_AN_AT = 4
"""Of a calm world with a message that is due once, and is delivered."""


def test_given_a_refused_at_that_was_not_delivered_then_only_a_version_that_did_not_promise_it_is_excused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case(calm_world(SEED_WITH_AN_AT))
    (life,) = [life for life in case.recurring if life.definition.trigger["type"] == "at"]
    (segment,) = case.segments(life)
    receipt = segment.begin.asked.receipt
    assert receipt is not None
    (nominal,) = [each.nominal for each in case.record.deliveries if each.message.startswith(f"{life.name}/")]
    assert not found(check_recurring(case), "I1", life.name)
    others = [each for each in case.record.deliveries if not each.message.startswith(f"{life.name}/")]
    monkeypatch.setattr(case.record, "deliveries", others)
    occurrence = f"{life.name}@{nominal}"
    monkeypatch.setitem(case.record.refused, occurrence, [segment.begin.done])
    assert found(check_recurring(case), "I1", life.name)
    monkeypatch.setitem(receipt.body, "next", [])
    assert not found(check_recurring(case), "I1", life.name)
    for at in (segment.begin.sent - 1, segment.begin.done + 1):
        monkeypatch.setitem(case.record.refused, occurrence, [at])
        assert found(check_recurring(case), "I1", life.name), "in another life, or under this version"


@pytest.mark.parametrize(
    ("sent", "at_a_time", "turn"),
    [
        pytest.param([(3_000, 5), (6_500, 6)], 1, 6_500, id="a backlog"),
        pytest.param([(3_000, 5), (6_500, 6)], None, 0, id="a backlog that goes together"),
    ],
)
def test_given_a_backlog_then_a_fire_has_its_turn_when_as_few_are_left_as_may_be_under_way(
    case: Case, monkeypatch: pytest.MonkeyPatch, sent: list[tuple[int, int]], at_a_time: int | None, turn: int
) -> None:
    """Seed 810403: one at a time. Elsewhere what is tried again, or late, holds no fire up."""
    of_another_shard = replace(case.record.deliveries[0], id="0002-a", nominal=START, at=START + 1_000)
    ahead = [replace(of_another_shard, id="0001-a", nominal=START + due, at=START + at) for at, due in sent]
    monkeypatch.setattr(case.record, "deliveries", [of_another_shard, *ahead])
    case.swarm = replace(case.swarm, knobs=() if at_a_time is None else ((UNDER_WAY, at_a_time),))
    assert turn_of(case, 1, START + 10, START) == START + turn


def test_given_tries_that_nobody_answered_then_a_fire_had_its_turn_behind_them(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 20000551: two tries in a row took more than the time that an owner has."""
    behind = replace(case.record.deliveries[0], id="0001-a", nominal=START, at=START + 5_300)
    monkeypatch.setattr(case.record, "deliveries", [behind])
    monkeypatch.setattr(case.record, "tried", {"0001-a": [START + 2_650, START + 5_299], "0002-b": [START + 7_000]})
    case.swarm = replace(case.swarm, knobs=((UNDER_WAY, 1),))
    assert turn_of(case, 1, START + 10, START) == START + 5_300
    monkeypatch.setattr(case.record, "tried", {})
    assert turn_of(case, 1, START + 10, START) == START


def fire_to_lose(case: Case) -> tuple[Delivery, int]:
    """Returns a fire of `ping` that its owner had time enough for, and when its last span ended."""
    (life,) = [life for life in case.recurring if life.name == "ping"]
    end = max(segment.end.sent for segment in case.segments(life) if segment.end is not None)
    mine = [each for each in case.record.deliveries if each.message.startswith("ping/")]
    return max((each for each in mine if each.nominal < end - 3 * SETTLE_MS), key=lambda each: each.nominal), end


@pytest.mark.parametrize(("at_a_time", "is_lost"), [(None, True), (1, False)])
def test_given_a_fire_that_was_lost_behind_a_trickle_then_only_a_world_that_sends_one_at_a_time_excuses_it(
    monkeypatch: pytest.MonkeyPatch, at_a_time: int | None, is_lost: bool
) -> None:
    """A judge that takes whatever was due before a fire for something in its way never misses it."""
    case = Case(calm_world(SEED))
    lost, end = fire_to_lose(case)
    trickle = [
        replace(lost, message="m", nominal=lost.nominal - 1, at=at) for at in range(lost.nominal, end, SETTLE_MS // 2)
    ]
    assert not found(check_recurring(case), "I1", "ping")
    others = [each for each in case.record.deliveries if each != lost]
    monkeypatch.setattr(case.record, "deliveries", [*others, *trickle])
    case.swarm = replace(case.swarm, knobs=() if at_a_time is None else ((UNDER_WAY, at_a_time),))
    assert found(check_recurring(case), "I1", "ping", at_text(lost.nominal), "was due") is is_lost


@pytest.mark.parametrize(("lasted", "is_lost"), [(1_000, True), (6_000, False)])
def test_given_a_fire_that_was_lost_as_the_group_waited_for_a_member_that_was_gone_then_nobody_could_send_it(
    monkeypatch: pytest.MonkeyPatch, lasted: int, is_lost: bool
) -> None:
    """Seed 36014828: all guards lapsed half a second after the shard was served, and its owner fell before the round was over."""
    case = Case(calm_world(SEED))
    lost, end = fire_to_lose(case)
    monkeypatch.setattr(case.record, "deliveries", [each for each in case.record.deliveries if each != lost])
    coordinator = case.world.cluster.coordinator
    assert isinstance(coordinator, Coordinator)
    rounds = [(at, at + lasted) for at in range(lost.nominal, end, lasted + 1)]
    monkeypatch.setattr(coordinator, "rounds", [*coordinator.rounds, *rounds])
    assert found(check_recurring(case), "I1", "ping", at_text(lost.nominal), "was due") is is_lost


@pytest.mark.parametrize(
    ("asked", "answered", "is_kept", "is_lost"),
    [
        pytest.param(-1, None, True, False, id="a request holds it, and its lane is kept from its fate"),
        pytest.param(-1, None, False, True, id="its lane is free"),
    ],
)
def test_given_a_fire_behind_a_request_that_a_lane_was_kept_from_then_only_that_excuses_that_it_was_lost(
    monkeypatch: pytest.MonkeyPatch, asked: int, answered: int | None, is_kept: bool, is_lost: bool
) -> None:
    """Seed 39023072: an apply of what stood already came at 12.8 s, and faults that aimed at `control` kept its lane until 35.9 s."""
    case = Case(calm_world(SEED))
    lost, end = fire_to_lose(case)
    life = next(life for life in case.recurring if life.name == "ping")
    spans = {each.name: case.segments(each) for each in case.recurring}
    monkeypatch.setattr(case.record, "deliveries", [each for each in case.record.deliveries if each != lost])
    # Nobody else begins to serve, and no position moves, between the fire and the end of its span.
    shard = schedule_shard(NAMESPACE, "ping", case.swarm.shards)
    monkeypatch.setitem(case.record.passed, shard, [])
    monkeypatch.setattr(case, "segments", lambda each: spans[each.name])
    receipt = None if answered is None else ReceiptSeen(lost.nominal + answered, {"status": "unchanged"})
    again = Asked({"id": "again"}, lost.nominal + asked, appended=[lost.nominal + asked], receipt=receipt)
    monkeypatch.setattr(life, "steps", [*life.steps, again])
    if is_kept:
        pk = keys.shard_pk(shard)
        _, owner = case.record.taken[pk][-1]
        wait = FaultWait(f"{owner.owner}/0.{owner.tenure}/{owner.number + 1}", lost.nominal - 10_000, end)
        monkeypatch.setitem(case.world.cluster.store.waits.lanes, pk, [wait])
    assert found(check_recurring(case), "I1", "ping", at_text(lost.nominal), "was due") is is_lost


@pytest.mark.parametrize(
    ("told", "is_refused_before", "is_untold"),
    [
        pytest.param(0, True, True, id="its receipt does not say so"),
        pytest.param(1, True, False, id="its receipt says so"),
        pytest.param(0, False, False, id="refused behind it: nobody could know"),
    ],
)
def test_given_a_refused_fire_that_never_came_then_the_request_that_ended_its_span_has_to_say_so(
    monkeypatch: pytest.MonkeyPatch, told: int, is_refused_before: bool, is_untold: bool
) -> None:
    case = Case(calm_world(SEED))
    lost, _ = fire_to_lose(case)
    (life,) = [life for life in case.recurring if life.name == "ping"]
    segment = next(each for each in case.segments(life) if each.surely(lost.nominal))
    assert segment.end is not None
    receipt = segment.end.asked.receipt
    assert receipt is not None
    others = [each for each in case.record.deliveries if each != lost]
    monkeypatch.setattr(case.record, "deliveries", others)
    refused_at = lost.nominal + 1 if is_refused_before else segment.end.done + 1
    monkeypatch.setitem(case.record.refused, f"ping@{lost.nominal}", [refused_at])
    monkeypatch.setitem(receipt.body, "discarded", {"messages": told} if told else None)
    assert found(check_recurring(case), "I1", "ping", "whose receipt says") is is_untold

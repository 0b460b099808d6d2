"""The judge of stops that were handed over objects to a late answer, and an open transaction excuses the reminders that wait for it alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tests.simulation.checks import violations
from tests.simulation.checks.case import Case
from tests.simulation.checks.overtaking import SETTLE_MS, SETTLE_WIDE_MS, check_overtaking
from tests.simulation.checks.reminders import SETTLE_MS as REMINDED_WITHIN_MS
from tests.simulation.checks.reminders import check_reminders
from tests.simulation.runner.runner import run
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.users.requests import Asked
from tests.simulation.world.fault_schedule import HEAL_AFTER_MS
from tests.simulation.world.fault_waits import FaultWait
from tests.simulation.world.observations import Author
from tests.simulation.world.timeline import START
from tests.simulation.world.world import World, build
from tests.unit.support.simulation.checks.lying import found
from tests.unit.support.simulation.checks.worlds import calm_world
from tidegate_core.rows.keys import shard_pk

SEED = 2
OPEN = (8_000, 48_000)
LATE_MS = 5_000
REMINDED = "rather"
SEED_OF_REMINDERS = 7


@cache
def world_of_stops() -> World:
    """Returns a calm world in which a transaction was open on the requests topic."""
    calm = swarm_of(SEED, faults=False)
    return run(build(SEED, swarm=replace(calm, topics=replace(calm.topics, open_transactions=(("requests", OPEN),)))))


@pytest.fixture
def world() -> World:
    return world_of_stops()


def handed_over(case: Case, *, of_a_scope: bool = False) -> tuple[Asked, int, int]:
    """Returns a stop, when it was handed over, and to which shard."""
    return next(
        (asked, *asked.handed_over)
        for asked in case.world.requests.asked.values()
        if asked.handed_over is not None and str(asked.document["type"]).startswith("control.") is of_a_scope
    )


def answered_late(case: Case, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> int:
    """Dates its answer after all that the judge allows, and returns when that was over."""
    assert asked.handed_over is not None
    assert asked.receipt is not None
    settle_ms = SETTLE_WIDE_MS if str(asked.document["type"]).startswith("control.") else SETTLE_MS
    due = asked.handed_over[0] + settle_ms + case.queued_ms + case.scattered_ms + case.unheard_ms
    monkeypatch.setattr(asked, "receipt", replace(asked.receipt, at=due + LATE_MS))
    return due


def test_given_a_world_with_an_open_transaction_then_nothing_is_wrong_and_there_is_something_to_judge(
    case: Case,
) -> None:
    assert violations(case.world) == []
    assert sum(asked.handed_over is not None for asked in case.world.requests.asked.values()) >= 5


@pytest.mark.parametrize("of_a_scope", [False, True])
def test_given_a_stop_that_was_handed_over_and_answered_late_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch, *, of_a_scope: bool
) -> None:
    asked, _, _ = handed_over(case, of_a_scope=of_a_scope)
    answered_late(case, asked, monkeypatch)
    assert found(check_overtaking(case), "I7", asked.id, "was handed over")


def test_given_a_stop_that_was_handed_over_and_never_answered_then_it_is_found(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, _, _ = handed_over(case)
    monkeypatch.setattr(asked, "receipt", None)
    assert found(check_overtaking(case), "I7", asked.id, "was handed over")


@pytest.mark.parametrize(
    ("whose", "frozen_at", "is_wrong"),
    [
        pytest.param("its owner's", 1_000, False, id="its owner was frozen"),
        pytest.param("its owner's", -60_000, True, id="its owner had been frozen before"),
        pytest.param("another", 1_000, True, id="another node was frozen"),
    ],
)
def test_given_a_node_that_was_frozen_then_only_the_owner_s_freeze_in_its_time_excuses_a_late_answer(
    case: Case, monkeypatch: pytest.MonkeyPatch, whose: str, frozen_at: int, *, is_wrong: bool
) -> None:
    asked, at, shard = handed_over(case)
    due = answered_late(case, asked, monkeypatch)
    owner = Case(case.world).node_serving(shard, at, due)
    nodes = {each.node for each in case.record.stints.values()}
    node = next(each for each in sorted(nodes) if (each == owner) is (whose == "its owner's"))
    monkeypatch.setattr(case.record, "pauses", [(node, at + frozen_at, at + frozen_at + 1_000)])
    assert found(check_overtaking(case), "I7", asked.id) is is_wrong


@pytest.mark.parametrize(("away_at", "is_wrong"), [(1_000, False), (-60_000, True)])
def test_given_a_store_that_was_away_then_only_an_outage_in_the_owner_s_time_excuses_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, away_at: int, *, is_wrong: bool
) -> None:
    asked, at, _ = handed_over(case)
    answered_late(case, asked, monkeypatch)
    begin = at - START + away_at
    case.swarm = replace(case.swarm, store=replace(case.swarm.store, brown_outs=((begin, begin + 1_000),)))
    assert found(check_overtaking(case), "I7", asked.id) is is_wrong


@pytest.mark.parametrize(("lasted", "is_wrong"), [(2 * LATE_MS, False), (100, True)])
def test_given_a_lane_that_is_kept_from_a_transaction_s_fate_then_the_stop_after_it_has_its_time_when_that_is_over(
    case: Case, monkeypatch: pytest.MonkeyPatch, lasted: int, *, is_wrong: bool
) -> None:
    asked, at, shard = handed_over(case)
    answered_late(case, asked, monkeypatch)
    _, owner = case.record.taken[shard_pk(shard)][-1]
    author = Author(owner.owner, owner.tenure, owner.number + 1)
    wait = FaultWait(f"{author.owner}/0.{author.tenure}/{author.number}", at + 100, at + 100 + lasted)
    monkeypatch.setitem(case.world.cluster.store.waits.lanes, shard_pk(shard), [wait])
    assert found(check_overtaking(case), "I7", asked.id) is is_wrong


# -- the excuse of reminders ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "begin", "end", "is_wrong"),
    [
        pytest.param("events", -1_000, 600_000, False, id="nobody can read what may have come in time"),
        pytest.param("source", -1_000, 600_000, False, id="nor what a source may have told"),
        pytest.param("requests", -1_000, 600_000, True, id="no reminder waits for requests"),
        pytest.param("events", -40_000, -20_000, True, id="it was over before the reminder came"),
        pytest.param("events", 600_000, 640_000, True, id="it was opened long after"),
        pytest.param("events", -1_000, 1_000, True, id="there was time enough after its end"),
    ],
)
def test_given_an_open_transaction_then_a_reminder_waits_only_while_nobody_can_read_what_may_have_come(
    monkeypatch: pytest.MonkeyPatch, topic: str, begin: int, end: int, *, is_wrong: bool
) -> None:
    """Three reminders leave nothing here, and the world heals too shortly before the fourth for one of them to be dealt with after that."""
    case = Case(calm_world(SEED_OF_REMINDERS))
    rows = sorted(case.rows_of[REMINDED], key=lambda row: row.nominal)
    healed = START + case.swarm.busy_ms + 2 * HEAL_AFTER_MS
    lost = [row for row in rows if row.reason == "nothing_new" and row.nominal > healed][:4]
    following = lost.pop()
    lie = Case(case.world)
    lie.rows = [row for row in case.rows if row not in lost]
    comes = lost[0].nominal - START
    lie.swarm = replace(
        case.swarm,
        busy_ms=following.nominal - START - HEAL_AFTER_MS - REMINDED_WITHIN_MS + 1_000,
        topics=replace(case.swarm.topics, open_transactions=((topic, (comes + begin, comes + end)),)),
    )
    assert found(check_reminders(lie), "I1", REMINDED, "was to be reminded") is is_wrong

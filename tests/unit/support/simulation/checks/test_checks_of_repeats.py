"""Lies about repeats of messages: the judge of I8's bound objects, and excuses what faults explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.simulation.checks.case import LATE_NEWS_MS, Case
from tests.simulation.checks.repeats import COVERED_MS, REPEATS_MAX, check_repeats
from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.world.kip848_coordinator import ConsumerCoordinator
from tests.simulation.world.observations import Author, Delivery, Try
from tests.simulation.world.timeline import START
from tests.unit.support.simulation.checks.lying import MINUTE_MS, found
from tidegate_core.rows import keys

MORE = REPEATS_MAX + 1


def test_given_a_repeat_of_the_same_owner_then_it_is_no_crash(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    first = case.record.deliveries[0]
    monkeypatch.setattr(case.record, "deliveries", [first, first])
    assert found(check_repeats(case), "I8", first.message, "twice")


def test_given_a_repeat_after_an_orderly_hand_over_then_the_checkpoint_is_missing(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = case.record.deliveries[0]
    stint = case.record.stints[first.sent.stint]
    monkeypatch.setattr(stint, "ended", first.sent.at + 1)
    monkeypatch.setattr(stint, "orderly", True)
    monkeypatch.setattr(case.record, "deliveries", [first, _again(first)])
    assert found(check_repeats(case), "I8", first.message, "orderly")


@pytest.mark.parametrize(
    ("number", "within_ms", "idle_ms", "stall_over_ms", "is_wrong"),
    [
        pytest.param(MORE, 0, MINUTE_MS, None, True, id="more, and older"),
        pytest.param(MORE, 5_000 + SKEW_MS, MINUTE_MS, 0, False, id="more, and older: it waited for a checkpoint"),
        pytest.param(MORE, 5_001 + SKEW_MS, MINUTE_MS, 0, True, id="more, while no checkpoint came: it sent on"),
    ],
)
def test_given_repeats_after_a_crash_then_they_are_bounded_by_number_or_by_the_time_within_which_they_were_sent(
    case: Case,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    within_ms: int,
    idle_ms: int,
    stall_over_ms: int | None,
    is_wrong: bool,
) -> None:
    """Seed 20300852: behind a take-over 1,046 were sent in 5 s, none in the 4 s after that, as no checkpoint came, and their owner fell."""
    first = case.record.deliveries[0]
    latest = replace(first, sent=replace(first.sent, at=first.sent.at + within_ms))
    end = latest.sent.at + idle_ms
    monkeypatch.setattr(case.record.stints[first.sent.stint], "ended", end)
    if stall_over_ms is not None:
        stall = (first.sent.at - START, end - stall_over_ms - START)
        case.swarm = replace(case.swarm, store=replace(case.swarm.store, stalled_checkpoints=(stall,)))
    _repeat(case, [first] * (number - 1) + [latest], monkeypatch)
    assert found(check_repeats(case), "I8", f"{number} messages") == is_wrong


@pytest.mark.parametrize(
    ("nominal", "tried", "unheard", "is_wrong"),
    [
        pytest.param(0, [-1, 2_700], [2_499], False, id="it stands before them, and was sent again"),
        pytest.param(0, [-1], [], True, id="it was answered"),
    ],
)
def test_given_a_message_without_an_answer_then_no_position_passes_it_and_what_stands_behind_it_repeats(
    case: Case, monkeypatch: pytest.MonkeyPatch, nominal: int, tried: list[int], unheard: list[int], is_wrong: bool
) -> None:
    """Seed 39009083: one got none twice, and a position could not pass it from 60.4 to 66.0 s; its owner froze at 68.0 s."""
    first = case.record.deliveries[0]
    stint = first.sent.stint
    end = first.sent.at + MINUTE_MS
    covered = end - COVERED_MS
    name = f"{first.id}-unheard"
    monkeypatch.setattr(case.record.stints[stint], "ended", end)
    monkeypatch.setattr(
        case.record, "tries", {stint: [Try(covered + at, name, first.nominal + nominal) for at in tried]}
    )
    monkeypatch.setattr(case.record, "tried", {name: [covered + at for at in unheard]})
    monkeypatch.setattr(case.record, "unsure", {(stint, name)} if unheard else set())
    _repeat(case, [first] * MORE, monkeypatch)
    assert found(check_repeats(case), "I8", f"{MORE} messages") == is_wrong


@pytest.mark.parametrize(("lasted", "is_wrong"), [(1_000, True), (6_000, False)])
def test_given_a_group_that_waited_for_a_member_that_was_gone_then_its_owner_could_do_nothing_about_repeats(
    case: Case, monkeypatch: pytest.MonkeyPatch, lasted: int, is_wrong: bool
) -> None:
    """Seed 37001785: a few of 1,007 had got no answer, and its guard had lapsed when it was their turn again, until it fell."""
    first = case.record.deliveries[0]
    end = first.sent.at + MINUTE_MS
    monkeypatch.setattr(case.record.stints[first.sent.stint], "ended", end)
    monkeypatch.setattr(case.world.cluster.coordinator, "rounds", [(end - lasted, end)])
    _repeat(case, [first] * MORE, monkeypatch)
    assert found(check_repeats(case), "I8", f"{MORE} messages") == is_wrong


@pytest.mark.parametrize(
    ("is_consumer", "is_wrong"), [pytest.param(True, False, id="KIP-848"), pytest.param(False, True, id="classic")]
)
def test_given_a_freeze_whose_guard_had_not_settled_at_the_end_then_its_owner_could_do_nothing_about_repeats(
    case: Case, monkeypatch: pytest.MonkeyPatch, is_consumer: bool, is_wrong: bool
) -> None:
    """Seed 21008803: 33 of 1,104 had got no answer before the freeze, and could not be sent again in the 6 s behind it."""
    first = case.record.deliveries[0]
    stint = case.record.stints[first.sent.stint]
    end = first.sent.at + MINUTE_MS
    monkeypatch.setattr(stint, "ended", end)
    monkeypatch.setattr(case.record, "pauses", [(stint.node, first.sent.at + 1, end - LATE_NEWS_MS - 1)])
    if is_consumer:
        monkeypatch.setattr(case.world.cluster, "coordinator", object.__new__(ConsumerCoordinator))
    _repeat(case, [first] * MORE, monkeypatch)
    assert found(check_repeats(case), "I8", f"{MORE} messages") == is_wrong


@pytest.mark.parametrize(
    ("taken_before_ms", "is_wrong"),
    [pytest.param(1, False, id="a former owner"), pytest.param(-1, True, id="a later one")],
)
def test_given_a_repeat_of_an_owner_who_was_fenced_then_it_is_not_behind_the_hand_over_of_who_fenced_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, taken_before_ms: int, is_wrong: bool
) -> None:
    """Seed 20450056: the map grew, and for 0.4 s who had not heard of it went on sending what its successor had sent."""
    first = max(case.record.deliveries, key=lambda each: each.sent.at)
    stint = case.record.stints[first.sent.stint]
    monkeypatch.setattr(stint, "ended", first.sent.at + 10)
    monkeypatch.setattr(stint, "orderly", True)
    again = _again(first)
    monkeypatch.setattr(case.record, "deliveries", [first, again])
    pk = keys.shard_pk(int(first.id.split("-", 1)[0]))
    *_, taken = (at for at, author in case.record.taken[pk] if author.owner == first.sent.owner)
    other = (taken - taken_before_ms, Author(again.sent.owner, 0, 1))
    monkeypatch.setitem(case.record.taken, pk, sorted([*case.record.taken[pk], other]))
    assert found(check_repeats(case), "I8", first.message, "orderly") == is_wrong


def _again(delivery: Delivery) -> Delivery:
    sent = replace(delivery.sent, at=delivery.sent.at + 1, owner="another", stint="another node/another/0.0.0")
    return replace(delivery, sent=sent)


def _repeat(case: Case, sent: Sequence[Delivery], monkeypatch: pytest.MonkeyPatch) -> None:
    """Has nothing sent but these, each under an id of its own, and each of them again by another owner."""
    first_time = [replace(each, id=f"{each.id}-{count}") for count, each in enumerate(sent)]
    monkeypatch.setattr(case.record, "deliveries", [*first_time, *map(_again, first_time)])

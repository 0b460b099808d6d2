"""Lies about messages: the checks object, and excuse what faults explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.checks.case import A_MESSAGE_WAITS_FOR, Case, position_pk
from tests.simulation.checks.messages import MAYBE_SENT_MS, check_messages
from tests.simulation.checks.recurring_messages import UNDER_WAY
from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.users.requests import Asked
from tests.simulation.users.sent_message import Letter
from tests.simulation.world.fault_waits import FaultWait
from tests.simulation.world.observations import Delivery, ReceiptSeen
from tests.simulation.world.timeline import START
from tests.unit.support.simulation.checks.lying import MINUTE_MS, found
from tidegate_core.rows import keys

EARLIEST_MS = MAYBE_SENT_MS + SKEW_MS


def of_letters(case: Case) -> Iterator[Delivery]:
    """Yields the deliveries of what was sent by itself, not by a schedule."""
    return (each for each in case.record.deliveries if each.message in case.world.senders.letters)


def letters_known_early(case: Case) -> Iterator[Letter]:
    return (each for each in case.world.senders.letters.values() if each.due > max(each.records) + MINUTE_MS // 4)


def expired_unsent(case: Case, letter: Letter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letter, "expire_ms", 4_000)
    monkeypatch.setattr(letter, "ended", None)
    others = [each for each in case.record.deliveries if each.message != letter.name]
    monkeypatch.setattr(case.record, "deliveries", others)


def test_given_a_message_that_is_not_there_then_it_was_lost(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = case.world.senders.letters
    plain = next(
        each
        for each in of_letters(case)
        if letters[each.message].ended is None and letters[each.message].expire_ms is None
    )
    others = [each for each in case.record.deliveries if each.message != plain.message]
    monkeypatch.setattr(case.record, "deliveries", others)
    assert found(check_messages(case), "I8", f"{plain.message},", "0 of 1")


def test_given_a_message_that_may_expire_and_is_not_there_then_it_was_lost_in_a_calm_world(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    letter = next(letters_known_early(case))
    expired_unsent(case, letter, monkeypatch)
    assert found(check_messages(case), "I8", f"{letter.name},", "0 of 1")


@pytest.mark.parametrize(
    ("topic", "opened_after", "ended_before_due", "is_lost"),
    [
        pytest.param("requests", -1, -1_000, False, id="nobody could read its record in time"),
        pytest.param("requests", 1, -1_000, True, id="its record stands in front of the transaction"),
        pytest.param("requests", -1, 14_000, True, id="the transaction was over long before"),
        pytest.param("events", -1, -1_000, True, id="the transaction was on another topic"),
    ],
)
def test_given_an_open_transaction_then_a_message_may_expire_only_if_its_record_stood_behind_it_until_too_late(
    case: Case, monkeypatch: pytest.MonkeyPatch, topic: str, opened_after: int, ended_before_due: int, *, is_lost: bool
) -> None:
    """A message that was due 9 s before the end of the transaction, and lived for 4 s, counted as lost."""
    letter = next(each for each in letters_known_early(case) if each.due < START + case.swarm.busy_ms)
    expired_unsent(case, letter, monkeypatch)
    opened = (min(letter.records) - START + opened_after, letter.due - START - ended_before_due)
    case.swarm = replace(case.swarm, topics=replace(case.swarm.topics, open_transactions=((topic, opened),)))
    assert found(check_messages(case), "I8", f"{letter.name},", "0 of 1") is is_lost


def test_given_a_message_whose_record_nobody_read_in_time_then_it_may_have_expired(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 300227: its shard was served all along, the topic partition of its record had an owner at the last moment."""
    owners = case.swarm.topic_partitions
    letter = next(
        each for each in letters_known_early(case) if each.shards[0] % owners != each.positions[0].topic_partition
    )
    expired_unsent(case, letter, monkeypatch)
    late = {
        name: replace(stint, serving=letter.due)
        for name, stint in case.record.stints.items()
        if stint.topic_partition == letter.positions[0].topic_partition
    }
    monkeypatch.setattr(case.record, "stints", {**case.record.stints, **late})
    assert not found(check_messages(case), "I8", f"{letter.name},")


@pytest.mark.parametrize(
    ("scattered_ms", "lost_ack", "through_after_ms", "is_lost"),
    [
        pytest.param(0, 0.0, 1, True, id="a store that answers at once"),
        pytest.param(1_500, 0.0, 1, False, id="one that is much slower"),
        pytest.param(0, 0.35, 1, False, id="one that loses every third"),
    ],
)
def test_given_a_create_that_was_not_through_when_it_expired_then_only_a_slow_store_or_broker_explains_it(
    case: Case,
    monkeypatch: pytest.MonkeyPatch,
    scattered_ms: int,
    lost_ack: float,
    through_after_ms: int,
    is_lost: bool,
) -> None:
    """Seed 20041069: after an outage 45 calls of up to 1.5 s each lay before it, and its inbox row came when it had expired. Seed
    20503125: the answers to those before it took 40 s, tried again and again.
    """
    letter = next(letters_known_early(case))
    expired_unsent(case, letter, monkeypatch)
    assert letter.expires is not None
    monkeypatch.setitem(case.record.inboxed, letter.positions[0].text(), letter.expires + through_after_ms)
    store = replace(case.swarm.store, scattered_ms=scattered_ms)
    broker = replace(case.swarm.broker, lost_ack=lost_ack)
    monkeypatch.setattr(case, "swarm", replace(case.swarm, store=store, broker=broker))
    assert bool(found(check_messages(case), "I8", f"{letter.name},", "0 of 1")) == is_lost


@pytest.mark.parametrize(
    ("of", "whose", "long", "through_after_ms", "is_lost"),
    [
        pytest.param("position", "its holder's", True, 1, False, id="all stood behind its reader's transaction"),
        pytest.param("position", "a former holder's", True, 1, True, id="of one whom nothing waits for"),
    ],
)
def test_given_a_create_that_was_kept_from_its_record_s_position_until_it_expired_then_nobody_had_to_send_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, of: str, whose: str, long: bool, through_after_ms: int, is_lost: bool
) -> None:
    """Met beside seed 26003268: the transactions of whoever read it had no answer, two seconds each, and what expired before its record's
    position had passed it could not be sent.
    """
    letter = next(letters_known_early(case))
    expired_unsent(case, letter, monkeypatch)
    assert letter.expires is not None
    monkeypatch.setitem(case.record.inboxed, letter.positions[0].text(), letter.expires + through_after_ms)
    others = [pk for pk in case.record.taken if pk.startswith("TP#") and pk != position_pk(letter.positions[0])]
    pk = {
        "position": position_pk(letter.positions[0]),
        "inbox": keys.shard_pk(letter.shards[0]),
        "elsewhere": others[0],
    }[of]
    begin = max(letter.records) if long else letter.due - 1_000
    _, holder = max(each for each in case.record.taken[pk] if each[0] <= begin)
    owner = holder.owner if whose == "its holder's" else "another"
    wait = FaultWait(f"{owner}/0.{holder.tenure}/{holder.number + 1}", begin, letter.due)
    monkeypatch.setitem(case.world.cluster.store.waits.records, pk, [wait])
    assert bool(found(check_messages(case), "I8", f"{letter.name},", "0 of 1")) == is_lost


@pytest.mark.parametrize(
    ("tried_until_ms", "at_a_time", "is_lost"),
    [
        pytest.param((2_650,), 1, False, id="a try that nobody answered left it too little"),
        pytest.param((1_000,), 1, True, id="there was time enough behind it"),
    ],
)
def test_given_a_message_that_expires_behind_tries_of_others_then_only_a_world_that_sends_one_at_a_time_excuses_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, tried_until_ms: tuple[int, ...], at_a_time: int | None, is_lost: bool
) -> None:
    """Beside seed 20000551, where it was a fire: each try takes 2.5 s, and a message that expires may have 4 s."""
    letter = next(letters_known_early(case))
    expired_unsent(case, letter, monkeypatch)
    tried = {f"{letter.shards[0]:04d}-before": [letter.due + at for at in tried_until_ms]}
    monkeypatch.setattr(case.record, "tried", tried)
    case.swarm = replace(case.swarm, knobs=() if at_a_time is None else ((UNDER_WAY, at_a_time),))
    assert found(check_messages(case), "I8", f"{letter.name},", "0 of 1") is is_lost


def test_given_a_message_before_its_time_then_it_is_early(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(of_letters(case))
    early = replace(first, sent=replace(first.sent, clock=case.world.senders.letters[first.message].due - 1))
    monkeypatch.setattr(case.record, "deliveries", [early])
    assert found(check_messages(case), "I8", first.message, "1 ms early")


@pytest.mark.parametrize(
    ("status", "before_ms", "is_gone", "is_wrong"),
    [
        pytest.param("too_late", EARLIEST_MS + 1, False, True, id="before its time"),
        pytest.param("not_found", -MINUTE_MS, False, True, id="it had been accepted, and was there"),
    ],
)
def test_given_a_cancel_of_what_was_accepted_then_it_is_not_answered_too_late_before_its_time_nor_as_if_it_were_not_there(
    case: Case, monkeypatch: pytest.MonkeyPatch, status: str, before_ms: int, is_gone: bool, is_wrong: bool
) -> None:
    letter = next(each for each in case.world.senders.letters.values() if each.positions and each.ended is None)
    receipt = ReceiptSeen(letter.due - before_ms, {"status": status})
    monkeypatch.setattr(letter, "ended", Asked({"id": "c", "type": "message.cancel"}, 0, appended=[0], receipt=receipt))
    if is_gone:
        monkeypatch.setattr(letter, "positions", [letter.positions[0]._replace(topic_id="e" * 32)])
    assert found(check_messages(case), "answers", letter.name, "cancel c") is is_wrong


@pytest.mark.parametrize(
    ("status", "is_followed", "is_lost"),
    [
        pytest.param("too_late", False, True, id="too late, and withdrawn all the same"),
        pytest.param("too_late", True, False, id="too late, and replaced since"),
        pytest.param("cancelled", False, False, id="cancelled"),
    ],
)
def test_given_a_cancel_and_a_message_that_is_not_there_then_only_one_that_was_answered_too_late_was_lost(
    case: Case, monkeypatch: pytest.MonkeyPatch, status: str, is_followed: bool, is_lost: bool
) -> None:
    """Also where a send of it was given up: it is tried again, whatever its cancel was told."""
    letters = case.world.senders.letters.values()
    letter = next(each for each in letters if each.positions and each.ended is None and each.expire_ms is None)
    asked = Asked(
        {"id": "c", "type": "message.cancel"}, 0, appended=[0], receipt=ReceiptSeen(letter.due, {"status": status})
    )
    monkeypatch.setattr(letter, "ended", asked)
    monkeypatch.setattr(letter, "followed", Asked({"type": "message.send"}, 0) if is_followed else None)
    monkeypatch.setattr(case.record, "not_sent", {letter.name})
    others = [each for each in case.record.deliveries if each.message != letter.name]
    monkeypatch.setattr(case.record, "deliveries", others)
    assert found(check_messages(case), "I8", f"{letter.name},", "0 of 1") is is_lost


@pytest.mark.parametrize(
    ("changes", "disturbed"),
    [({"hunted": ("hold",)}, True), ({"hunted": ("fire",)}, False)],
)
def test_given_faults_that_aim_at_what_sending_waits_for_then_it_is_disturbed(
    case: Case, changes: dict[str, Any], disturbed: bool
) -> None:
    """Seed 802331."""
    case.swarm = replace(case.swarm, store=replace(case.swarm.store, **changes))
    assert case.is_disturbed(START + 15, START + 18) is disturbed


def test_given_faults_that_aim_at_the_position_then_a_message_may_come_too_late(case: Case) -> None:
    """Seed 745083: its record was handed over after it had expired."""
    case.swarm = replace(case.swarm, store=replace(case.swarm.store, aimed=("cursor",), aimed_outs=((10, 20),)))
    assert case.is_disturbed(START + 15, START + 18, A_MESSAGE_WAITS_FOR)
    assert not case.is_disturbed(START + 15, START + 18)

"""Lies about messages, their repeats and recurring ones: the checks object, and excuse what faults explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.tidegate_testkit.simulation.checks.lying import MINUTE_MS, found

from tidegate_core.model.shards import schedule_shard
from tidegate_core.store import keys
from tidegate_testkit.simulation.checks.case import A_MESSAGE_WAITS_FOR, LATE_NEWS_MS, Case, position_pk
from tidegate_testkit.simulation.checks.fires import at_text
from tidegate_testkit.simulation.checks.history import SKEW_MS
from tidegate_testkit.simulation.checks.messages import MAYBE_SENT_MS, check_messages
from tidegate_testkit.simulation.checks.recurring import SETTLE_MS, UNDER_WAY, check_recurring, turn_of
from tidegate_testkit.simulation.checks.repeats import COVERED_MS, REPEATS_MAX, check_repeats
from tidegate_testkit.simulation.definitions import NAMESPACE
from tidegate_testkit.simulation.fault_waits import FaultWait
from tidegate_testkit.simulation.group import Coordinator
from tidegate_testkit.simulation.group_consumer import ConsumerCoordinator
from tidegate_testkit.simulation.letters import Letter
from tidegate_testkit.simulation.record import Author, Delivery, ReceiptSeen, Try
from tidegate_testkit.simulation.requests import Asked
from tidegate_testkit.simulation.running import run
from tidegate_testkit.simulation.timeline import START
from tidegate_testkit.simulation.world import build

SEED_WITH_AN_AT = 4
"""Of a calm world with a message that is due once, and is delivered."""
SEED_WITH_FIRES = 17
"""Of a calm world in which `ping` is sent dozens of times before it ends."""
MORE = REPEATS_MAX + 1
EARLIEST_MS = MAYBE_SENT_MS + SKEW_MS


def test_given_a_refused_at_that_was_not_delivered_then_only_a_version_that_did_not_promise_it_is_excused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case(run(build(SEED_WITH_AN_AT, faults=False)))
    (life,) = [life for life in case.recurring if life.definition.trigger["type"] == "at"]
    (segment,) = case.segments(life)
    receipt = segment.begin.asked.receipt
    assert receipt is not None
    (nominal,) = [each.nominal for each in case.record.deliveries if each.message.startswith(f"{life.name}/")]
    assert not found(check_recurring(case), "I1", life.name)
    others = [each for each in case.record.deliveries if not each.message.startswith(f"{life.name}/")]
    monkeypatch.setattr(case.record, "deliveries", others)
    occurrence = f"{life.name}@{nominal}"
    case.record.refused[occurrence].append(segment.begin.done)
    assert found(check_recurring(case), "I1", life.name)
    monkeypatch.setitem(receipt.body, "next", [])
    assert not found(check_recurring(case), "I1", life.name)
    for at in (segment.begin.sent - 1, segment.begin.done + 1):
        case.record.refused[occurrence] = [at]
        assert found(check_recurring(case), "I1", life.name), "in another life, or under this version"


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
        pytest.param(5, 0.0, 1, True, id="one that is hardly slower"),
        pytest.param(1_500, 0.0, 1, False, id="one that is much slower"),
        pytest.param(1_500, 0.0, 0, True, id="much slower, and through in time all the same"),
        pytest.param(0, 0.001, 1, True, id="a broker that loses a word now and then"),
        pytest.param(0, 0.35, 1, False, id="one that loses every third"),
        pytest.param(0, 0.35, 0, True, id="every third, and through in time all the same"),
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
        pytest.param("inbox", "its holder's", True, 1, False, id="behind one of its shard's inbox"),
        pytest.param("position", "its holder's", True, 0, True, id="through in time all the same"),
        pytest.param("position", "its holder's", False, 1, True, id="there was time enough beside that"),
        pytest.param("position", "a former holder's", True, 1, True, id="of one whom nothing waits for"),
        pytest.param("elsewhere", "its holder's", True, 1, True, id="of another topic partition"),
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
        pytest.param((2_650,), None, True, id="others go beside it"),
        pytest.param((-2_650, -1), 1, True, id="that was over when it was due"),
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
        pytest.param("cancelled", SKEW_MS + 1, False, False, id="it was taken back"),
        pytest.param("too_late", EARLIEST_MS, False, False, id="behind a fence, as far as clocks tell"),
        pytest.param("too_late", EARLIEST_MS + 1, False, True, id="before its time"),
        pytest.param("not_found", -MINUTE_MS, False, True, id="it had been accepted, and was there"),
        pytest.param("not_found", SKEW_MS + 1, True, False, id="it went with its topic"),
        pytest.param("too_late", EARLIEST_MS + 1, True, False, id="the same, of what was under its key before"),
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
        pytest.param(REPEATS_MAX, MINUTE_MS, MINUTE_MS, None, False, id="as many as may be, however old"),
        pytest.param(MORE, 4_000, 0, None, False, id="more, of the last seconds"),
        pytest.param(MORE, 0, MINUTE_MS, None, True, id="more, and older"),
        pytest.param(MORE, 5_000 + SKEW_MS, MINUTE_MS, 0, False, id="more, and older: it waited for a checkpoint"),
        pytest.param(MORE, 5_001 + SKEW_MS, MINUTE_MS, 0, True, id="more, while no checkpoint came: it sent on"),
        pytest.param(MORE, 5_001 + SKEW_MS, 0, 0, True, id="the same, up to its end"),
        pytest.param(MORE, 4_000, MINUTE_MS, COVERED_MS, False, id="a checkpoint was not there yet when it fell"),
        pytest.param(MORE, 4_000, MINUTE_MS, COVERED_MS + 1, True, id="one might have been"),
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
    sent = [first] * (number - 1) + [latest]
    repeated = [replace(each, id=f"{each.id}-{count}") for count, each in enumerate(sent)]
    monkeypatch.setattr(case.record, "deliveries", [*repeated, *map(_again, repeated)])
    assert found(check_repeats(case), "I8", f"{number} messages") == is_wrong


@pytest.mark.parametrize(
    ("nominal", "tried", "unheard", "is_wrong"),
    [
        pytest.param(0, [-1, 2_700], [2_499], False, id="it stands before them, and was sent again"),
        pytest.param(0, [-2_500], [0], False, id="it had no answer just then"),
        pytest.param(0, [-2_501], [-1], True, id="it was given up before, and never sent again"),
        pytest.param(0, [-5_000, -1], [-2_500], True, id="it was sent again before, and answered"),
        pytest.param(0, [0, 2_700], [2_500], True, id="a position could have passed before it was sent"),
        pytest.param(1, [-1, 2_700], [2_499], True, id="it stands behind them"),
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
    repeated = [replace(first, id=f"{first.id}-{count}") for count in range(MORE)]
    monkeypatch.setattr(case.record, "deliveries", [*repeated, *map(_again, repeated)])
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
    repeated = [replace(first, id=f"{first.id}-{count}") for count in range(MORE)]
    monkeypatch.setattr(case.record, "deliveries", [*repeated, *map(_again, repeated)])
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
    repeated = [replace(first, id=f"{first.id}-{count}") for count in range(MORE)]
    monkeypatch.setattr(case.record, "deliveries", [*repeated, *map(_again, repeated)])
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


@pytest.mark.parametrize(
    ("changes", "disturbed"),
    [
        ({"hunted": ("hold",)}, True),
        ({"hunted": ("fire",)}, False),
        ({"aimed": ("checkpoint",), "aimed_outs": ((10, 20),)}, True),
        ({"aimed": ("fire",), "aimed_outs": ((10, 20),)}, False),
    ],
)
def test_given_faults_that_aim_at_what_sending_waits_for_then_it_is_disturbed(
    case: Case, changes: dict[str, Any], disturbed: bool
) -> None:
    """Seed 802331."""
    case.swarm = replace(case.swarm, store=replace(case.swarm.store, **changes))
    assert case.is_disturbed(START + 15, START + 18) is disturbed


@pytest.mark.parametrize(
    ("sent", "at_a_time", "turn"),
    [
        pytest.param([], 1, 0, id="nothing ahead"),
        pytest.param([(3_000, 5)], 1, 3_000, id="one ahead"),
        pytest.param([(3_000, 5), (6_500, 6)], 1, 6_500, id="a backlog"),
        pytest.param([(3_000, 5), (6_500, 6)], 2, 3_000, id="a backlog of which two go at a time"),
        pytest.param([(3_000, 5), (6_500, 6)], None, 0, id="a backlog that goes together"),
        pytest.param([(3_000, 5), (3_001 + SETTLE_MS, 6)], 1, 3_000, id="a pause behind it"),
        pytest.param([(3_000, 10)], 1, 0, id="nothing that was due before"),
        pytest.param([(1_000, 5)] * 20 + [(3_000, 6)], None, 1_000, id="one more than may be under way"),
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


@pytest.mark.parametrize(("at_a_time", "is_lost"), [(None, True), (1, False)])
def test_given_a_fire_that_was_lost_behind_a_trickle_then_only_a_world_that_sends_one_at_a_time_excuses_it(
    monkeypatch: pytest.MonkeyPatch, at_a_time: int | None, is_lost: bool
) -> None:
    """A judge that takes whatever was due before a fire for something in its way never misses it."""
    case = Case(run(build(SEED_WITH_FIRES, faults=False)))
    life = next(life for life in case.recurring if life.name == "ping")
    end = max(segment.end.sent for segment in case.segments(life) if segment.end is not None)
    mine = [each for each in case.record.deliveries if each.message.startswith("ping/")]
    lost = max((each for each in mine if each.nominal < end - 3 * SETTLE_MS), key=lambda each: each.nominal)
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
    case = Case(run(build(SEED_WITH_FIRES, faults=False)))
    life = next(life for life in case.recurring if life.name == "ping")
    ends = [segment.end.sent for segment in case.segments(life) if segment.end is not None]
    mine = [each for each in case.record.deliveries if each.message.startswith("ping/")]
    lost = max((each for each in mine if each.nominal < max(ends) - 3 * SETTLE_MS), key=lambda each: each.nominal)
    monkeypatch.setattr(case.record, "deliveries", [each for each in case.record.deliveries if each != lost])
    coordinator = case.world.cluster.coordinator
    assert isinstance(coordinator, Coordinator)
    coordinator.rounds += [(at, at + lasted) for at in range(lost.nominal, max(ends), lasted + 1)]
    assert found(check_recurring(case), "I1", "ping", at_text(lost.nominal), "was due") is is_lost


@pytest.mark.parametrize(
    ("asked", "answered", "is_kept", "is_lost"),
    [
        pytest.param(-1, None, True, False, id="a request holds it, and its lane is kept from its fate"),
        pytest.param(-1, 60_000, True, False, id="until it is answered"),
        pytest.param(-1, None, False, True, id="its lane is free"),
        pytest.param(-2, -1, True, True, id="it was answered before"),
        pytest.param(SKEW_MS + SETTLE_MS, None, True, True, id="it came once the fire was to be sent"),
    ],
)
def test_given_a_fire_behind_a_request_that_a_lane_was_kept_from_then_only_that_excuses_that_it_was_lost(
    monkeypatch: pytest.MonkeyPatch, asked: int, answered: int | None, is_kept: bool, is_lost: bool
) -> None:
    """Seed 39023072: an apply of what stood already came at 12.8 s, and faults that aimed at `control` kept its lane until 35.9 s."""
    case = Case(run(build(SEED_WITH_FIRES, faults=False)))
    life = next(life for life in case.recurring if life.name == "ping")
    spans = {each.name: case.segments(each) for each in case.recurring}
    end = max(segment.end.sent for segment in spans["ping"] if segment.end is not None)
    mine = [each for each in case.record.deliveries if each.message.startswith("ping/")]
    lost = max((each for each in mine if each.nominal < end - 3 * SETTLE_MS), key=lambda each: each.nominal)
    monkeypatch.setattr(case.record, "deliveries", [each for each in case.record.deliveries if each != lost])
    # Nobody else begins to serve, and no position moves, between the fire and the end of its span.
    shard = schedule_shard(NAMESPACE, "ping", case.swarm.shards)
    monkeypatch.setitem(case.record.passed, shard, [])
    monkeypatch.setattr(case, "segments", lambda each: spans[each.name])
    receipt = None if answered is None else ReceiptSeen(lost.nominal + answered, {"status": "unchanged"})
    life.steps.append(Asked({"id": "again"}, lost.nominal + asked, appended=[lost.nominal + asked], receipt=receipt))
    if is_kept:
        pk = keys.shard_pk(shard)
        _, owner = case.record.taken[pk][-1]
        wait = FaultWait(f"{owner.owner}/0.{owner.tenure}/{owner.number + 1}", lost.nominal - 10_000, end)
        monkeypatch.setitem(case.world.cluster.store.waits.lanes, pk, [wait])
    assert found(check_recurring(case), "I1", "ping", at_text(lost.nominal), "was due") is is_lost


def test_given_faults_that_aim_at_the_position_then_a_message_may_come_too_late(case: Case) -> None:
    """Seed 745083: its record was handed over after it had expired."""
    case.swarm = replace(case.swarm, store=replace(case.swarm.store, aimed=("cursor",), aimed_outs=((10, 20),)))
    assert case.is_disturbed(START + 15, START + 18, A_MESSAGE_WAITS_FOR)
    assert not case.is_disturbed(START + 15, START + 18)

"""The delivery position: how far it may go, what it counts, and how much a crash repeats (I1, I8)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import tier
from tests.support.builders import MINUTE, REQUESTS, SECOND, a_recurring, a_send, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tidegate_core.engine.operations import Operation
from tidegate_core.language.values.instants import format_instant
from tidegate_core.messages.wire.checkpoints import CHECKPOINT_AFTER_FIRES, CHECKPOINT_AFTER_MS, TALLY_DAYS
from tidegate_core.messages.wire.delivery import FIRED_TOGETHER
from tidegate_core.rows.effects import Commit, Drained, Effect, NotProduced, Produce, Read, ReadRange, Write

UNREACHED = 10**9


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(shards=1)
    made.run(SECOND)
    return made


def a_checkpoint(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "checkpoint"


def to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def reads_payloads(effect: Effect) -> bool:
    return isinstance(effect, Read) and all(key.sk.startswith("M#") for key in effect.keys)


def repeats(bench: ActorHarness) -> int:
    times = Counter(sent.headers["tidegate-id"] for sent in bench.on("out"))
    return sum(times.values()) - len(times)


def fired_slot(bench: ActorHarness) -> int:
    (progress,) = bench.rows("PROGRESS")
    return int(str(progress["fired_slot"]))


def send_every_second(bench: ActorHarness, seconds: int, each: int) -> None:
    for second in range(seconds):
        bench.append(REQUESTS, 0, *(a_send(f"m-{second}-{n}", after=f"{second + 1}s") for n in range(each)))


@pytest.mark.parametrize("each", [100, 150])
def test_given_checkpoints_that_get_no_answer_then_sending_stops_at_the_bound_and_goes_on_with_them(
    bench: ActorHarness, each: int
) -> None:
    """I8: after a crash at most 5 s or 1,000 messages of a shard repeat, also when the store is away.

    Seed 875264: the last group before the bound was sent as a whole, and 27 more than may be repeated.
    """
    bench.lose(a_checkpoint, times=UNREACHED)
    seconds = tier.at_night(50, else_=16)
    send_every_second(bench, seconds, each)
    bench.run((seconds + 5) * SECOND)
    assert len(bench.on("out")) == CHECKPOINT_AFTER_FIRES
    assert fired_slot(bench) == 0
    bench._rules.clear()
    bench.run(MINUTE)
    assert len(bench.on("out")) == seconds * each
    assert repeats(bench) == 0


def test_given_more_than_the_bound_within_5_s_then_sending_stops_and_a_crash_long_after_repeats_just_those(
    bench: ActorHarness,
) -> None:
    """I8's other half: 5 s of a shard's messages, however many. What waits for a checkpoint after that sends nothing (seed 20300852)."""
    each = 300
    bench.lose(a_checkpoint, times=UNREACHED)
    send_every_second(bench, 20, each)
    bench.run(40 * SECOND)
    sent = len(bench.on("out"))
    assert CHECKPOINT_AFTER_FIRES < sent <= each * (CHECKPOINT_AFTER_MS // SECOND + 1)
    bench._rules.clear()
    bench.crash()
    bench.run(MINUTE)
    assert len({sent.headers["tidegate-id"] for sent in bench.on("out")}) == 20 * each
    assert repeats(bench) == sent


def test_given_payloads_and_checkpoints_that_get_no_answer_then_what_was_taken_before_keeps_the_bound_too(
    bench: ActorHarness,
) -> None:
    """I8: groups are taken before their payloads are read, and that may take as long as a checkpoint does."""
    many = 8 * FIRED_TOGETHER
    for _ in range(8):
        bench.append(REQUESTS, 0, *(a_send(None, after="80s") for _ in range(FIRED_TOGETHER)))
    bench.lose(a_checkpoint, times=UNREACHED)
    read = [0]

    def after_half(effect: Effect) -> bool:
        if not (isinstance(effect, Read) and effect.keys[0].sk.startswith("M#")):
            return False
        read[0] += len(effect.keys)
        return read[0] > many // 2

    bench.hold_back(after_half, times=UNREACHED)
    bench.run(100 * SECOND)
    sent = len(bench.on("out"))
    assert CHECKPOINT_AFTER_FIRES <= sent < many
    bench.release()
    bench.run(SECOND)
    assert len(bench.on("out")) == sent
    bench._rules.clear()
    bench.run(MINUTE)
    assert len(bench.on("out")) == many
    assert repeats(bench) == 0


def test_given_a_crash_while_checkpoints_get_no_answer_then_no_more_than_the_bound_repeats(bench: ActorHarness) -> None:
    bench.lose(a_checkpoint, times=UNREACHED)
    send_every_second(bench, 30, 100)
    bench.run(40 * SECOND)
    bench._rules.clear()
    bench.crash()
    bench.run(MINUTE)
    assert len({sent.headers["tidegate-id"] for sent in bench.on("out")}) == 30 * 100
    assert repeats(bench) <= CHECKPOINT_AFTER_FIRES


def test_given_late_messages_while_checkpoints_get_no_answer_then_the_bound_holds_for_them_too(
    bench: ActorHarness,
) -> None:
    """Each gets a slot behind what was sent, so none of them passes for one that stands in the way."""
    bench.lose(a_checkpoint, times=UNREACHED)
    past = format_instant(bench.now - MINUTE)
    for _ in range(40):
        bench.append(REQUESTS, 0, *(a_send(None, deliver_at=past) for _ in range(100)))
        bench.run(SECOND)
    assert len(bench.on("out")) <= CHECKPOINT_AFTER_FIRES + 100


def test_given_an_open_message_in_front_then_sending_stops_at_the_bound_until_it_has_gone_out(
    bench: ActorHarness,
) -> None:
    """What is sent behind it is covered by no checkpoint; it goes first once it can, and all goes on."""
    bench.request(a_send("first", after="1s"))
    (first,) = bench.rows("M#")
    bench.answer_with(
        lambda effect: to_out(effect) and isinstance(effect, Produce) and effect.value == first["payload"],
        NotProduced("unavailable", "no acknowledgement"),
        times=200,
    )
    send_every_second(bench, 30, 100)
    bench.run(32 * SECOND)
    assert CHECKPOINT_AFTER_FIRES <= len(bench.on("out")) <= CHECKPOINT_AFTER_FIRES + 100
    bench.run(MINUTE)
    assert len(bench.on("out")) == 1 + 30 * 100
    assert repeats(bench) == 0
    assert fired_slot(bench) > 0


def test_given_a_stream_of_late_messages_then_the_position_moves_all_the_same(bench: ActorHarness) -> None:
    past = format_instant(bench.now - MINUTE)
    for _ in range(20):
        bench.append(REQUESTS, 0, *(a_send(None, deliver_at=past) for _ in range(100)))
        bench.run(500)
    assert len(bench.on("out")) == 2_000
    before = len(bench.on("out"))
    bench.crash()
    bench.run(MINUTE)
    assert repeats(bench) <= CHECKPOINT_AFTER_FIRES
    assert len(bench.on("out")) - before == repeats(bench)


def test_given_a_late_create_on_its_way_then_what_was_sent_before_it_is_covered_all_the_same(
    bench: ActorHarness,
) -> None:
    """Its slot lies behind what was sent, although its time does not."""
    past = format_instant(bench.now - MINUTE)
    bench.append(REQUESTS, 0, *(a_send(f"m-{number}", deliver_at=past) for number in range(50)))
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "messages")
    bench.request(a_send("late", deliver_at=past))
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 50
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("out")) == 51
    assert repeats(bench) == 0


def test_given_a_load_that_comes_late_while_checkpoints_get_no_answer_then_the_bound_holds(bench: ActorHarness) -> None:
    """All of it lies before what was sent meanwhile; it goes out group by group, and the position with it."""
    for _ in range(6):
        bench.append(REQUESTS, 0, *(a_send(None, after="80s") for _ in range(500)))
    bench.run(28 * SECOND)
    bench.lose(lambda effect: isinstance(effect, ReadRange) and effect.range.low == "D#", times=UNREACHED)
    bench.run(4 * SECOND)
    bench.append(REQUESTS, 0, *(a_send(None, after="52s") for _ in range(CHECKPOINT_AFTER_FIRES)))
    bench.run(MINUTE)
    assert len(bench.on("out")) == CHECKPOINT_AFTER_FIRES
    bench._rules.clear()
    bench.lose(a_checkpoint, times=UNREACHED)
    bench.run(10 * SECOND)
    assert len(bench.on("out")) <= CHECKPOINT_AFTER_FIRES + 2 * FIRED_TOGETHER
    bench._rules.clear()
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == CHECKPOINT_AFTER_FIRES + 3_000
    assert repeats(bench) == 0


def test_given_many_messages_of_one_instant_then_the_position_moves_within_it(bench: ActorHarness) -> None:
    """A full hour: a crash in the middle repeats a part of them only."""
    for _ in range(8):
        bench.append(REQUESTS, 0, *(a_send(None, after="10s") for _ in range(500)))
    answers = [0]

    def after_some(effect: Effect) -> bool:
        answers[0] += to_out(effect)
        return to_out(effect) and answers[0] > 3_000

    bench.hold_back(after_some, times=UNREACHED)
    bench.run(12 * SECOND)
    assert len(bench.on("out")) == 3_000
    bench._rules.clear()
    bench.crash()
    bench.run(MINUTE)
    assert len({sent.headers["tidegate-id"] for sent in bench.on("out")}) == 4_000
    assert repeats(bench) <= CHECKPOINT_AFTER_FIRES


def test_given_messages_given_back_as_the_drain_begins_then_all_of_them_go_out_and_nothing_repeats(
    bench: ActorHarness,
) -> None:
    """I8: a planned hand-over repeats none, however many stand before what was sent."""
    many = 3 * FIRED_TOGETHER
    bench.append(REQUESTS, 0, *(a_send(f"m-{number}", after="5s") for number in range(many)))
    bench.answer_with(to_out, NotProduced("unavailable", "transport"), times=2 * FIRED_TOGETHER)
    bench.run(5 * SECOND)
    assert len(bench.on("out")) == FIRED_TOGETHER
    bench.drain()
    assert len(bench.all_asked(Drained)) == 0
    bench.run(5 * SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.crash()
    bench.run(MINUTE)
    assert len({sent.headers["tidegate-id"] for sent in bench.on("out")}) == many
    assert repeats(bench) == 0


def test_given_messages_sent_ahead_of_what_is_loaded_then_a_drain_waits_for_the_load_and_nothing_repeats(
    bench: ActorHarness,
) -> None:
    """While the store does not answer reads, the position stays behind; the node's patience ends the drain if need be."""
    bench.request(a_send("far", after="80s"))
    bench.run(28 * SECOND)
    bench.lose(lambda effect: isinstance(effect, ReadRange) and effect.range.low == "D#", times=UNREACHED)
    bench.run(4 * SECOND)
    bench.request(a_send("own", after="52s"))
    bench.run(MINUTE)
    bench.drain()
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench._rules.clear()
    bench.run(4 * SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.crash()
    bench.run(MINUTE)
    assert sorted(str(sent.document["of"]) for sent in bench.on("out")) == ["far", "own"]


def test_given_a_schedule_that_is_being_made_as_the_drain_begins_then_its_end_is_waited_for_and_nothing_repeats() -> (
    None
):
    """Seed 300227: what the request will open keeps the position from passing what was sent behind it, until it is written."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.hold_back(a_commit("control"))
    bench.request(an_apply(a_recurring(trigger=every("1h"))))
    for number in range(5):
        bench.request(a_send(f"m-{number}", after=f"{number + 1}s"))
    bench.run(7 * SECOND)
    assert len(bench.on("out")) == 5
    bench.drain()
    bench.run(SECOND)
    bench.release()
    bench.run(SECOND)
    bench.crash()
    bench.run(20 * SECOND)
    assert len(bench.on("out")) == 5


def test_given_a_broker_that_is_away_then_a_drain_ends_all_the_same(bench: ActorHarness) -> None:
    bench.append(REQUESTS, 0, *(a_send(f"m-{number}", after="1s") for number in range(20)))
    bench.answer_with(to_out, NotProduced("unavailable", "transport"), times=UNREACHED)
    bench.run(2 * SECOND)
    bench.drain()
    bench.run(2 * SECOND)
    assert len(bench.all_asked(Drained)) == 1


def test_given_groups_that_end_in_one_step_then_one_checkpoint_is_begun(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 801065: of two at a time the second one takes effect first, the first one is refused, and its owner falls."""
    checkpoints = bench.actor.planes[0].checkpoints
    begun: list[int] = []

    def beginning() -> Operation[None]:
        begun.append(bench.now)
        yield from ()

    def ending() -> Operation[None]:
        for _ in range(3):
            checkpoints.ended(CHECKPOINT_AFTER_FIRES)
        yield from ()

    monkeypatch.setattr(checkpoints, "write", beginning)
    bench.actor._host.operations.start(ending())
    assert len(begun) == 1


def test_given_a_message_without_acknowledgement_before_one_that_was_delivered_then_a_drain_sends_it_until_there_is_one() -> (
    None
):
    """Seed 710009: no position passes the first one, so that a successor would deliver the second one again."""

    def the_first(effect: Effect) -> bool:
        return isinstance(effect, Produce) and effect.topic == "out" and b"m-1" in effect.value

    bench = ActorHarness(shards=1)
    bench.request(a_send("m-1", after="1s"))
    bench.request(a_send("m-2", after="2s"))
    bench.answer_with(the_first, NotProduced("unavailable", "transport"), times=UNREACHED)
    bench.run(3 * SECOND)
    assert len(bench.on("out")) == 1
    bench.drain()
    bench.run(2 * SECOND)
    assert bench.all_asked(Drained) == []
    bench._rules.clear()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.crash()
    bench.run(MINUTE)
    assert sorted(str(sent.document["of"]) for sent in bench.on("out")) == ["m-1", "m-2"]


@pytest.mark.parametrize("crash_after", [2 * SECOND, 7 * SECOND], ids=["before its checkpoint", "after it"])
def test_given_a_crash_then_what_is_sent_again_is_counted_once(bench: ActorHarness, crash_after: int) -> None:
    """A tally counts what its position covers, so it adds up with whatever the successor repeats."""
    bench.request(a_send("m-1", after="1s"))
    bench.request(a_send("m-2", after="1s"))
    bench.run(crash_after)
    bench.crash()
    bench.run(MINUTE)
    bench.request(a_send("m-3", after="1s"))
    bench.run(MINUTE)
    rows = [*bench.rows("PROGRESS"), *bench.rows("Y#")]
    assert sum(int(str(row["delivered"])) for row in rows) == 3


def test_given_closed_tallies_then_they_expire_with_the_ledger(bench: ActorHarness) -> None:
    for number in range(5):
        bench.request(a_send(f"m-{number}", after=f"{number * 30 + 1}s"))
    bench.run(5 * MINUTE)
    closed = bench.rows("Y#")
    assert closed != []
    assert all(int(str(row["expires_at"])) == int(str(row["to"])) // 1000 + TALLY_DAYS * 86_400 for row in closed)


def test_given_a_payload_that_is_read_for_longer_than_a_checkpoint_waits_then_one_covers_its_message_all_the_same(
    bench: ActorHarness,
) -> None:
    """Seed 15: the checkpoint that was to come rang while nothing was sent yet; a crash hours later sent the message again (I8)."""
    bench.request(a_send("m-1", after="2m"))
    bench.hold_back(reads_payloads, times=UNREACHED)
    bench.run(2 * MINUTE + CHECKPOINT_AFTER_MS + SECOND)
    assert bench.holds_something
    bench.as_usual()
    bench.run(MINUTE)
    assert len(bench.on("out")) == 1
    bench.crash()
    bench.run(MINUTE)
    assert repeats(bench) == 0
    assert fired_slot(bench) > 0


def test_given_a_message_that_expires_while_its_payload_is_read_then_the_position_passes_it(
    bench: ActorHarness,
) -> None:
    bench.request(a_send("m-1", after="2m", expire_after="2s"))
    bench.hold_back(reads_payloads, times=UNREACHED)
    bench.run(2 * MINUTE + CHECKPOINT_AFTER_MS + SECOND)
    assert bench.holds_something
    bench.as_usual()
    bench.run(MINUTE)
    assert bench.on("out") == []
    assert fired_slot(bench) > 0

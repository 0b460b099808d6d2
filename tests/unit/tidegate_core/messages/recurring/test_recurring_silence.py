"""Recurring messages of an owner that keeps its shard through a silent store, or stands still: what it missed is one delivery.

What it could send, it has sent on time: from memory, as far as I8 allows without a checkpoint.
"""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, a_recurring, a_request, a_send, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.recorded_effects import Sent
from tests.support.harness.recurring_bench import tally
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.messages.wire.checkpoints import CHECKPOINT_AFTER_FIRES
from tidegate_core.messages.wire.delivery import GROUPS_UNDER_WAY_MAX
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, Effect, NotProduced, Produce, Read, ReadRange, Write
from tidegate_core.rows.outage import gaps_of

LATE_MS = 10 * SECOND
EVERY_TIME = 10_000_000


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(shards=1)
    made.run(SECOND)
    return made


def store_calls(effect: Effect) -> bool:
    return isinstance(effect, Commit | Write | Read | ReadRange)


def sends_to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def reads_timers(effect: Effect) -> bool:
    return isinstance(effect, ReadRange) and effect.range.low.startswith("D#")


def apply(bench: ActorHarness, step: str, name: str = "ping") -> None:
    bench.request(an_apply(a_recurring(name, every(step), payload={"of": name})))


def silent_for(bench: ActorHarness, milliseconds: int) -> None:
    bench.lose(store_calls, times=EVERY_TIME)
    bench.run(milliseconds)
    bench.as_usual()


def nominal(sent: Sent) -> int:
    return parse_instant(sent.headers["tidegate-nominal"])


def covering(bench: ActorHarness) -> list[Sent]:
    return [each for each in bench.on("out") if "tidegate-covered-count" in each.headers]


def delivered(bench: ActorHarness, step: int, of: str = "ping") -> list[int]:
    """Returns each instant that was delivered, or that a delivery stands for; a repeat under its id counts once."""
    found: list[int] = []
    for sent in {each.headers["tidegate-id"]: each for each in bench.on("out") if each.document["of"] == of}.values():
        first = sent.headers.get("tidegate-covered-from")
        begin = nominal(sent) if first is None else parse_instant(first)
        found += range(begin, nominal(sent) + 1, step)
    return sorted(found)


def gaps(bench: ActorHarness) -> int:
    return len(gaps_of(bench.store.get([keys.progress(0)])[keys.progress(0)]))


def missing(bench: ActorHarness, step: int) -> list[int]:
    """Returns each instant since the first delivery that was not delivered, and that no delivery stands for."""
    found = set(delivered(bench, step))
    return sorted(set(range(min(found), bench.now, step)) - found)


def is_complete(bench: ActorHarness, step: int, of: str = "ping") -> bool:
    found = delivered(bench, step, of)
    return found == list(range(found[0], bench.now + 1, step))


@pytest.mark.parametrize("crashed", [False, True], ids=["", "a crash with the fact"])
def test_given_a_process_that_stood_still_then_one_delivery_stands_for_all_that_was_missed(
    bench: ActorHarness, crashed: bool
) -> None:
    apply(bench, "10s")
    bench.run(25 * SECOND)
    if crashed:
        bench.crash_at(a_commit("outage"))
    bench.now += HOUR
    bench.run(30 * SECOND)
    (late,) = covering(bench)
    assert int(late.headers["tidegate-covered-count"]) == 360
    assert is_complete(bench, 10 * SECOND)


def test_given_a_silent_store_then_what_is_known_is_sent_on_time_and_nothing_is_made_up_for(
    bench: ActorHarness,
) -> None:
    apply(bench, "10s")
    bench.run(25 * SECOND)
    silent_for(bench, 10 * MINUTE)
    bench.run(30 * SECOND)
    assert covering(bench) == []
    assert all(each.at - nominal(each) < LATE_MS for each in bench.on("out"))
    assert is_complete(bench, 10 * SECOND)


@pytest.mark.parametrize("then", ["go on", "crash with the fact", "crash after it"])
def test_given_more_than_may_be_sent_without_a_checkpoint_then_one_delivery_stands_for_the_rest(
    bench: ActorHarness, then: str
) -> None:
    """Two series: what is sent of the one must not hide what is missed of the other."""
    apply(bench, "1s")
    apply(bench, "20s", "rare")
    bench.run(25 * SECOND)
    if then == "crash with the fact":
        bench.crash_at(a_commit("outage"))
    silent_for(bench, 30 * MINUTE)
    bench.run(2 * SECOND)
    if then == "crash after it":
        bench.crash()
    bench.run(20 * SECOND)
    late = [each for each in bench.on("out") if each.at - nominal(each) >= LATE_MS and each not in covering(bench)]
    assert len({each.document["of"] for each in covering(bench)}) == 2
    assert len({each.headers["tidegate-id"] for each in covering(bench)}) == 2
    # A successor sends again what its predecessor had sent without a checkpoint (I8).
    assert len(late) <= (2 if then == "go on" else CHECKPOINT_AFTER_FIRES + 40)
    assert is_complete(bench, SECOND)
    assert is_complete(bench, 20 * SECOND, "rare")


def test_given_a_definition_that_was_not_read_before_then_what_waits_for_it_is_sent_and_the_rest_is_one(
    bench: ActorHarness,
) -> None:
    """Groups that wait for their payloads are under way: at most as many as there may be, and with them what they hold up."""
    apply(bench, "20s")
    bench.run(SECOND)
    silent_for(bench, 30 * MINUTE)
    bench.run(30 * SECOND)
    late = [each for each in bench.on("out") if each.at - nominal(each) >= LATE_MS and each not in covering(bench)]
    assert 0 < len(late) <= GROUPS_UNDER_WAY_MAX
    assert len(covering(bench)) == 1
    assert is_complete(bench, 20 * SECOND)


def test_given_one_shots_beside_them_then_those_go_on_while_late_fires_wait_for_the_fact(bench: ActorHarness) -> None:
    apply(bench, "10s")
    bench.run(25 * SECOND)
    bench.request(a_send("m-1", after="1h"))
    bench.now += HOUR
    bench.hold_back(a_commit("outage"))
    bench.run(SECOND)
    assert [each.document["of"] for each in bench.on("out") if each.at == bench.now - SECOND] == ["m-1"]
    bench.release()
    bench.run(SECOND)
    assert len(covering(bench)) == 1


def test_given_a_fire_that_is_no_more_than_late_then_it_is_not_taken_while_the_gap_is_written(
    bench: ActorHarness,
) -> None:
    """Seed 23016754: it lay in the gap, and what followed on it there was taken for a part of its delivery, and never sent.

    As many groups as may be are under way, and a few fires wait that are no more than late. Then a group is answered.
    """
    apply(bench, "1s")
    bench.run(25 * SECOND)
    bench.lose(store_calls, times=EVERY_TIME)
    bench.run(MINUTE)
    bench.hold_back(sends_to_out, times=EVERY_TIME)
    bench.run((GROUPS_UNDER_WAY_MAX + 4) * SECOND)
    bench.end_scripts()
    bench.hold_back(sends_to_out, times=EVERY_TIME)
    bench.lose(a_commit("outage"), times=EVERY_TIME)
    bench.run(SECOND)
    bench.release_last()
    bench.end_scripts()
    bench.hold_back(sends_to_out, times=EVERY_TIME)
    bench.run(SECOND)
    bench.as_usual()
    bench.run(30 * SECOND)
    assert missing(bench, SECOND) == [], "I1: instants were never delivered, and no delivery stands for them"


def test_given_a_fire_that_was_refused_before_the_outage_was_known_then_what_follows_on_it_there_is_delivered(
    bench: ActorHarness,
) -> None:
    """Found beside seed 23016754: what was read ahead gave way to what follows on it, and the gap began before both.

    The successor acquires within the grace, and reads for longer; as many groups as may be are before the refused fire.
    """
    apply(bench, "1s")
    bench.lose(a_commit("checkpoint"), times=EVERY_TIME)
    while len(bench.on("out")) < GROUPS_UNDER_WAY_MAX:
        bench.run(SECOND)
    bench.answer_with(sends_to_out, NotProduced("refused", "not allowed"))
    bench.run(2 * SECOND)
    bench.end_scripts()
    bench.hold_back(reads_timers, times=EVERY_TIME)
    bench.crash()
    bench.run(50 * SECOND)
    bench.end_scripts()
    bench.hold_back(sends_to_out, times=EVERY_TIME)
    bench.release()
    bench.run(SECOND)
    bench.as_usual()
    bench.run(30 * SECOND)
    assert missing(bench, SECOND) == [], "I1: instants were never delivered, and no delivery stands for them"


def test_given_a_drain_before_the_fact_is_written_then_nothing_is_sent_twice(bench: ActorHarness) -> None:
    apply(bench, "10s")
    bench.run(25 * SECOND)
    bench.request(a_send("m-1", after="1h"))
    bench.now += HOUR
    bench.hold_back(a_commit("outage"))
    bench.run(SECOND)
    bench.drain()
    bench.run(100)
    bench.release()
    bench.run(2 * SECOND)
    assert bench.actor.has_ended
    bench.crash()
    bench.run(30 * SECOND)
    ids = [each.headers["tidegate-id"] for each in bench.on("out")]
    assert len(ids) == len(set(ids))
    assert is_complete(bench, 10 * SECOND)


def test_given_a_drain_while_the_fact_is_being_written_then_nobody_else_writes_it_and_the_hand_over_waits(
    bench: ActorHarness,
) -> None:
    apply(bench, "10s")
    bench.run(25 * SECOND)
    bench.now += HOUR
    bench.hold_back(a_commit("outage"))
    bench.run(SECOND)
    bench.drain()
    bench.run(SECOND)
    written = [each for each in bench.all_asked(Commit) if each.transaction.name == "outage"]
    assert len(written) == 1
    ended = [bench.actor.has_ended]
    bench.as_usual()
    bench.run(2 * SECOND)
    ended.append(bench.actor.has_ended)
    assert ended == [False, True]
    assert bench.notices("decision_failed") == []


def test_given_a_silence_that_becomes_an_outage_amid_a_drain_then_the_hand_over_ends_and_nothing_is_sent_twice(
    bench: ActorHarness,
) -> None:
    """Late fires waited for the fact, and nobody wrote it: the shard writer had been closed."""
    apply(bench, "10s")
    bench.run(25 * SECOND)
    bench.lose(store_calls, times=EVERY_TIME)
    bench.run(57 * SECOND)
    bench.drain()
    bench.run(6 * SECOND)
    bench.as_usual()
    bench.run(2 * SECOND)
    assert bench.actor.has_ended
    bench.crash()
    bench.run(30 * SECOND)
    ids = [each.headers["tidegate-id"] for each in bench.on("out")]
    assert len(ids) == len(set(ids))
    assert is_complete(bench, 10 * SECOND)


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize(("kind", "missed"), [("update", 10), ("suspend", 0), ("same", 10)])
def test_given_a_silence_amid_a_request_then_what_is_left_out_of_it_is_told_and_counted_once(
    bench: ActorHarness, kind: str, missed: int, crashed: bool
) -> None:
    """Both versions left it out, and a suspended one as well."""
    spec = {**a_recurring("ping", every("10s"), payload={"of": "ping"}), "catchup": {"mode": "none"}}
    another = {**spec, "target": a_recurring(payload={"of": "another"})["target"]}
    bench.request(an_apply(spec))
    bench.run(26 * SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Read) and keys.recurring(0, "flights", "ping") in effect.keys)
    bench.request(
        a_request("suspend", "ping") if kind == "suspend" else an_apply(another if kind == "update" else spec, "r")
    )
    assert bench.holds_something
    silent_for(bench, 95 * SECOND)
    bench.run(200)
    if crashed:
        bench.crash()
    bench.run(20 * SECOND)
    told = sum(int(str(each.fields["occurrences"])) for each in bench.notices("recurring_not_sent"))
    assert told == missed * (1 + crashed)  # A successor tells of it again.
    assert (tally(bench, "expired"), tally(bench, "cancelled")) == (missed, 0)


def test_given_a_silence_that_becomes_an_outage_while_a_drain_sends_what_is_left_then_nothing_is_sent_twice(
    bench: ActorHarness,
) -> None:
    """The late fire that was left waited for the fact, and was taken for sent: what had been sent behind it was sent again."""
    apply(bench, "10s")
    bench.run(15 * SECOND)
    bench.answer_with(sends_to_out, NotProduced("unavailable", "no leader"), times=EVERY_TIME)
    bench.run(10 * SECOND)
    bench.request(a_send("m-1", after="0s", topic="elsewhere"))
    bench.run(SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.lose(store_calls, times=EVERY_TIME)
    bench.run(65 * SECOND)
    ended = [bench.actor.has_ended]
    bench.as_usual()
    bench.run(5 * SECOND)
    ended.append(bench.actor.has_ended)
    assert ended == [False, True]
    bench.crash()
    bench.run(30 * SECOND)
    assert len(bench.on("elsewhere")) == 1
    assert is_complete(bench, 10 * SECOND)


def test_given_a_gap_that_was_passed_then_the_next_outage_forgets_it(bench: ActorHarness) -> None:
    apply(bench, "10s")
    for _ in range(3):
        bench.run(30 * SECOND)
        bench.now += HOUR
    bench.run(30 * SECOND)
    assert gaps(bench) == 1
    assert len(covering(bench)) == 3
    assert is_complete(bench, 10 * SECOND)

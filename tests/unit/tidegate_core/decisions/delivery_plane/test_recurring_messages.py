"""Schedules that send messages: fires without writes, requests between two checkpoints, crashes, far ones (DESIGN 5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tidegate_core.decisions.delivery_plane import firing
from tidegate_core.decisions.delivery_plane.checkpoints import CHECKPOINT_AFTER_MS
from tidegate_core.decisions.delivery_plane.recurring_change import WIRE_PATIENCE_MS
from tidegate_core.decisions.delivery_plane.retrying import ATTEMPTS_MAX, RETRIED_TOGETHER, RETRY_FIRST_MS
from tidegate_core.effects import (
    Commit,
    Committed,
    Drained,
    Effect,
    Invalid,
    NotProduced,
    Produce,
    Read,
    Refused,
    Unavailable,
    Write,
)
from tidegate_core.model.instants import format_instant, parse_instant
from tidegate_core.store import keys
from tidegate_core.store.values import Put, Transaction
from tidegate_testkit.bench import Bench
from tidegate_testkit.bench_matches import a_commit
from tidegate_testkit.bench_outcomes import Sent
from tidegate_testkit.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_cancel,
    a_recurring,
    a_request,
    a_send,
    a_spec,
    an_apply,
    every,
)

DAY = 24 * HOUR
REFUSED = NotProduced("refused", "not allowed")
AWAY = NotProduced("unavailable", "no acknowledgement")
LOOKS = ((keys.CONTROLS_KEY,), (keys.SOURCES_KEY,))
"""What each node looks at every few seconds, whatever it does."""


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.run(SECOND)
    return made


def to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def stands_for_sixty(effect: Effect) -> bool:
    return isinstance(effect, Produce) and dict(effect.headers).get("tidegate-covered-count") == b"60"


def a_checkpoint(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "checkpoint"


def a_control(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "control"


def nominals(bench: Bench) -> list[int]:
    return [parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out")]


def shown(bench: Bench, request_id: str) -> list[int]:
    return [parse_instant(each) for each in bench.receipts()[request_id]["next"]]


def payload(sent: Sent) -> object:
    return json.loads(sent.value)


def tally(bench: Bench, name: str) -> int:
    return sum(int(str(row.get(name, 0))) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")])


def outage(bench: Bench, milliseconds: int) -> None:
    """Nobody is here for so long, and the fact is written down."""
    for shard in range(bench.holding.shards):
        key = keys.progress(shard)
        item = bench.store.get([key])[key]
        known = item.get("gaps", [])
        assert isinstance(known, list)
        bench.store.write((Put(key, {**item, "gaps": [*known, f"{bench.now}-{bench.now + milliseconds}"]}),))
    bench.away(milliseconds)


def covered(sent: Sent) -> tuple[int, int, int] | None:
    if "tidegate-covered-count" not in sent.headers:
        return None
    first, last = (parse_instant(sent.headers[f"tidegate-covered-{each}"]) for each in ("from", "to"))
    return first, last, int(sent.headers["tidegate-covered-count"])


def records(bench: Bench) -> dict[str, Sequence[Any]]:
    return {
        prefix: [row for row in bench.rows(f"{prefix}#") if prefix != "D" or "attempt" not in row]
        for prefix in ("C", "CF", "D")
    }


# -- fires ----------------------------------------------------------------------------------------------------------------


def test_given_a_schedule_that_sends_messages_then_each_instant_is_delivered_at_its_time(bench: Bench) -> None:
    bench.request(an_apply(a_recurring(payload={"a": None}, headers={"k": "v"}, message_key="17")))
    bench.run(MINUTE)
    sent = bench.on("out")
    assert nominals(bench)[:3] == shown(bench, "apply-ping")
    assert [each.at for each in sent] == nominals(bench) == [sent[0].at + number * 10 * SECOND for number in range(6)]
    assert len({each.headers["tidegate-id"] for each in sent}) == 6
    assert (sent[0].key, sent[0].value, sent[0].headers["k"]) == (b"17", b'{"a":null}', "v")
    assert sent[0].headers["tidegate-attempt"] == "1"


def test_given_fires_then_nothing_is_written_but_the_checkpoint_of_the_shard(bench: Bench) -> None:
    """DESIGN 5: no write per fire; and the definition is not read for each one either."""
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.run(10 * SECOND)
    begun = len(bench.asked)
    fired = len(bench.on("out"))
    bench.run(2 * MINUTE)
    since = bench.asked[begun:]
    assert len(bench.on("out")) - fired == 120
    writes = Counter(each.transaction.name for each in since if isinstance(each, Commit))
    assert set(writes) == {"checkpoint"}
    assert writes["checkpoint"] <= 2 * MINUTE // CHECKPOINT_AFTER_MS + 1
    assert [each for each in since if isinstance(each, Write)] == []
    assert [each for each in since if isinstance(each, Read) and each.keys not in LOOKS] == []


def test_given_two_schedules_with_the_same_nominal_then_both_are_delivered_across_a_crash(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.request(an_apply(a_recurring(name, payload=name)))
    for _ in range(6):
        bench.run(7 * SECOND)
        bench.crash()
    bench.run(18 * SECOND)
    by_name = {
        name: {each.headers["tidegate-nominal"] for each in bench.on("out") if payload(each) == name}
        for name in ("a", "b")
    }
    assert by_name["a"] == by_name["b"]
    assert len(by_name["a"]) == 6


@pytest.mark.parametrize("late", [0, 1, 999, 5 * SECOND])
def test_given_a_crash_then_none_is_lost_and_repeats_have_the_same_id(bench: Bench, late: int) -> None:
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(11 * SECOND)
    bench.away(late)
    bench.run(20 * SECOND)
    ids = {each.headers["tidegate-nominal"]: set[str]() for each in bench.on("out")}
    for each in bench.on("out"):
        ids[each.headers["tidegate-nominal"]].add(each.headers["tidegate-id"])
    assert {len(each) for each in ids.values()} == {1}
    assert sorted(set(nominals(bench))) == list(range(min(nominals(bench)), bench.now + 1, 2 * SECOND))


def test_given_a_planned_hand_over_then_nothing_repeats(bench: Bench) -> None:
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(11 * SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.crash()
    bench.run(10 * SECOND)
    assert max(Counter(nominals(bench)).values()) == 1
    assert tally(bench, "delivered") >= 5


def test_given_an_at_that_has_passed_then_it_is_delivered_once_whatever_follows(bench: Bench) -> None:
    at = {"type": "at", "instant": format_instant(bench.now - HOUR)}
    bench.request(an_apply(a_recurring(trigger=at)))
    bench.run(SECOND)
    assert nominals(bench) == [bench.now - HOUR - SECOND]
    bench.crash()
    bench.run(CHECKPOINT_AFTER_MS + SECOND)
    bench.request(an_apply(a_recurring(trigger=at, payload="other"), "again"))
    bench.request(a_request("suspend", "ping"))
    bench.request(a_request("resume", "ping"))
    bench.run(MINUTE)
    assert {each.value for each in bench.on("out")} == {b'"ping"'}
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == 1


def test_given_a_time_to_live_then_what_is_later_expires(bench: Bench) -> None:
    bench.request(an_apply(a_recurring(expire_after="3s")))
    bench.run(15 * SECOND)
    before = len(bench.on("out"))
    bench.away(35 * SECOND)
    bench.run(CHECKPOINT_AFTER_MS + SECOND)
    late = [
        each
        for each in bench.on("out")[before:]
        if each.at - parse_instant(each.headers["tidegate-nominal"]) > 3 * SECOND
    ]
    assert late == []
    assert tally(bench, "expired") >= 3


# -- requests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("kind", ["suspend", "delete"])
def test_given_a_stop_between_two_checkpoints_then_nothing_is_sent_after_it(
    bench: Bench, kind: str, crashed: bool
) -> None:
    """Also by a successor, which begins where the last checkpoint stood: what was sent is counted, and not sent again."""
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.run(7 * SECOND + 500)
    bench.request(a_request(kind, "ping"))
    assert bench.status_of(f"{kind}-ping") == "accepted"
    before = nominals(bench)
    if crashed:
        bench.crash()
    bench.run(MINUTE)
    assert nominals(bench) == before
    assert tally(bench, "delivered") == len(before)
    assert tally(bench, "cancelled") == 0


def test_given_an_update_between_two_checkpoints_and_a_crash_then_each_version_sends_what_is_its_own(
    bench: Bench,
) -> None:
    bench.request(an_apply(a_recurring(trigger=every("1s"), payload="old")))
    bench.run(6 * SECOND + 300)
    bench.request(an_apply(a_recurring(trigger=every("2s"), payload="new"), "update"))
    updated = bench.now
    bench.run(3 * SECOND)
    bench.crash()
    bench.run(20 * SECOND)
    sent = [(parse_instant(each.headers["tidegate-nominal"]), payload(each)) for each in bench.on("out")]
    assert {document for nominal, document in sent if nominal < updated} == {"old"}
    assert {document for nominal, document in sent if nominal > updated} == {"new"}
    assert max(Counter(nominal for nominal, document in sent if document == "old").values()) == 1
    assert shown(bench, "update")[0] in {nominal for nominal, _ in sent}


def test_given_update_suspend_and_outage_between_two_checkpoints_then_nothing_is_lost_or_sent_too_much(
    bench: Bench,
) -> None:
    bench.hold_back(a_checkpoint, times=1_000)
    bench.request(an_apply(a_recurring(trigger=every("1s"), payload="one")))
    bench.run(2 * SECOND + 500)
    bench.request(an_apply(a_recurring(trigger=every("1s"), payload="two"), "update"))
    bench.run(2 * SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(2 * SECOND)
    bench.request(a_request("resume", "ping"))
    resumed = bench.now
    bench.run(SECOND + 600)
    before = nominals(bench)
    bench._rules.clear()
    bench._held.clear()
    outage(bench, 30 * SECOND)
    bench.run(10 * SECOND)
    after = bench.on("out")[len(before) :]
    assert all(parse_instant(each.headers["tidegate-nominal"]) > resumed for each in after)
    (one,) = [each for each in after if covered(each) is not None]
    first, last, count = covered(one) or (0, 0, 0)
    assert count == (last - first) // SECOND + 1
    reached = {*before, *nominals(bench), *range(first, last + 1, SECOND)}
    assert set(range(resumed // SECOND * SECOND + SECOND, bench.now, SECOND)) <= reached


def test_given_a_name_that_is_deleted_and_made_again_then_its_messages_have_other_ids(bench: Bench) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(12 * SECOND)
    bench.request(a_request("delete", "ping"))
    bench.request(an_apply(a_recurring(), "again"))
    assert bench.status_of("again") == "accepted"
    bench.crash()
    bench.run(30 * SECOND)
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == len(bench.on("out")) >= 4


def test_given_a_suspended_span_then_it_is_no_miss(bench: Bench) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(12 * SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(10 * MINUTE)
    before = len(bench.on("out"))
    bench.request(a_request("resume", "ping"))
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == before + 3


def test_given_an_unchanged_definition_then_nothing_is_disturbed(bench: Bench) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(15 * SECOND)
    bench.request(an_apply(a_recurring(), "same"))
    assert bench.status_of("same") == "unchanged"
    bench.run(30 * SECOND)
    assert max(Counter(nominals(bench)).values()) == 1
    assert len(bench.on("out")) == 4


def test_given_a_broker_that_is_away_then_a_stop_is_answered_soon_and_what_was_not_acknowledged_is_never_sent(
    bench: Bench,
) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(12 * SECOND)
    bench.hold_back(to_out, times=1_000)
    bench.run(10 * SECOND)
    assert bench.holds_something
    asked = bench.now
    bench.request(a_request("suspend", "ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert bench.status_of("suspend-ping") == "accepted"
    receipt = next(each for each in bench.on("tidegate.receipts") if each.key == b"suspend-ping")
    assert receipt.at <= asked + WIRE_PATIENCE_MS + 100
    before = len(bench.on("out"))
    bench._rules.clear()
    bench._held.clear()
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("out")) == before
    assert tally(bench, "cancelled") == 1


def test_given_no_acknowledgement_and_a_stop_then_it_is_not_sent_again(bench: Bench) -> None:
    bench.answer_with(to_out, AWAY, times=10_000)
    bench.request(an_apply(a_recurring()))
    bench.run(12 * SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(SECOND)
    assert bench.status_of("suspend-ping") == "accepted"
    tries = len([each for each in bench.all_asked(Produce) if each.topic == "out"])
    bench.as_usual()
    bench.run(MINUTE)
    assert len([each for each in bench.all_asked(Produce) if each.topic == "out"]) == tries
    assert tally(bench, "cancelled") == 1


def test_given_a_stop_whose_transaction_hangs_then_the_fires_meanwhile_wait_and_none_is_lost_when_it_fails(
    bench: Bench,
) -> None:
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.request(a_send("m-1", after="20s"))
    bench.run(5 * SECOND)
    bench.hold_back(a_control)
    bench.request(a_request("suspend", "ping"))
    before = len(bench.on("out"))
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == before + 1, "the other message does not wait"
    bench._held.clear()
    bench.crash()
    bench.run(10 * SECOND)
    assert bench.status_of("suspend-ping") == "accepted"
    assert records(bench)["C"] == [] or bench.receipts()


def test_given_a_checkpoint_while_a_schedule_is_being_made_then_its_first_instants_are_not_passed(bench: Bench) -> None:
    """The record's transaction takes its time; other messages fire, and their checkpoint stops before what it will open."""
    names = [f"ping{number}" for number in range(4)]  # Some shard has both.
    bench.hold_back(a_control, times=len(names))
    for name in names:
        bench.request(an_apply(a_recurring(name, trigger=every("1s"), payload=name)))
    begun = bench.now
    for number in range(20):
        bench.request(a_send(f"m-{number}", after="2s"))
    bench.run(20 * SECOND)
    bench.release()
    bench.run(SECOND)
    bench.crash()
    bench.run(5 * SECOND)
    for name in names:
        mine = {parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out") if payload(each) == name}
        assert set(range(shown(bench, f"apply-{name}")[0], bench.now, SECOND)) <= mine, name
    assert min(shown(bench, f"apply-{name}")[0] for name in names) <= begun + SECOND


@pytest.mark.parametrize("back", [False, True])
def test_given_a_target_that_becomes_another_then_the_former_one_ends(bench: Bench, back: bool) -> None:
    program, message = a_spec("ping", every("10s")), a_recurring()
    bench.request(an_apply(program if back else message))
    bench.run(15 * SECOND)
    bench.request(an_apply(message if back else program, "other"))
    assert bench.status_of("other") == "accepted"
    sent, started = len(bench.on("out")), len(bench.started)
    bench.run(30 * SECOND)
    assert (len(bench.on("out")) > sent, len(bench.started) > started) == (back, not back)


def test_given_run_now_for_a_message_then_it_is_refused_as_planned(bench: Bench) -> None:
    bench.request(an_apply(a_recurring()))
    bench.request(a_request("trigger", "ping"))
    assert bench.status_of("trigger-ping") == "rejected"
    assert "planned" in str(bench.receipts()["trigger-ping"]["errors"])


# -- outages --------------------------------------------------------------------------------------------------------------


def test_given_an_outage_then_one_delivery_stands_for_all_that_was_missed(bench: Bench) -> None:
    """SEMANTICS 3: `last` is the default of recurring messages."""
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    before = len(bench.on("out"))
    outage(bench, 10 * MINUTE)
    bench.run(30 * SECOND)
    late, *others = bench.on("out")[before:]
    first, last, count = covered(late) or (0, 0, 0)
    assert (last - first) // (10 * SECOND) + 1 == count == 60
    assert parse_instant(late.headers["tidegate-nominal"]) == last
    assert [covered(each) for each in others] == [None] * 3
    assert tally(bench, "coalesced") == count - 1


def test_given_a_message_in_front_whose_create_is_not_durable_then_each_fire_behind_it_is_sent_at_its_time() -> None:
    """Seed 832976: nothing woke the shard for them until what stood in front was ready, seconds later."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.lose(a_commit("cursor"), times=1_000)
    bench.request(a_send("m-1", after="3s"))
    bench.run(20 * SECOND)
    assert len(bench.on("out")) == 10
    assert [each.at for each in bench.on("out")] == nominals(bench)


def test_given_a_hand_over_that_took_its_time_but_no_outage_then_each_is_sent(bench: Bench) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    bench.away(30 * SECOND)  # Within the grace from the acquire on: this owner has given no sign of life since.
    bench.run(10 * SECOND)
    assert sorted(set(nominals(bench))) == list(range(min(nominals(bench)), bench.now + 1, 10 * SECOND))


@pytest.mark.parametrize("crash_at", [0, 1, 2, 3])
def test_given_a_second_crash_in_a_catch_up_then_it_is_brought_to_its_end_under_one_id(
    bench: Bench, crash_at: int
) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    before = len(bench.on("out"))
    bench.hold_back(to_out, times=crash_at % 2)
    outage(bench, 10 * MINUTE)
    bench.run(crash_at * SECOND)
    bench._rules.clear()
    bench.crash()
    bench.run(20 * SECOND)
    late = [each for each in bench.on("out")[before:] if covered(each)]
    assert len({(each.headers["tidegate-id"], covered(each)) for each in late}) == 1
    bench.run(MINUTE)
    bench.crash()
    bench.run(MINUTE)
    assert len([each for each in bench.on("out")[before:] if covered(each)]) == len(late)


def test_given_a_second_outage_before_the_first_was_caught_up_then_each_nominal_is_covered(bench: Bench) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    before = len(bench.on("out"))
    bench.hold_back(to_out, times=100)
    outage(bench, 5 * MINUTE)
    bench.run(SECOND)
    bench._rules.clear()
    bench._held.clear()
    outage(bench, 5 * MINUTE)
    bench.run(20 * SECOND)
    reached: set[int] = set()
    for each in bench.on("out")[before:]:
        first, last, _ = covered(each) or (*[parse_instant(each.headers["tidegate-nominal"])] * 2, 1)
        reached |= set(range(first, last + 1, 10 * SECOND))
    assert (
        set(range(max(nominals(bench)[:before]), max(reached), 10 * SECOND)) - set(nominals(bench)[:before]) <= reached
    )


def test_given_a_stop_during_catch_up_then_what_was_not_caught_up_is_cancelled(bench: Bench) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    before = len(bench.on("out"))
    bench.answer_with(to_out, AWAY, times=10_000)
    outage(bench, 10 * MINUTE)
    bench.run(SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    bench.as_usual()
    bench.run(MINUTE)
    assert len(bench.on("out")) == before
    assert tally(bench, "cancelled") == 60


# -- refused by the broker ------------------------------------------------------------------------------------------------


def test_given_a_refusal_then_it_is_tried_again_at_a_slot_of_its_own_and_later_fires_go_on(bench: Bench) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(20 * SECOND)
    first = min(nominals(bench))
    (again,) = [each for each in bench.on("out") if parse_instant(each.headers["tidegate-nominal"]) == first]
    assert again.headers["tidegate-attempt"] == "2"
    assert again.at == first + RETRY_FIRST_MS
    assert max(Counter(nominals(bench)).values()) == 1


@pytest.mark.parametrize("wait", [0, 1, 6])
def test_given_a_crash_after_a_refusal_then_it_is_neither_lost_nor_sent_twice(bench: Bench, wait: int) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + wait * SECOND)
    bench.crash()
    bench.run(25 * SECOND)
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == 1
    assert len(bench.on("out")) == (2 if wait * SECOND > RETRY_FIRST_MS else 1)


def a_refusal_on_its_way(bench: Bench, refusals: int = 1) -> Transaction:
    """A fire was refused, and its owner fell while the transaction that gives it rows hung; returns that."""
    bench.answer_with(to_out, REFUSED, times=refusals)
    bench.hold_back(a_commit("retry"))
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + 100)
    (late,) = bench.commits("retry")
    bench.crash()
    return late


def test_given_a_refused_fire_whose_rows_come_late_then_the_successor_sends_it_once(bench: Bench) -> None:
    """Simulation, seed 365: it had found no message row, sent the fire from its place, and then read the timer row's message."""
    late = a_refusal_on_its_way(bench)
    bench.hold_back(lambda effect: isinstance(effect, Read) and all(key.sk.startswith("M#") for key in effect.keys))
    bench.run(SECOND)
    assert len(bench.on("out")) == 1
    assert isinstance(bench.transact(late), Refused)
    assert bench.rows("M#") == bench.rows("D#") == []
    bench.as_usual()
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_two_take_overs_within_the_pause_of_a_refused_fire_then_its_late_rows_do_not_bring_it_again(
    bench: Bench,
) -> None:
    """The second owner has sent it and has said so by its checkpoint; the third one knows nothing of it but what is stored."""
    late = a_refusal_on_its_way(bench)
    bench.run(SECOND)
    assert len(bench.on("out")) == 1
    bench.drain()
    bench.run(SECOND)
    bench.transact(late)
    bench.crash()
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_a_refused_fire_whose_rows_come_before_the_take_over_then_they_bring_it(bench: Bench) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.hold_back(a_commit("retry"), answer_only=True)
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    first = shown(bench, "apply-ping")[0]
    bench.run(first - bench.now + 100)
    bench.crash()
    bench.run(SECOND)
    assert bench.on("out") == []
    bench.run(30 * SECOND)
    assert [(each.at, each.headers["tidegate-attempt"]) for each in bench.on("out")] == [(first + RETRY_FIRST_MS, "2")]


def test_given_a_fire_that_is_refused_by_a_successor_as_well_then_its_own_rows_bring_it(bench: Bench) -> None:
    a_refusal_on_its_way(bench, refusals=2)
    bench.run(SECOND)
    assert bench.on("out") == []
    bench.as_usual()
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_a_former_owner_that_is_refused_then_it_ends_and_gives_no_rows(bench: Bench) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.hold_back(a_commit("retry"))
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + 100)
    successor = Bench(beside=bench, owner="node-b")
    successor.run(SECOND)
    assert len(successor.on("out")) == 1
    bench.release()
    assert bench.notices("fenced")
    assert successor.rows("D#") == []


@pytest.mark.parametrize("throttled", [Refused(()), Unavailable("throttled")])
def test_given_a_store_that_does_not_take_the_rows_for_a_while_then_the_fire_keeps_its_place_and_the_position(
    bench: Bench, throttled: Refused | Unavailable
) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.answer_with(a_commit("retry"), throttled, times=30)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    first = shown(bench, "apply-ping")[0]
    bench.run(first - bench.now + 8 * SECOND)
    assert len(bench.commits("retry")) < 30
    assert first not in nominals(bench)
    assert all(int(str(row["fired_slot"])) < first for row in bench.rows("PROGRESS"))
    bench.run(20 * SECOND)
    assert sorted(nominals(bench)) == sorted(set(nominals(bench)))
    assert first in nominals(bench)


def test_given_rows_that_the_store_never_takes_then_the_fire_keeps_its_place_and_the_next_in_turn_is_not_held_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "FIRED_TOGETHER", 1)
    bench.answer_with(to_out, REFUSED, times=2)
    bench.answer_with(a_commit("retry"), Invalid("too large"))
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    first = shown(bench, "apply-ping")[0]
    bench.run(first - bench.now + 10 * SECOND)
    assert first not in nominals(bench)
    assert first + 2 * SECOND in nominals(bench)
    bench.run(firing.INVALID_PAUSE_MS)
    assert first in nominals(bench)
    assert max(Counter(nominals(bench)).values()) == 1


def test_given_many_that_are_refused_together_then_few_transactions_give_them_rows_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two at once would meet at the position's item, of which each demands the epoch."""
    monkeypatch.setattr(firing, "FIRED_TOGETHER", 60)
    bench = Bench(shards=1)
    bench.run(SECOND)
    names = [f"ping-{number:03}" for number in range(150)]
    for name in names:
        bench.request(an_apply(a_recurring(name, trigger=every("1m")), f"apply-{name}"))
    bench.run(SECOND)
    bench.answer_with(to_out, REFUSED, times=150)
    bench.store_answers_after = 20
    due = max(shown(bench, f"apply-{name}")[0] for name in names)
    bench.run(due - bench.now + RETRY_FIRST_MS // 2)
    sent = bench.commits("retry")
    assert [len(each.actions) - 1 for each in sent] == [80, 40, 80, 40, 60]
    bench.run(RETRY_FIRST_MS)
    assert len(bench.on("out")) == len({each.headers["tidegate-id"] for each in bench.on("out")}) == 150


def test_given_as_many_of_the_largest_that_are_refused_together_then_the_store_takes_their_rows() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    names = [f"ping-{number:03}" for number in range(RETRIED_TOGETHER)]
    for name in names:
        bench.request(an_apply(a_recurring(name, trigger=every("1m"), payload="x" * 65_000), f"apply-{name}"))
    bench.answer_with(to_out, REFUSED, times=RETRIED_TOGETHER)
    bench.run(MINUTE + RETRY_FIRST_MS)
    assert bench.notices("decision_failed") == []
    assert [len(each.actions) - 1 for each in bench.commits("retry")] == [2 * RETRIED_TOGETHER]
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == RETRIED_TOGETHER


def test_given_a_stop_while_a_refused_fire_waits_for_its_turn_then_it_gets_no_rows_and_is_counted_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "FIRED_TOGETHER", 1)
    bench.answer_with(to_out, REFUSED, times=2)
    bench.hold_back(a_commit("retry"))
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(shown(bench, "apply-ping")[1] - bench.now + 100)
    bench.request(a_request("suspend", "ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert bench.status_of("suspend-ping") == "accepted"
    bench.release()
    bench.run(MINUTE)
    assert len(bench.commits("retry")) == 1
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 2


def a_stop_while_rows_are_on_their_way(bench: Bench, attempt: int) -> None:
    """The store has the rows of the next attempt, and no answer comes; the schedule is suspended meanwhile."""
    bench.answer_with(to_out, REFUSED, times=attempt)
    bench.request(an_apply(a_recurring(trigger=every("1h"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + (attempt - 1) * RETRY_FIRST_MS - 100)
    bench.hold_back(a_commit("retry"), answer_only=True)
    bench.run(200)
    bench.request(a_request("suspend", "ping"))
    bench.run(WIRE_PATIENCE_MS + 100)
    assert bench.status_of("suspend-ping") == "accepted"
    assert bench.holds_something


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("hand_over", ["crash", "drain"])
def test_given_a_stop_while_the_rows_of_a_refused_fire_are_on_their_way_then_it_is_counted_once_by_whoever_follows(
    bench: Bench, hand_over: str, attempt: int
) -> None:
    """It was counted at the place that it left, and again by who loaded the row at its new one."""
    a_stop_while_rows_are_on_their_way(bench, attempt)
    if hand_over == "drain":
        bench.release()
        bench.drain()
        bench.run(SECOND)
    bench.crash()
    bench.run(MINUTE)
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 1


@pytest.mark.parametrize("attempt", [1, 2])
def test_given_a_stop_while_the_rows_of_a_refused_fire_are_on_their_way_then_its_owner_counts_it_once(
    bench: Bench, attempt: int
) -> None:
    a_stop_while_rows_are_on_their_way(bench, attempt)
    bench.release()
    bench.run(MINUTE)
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 1
    bench.crash()
    bench.run(MINUTE)
    assert tally(bench, "cancelled") == 1


def test_given_refusals_that_a_successor_reads_before_it_comes_to_their_fires_then_those_behind_them_are_sent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fire that waited was left to its rows, and nothing took its place: no further one came before the next take-over."""
    monkeypatch.setattr(firing, "GROUPS_UNDER_WAY_MAX", 1)
    bench.answer_with(to_out, REFUSED, times=3)
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.run(shown(bench, "apply-ping")[2] - bench.now)
    bench.crash()
    begin = bench.now
    bench.run(25 * SECOND)
    expected = set(range(shown(bench, "apply-ping")[0], bench.now, SECOND))
    assert begin + 20 * SECOND < max(expected)
    assert expected <= set(nominals(bench))
    assert max(Counter(nominals(bench)).values()) == 1


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("kind", ["suspend", "delete", "update"])
def test_given_a_refusal_and_then_a_stop_then_it_is_not_tried_again(bench: Bench, kind: str, crashed: bool) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("1h"), payload="old")))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + SECOND)
    update = an_apply(a_recurring(trigger=every("1h"), payload="new"), "update-ping")
    bench.request(update if kind == "update" else a_request(kind, "ping"))
    assert bench.status_of(f"{kind}-ping") == "accepted"
    if crashed:
        bench.crash()
    bench.run(30 * MINUTE)
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 1


def a_refused_catch_up(bench: Bench, times: int) -> None:
    """The broker refuses what stands for sixty occurrences, so often."""
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    bench.answer_with(stands_for_sixty, REFUSED, times=times)
    outage(bench, 10 * MINUTE)
    bench.run(SECOND)


@pytest.mark.parametrize("crashed", [False, True])
def test_given_a_refused_fire_that_stands_for_an_outage_and_a_stop_then_each_of_its_occurrences_is_counted(
    bench: Bench, crashed: bool
) -> None:
    """One was counted, and 59 were in no tally."""
    a_refused_catch_up(bench, 1)
    bench.request(a_request("suspend", "ping"))
    if crashed:
        bench.crash()
    bench.run(MINUTE)
    assert [covered(each) for each in bench.on("out") if covered(each)] == []
    assert tally(bench, "cancelled") == 60


def test_given_a_fire_that_stands_for_an_outage_and_is_refused_for_good_then_each_of_its_occurrences_is_dead(
    bench: Bench,
) -> None:
    a_refused_catch_up(bench, ATTEMPTS_MAX)
    bench.run(30 * MINUTE)
    assert [covered(each) for each in bench.on("out") if covered(each)] == []
    assert tally(bench, "dead") == 60


def test_given_a_refusal_a_stop_and_a_resume_then_it_stays_cancelled(bench: Bench) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("1h"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.request(a_request("resume", "ping"))
    bench.crash()
    bench.run(30 * MINUTE)
    assert bench.on("out") == []


@pytest.mark.parametrize(("answer", "sent"), [(REFUSED, 0), (AWAY, 1)])
def test_given_an_at_that_was_not_delivered_and_an_update_then_it_is_made_again_unless_it_was_refused(
    bench: Bench, answer: NotProduced, sent: int
) -> None:
    """Seed 300121: what the broker refused was made, and has rows of its own, which end with its version.

    What only got no answer stays in its place and was not. A new life of the name makes both.
    """
    at = {"type": "at", "instant": format_instant(bench.now + 10 * SECOND)}
    bench.answer_with(to_out, answer, times=1 if sent == 0 else 10_000)
    bench.request(an_apply(a_recurring(trigger=at, payload="old")))
    bench.run(11 * SECOND)
    bench.request(an_apply(a_recurring(trigger=at, payload="new"), "update-ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert bench.status_of("update-ping") == "accepted"
    assert len(shown(bench, "update-ping")) == sent
    bench.as_usual()
    bench.run(30 * MINUTE)
    assert [each.value for each in bench.on("out")] == [b'"new"'] * sent
    bench.request(a_request("delete", "ping"))
    bench.request(an_apply(a_recurring(trigger=at, payload="anew"), "apply-anew"))
    bench.run(MINUTE)
    assert [each.value for each in bench.on("out")][sent:] == [b'"anew"']


@pytest.mark.parametrize("crashed", [False, True])
def test_given_messages_of_the_same_instant_that_were_passed_then_what_an_update_ends_is_no_less_open(
    crashed: bool,
) -> None:
    """Seed 805067: the position stood within the fire's own slot, before it; the boundary was put behind that slot, so that
    the fire counted as delivered: the update did not make it again, and nobody ever sent it.
    """
    bench = Bench(shards=1)
    bench.run(SECOND)
    due = format_instant(bench.now + 10 * SECOND)
    at = {"type": "at", "instant": due}
    bench.answer_with(to_out, AWAY, times=10_000)
    bench.request(an_apply(a_recurring(trigger=at, payload="old")))
    for number in range(12):  # Some of them lie before the fire, by their ids.
        bench.request(a_send(f"m-{number}", deliver_at=due, topic="elsewhere"))
    bench.run(20 * SECOND)
    (passed,) = (str(row["fired_id"]) for row in bench.rows("PROGRESS"))
    assert any(passed.split("#")[0] in each.headers["tidegate-id"] for each in bench.on("elsewhere"))
    bench.request(an_apply(a_recurring(trigger=at, payload="new"), "update-ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    bench.as_usual()
    if crashed:
        bench.crash()
    bench.run(MINUTE)
    assert [each.value for each in bench.on("out")] == [b'"new"']
    assert (tally(bench, "delivered"), tally(bench, "cancelled")) == (13, 1)


def test_given_a_refused_message_then_its_printed_id_cancels_it(bench: Bench) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("1h"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + SECOND)
    (refused,) = [each for each in bench.all_asked(Produce) if each.topic == "out"]
    printed = dict(refused.headers)["tidegate-id"].decode()
    bench.request({**a_cancel("c-1", message_id=printed), "namespace": "flights"})
    bench.run(MINUTE)
    assert bench.on("out") == []


# -- far ones -------------------------------------------------------------------------------------------------------------


def test_given_a_monthly_schedule_then_it_is_brought_near_in_its_time_and_moved_out_again(bench: Bench) -> None:
    monthly = {"type": "cron", "expression": "0 0 1 * *"}
    bench.request(an_apply(a_recurring(trigger=monthly)))
    for due in shown(bench, "apply-ping"):
        assert {kind: len(found) for kind, found in records(bench).items()} == {"C": 0, "CF": 1, "D": 1}
        bench.away(due - bench.now - 2 * MINUTE)
        bench.run(2 * MINUTE - SECOND)
        assert {kind: len(found) for kind, found in records(bench).items()} == {"C": 1, "CF": 0, "D": 0}
        bench.run(MINUTE)
        assert (bench.on("out")[-1].at, nominals(bench)[-1]) == (due, due)
    assert len(bench.on("out")) == 3


@pytest.mark.parametrize("down", [2 * DAY, 35 * DAY])
def test_given_a_far_schedule_whose_time_passes_while_nobody_is_here_then_it_is_delivered(
    bench: Bench, down: int
) -> None:
    due = bench.now + DAY
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(due)})))
    bench.away(down)
    bench.run(MINUTE)
    assert nominals(bench) == [due]


@pytest.mark.parametrize("kind", ["suspend", "delete"])
@pytest.mark.parametrize("ahead", [DAY, 70 * MINUTE])
def test_given_a_stop_of_a_far_schedule_then_nothing_is_sent_and_nothing_is_left(
    bench: Bench, kind: str, ahead: int
) -> None:
    at = {"type": "at", "instant": format_instant(bench.now + ahead)}
    bench.request(an_apply(a_recurring(trigger=at)))
    assert len(records(bench)["CF"]) == 1
    bench.request(a_request(kind, "ping"))
    assert records(bench) == {"C": [], "CF": [], "D": []}
    bench.away(ahead - MINUTE)
    bench.run(2 * MINUTE)
    assert bench.on("out") == []


def test_given_an_update_of_a_far_schedule_then_only_its_new_time_counts(bench: Bench) -> None:
    begun = bench.now
    for number, ahead in enumerate((DAY, 2 * DAY, 30 * MINUTE, 2 * HOUR)):
        at = {"type": "at", "instant": format_instant(begun + ahead)}
        bench.request(an_apply(a_recurring(trigger=at), f"apply-{number}"))
        assert bench.status_of(f"apply-{number}") == "accepted"
    for ahead in (30 * MINUTE, 2 * HOUR, DAY, 2 * DAY):
        bench.away(begun + ahead - MINUTE - bench.now)
        bench.run(2 * MINUTE)
    assert nominals(bench) == [begun + 2 * HOUR]


def test_given_a_far_record_that_is_written_late_then_its_time_is_not_passed(bench: Bench) -> None:
    """Between the decision and its commit the window was extended past the fire's slot: nobody would load the row."""
    bench = Bench(recurring_near_ms=61 * SECOND)
    bench.run(SECOND)
    due = bench.now + 70 * SECOND
    bench.hold_back(a_control)
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(due)})))
    bench.run(50 * SECOND)
    bench.release()
    bench.run(MINUTE)
    assert nominals(bench) == [due]


def test_given_a_rare_schedule_then_a_crash_right_after_its_fire_loses_nothing(bench: Bench) -> None:
    """It may be moved out only once a checkpoint has passed what was sent."""
    bench.request(an_apply(a_recurring(trigger=every("2h"))))
    due = shown(bench, "apply-ping")[0]
    bench.away(due - bench.now - MINUTE)
    bench.answer_with(to_out, AWAY, times=100_000)
    bench.run(3 * MINUTE)
    assert len(records(bench)["C"]) == 1
    bench.as_usual()
    bench.crash()
    bench.run(MINUTE)
    assert nominals(bench) == [due]
    assert len(records(bench)["CF"]) == 1


def test_given_a_schedule_that_has_run_its_course_then_it_is_not_read_at_recoveries(bench: Bench) -> None:
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(bench.now + SECOND)})))
    bench.run(MINUTE)
    assert {kind: len(found) for kind, found in records(bench).items()} == {"C": 0, "CF": 1, "D": 0}


def test_given_a_suspended_schedule_then_its_record_goes_once_checkpoints_have_told(bench: Bench) -> None:
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.run(5 * SECOND)
    bench.request(a_request("suspend", "ping"))
    assert len(records(bench)["C"]) == 1
    bench.run(MINUTE)
    assert records(bench) == {"C": [], "CF": [], "D": []}


def test_given_records_that_the_store_does_not_give_at_once_then_no_checkpoint_passes_them(bench: Bench) -> None:
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.run(5 * SECOND)
    bench.lose(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "C#", times=30)
    bench.request(a_send("m-1", after="5s"))
    bench.crash()
    bench.run(30 * SECOND)
    reached = set(nominals(bench))
    assert (
        set(range(min(reached), bench.now, SECOND))
        - {parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out")}
        == set()
    )


def test_given_a_hand_over_while_a_far_schedule_is_loaded_late_then_nothing_is_sent_again() -> None:
    """What was summoned before places that were sent already is brought near, although the lane takes no more work."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    due = bench.now + 65 * MINUTE
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(due)})))
    assert len(records(bench)["CF"]) == 1
    bench.away(due - bench.now - 100 * SECOND)
    bench.run(40 * SECOND)
    bench.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "D#", times=1_000)
    bench.run(55 * SECOND)
    bench.request(a_send("m-1", after="10s", topic="other"))
    bench.run(15 * SECOND)
    assert len(bench.on("other")) == 1
    bench.drain()
    bench.as_usual()
    bench.run(2 * SECOND)
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("other")) == 1
    assert nominals(bench) == [due]


def test_given_a_hand_over_while_the_lease_is_moved_to_other_controls_then_the_owner_does_not_take_itself_for_fenced() -> (
    None
):
    """What is brought near beside the lane was decided under the controls of before, which the lease does not carry any more."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    due = bench.now + 65 * MINUTE
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(due)})))
    bench.away(due - bench.now - 100 * SECOND)
    bench.run(40 * SECOND)
    bench.hold_back(lambda effect: getattr(getattr(effect, "range", None), "low", "") == "D#", times=1_000)
    bench.run(55 * SECOND)
    bench.request(a_send("m-1", after="10s", topic="other"))
    bench.run(15 * SECOND)
    bench.lose_answer_of(a_commit("controls"))
    bench.request({"id": "c-1", "type": "control.suspend", "scope": "namespace", "namespace": "elsewhere"})
    bench.drain()
    bench.as_usual()
    bench.lose_answer_of(a_commit("controls"), times=6)
    bench.run(5 * SECOND)
    assert bench.notices("fenced") == []
    assert len(bench.all_asked(Drained)) == 1
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("other")) == 1
    assert nominals(bench) == [due]


def test_given_a_move_of_a_record_that_arrives_a_second_time_then_it_is_refused(bench: Bench) -> None:
    """The record has come back meanwhile, with the very revision that the first send consumed."""
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(5 * SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(MINUTE)
    assert records(bench)["C"] == []
    for number in range(4):
        bench.request(a_request("resume", "ping", f"resume-{number}"))
        bench.request(an_apply(a_recurring(trigger=every("2s"), payload=number), f"update-{number}"))
        for late in bench.commits("recurring"):
            # The store remembers a token for ten minutes only.
            assert not isinstance(bench.transact(replace(late, token=f"{late.token}-{bench.now}")), Committed)
        bench.request(a_request("suspend", "ping", f"suspend-{number}"))
        bench.run(MINUTE * (number % 2))
    assert len(bench.commits("recurring")) >= 3


def test_given_a_far_record_that_went_and_came_then_late_repeats_of_its_moves_are_refused(bench: Bench) -> None:
    bench.request(an_apply(a_recurring(trigger=every("2h"))))
    for _ in range(3):
        bench.away(2 * HOUR - 3 * MINUTE)
        bench.run(2 * MINUTE)
        for late in bench.commits("recurring"):
            # The store remembers a token for ten minutes only.
            assert not isinstance(bench.transact(replace(late, token=f"{late.token}-{bench.now}")), Committed)
        bench.run(MINUTE)
    assert len(bench.commits("recurring")) >= 3

"""Creates of messages: new, repeated, too late, or cancelled before they came (DESIGN 5, SEMANTICS 14)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, REQUESTS, SECOND, Doc, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.sending_bench import an_inboxed, messages, timers
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.language.values.derived_ids import message_shard
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Read, ReadRange, Write
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Item, Put


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def presences(bench: ActorHarness) -> list[Item]:
    return bench.rows("K#")


def test_given_a_send_then_timer_and_message_row_are_written_once_without_a_look_up_for_nothing(
    bench: ActorHarness,
) -> None:
    bench.request(a_send(None, after="10s"))
    (message,), (timer,) = messages(bench), timers(bench)
    assert message.nominal == timer.slot == bench.now + 10 * SECOND
    assert (timer.id, timer.version, timer.attempt) == (message.id, message.version, 1)
    assert presences(bench) == []
    assert [effect.batch.name for effect in bench.all_asked(Write)] == ["messages"]
    assert not [effect for effect in bench.all_asked(ReadRange) if effect.range.low.startswith("M#")]
    assert not [effect for effect in bench.all_asked(Read) if effect.keys[0].sk.startswith(("M#", "K#"))]


def test_given_a_send_under_a_key_then_a_presence_row_says_so_whatever_its_time(bench: ActorHarness) -> None:
    """A late repeat of an older send must not make it expire before a newer one far ahead."""
    bench.request(a_send("m-1", key="k", after="3650d"))
    (far,) = presences(bench)
    bench.request(a_send("m-2", key="k", after="1s"))
    assert presences(bench) == [far]
    assert int(str(far["expires_at"])) > max(message.expires_at or 0 for message in messages(bench))


def test_given_the_time_then_the_payload_is_delivered_as_it_came_with_headers(bench: ActorHarness) -> None:
    due = bench.now + 5 * SECOND
    bench.request(
        a_send("m-1", deliver_at=format_instant(due), payload={"a": [1, 2]}, headers={"k": "v"}, message_key="17")
    )
    bench.run(5 * SECOND - 1)
    assert bench.delivered() == []
    bench.run(1)
    (sent,) = bench.on("out")
    assert (sent.at, sent.key, sent.document) == (due, b"17", {"a": [1, 2]})
    assert {name: sent.headers[name] for name in ("k", "tidegate-attempt", "tidegate-nominal")} == {
        "k": "v",
        "tidegate-attempt": "1",
        "tidegate-nominal": format_instant(due),
    }


def test_given_a_time_in_the_past_then_it_is_delivered_at_once_and_keeps_its_nominal(bench: ActorHarness) -> None:
    past = bench.now - 10 * MINUTE
    bench.request(a_send(deliver_at=format_instant(past)))
    (sent,) = bench.on("out")
    assert sent.headers["tidegate-nominal"] == format_instant(past)


def test_given_a_create_at_or_before_the_checkpoint_then_it_gets_the_next_free_slot(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)
    (progress,) = [row for row in bench.rows("PROGRESS") if row["fired_slot"] != 0]
    fired_through = progress["fired_slot"]
    assert isinstance(fired_through, int)
    same_shard = next(
        name
        for name in (f"n-{number}" for number in range(100))
        if f"SH#{message_shard('orders', None, name, 4):04d}" == progress["pk"]
    )
    bench.request(a_send(same_shard, deliver_at=format_instant(fired_through - 10 * SECOND)))
    late = next(message for message in messages(bench) if message.request_id == same_shard)
    assert late.slot == fired_through + 1
    assert late.nominal == fired_through - 10 * SECOND
    assert len(bench.on("out")) == 2


@pytest.mark.parametrize("receipt", [True, False])
def test_given_an_accepted_send_then_a_receipt_comes_when_it_was_asked_for(bench: ActorHarness, receipt: bool) -> None:
    bench.request(a_send("m-1", receipt=receipt))
    assert bench.status_of("m-1") == ("accepted" if receipt else None)


def test_given_a_delivery_then_its_id_is_the_one_that_the_receipt_named(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", key="k", receipt=True, after="1s"))
    bench.run(SECOND)
    assert bench.on("out")[0].headers["tidegate-id"] == bench.receipts()["m-1"]["id"]


@pytest.mark.parametrize("keyed", [{}, {"key": "k"}], ids=["by id", "by key"])
@pytest.mark.parametrize("delivered_before", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_given_the_same_request_id_again_then_it_is_unchanged_and_delivered_once(
    bench: ActorHarness, keyed: dict[str, str], delivered_before: bool, together: bool
) -> None:
    documents = [a_send("m-1", after="2s", **keyed), a_send("m-1", after="3s", **keyed)]
    if together:
        bench.append(REQUESTS, 0, *documents)
    else:
        bench.request(documents[0])
        bench.run(3 * SECOND if delivered_before else SECOND)
        bench.request(documents[1])
    bench.run(20 * SECOND)
    (sent,) = bench.on("out")
    assert bench.status_of("m-1") == "unchanged"
    assert bench.receipts()["m-1"]["id"] == sent.headers["tidegate-id"]


def test_given_sends_without_id_then_each_is_delivered(bench: ActorHarness) -> None:
    bench.append(REQUESTS, 0, a_send(None, after="1s"), a_send(None, after="1s"))
    bench.run(SECOND)
    assert len(bench.on("out")) == 2


@pytest.mark.parametrize("more", [{}, {"key": "k"}], ids=["by id", "by key"])
def test_given_a_repeat_of_a_record_that_is_not_passed_then_it_stays_in_the_inbox_until_it_is(more: Doc) -> None:
    """Seed 267: the topic was made anew before, so that the one was gone and the other one dealt with: nobody sent the message."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    document = a_send("m-1", after="5m", **more)
    bench.hold_back(a_commit("cursor"), times=1)
    bench.request(document)
    other = an_inboxed(document, at=bench.now + 1)
    bench.store.write([Put(other.key(0), {**to_item(other, other.key(0)), "rev": 1})])
    bench.give(Woken(0))
    bench.run(SECOND)
    assert bench.status_of("m-1") == "unchanged"
    assert [row["origin"] for row in bench.rows("I#")] == [other.origin]
    bench.release()
    bench.run(SECOND)
    assert bench.rows("I#") == []
    bench.run(5 * MINUTE)
    assert len(bench.on("out")) == 1


def test_given_a_create_after_the_cancel_of_its_id_then_it_is_cancelled(bench: ActorHarness) -> None:
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "not_found"
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)
    assert bench.status_of("m-1") == "cancelled"
    assert bench.on("out") == []


def test_given_a_create_after_the_cancel_of_its_key_then_it_is_delivered(bench: ActorHarness) -> None:
    """A key is used again and again: its cancel ends what was sent before it."""
    bench.request(a_cancel(key="k"))
    bench.run(10)
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 1

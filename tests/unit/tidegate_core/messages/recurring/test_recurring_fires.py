"""Fires of recurring messages: each at its time, without a write of its own, and across crashes (DESIGN 5)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_recurring, a_request, a_send, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.recurring_bench import nominals, payload, shown, tally
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.targets.message_target import MessageTarget
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.messages.recurring import message_template
from tidegate_core.messages.wire.checkpoints import CHECKPOINT_AFTER_MS
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, Read, Write
from tidegate_core.rows.store_operations import Key

LOOKS = ((keys.SUSPENSIONS_KEY,), (keys.SOURCES_KEY,))
"""What each node looks at every few seconds, whatever it does."""


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def test_given_a_schedule_that_sends_messages_then_each_instant_is_delivered_at_its_time(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring(payload={"a": None}, headers={"k": "v"}, message_key="17")))
    bench.run(MINUTE)
    sent = bench.on("out")
    assert nominals(bench)[:3] == shown(bench, "apply-ping")
    assert [each.at for each in sent] == nominals(bench) == [sent[0].at + number * 10 * SECOND for number in range(6)]
    assert len({each.headers["tidegate-id"] for each in sent}) == 6
    assert (sent[0].key, sent[0].value, sent[0].headers["k"]) == (b"17", b'{"a":null}', "v")
    assert sent[0].headers["tidegate-attempt"] == "1"


def test_given_fires_then_nothing_is_written_but_the_checkpoint_of_the_shard(bench: ActorHarness) -> None:
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


def test_given_two_schedules_with_the_same_nominal_then_both_are_delivered_across_a_crash(bench: ActorHarness) -> None:
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
def test_given_a_crash_then_none_is_lost_and_repeats_have_the_same_id(bench: ActorHarness, late: int) -> None:
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(11 * SECOND)
    bench.away(late)
    bench.run(20 * SECOND)
    ids = {each.headers["tidegate-nominal"]: set[str]() for each in bench.on("out")}
    for each in bench.on("out"):
        ids[each.headers["tidegate-nominal"]].add(each.headers["tidegate-id"])
    assert {len(each) for each in ids.values()} == {1}
    assert sorted(set(nominals(bench))) == list(range(min(nominals(bench)), bench.now + 1, 2 * SECOND))


def test_given_a_planned_hand_over_then_nothing_repeats(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(11 * SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.crash()
    bench.run(10 * SECOND)
    assert max(Counter(nominals(bench)).values()) == 1
    assert tally(bench, "delivered") >= 5


def test_given_an_at_that_has_passed_then_it_is_delivered_once_whatever_follows(bench: ActorHarness) -> None:
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


def test_given_a_time_to_live_then_what_is_later_expires(bench: ActorHarness) -> None:
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


def test_given_a_message_in_front_whose_create_is_not_durable_then_each_fire_behind_it_is_sent_at_its_time() -> None:
    """Seed 832976: nothing woke the shard for them until what stood in front was ready, seconds later."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.lose(a_commit("cursor"), times=1_000)
    bench.request(a_send("m-1", after="3s"))
    bench.run(20 * SECOND)
    assert len(bench.on("out")) == 10
    assert [each.at for each in bench.on("out")] == nominals(bench)


def test_given_a_definition_that_others_push_out_of_memory_while_one_beside_it_is_read_then_its_message_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was taken for one that is not there, and the fire left out."""
    monkeypatch.setattr(message_template, "BYTES_KEPT_MAX", 2_500)  # One of them.
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring("a", payload="a" * 1_400)))
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 1
    bench.request(an_apply(a_recurring("b", payload="b" * 1_400)))
    bench.hold_back(lambda effect: isinstance(effect, Read) and a_definition("b") in effect.keys)
    bench.run(6 * SECOND)
    assert bench.holds_something
    due = format_instant(bench.now + 200)
    bench.request(an_apply(a_recurring("c", trigger={"type": "at", "instant": due}, payload="c" * 1_400)))
    bench.run(SECOND)
    bench.release()
    bench.run(5 * SECOND)
    assert [str(payload(each))[0] for each in bench.on("out")[:2]] == ["a", "c"]
    assert sorted(str(payload(each))[0] for each in bench.on("out")[2:]) == ["a", "b"]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param({"payload": 1}, id="small payloads"),
        pytest.param({"payload": 1, "headers": {"h": "v" * 3_000}}, id="headers"),
        pytest.param({"payload": 1, "message_key": "\U0001f600" * 1_000}, id="keys"),
        pytest.param({"payload": "x" * 3_000}, id="payloads"),
    ],
)
def test_given_many_schedules_then_what_is_kept_of_their_definitions_has_a_bound_whatever_they_send(
    monkeypatch: pytest.MonkeyPatch, target: Doc
) -> None:
    """Payloads alone were counted: thousands of small ones, each in a hundred times its bytes, or their headers."""
    monkeypatch.setattr(message_template, "BYTES_KEPT_MAX", 12_000)
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    names = [f"ping-{number}" for number in range(14)]
    for name in names:
        bench.request(an_apply(a_recurring(name, **target)))
    bench.run(12 * SECOND)
    bench.asked.clear()
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 2 * len(names)
    read = {key for each in bench.asked if isinstance(each, Read) for key in each.keys}
    assert {a_definition(name) for name in names} & read


def test_given_a_payload_of_many_small_lists_then_it_is_kept_as_it_goes_out() -> None:
    """Parsed it has twenty times its bytes."""
    spec = parse_schedule(a_recurring(payload=[[]] * 10_000))
    assert isinstance(spec.target, MessageTarget)
    kept = message_template.Template.of(spec.target)
    assert kept.payload == spec.target.payload_bytes
    assert kept.size == 30_001 + len("[]") + message_template.TEMPLATE_BYTES


def a_definition(name: str) -> Key:
    return keys.definition(0, "flights", name, 1)

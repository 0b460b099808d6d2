"""A shard hears of a wide control up to 5 s after it was asked for: what was due meanwhile is made, or told (SEMANTICS 10)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_request, a_spec, all_of, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.unit.tidegate_core.commands.test_scope_commands import CLOSED, ask, control, controls, made
from tidegate_core.explain.audit.expected_occurrences import expected_of, generations_of
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Read
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import PastGeneration, ScheduleState

HEARD_AFTER = 5 * SECOND
REF = "flights/nightly"


@pytest.fixture
def bench() -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(runs_for=100))
    bench.run(SECOND)
    return bench


def deafly(bench: ActorHarness, document: Doc, meanwhile: int = HEARD_AFTER) -> int:
    """Asks for a control that its home carries out, and of which no shard hears for as long; returns its append time."""
    moved = len(bench.commits("move_controls"))

    def looks_for_it(effect: Any) -> bool:
        is_look = isinstance(effect, Read) and effect.keys == (keys.SUSPENSIONS_KEY,)
        return is_look and len(bench.commits("move_controls")) > moved

    bench.hold_back(looks_for_it, times=99)
    asked_at = bench.now
    bench.request(document)
    bench.run(meanwhile)
    return asked_at


def hear(bench: ActorHarness, document: Doc) -> None:
    bench.as_usual()
    bench.run(3 * SECOND)
    assert bench.status_of(str(document["id"])) == "accepted"


def resume_heard_late(bench: ActorHarness) -> tuple[int, int]:
    """Returns the true end of the span, and when its shards had heard of it."""
    deafly(bench, control("resume"))
    heard_at = bench.now
    hear(bench, control("resume"))
    ((_, ended),) = controls(bench).scopes[0].spans
    assert ended is not None
    assert ended < heard_at - HEARD_AFTER // 2
    return ended, heard_at


def state(bench: ActorHarness) -> ScheduleState:
    (item,) = bench.rows("S#")
    return from_item(ScheduleState, item)


def definition(bench: ActorHarness, version: int) -> str:
    (item,) = [item for item in bench.rows("DEF#") if item["version"] == version]
    return str(item["spec"])


def nominals(bench: ActorHarness, name: str = "nightly") -> list[int]:
    return sorted(nominal for _, ref, nominal, _ in made(bench) if ref == name)


def seconds_between(begin: int, end: int) -> list[int]:
    """Instants of `every 1s`, `begin <= instant < end`."""
    return list(range(-(-begin // SECOND) * SECOND, end, SECOND))


# -- time triggers --------------------------------------------------------------------------------------------------------


def test_given_instants_between_a_resume_and_its_arrival_then_each_of_them_is_made(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1s"), overlap="allow")))
    ask(bench, control("suspend"))
    bench.run(MINUTE)
    ended, heard_at = resume_heard_late(bench)
    ((begun, _),) = controls(bench).scopes[0].spans
    bench.run(5 * SECOND)
    found = nominals(bench)
    assert [each for each in found if ended <= each < heard_at] == seconds_between(ended, heard_at)
    assert len(found) == len(set(found))
    assert [each for each in found if begun + SECOND <= each < ended] == []


def test_given_instants_between_a_suspend_and_its_arrival_then_each_of_them_has_an_entry(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1s"), overlap="allow", constraints=[CLOSED])))
    bench.run(5 * SECOND)
    begun = deafly(bench, control("suspend"))
    heard_at = bench.now
    hear(bench, control("suspend"))
    assert [each for each in nominals(bench) if begun <= each < heard_at] == seconds_between(begun, heard_at)
    assert {what for what, _, _, _ in made(bench)} == {"cancelled/suspended"}


def test_given_both_are_heard_at_once_then_the_instants_behind_the_resume_are_made(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1s"), overlap="allow")))
    bench.run(5 * SECOND)
    begun = deafly(bench, control("suspend"), 3 * SECOND)
    bench.request(control("resume"))
    bench.run(3 * SECOND)
    hear(bench, control("resume"))
    found = nominals(bench)
    assert len(found) == len(set(found))
    ((_, ended),) = controls(bench).scopes[0].spans
    assert ended is not None
    assert [each for each in found if each < begun] == seconds_between(found[0], begun)
    assert [each for each in found if each >= ended] == seconds_between(ended, found[-1] + 1)


def test_given_a_suspended_span_then_nothing_is_written_for_its_instants(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1s"), overlap="allow")))
    ask(bench, control("suspend"))
    bench.run(2 * SECOND)
    before, commits = state(bench), len(bench.commits("fire"))
    bench.run(10 * MINUTE)
    assert state(bench) == before
    assert len(bench.commits("fire")) == commits


def test_given_the_owner_falls_within_the_span_then_its_successor_goes_on_at_the_resume(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1s"), overlap="allow")))
    ask(bench, control("suspend"))
    bench.run(10 * SECOND)
    bench.crash()
    bench.run(10 * SECOND)
    ended, heard_at = resume_heard_late(bench)
    bench.run(5 * SECOND)
    assert [each for each in nominals(bench) if ended <= each < heard_at] == seconds_between(ended, heard_at)


# -- requests meanwhile ---------------------------------------------------------------------------------------------------


def test_given_a_suspended_span_then_a_request_is_answered_with_what_is_still_to_come(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    ask(bench, control("suspend"))
    bench.run(10 * MINUTE)
    receipt = ask(
        bench, an_apply(a_spec(args=["b"], trigger=every("10s"), overlap="allow"), "update", on_update="carry")
    )
    assert receipt["status"] == "accepted"
    assert parse_instant(receipt["next"][0]) >= bench.now - 2 * SECOND
    ask(bench, control("resume"))
    resumed_at = bench.now
    bench.run(MINUTE)
    assert nominals(bench) == [each for each in nominals(bench) if each >= resumed_at - 2 * SECOND]
    assert len(nominals(bench)) == 6


@pytest.mark.parametrize("request_type", ["delete", "suspend"])
def test_given_a_request_that_a_shard_deals_with_before_it_hears_of_the_resume_then_the_generation_says_so(
    bench: ActorHarness, request_type: str
) -> None:
    """Both are under way at once, and it may as well have come before the resume: the audit knows."""
    bench.request(an_apply(a_spec(trigger=every("1s"), overlap="allow")))
    bench.run(3 * SECOND + SECOND // 2)
    ask(bench, control("suspend"))
    ((begun, _),) = controls(bench).scopes[0].spans
    bench.run(10 * SECOND)
    deafly(bench, control("resume"), 3 * SECOND)
    bench.request(a_request(request_type))
    bench.run(2 * SECOND)
    hear(bench, control("resume"))
    past = [from_item(PastGeneration, item) for item in bench.rows("V#")]
    assert [each.suspended_since for each in past] == [begun]
    generations = generations_of(state(bench), past)
    window = Window(0, bench.now)
    expected = expected_of(REF, generations, lambda version: definition(bench, version), controls(bench), window)
    (must,) = expected.must.values()
    assert sorted(must) == nominals(bench)
    assert expected.unsure == set()


# -- composites' ticks and reminders --------------------------------------------------------------------------------------


def test_given_a_tick_between_a_resume_and_its_arrival_then_it_latches(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=all_of(every("1m"), on_data()))))
    ask(bench, control("suspend"))
    bench.run(10 * MINUTE)
    bench.run(MINUTE - bench.now % MINUTE - SECOND)
    tick = bench.now + SECOND
    resume_heard_late(bench)
    bench.event(an_event("2026"))
    bench.run(5 * SECOND)
    assert [nominal for what, _, nominal, _ in made(bench)] == [tick]


def test_given_a_span_of_many_ticks_then_they_are_passed_by_in_one_step_and_the_next_one_latches(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_spec(trigger=all_of(every("1s", driver="time"), on_data()))))
    bench.run(2 * SECOND)
    ask(bench, control("suspend"))
    bench.run(20 * MINUTE)
    before = len(bench.commits("latch"))
    ask(bench, control("resume"), 4 * SECOND)
    assert len(bench.commits("latch")) - before <= 5
    assert 2 <= len(bench.rows("E#")) <= 5


def test_given_a_reminder_between_a_resume_and_its_arrival_then_it_is_dealt_with(bench: ActorHarness) -> None:
    trigger = {**on_data(), "at_least_every": "1m", "allow_empty": True}
    bench.request(an_apply(a_spec(trigger=trigger)))
    bench.run(SECOND)
    first = state(bench).next_nominal
    assert first is not None
    ask(bench, control("suspend"))
    bench.run(first + 10 * MINUTE - SECOND - bench.now)
    assert state(bench).next_nominal == first
    resume_heard_late(bench)
    bench.run(5 * SECOND)
    assert len(bench.started) == 1
    following = state(bench).next_nominal
    assert following is not None
    assert following > bench.now


def test_given_a_reminder_within_a_span_then_none_of_it_is_dealt_with_and_they_go_on_at_their_pace(
    bench: ActorHarness,
) -> None:
    trigger = {**on_data(), "at_least_every": "1m", "allow_empty": True}
    bench.request(an_apply(a_spec(trigger=trigger)))
    bench.run(SECOND)
    first = state(bench).next_nominal
    assert first is not None
    ask(bench, control("suspend"))
    bench.run(first + 10 * MINUTE + 30 * SECOND - bench.now)
    ask(bench, control("resume"))
    assert bench.started == []
    assert state(bench).next_nominal == first + 11 * MINUTE
    bench.run(30 * SECOND)
    assert len(bench.started) == 1

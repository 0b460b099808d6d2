"""A schedule goes on from a hold before its shard hears that a wide suspend is over: what came due between the two is of its backlog."""

from __future__ import annotations

import pytest

from tests.support.builders import SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.effect_matchers import a_commit
from tests.unit.tidegate_core.commands.test_controls_heard_late import deafly, hear, seconds_between
from tests.unit.tidegate_core.commands.test_scope_commands import ask, control, made
from tests.unit.tidegate_core.commands.test_updates_after_wide_suspends import audited
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Effect, Invalid

LAUNCHED, LEFT_OUT = "launched", "cancelled/suspended"
NOT_ALL = pytest.mark.parametrize("backlog", ["none", "last", "coalesce"])


@pytest.fixture
def bench() -> ActorHarness:
    bench = ActorHarness(behaviour=Behaviour(runs_for=100))
    bench.run(SECOND)
    return bench


def unheard(bench: ActorHarness, trigger: Doc | None = None) -> int:
    """Suspends a schedule and all of its namespace, and resumes this again; returns when that was. No shard has heard of it."""
    bench.request(an_apply(a_spec(trigger=trigger or every("1s"), overlap="allow")))
    bench.run(3 * SECOND + SECOND // 2)
    ask(bench, control("suspend"))
    hold(bench)
    bench.run(10 * SECOND)
    return deafly(bench, control("resume"))


def hold(bench: ActorHarness, request_id: str = "hold", **more: str) -> None:
    assert ask(bench, a_request("suspend", request_id=request_id, mode="hold", **more), 0)["status"] == "accepted"


def go_on(bench: ActorHarness, backlog: str, request_id: str = "go on") -> int:
    """Resumes the schedule, and returns when that was."""
    receipt = ask(bench, a_request("resume", request_id=request_id, backlog=backlog), 0)
    assert (receipt["status"], receipt["backlog"], receipt["discarded"]["jobs"]) == ("accepted", 0, [])
    return bench.now


def told(bench: ActorHarness, begin: int, end: int) -> dict[int, str]:
    """Returns what became of the instants of a span, each of which has one entry; the audit wants no others."""
    bench.run(3 * SECOND)
    found = [(nominal, what) for what, _, nominal, _ in made(bench)]
    assert len(found) == len(dict(found))
    (must,) = audited(bench).must.values()
    assert must <= dict(found).keys()
    return {nominal: what for nominal, what in sorted(found) if begin <= nominal < end}


@NOT_ALL
@pytest.mark.parametrize("by", ["its owner", "a successor"])
def test_given_a_resume_that_leaves_out_some_of_the_backlog_then_what_came_due_before_it_does_not_run(
    bench: ActorHarness, backlog: str, by: str
) -> None:
    """Simulation, seed 30000010: all of it ran, long after the resume was acknowledged, and none of it was counted as backlog."""
    ended = unheard(bench)
    resumed = go_on(bench, backlog)
    bench.run(3 * SECOND)
    if by == "a successor":
        bench.crash()
        bench.run(5 * SECOND)
    hear(bench, control("resume"))
    assert told(bench, ended, resumed) == dict.fromkeys(seconds_between(ended, resumed), LEFT_OUT)
    behind = told(bench, resumed, resumed + 3 * SECOND)
    assert behind == dict.fromkeys(seconds_between(resumed, resumed + 3 * SECOND), LAUNCHED)


def test_given_all_of_the_backlog_then_all_of_it_runs(bench: ActorHarness) -> None:
    ended = unheard(bench)
    resumed = go_on(bench, "all")
    hear(bench, control("resume"))
    assert told(bench, ended, resumed) == dict.fromkeys(seconds_between(ended, resumed), LAUNCHED)


def test_given_a_second_hold_all_of_which_goes_on_then_what_the_first_resume_left_out_does_not(
    bench: ActorHarness,
) -> None:
    ended = unheard(bench)
    first = go_on(bench, "none")
    hold(bench, "hold again")
    bench.run(3 * SECOND)
    second = go_on(bench, "all", "go on again")
    hear(bench, control("resume"))
    assert told(bench, ended, first) == dict.fromkeys(seconds_between(ended, first), LEFT_OUT)
    assert told(bench, first, second) == dict.fromkeys(seconds_between(first, second), LAUNCHED)


def test_given_a_hold_that_ended_before_the_resume_then_what_came_due_behind_its_end_runs(bench: ActorHarness) -> None:
    """Nothing from `until` on was held, so none of it is backlog."""
    bench.request(an_apply(a_spec(trigger=every("1s"), overlap="allow")))
    bench.run(3 * SECOND + SECOND // 2)
    ask(bench, control("suspend"))
    until = bench.now + 5 * SECOND
    hold(bench, until=format_instant(until))
    ended = deafly(bench, control("resume"), 2 * SECOND)
    asked = until + 2 * SECOND

    def carries_the_end_out(effect: Effect) -> bool:
        return bench.now < asked and a_commit("control")(effect)

    bench.answer_with(carries_the_end_out, Invalid("scripted"), times=99)
    bench.run(asked - bench.now)
    resumed = go_on(bench, "none")
    hear(bench, control("resume"))
    assert told(bench, ended, until) == dict.fromkeys(seconds_between(ended, until), LEFT_OUT)
    assert told(bench, until, resumed) == dict.fromkeys(seconds_between(until, resumed), LAUNCHED)


@NOT_ALL
@pytest.mark.parametrize("how", ["restart", "finish_old", "carry"])
def test_given_an_update_behind_it_then_it_makes_up_for_nothing_that_was_left_out(
    bench: ActorHarness, backlog: str, how: str
) -> None:
    ended = unheard(bench)
    resumed = go_on(bench, backlog)
    bench.run(2 * SECOND)
    new = a_spec(args=["b"], trigger=every("1s"), overlap="allow", catchup={"after_update": "all"})
    assert ask(bench, an_apply(new, "update", on_update=how), 0)["status"] == "accepted"
    updated = bench.now
    hear(bench, control("resume"))
    assert set(told(bench, ended, resumed).values()) <= {LEFT_OUT}
    assert told(bench, resumed, updated) == dict.fromkeys(seconds_between(resumed, updated), LAUNCHED)


def test_given_an_instant_that_was_left_out_and_comes_with_an_update_then_it_runs(bench: ActorHarness) -> None:
    at = bench.now + 20 * SECOND
    trigger: Doc = {"type": "at", "instant": format_instant(at)}
    ended = unheard(bench, trigger)
    bench.run(at + SECOND - bench.now)
    assert ended < at < go_on(bench, "none")
    new = a_spec(args=["b"], trigger=trigger, overlap="allow")
    assert ask(bench, an_apply(new, "update", on_update="restart"), 0)["status"] == "accepted"
    hear(bench, control("resume"))
    assert told(bench, at, at + 1) == {at: LAUNCHED}

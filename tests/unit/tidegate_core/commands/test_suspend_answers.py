"""What a suspend and requests after it are answered, whatever falls meanwhile (SEMANTICS 10; row CD-170)."""

from __future__ import annotations

import pytest

from tests.support import tier
from tests.support.builders import MINUTE, SECOND, a_recurring, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.request_bench import CLOSED, answer
from tests.support.harness.suspend_bench import MODES, a_bench, suspend, waiting
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import Watch


@pytest.mark.parametrize("mode", MODES)
def test_given_a_suspended_schedule_then_the_same_mode_is_unchanged_and_another_a_conflict(mode: str) -> None:
    """Row CD-127: suspending the suspended; who wants other than it is has to resume it first."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    suspend(bench, mode)
    for other in [None, *MODES]:
        wanted = {} if other is None else {"mode": other}
        receipt = answer(bench, a_request("suspend", request_id=f"again-{other}", **wanted))
        assert receipt["status"] == ("unchanged" if other in (None, mode) else "conflict")
    state = bench.state_of()
    assert state is not None
    assert state.mode == mode


def test_given_a_mode_of_the_schedules_own_then_a_suspend_without_one_takes_it() -> None:
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"), suspend_mode="hold")))
    bench.request(a_request("suspend"))
    bench.run(2 * MINUTE)
    assert len(waiting(bench)) == 2


@pytest.mark.parametrize("mode", ["drain", "hold", "freeze"])
def test_given_a_schedule_that_sends_messages_then_it_knows_drop_alone(mode: str) -> None:
    bench = a_bench()
    bench.request(an_apply(a_recurring("nightly")))
    receipt = suspend(bench, mode)
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", "mode")
    assert suspend(bench, "drop", request_id="drop")["status"] == "accepted"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ends", ["resume", "until"])
def test_given_a_suspended_schedule_whose_target_becomes_a_message_then_nothing_is_sent_until_it_is_resumed(
    mode: str, ends: str
) -> None:
    """Found in review (I7): held as a program's it went on as one, and the held schedule sent whatever fell due."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    until = {"until": format_instant(bench.now + 10 * MINUTE)} if ends == "until" else {}
    assert suspend(bench, mode, **until)["status"] == "accepted"
    bench.run(2 * MINUTE)
    receipt = answer(bench, an_apply(a_recurring("nightly", every("10s")), "other"))
    assert (receipt["status"], receipt["next"]) == ("accepted", [])
    state = bench.state_of()
    assert state is not None
    assert (state.status, state.mode) == ("suspended", "drop")
    bench.run(5 * MINUTE)
    bench.crash()
    bench.run(MINUTE)
    assert bench.on("out") == []
    if ends == "resume":
        assert answer(bench, a_request("resume"))["status"] == "accepted"
    else:
        bench.run(state.until - bench.now if state.until else 0)
    before = len(bench.on("out"))
    bench.run(MINUTE)
    assert len(bench.on("out")) - before == 6
    assert bench.started == []


@pytest.mark.parametrize("mode", MODES)
def test_given_a_repeated_cycle_then_the_schedule_fires_as_before(mode: str) -> None:
    """Row CD-170: suspended, resumed, suspended again: each is accepted."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    for number in range(3):
        assert suspend(bench, mode, request_id=f"s{number}")["status"] == "accepted"
        assert answer(bench, a_request("resume", request_id=f"r{number}"))["status"] == "accepted"
        bench.run(MINUTE)
    assert len(bench.started) == 3


@pytest.mark.parametrize("mode", MODES)
def test_given_an_update_or_a_delete_while_suspended_then_what_is_pending_ends(mode: str) -> None:
    update = an_apply(a_spec(trigger=every("1m"), args=["new"]), "it", on_update="restart")
    for request_ in (update, a_request("delete", request_id="it")):
        bench = a_bench()
        bench.request(an_apply(a_spec(trigger=every("1m"), constraints=[CLOSED])))
        bench.run(3 * MINUTE)
        suspend(bench, mode)
        receipt = answer(bench, request_)
        assert len((receipt["discarded"] or {"jobs": []})["jobs"]) == (0 if mode == "drop" else 3)
        assert waiting(bench) == []


def test_given_a_manual_run_then_it_is_rejected_in_every_mode() -> None:
    """SEMANTICS 4: a manual trigger skips the trigger only; suspend holds for it."""
    for mode in MODES:
        bench = a_bench()
        bench.request(an_apply(a_spec(trigger=every("1h"))))
        suspend(bench, mode)
        assert answer(bench, a_request("trigger"))["status"] == "rejected"


@pytest.mark.parametrize("mode", ["drop", "hold", "freeze"])
@pytest.mark.parametrize("effect", range(1, 12, tier.at_night(1, else_=3)))
def test_given_a_crash_at_any_effect_of_a_suspend_then_nothing_starts_after_its_answer(mode: str, effect: int) -> None:
    """I7, with programs that come to the gate at any time around it."""
    bench = a_bench(Behaviour(starts_after=SECOND))
    bench.request(an_apply(a_spec(trigger=every("1s"), overlap="allow")))
    bench.run(3_500)
    bench.crash_after = bench.effects_outside + effect
    bench.request(a_request("suspend", mode=mode))
    while bench.status_of("suspend-nightly") is None:
        bench.run(10)
    started = len(bench.started)
    bench.run(MINUTE)
    assert len(bench.started) == started
    answer(bench, a_request("resume"), run=5 * SECOND)
    assert len(bench.started) > started
    assert bench.notices("decision_failed") == []


@pytest.mark.parametrize("mode", MODES)
def test_given_a_program_that_has_reported_its_end_then_no_mode_lists_it_as_running(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: of a run whose owner had not heard of its end yet all modes but `drop` said that it was running."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=SECOND))
    monkeypatch.setattr(bench, "_poke", lambda order: None)
    bench.hold_back(lambda effect: isinstance(effect, Watch))
    bench.request(an_apply(a_spec(trigger=every("10h"))))
    bench.request(a_request("trigger"))
    bench.run(2 * SECOND)
    assert "ended_at" in bench.rows("R#")[0]
    assert suspend(bench, mode)["running"] == []

"""A terminal state that is told, and told again after a crash: outsiders see it twice under one id, listeners once (DESIGN 6)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, RUNS, SECOND, a_request, a_spec, an_apply, every, on_run_of
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.effect_matchers import Match, a_batch, a_commit
from tests.support.harness.recorded_effects import Sent
from tidegate_core.rows.effects import Effect, Produce

TIMES = 3


def the_end_is_told(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == RUNS and b'"succeeded"' in effect.value


@pytest.mark.parametrize(
    ("under_way", "carried_out"),
    [
        pytest.param(the_end_is_told, True, id="produced, not acknowledged"),
        pytest.param(a_batch("outbox_done"), False, id="acknowledged, not deleted"),
        pytest.param(a_commit("distribute"), True, id="handed on, not known"),
        pytest.param(a_commit("distribute"), False, id="not handed on"),
    ],
)
def test_given_an_end_that_is_told_and_a_crash_again_and_again_then_listeners_hear_it_once(
    under_way: Match, carried_out: bool
) -> None:
    bench = ActorHarness(behaviour=Behaviour(runs_for=SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec("down", on_run_of("up"))))
    bench.request(an_apply(a_spec("up", every("1h"))))
    bench.run(SECOND)
    bench.hold_back(under_way, times=TIMES, answer_only=carried_out)
    bench.request(a_request("trigger", "up"))
    held = 0
    for _ in range(TIMES):
        bench.run(5 * SECOND)
        held += bench.holds_something
        bench.crash()
    bench.as_usual()
    bench.run(MINUTE)

    assert held > 0
    told = [sent.value for sent in bench.on(RUNS) if _is_the_end_of(sent, "up")]
    assert len(set(told)) == 1, "the same record each time"
    assert [entry[1] for entry in bench.ledger()].count("down") == 1
    assert [order.file for order in bench.started] == ["/jobs/up.py", "/jobs/down.py"]
    assert bench.rows("Z#") == []


def test_given_an_end_that_nobody_heard_and_a_listener_before_its_row_is_gone_then_that_one_does_not_hear_it() -> None:
    """The row says nothing of it, and the successor matches anew: what was admitted before an activation does not count."""
    bench = ActorHarness(behaviour=Behaviour(runs_for=SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("1h"))))
    bench.run(SECOND)
    bench.hold_back(a_batch("outbox_done"), times=1)
    bench.request(a_request("trigger", "up"))
    bench.run(5 * SECOND)
    assert bench.holds_something
    assert bench.commits("distribute") == []
    bench.request(an_apply(a_spec("down", on_run_of("up"))))
    bench.run(5 * SECOND)
    bench.crash()
    bench.as_usual()
    bench.run(MINUTE)

    assert [order.file for order in bench.started] == ["/jobs/up.py"]
    assert bench.rows("Z#") == []


def test_given_an_end_that_was_told_twice_then_both_say_which_end_it_is() -> None:
    """At least once, with an id: an outsider that reads `tidegate.runs` can tell a repeat."""
    bench = ActorHarness(behaviour=Behaviour(runs_for=SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("1h"))))
    bench.request(a_request("trigger", "up"))
    bench.hold_back(the_end_is_told, answer_only=True)
    bench.run(5 * SECOND)
    bench.crash()
    bench.run(5 * SECOND)
    told = [sent.document for sent in bench.on(RUNS) if _is_the_end_of(sent, "up")]
    assert len(told) == 2
    assert {(each["run_id"], each["attempt"], each["state"]) for each in told} == {
        (bench.started[0].run_id, 1, "succeeded")
    }


def _is_the_end_of(sent: Sent, schedule: str) -> bool:
    return sent.document["state"] == "succeeded" and str(sent.document["schedule"]).endswith(schedule)

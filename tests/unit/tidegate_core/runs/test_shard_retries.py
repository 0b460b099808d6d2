"""Retries from the program's end to its next attempt, on a virtual clock (SEMANTICS 8)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, at_most, every, on_run_of
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.retry_bench import FAILS, a_schedule, begun, by_hand, ends, failing
from tests.support.harness.shard_bench import a_bench, states, the_run
from tidegate_core.rows.effects import Effect, NotSubmitted, Submit
from tidegate_core.writes.start_gate import finish_run, report_outputs


def test_given_a_program_that_fails_then_it_is_tried_again_after_pauses_that_double() -> None:
    bench = a_bench()
    bench.behaves = failing(9)
    a_schedule(bench, tries=3, retry={"backoff": "30s", "max_backoff": "50s"})
    bench.run(HOUR)
    assert begun(bench) == [(1, 0), (2, 30), (3, 80), (4, 130)]
    assert ends(bench) == ["failed"]
    (told,) = bench.notices("retries_exhausted")
    assert tuple(told.fields[name] for name in ("attempt", "error_class", "why")) == (
        4,
        "unknown",
        "tries: 3 are used up",
    )


def test_given_no_tries_then_a_failed_run_stays_failed() -> None:
    bench = a_bench(FAILS)
    a_schedule(bench, tries=0)
    bench.run(HOUR)
    assert begun(bench) == [(1, 0)]
    assert bench.notices("retries_exhausted") == []


def test_given_a_try_that_succeeds_then_the_occurrence_has_one_entry_and_tells_once() -> None:
    bench = a_bench()
    bench.behaves = failing(1)
    bench.request(an_apply(a_spec("after", on_run_of("nightly", "succeeded", "failed"))))
    run_id = a_schedule(bench)
    bench.run(MINUTE)
    entries = [row for row in bench.rows("L#") if row["name"] == "nightly"]
    assert [(row["job_id"], row["disposition"], row["state"]) for row in entries] == [(run_id, "launched", "succeeded")]
    assert [order.run_id for order in bench.started].count(run_id) == 2
    assert len([order for order in bench.started if order.context["schedule"]["name"] == "after"]) == 1  # type: ignore[call-overload,index]


def test_given_the_number_of_the_attempt_in_its_arguments_then_each_try_has_its_own() -> None:
    bench = a_bench()
    bench.behaves = failing(1)
    a_schedule(bench, args=["--try", "${attempt}"])
    bench.run(MINUTE)
    assert [order.args for order in bench.started] == [("--try", "1"), ("--try", "2")]


def test_given_outputs_of_a_try_that_failed_then_the_next_one_counts_its_own_from_the_start() -> None:
    bench = a_bench(FAILS)
    run_id = a_schedule(bench, retry={"backoff": "30s"})
    bench.run(50)
    (row,) = bench.rows("R#")
    bench.transact(report_outputs(run_id, 1, str(row["driver"]), '{"rows":1}', 7, "t"))
    assert bench.rows("R#")[0]["outputs_seq"] == 7
    bench.run(SECOND)
    (row,) = bench.rows("R#")
    assert (row["attempt"], row.get("outputs"), row.get("outputs_seq")) == (2, None, None)


@pytest.mark.parametrize(
    ("error_class", "on", "attempts"),
    [
        pytest.param("config", None, 1, id="config: it would fail again"),
        pytest.param("auth", None, 1, id="auth"),
        pytest.param("user_code", None, 1, id="user_code"),
        pytest.param("transient", None, 3, id="transient"),
        pytest.param("oom", None, 3, id="oom"),
        pytest.param(None, None, 3, id="nobody says"),
        pytest.param("user_code", ["user_code"], 3, id="wanted by name"),
        pytest.param("transient", ["unknown"], 1, id="not wanted"),
        pytest.param("preempted", None, 6, id="preempted costs no try"),
        pytest.param("quota", None, 6, id="quota costs no try"),
    ],
)
def test_given_an_error_class_then_it_decides_on_further_tries(
    error_class: str | None, on: list[str] | None, attempts: int
) -> None:
    bench = a_bench()
    bench.behaves = failing(5, error_class)
    a_schedule(bench, retry={"backoff": "1s", **({} if on is None else {"errors": on})})
    bench.passes_over_routine = True
    bench.run(HOUR)
    assert len(bench.started) == attempts


def test_given_retries_then_the_run_keeps_its_permits_and_nobody_overtakes_it() -> None:
    bench = a_bench()
    bench.behaves = failing(1)
    first = a_schedule(bench, constraints=[at_most(1, "program")])
    bench.run(SECOND)
    second = by_hand(bench)
    bench.run(20 * SECOND)
    assert [row["in_use"] for row in bench.rows("LIMIT")] == [1]
    bench.run(2 * MINUTE)
    assert [order.run_id for order in bench.started] == [first, first, second, second]
    assert [row["in_use"] for row in bench.rows("LIMIT")] == [0]
    assert bench.rows("LIM#")[0].get("holders", []) == []


@pytest.mark.parametrize("how", ["suspend", "hold", "freeze", "delete", "update", "cancel", "wide"])
def test_given_a_stop_while_a_try_is_waited_for_then_there_is_none_and_the_entry_says_how_it_failed(how: str) -> None:
    """I7: nothing starts after the acknowledgement; and what has run is never told of as cancelled."""
    bench = a_bench(FAILS)
    run_id = a_schedule(bench, constraints=[at_most(1, "program")])
    bench.run(5 * SECOND)
    stops: dict[str, dict[str, Any]] = {
        "hold": a_request("suspend", mode="hold"),
        "freeze": a_request("suspend", mode="freeze"),
        "update": an_apply(a_spec(trigger=every("11h")), "again"),
        "cancel": {"id": "c", "type": "run.cancel", "namespace": "flights", "run_id": run_id},
        "wide": {"id": "w", "type": "control.suspend", "scope": "namespace", "namespace": "flights"},
    }
    bench.request(stops.get(how) or a_request(how))
    bench.run(HOUR)
    assert len(bench.started) == 1
    (entry,) = [row for row in bench.rows("L#") if row["job_id"] == run_id]
    assert (entry["disposition"], entry["state"]) == ("launched", "failed")
    assert "not tried again" in str(entry["detail"])
    assert [row["in_use"] for row in bench.rows("LIMIT")] == [0]


def test_given_a_drain_while_a_try_is_waited_for_then_it_comes() -> None:
    bench = a_bench()
    bench.behaves = failing(1)
    a_schedule(bench)
    bench.run(5 * SECOND)
    bench.request(a_request("suspend", mode="drain"))
    bench.run(MINUTE)
    assert ends(bench) == ["succeeded"]


def test_given_a_program_that_fails_after_its_schedule_has_gone_then_it_stays_failed() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=10 * SECOND, outcome="failed"))
    a_schedule(bench)
    bench.run(5 * SECOND)
    bench.request(a_request("delete"))
    bench.run(HOUR)
    assert len(bench.started) == 1
    assert ends(bench) == ["failed"]


def test_given_a_program_that_was_asked_to_end_then_it_is_not_tried_again() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=10 * SECOND, outcome="failed"))
    run_id = a_schedule(bench)
    bench.run(5 * SECOND)
    bench.request({"id": "c", "type": "run.cancel", "namespace": "flights", "run_id": run_id})
    bench.run(HOUR)
    assert len(bench.started) == 1
    assert ends(bench) == ["killed"]


@pytest.mark.parametrize(
    ("outcome", "answer", "told"),
    [
        pytest.param("failed", "cancelled", "not tried again: by_request", id="an attempt would follow"),
        pytest.param("succeeded", "too_late", None, id="it succeeded"),
    ],
)
def test_given_a_cancel_before_anybody_has_looked_at_the_end_then_no_attempt_follows_its_answer(
    outcome: str, answer: str, told: str | None
) -> None:
    """I7. The end is on the run's item, and the owner has not been told."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=None))
    run_id = a_schedule(bench, constraints=[at_most(1, "program")])
    bench.run(SECOND)
    driver = str(bench.rows("R#")[0]["driver"])
    bench.transact(finish_run(run_id, 1, driver, outcome, 1, "boom", None, None, bench.now, "t"))
    bench.request({"id": "c", "type": "run.cancel", "namespace": "flights", "run_id": run_id})
    assert bench.receipts()["c"]["status"] == answer
    bench.run(HOUR)
    assert len(bench.started) == 1
    (entry,) = [row for row in bench.rows("L#") if row["job_id"] == run_id]
    assert (entry["disposition"], entry["state"]) == ("launched", outcome)
    assert entry.get("detail") == (f"boom; {told}" if told else "boom")
    assert [row["in_use"] for row in bench.rows("LIMIT")] == [0]


def test_given_a_try_on_another_host_than_the_one_before_then_its_copy_is_the_runs() -> None:
    bench = a_bench()
    bench.behaves = lambda order: FAILS if order.attempt == 1 else Behaviour(starts_after=10, runs_for=None)
    a_schedule(bench)
    bench.run(5 * SECOND)
    bench.host = "host-2"
    bench.run(MINUTE)
    (row,) = [row for row in bench.rows("R#") if row["attempt"] == 2]
    assert (row["host"], row["driver_host"]) == ("host-2", "host-2")


def test_given_an_owner_that_falls_while_a_try_is_waited_for_then_the_successor_makes_it_at_its_time() -> None:
    bench = a_bench()
    bench.behaves = failing(1)
    a_schedule(bench)
    bench.run(5 * SECOND)
    bench.crash()
    bench.run(MINUTE)
    assert begun(bench) == [(1, 0), (2, 30)]
    assert ends(bench) == ["succeeded"]


def test_given_a_crash_at_any_effect_then_each_attempt_starts_once_and_the_end_is_the_same() -> None:
    """I2 and I4, whatever is under way."""
    for crash_after in range(1, 40, tier.at_night(1, else_=3)):
        bench = a_bench()
        bench.behaves = failing(1)
        bench.crash_after = bench.effects_outside + crash_after
        a_schedule(bench, retry={"backoff": "1s"}, constraints=[at_most(1, "program")])
        bench.run(2 * MINUTE)
        assert ends(bench) == ["succeeded"], crash_after
        assert [row["in_use"] for row in bench.rows("LIMIT")] == [0], crash_after
        assert sorted(order.attempt for order in bench.started) == [1, 2], crash_after


def test_given_a_try_that_was_long_on_its_way_to_the_gate_then_it_is_not_lost_as_soon_as_it_has_passed() -> None:
    """Found in review: the ten minutes in which it may be found were counted from when it was to be submitted."""

    def second(effect: Effect) -> bool:
        return isinstance(effect, Submit) and effect.order.attempt == 2

    bench = a_bench()
    bench.behaves = lambda order: FAILS if order.attempt == 1 else Behaviour(starts_after=SECOND, runs_for=HOUR)
    bench.request(an_apply(a_spec("rescue", on_run_of("nightly", "lost"))))
    bench.answer_with(second, NotSubmitted("the platform is away"), times=99)
    a_schedule(bench, tries=1, retry={"backoff": "10s"})
    bench.run(12 * MINUTE)
    bench.end_scripts()
    bench.hold_back(second, answer_only=True)
    bench.run(8 * MINUTE)
    run = the_run(bench)
    assert run is not None
    assert (run.attempt, run.state, run.external_id) == (2, "running", None)
    bench.run(4 * MINUTE)
    assert states(bench)[:3] == ["running", "running", "lost"]
    bench.release()
    bench.run(HOUR)
    assert ends(bench)[0] == "succeeded"

from __future__ import annotations

import pytest

from tests.support.checkers.stops import Stop, StopAnswer, judge_stops
from tests.support.cluster.evidence import ProgramRun

DUE = 100_000


def a_run(started_at: int, run_id: str = "r1", ended: bool = True) -> ProgramRun:
    return ProgramRun(
        run_id=run_id,
        attempt=1,
        schedule="stop-1",
        nominal=DUE,
        correlation=None,
        upstream=None,
        manifest=(),
        pid=7,
        started_at=started_at,
        started_ns=started_at * 1_000_000,
        ended_at=started_at + 10 if ended else None,
        ended_ns=(started_at + 10) * 1_000_000 if ended else None,
    )


def a_stop(
    answered_at: int | None, status: str = "accepted", running: frozenset[str] = frozenset(), acknowledged: bool = True
) -> Stop:
    answer = None if answered_at is None else StopAnswer(status, answered_at, running)
    return Stop("stop-1", DUE, "suspend", acknowledged, answer)


@pytest.mark.parametrize(
    ("stop", "runs", "faults"),
    [
        pytest.param(a_stop(DUE + 300), [a_run(DUE + 400)], ["stale"], id="started after the answer"),
        pytest.param(
            a_stop(DUE + 300, running=frozenset({"r1"})), [a_run(DUE + 400)], [], id="past the gate, and listed"
        ),
        pytest.param(a_stop(DUE + 300), [a_run(DUE - 1)], ["early"], id="a millisecond early"),
        pytest.param(
            a_stop(DUE + 900), [a_run(DUE + 100), a_run(DUE + 200)], ["doubled"], id="two processes of one instant"
        ),
        pytest.param(a_stop(DUE + 300), [a_run(DUE + 200, ended=False)], ["incomplete"], id="no end"),
        pytest.param(a_stop(None), [], ["unanswered"], id="the broker has it and nobody answered"),
        pytest.param(a_stop(DUE + 300, "unchanged"), [], ["lost"], id="it had ended already, and never ran"),
    ],
)
def test_given_a_stop_about_its_instant_then_nothing_may_start_after_the_answer(
    stop: Stop, runs: list[ProgramRun], faults: list[str]
) -> None:
    assert [fault.kind for fault in judge_stops([stop], runs)] == faults

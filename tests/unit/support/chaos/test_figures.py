from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.nemeses.strike import Strike
from tests.chaos.rig.campaign_report import Figures, Phase
from tests.chaos.rig.load import Collected
from tests.support.checkers.faults import Fault
from tests.support.checkers.messages import Crash, Delivery, Sent
from tests.support.checkers.stops import Stop, StopAnswer

KILL = Strike(
    "kill", ("node-1",), 1_000, 1_010, 9_000, {"kills": 1, "took_over_ms": 7_000}, [Crash(1_000, frozenset({3}), 9_000)]
)
NEAR = Stop("stop-1", 5_000, "delete", True, StopAnswer("accepted", 5_300, frozenset()))
FAR = Stop("stop-2", 5_000, "delete", True, StopAnswer("accepted", 9_300, frozenset()))
GOT = Collected(
    deliveries=[Delivery(1, "0003-a", 8_000, 8_010), Delivery(1, "0003-a", 8_000, 8_900)],
    sent=[
        Sent(1, 8_000, "never", cancel_answered_at=8_500),
        Sent(2, 8_000, cancel_answered_at=8_501),
        Sent(3, 8_000),
        Sent(4, 8_000, "never", cancel_answered_at=7_500),
    ],
    stops=[(NEAR, 2_000), (NEAR, None), (NEAR, 999), (NEAR, 9_001), (FAR, 2_000)],
    aimed_cancels={2: 9_000, 4: 1_000},
    unanswered=[],
    programs=4,
    events=6,
    of_unknown_fate=2,
)


def the_figures(*phases: Phase, faults: tuple[Fault, ...] = ()) -> Figures:
    return Figures(7, 120.0, phases, GOT, faults, {"fenced": 2}, repeats_amid_moves=3)


@pytest.mark.parametrize(
    ("figures", "holds"),
    [
        pytest.param(the_figures(Phase("kill", [KILL]), faults=(Fault("lost", "x"),)), False, id="a fault"),
        pytest.param(the_figures(Phase("kill", [KILL]), Phase("pause", [], "no strike")), False, id="a void phase"),
    ],
)
def test_given_a_fault_or_a_void_phase_then_it_did_not_hold(figures: Figures, holds: bool) -> None:
    assert figures.holds is holds


def test_given_a_strike_that_nobody_felt_then_the_phase_and_the_figures_do_not_count_it() -> None:
    unfelt = replace(KILL, bit=False)
    phase = Phase("kill", [KILL, unfelt, unfelt])
    figures = the_figures(phase).document()
    assert "3 strikes 1 bit recovered" in " ".join(phase.line().split())
    assert (figures["strikes"], figures["strikes_that_bit"]) == (3, 1)

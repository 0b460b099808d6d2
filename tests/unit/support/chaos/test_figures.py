from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.nemeses.strike import Strike
from tests.chaos.rig.campaign_report import Figures, Phase
from tests.chaos.rig.load import Collected
from tests.support.checkers.faults import Fault
from tests.support.checkers.lateness import HandOver
from tests.support.checkers.messages import Crash, Delivery, Sent
from tests.support.checkers.stops import Stop, StopAnswer

KILL = Strike(
    "kill", ("node-1",), 1_000, 1_010, 9_000, {"kills": 1, "took_over_ms": 7_000}, [Crash(1_000, frozenset({3}), 9_000)]
)
RESTART = Strike(
    "rolling restart", ("node-1",), 7_500, 8_500, 8_500, hand_overs=[HandOver(7_900, frozenset({3}), 8_200)]
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


def test_given_a_campaign_then_its_figures_stand_in_the_file(tmp_path: Path) -> None:
    the_figures(Phase("kill", [KILL])).write(tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text())
    wanted = {
        "seed": 7,
        "minutes": 2.0,
        "strikes": 1,
        "strikes_that_bit": 1,
        "repeats_amid_moves": 3,
        "fires": 5,
        "repeats": 1,
        "events": 6,
        "messages_and_events_of_unknown_fate": 2,
        "stops": 5,
        "stops_within_500_ms": 4,
        "stops_within_500_ms_amid_a_take_over": 1,
        "cancels_within_500_ms": 2,
        "cancels_within_500_ms_amid_a_take_over": 1,
        "first_on_time_after_kill_ms": "n 1, p50 7010, p99 7010, most 7010",
        "recovered_after_healing_ms": "n 1, p50 7990, p99 7990, most 7990",
    }
    assert {name: figures[name] for name in wanted} == wanted
    strike = {"at": 1_000, "healed_at": 1_010, "recovered_at": 9_000, "of": ["node-1"], "bit": True}
    felt = {"kills": 1, "took_over_ms": 7_000}
    assert figures["phases"] == [{"nemesis": "kill", "strikes": [strike], "void": "", "felt": felt}]


def test_given_hand_overs_then_their_gaps_are_told() -> None:
    assert (
        "gap of hand overs ms: n 1, p50 10, p99 10, most 10" in the_figures(Phase("rolling restart", [RESTART])).lines()
    )


@pytest.mark.parametrize(
    ("figures", "holds"),
    [
        pytest.param(the_figures(Phase("kill", [KILL])), True, id="all well"),
        pytest.param(the_figures(Phase("kill", [KILL]), faults=(Fault("lost", "x"),)), False, id="a fault"),
        pytest.param(the_figures(Phase("kill", [KILL]), Phase("pause", [], "no strike")), False, id="a void phase"),
    ],
)
def test_given_a_fault_or_a_void_phase_then_it_did_not_hold(figures: Figures, holds: bool) -> None:
    assert figures.holds is holds


def test_given_faults_and_void_phases_then_both_are_named() -> None:
    void = Phase("pause", [], "no strike")
    assert "VOID" in void.line()
    lines = the_figures(void, faults=(Fault("lost", "it"),)).lines()
    assert "VOID: no strike" in lines
    assert "1 faults\nlost: it" in lines


def test_given_a_phase_that_bit_then_its_line_says_what_was_felt() -> None:
    line = Phase("kill", [KILL, KILL]).line()
    assert line.split() == "kill 2 strikes bit recovered within 8.0 s kills 2".split()


def test_given_a_strike_that_nobody_felt_then_the_phase_and_the_figures_do_not_count_it() -> None:
    unfelt = replace(KILL, bit=False)
    phase = Phase("kill", [KILL, unfelt, unfelt])
    figures = the_figures(phase).document()
    assert "3 strikes 1 bit recovered" in " ".join(phase.line().split())
    assert (figures["strikes"], figures["strikes_that_bit"]) == (3, 1)

from __future__ import annotations

import pytest

from tests.support.checkers.events import judge_counts
from tests.support.cluster.evidence import ManifestEntry, ProgramRun


def a_run(number: int, *events: str, ended: bool = True) -> ProgramRun:
    manifest = tuple(ManifestEntry("feed", event, event) for event in events)
    return ProgramRun(
        f"r{number}", 1, "tally", 0, None, None, manifest, 1, 0, 0, 1 if ended else None, 1 if ended else None
    )


@pytest.mark.parametrize(
    ("runs", "kinds"),
    [
        pytest.param([a_run(1, "a", "b")], ["lost", "lost"], id="two were never counted"),
        pytest.param([a_run(1, "a", "b"), a_run(2, "b", "c", "d")], ["miscounted"], id="one counts in two runs"),
        pytest.param([a_run(1, "a", "b", "c"), a_run(2, "d")], ["miscounted"], id="fired too early"),
        pytest.param([a_run(1, "a", "b"), a_run(2, "c", "d", "x")], ["extra"], id="an event from nowhere"),
        pytest.param([a_run(1, "a", "b", "c", "d", ended=False)], ["incomplete"], id="no end"),
    ],
)
def test_given_manifests_then_the_faults_are_named(runs: list[ProgramRun], kinds: list[str]) -> None:
    assert [fault.kind for fault in judge_counts("tally", 2, ["a", "b", "c", "d"], runs)] == kinds


@pytest.mark.parametrize(("told", "kinds"), [(("c", "d", "d"), ["miscounted"])])
def test_given_events_that_nobody_knows_to_have_arrived_then_each_counts_once_or_never(
    told: tuple[str, ...], kinds: list[str]
) -> None:
    runs = [a_run(1, "a", "b"), a_run(2, *told)]
    faults = judge_counts("tally", 1, ["a", "b"], runs, unacknowledged=["c", "d"])

    assert [fault.kind for fault in faults] == kinds


def test_given_a_second_process_of_a_run_then_it_is_doubled_and_its_events_are_miscounted() -> None:
    faults = judge_counts("tally", 2, ["a", "b"], [a_run(1, "a", "b"), a_run(1, "a", "b")])

    assert {fault.kind for fault in faults} == {"doubled", "miscounted"}

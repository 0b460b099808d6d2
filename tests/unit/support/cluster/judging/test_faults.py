from __future__ import annotations

from tests.support.checkers.faults import SHOWN_MAX, Fault, report


def test_given_many_faults_then_the_report_counts_all_and_shows_some() -> None:
    text = report([Fault("lost", f"number {number:03d}") for number in range(SHOWN_MAX + 5)])

    assert text.startswith(f"{SHOWN_MAX + 5} faults\nlost: number 000")
    assert text.endswith("... and 5 more")

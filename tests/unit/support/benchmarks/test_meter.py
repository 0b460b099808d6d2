"""What processes have used, read from files as Linux writes them."""

from __future__ import annotations

import os
from pathlib import Path

from tests.benchmarks.rig.resource_meter import TICKS_PER_S, Reading, Used, cpu_s_of, rss_mib_of, spent

STAT = "42 (a (bad) name) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 9 9 20 0 8 0 100 1000 200 0 0"


def test_given_a_process_then_user_and_system_time_count_and_its_name_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "stat").write_text(STAT)
    assert cpu_s_of(42, tmp_path) == 300 / TICKS_PER_S


def test_given_a_process_then_its_memory_is_resident_pages(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "statm").write_text("9999 256 1 1 0 1 0")
    assert rss_mib_of(42, tmp_path) == 256 * os.sysconf("SC_PAGE_SIZE") / 1_048_576


def test_given_this_process_then_what_it_burns_is_counted() -> None:
    before = cpu_s_of(os.getpid())
    while cpu_s_of(os.getpid()) == before:
        sum(range(10_000))
    assert rss_mib_of(os.getpid()) > 1


def used(cpu_s: float, units: float | None = 0.0) -> Used:
    return Used(cpu_s, 10 * cpu_s, units, units, 5 * cpu_s, 3 * cpu_s, 2 * cpu_s)


def test_given_two_readings_then_the_difference_is_summed_and_a_new_process_counts_whole() -> None:
    before = Reading(10.0, {1: used(3.0, 100.0)})
    after = Reading(12.0, {1: used(4.0, 150.0), 2: used(0.5, 7.0)})
    difference = spent(before, after)
    assert (difference.wall_s, difference.cpu_s, difference.rss_mib) == (2.0, 1.5, 40.0)
    assert (difference.write_units, difference.read_units, difference.calls) == (57.0, 57.0, 7.5)
    assert (difference.transacted_units, difference.transactions) == (4.5, 3.0)


def test_given_a_process_that_does_not_count_units_then_there_is_no_sum() -> None:
    difference = spent(Reading(0.0, {1: used(1.0, None)}), Reading(1.0, {1: used(2.0, None), 2: used(1.0)}))
    assert difference.write_units is None
    assert difference.cpu_s == 2.0

"""What ended attempts leave behind goes by age and by room; what runs, or whose end nobody can know yet, stays."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate_launchers.local.command import MARKER_VARIABLE
from tidegate_launchers.local.folder_retention import GOING, LocalKeeping
from tidegate_launchers.local.process_table import boot_id, facts_of
from tidegate_launchers.local.run_folder import Exit, Record, RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.run_folders import Swept

NOW_S = 1_800_000_000.0
HOUR_S = 3_600.0
WEEK_S = 7 * 24 * HOUR_S
MIB = 1024**2
NO_PROCESS = (2**22 + 1, "never")
"""Pids end below."""


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    return LocalSettings(data_dir=tmp_path.resolve(), host="node-1", keep_runs_for_s=WEEK_S, keep_runs_bytes=3 * MIB)


def an_attempt(
    settings: LocalSettings,
    run: str,
    attempt: int = 1,
    *,
    ended_s: float | None = None,
    changed_s: float = NOW_S,
    mib: int = 0,
    process: tuple[int, str] | None = NO_PROCESS,
    host: str = "node-1",
    boot: str | None = None,
) -> RunFolder:
    """Makes what a supervisor, a program and a launcher leave; times are seconds before now."""
    folder = RunFolder.within(settings.data_dir, run, attempt)
    folder.make()
    folder.stdout.write_bytes(os.urandom(mib * MIB))
    if process is not None:
        folder.write_record(Record(*process, *NO_PROCESS, host, boot or boot_id()))
    if ended_s is not None:
        folder.write_exit(Exit(0, None, int((NOW_S - ended_s) * 1000), 5))
    for path in (*folder.path.iterdir(), folder.path):
        os.utime(path, (changed_s, changed_s))
    return folder


def sweep(settings: LocalSettings) -> Swept:
    swept = LocalKeeping(settings).sweep(int(NOW_S * 1000), int((NOW_S - HOUR_S) * 1000))
    assert swept is not None
    return swept


@contextmanager
def a_process(environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    command = (sys.executable, "-S", "-c", "import sys; sys.stdout.write('x'); sys.stdout.flush(); sys.stdin.read()")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment or {}) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"x"
        yield process


def test_given_no_runs_then_there_is_nothing_to_do(settings: LocalSettings) -> None:
    assert sweep(settings) == Swept(0, 0, 0, 0, is_over=False)


def test_given_attempts_then_those_that_ended_long_ago_are_gone_and_a_run_without_any_is_as_well(
    settings: LocalSettings,
) -> None:
    first, second = an_attempt(settings, "r-1", 1, ended_s=WEEK_S), an_attempt(settings, "r-1", 2, ended_s=WEEK_S - 1)
    other = an_attempt(settings, "r-2", ended_s=WEEK_S + 1)
    swept = sweep(settings)
    assert (swept.kept, swept.removed) == (1, 2)
    assert [folder.path.exists() for folder in (first, second, other)] == [False, True, False]
    assert not other.path.parent.exists()
    assert swept.removed_bytes > 2 * 4096 < swept.kept_bytes


def test_given_too_little_room_then_those_that_ended_first_go_until_there_is_enough(settings: LocalSettings) -> None:
    folders = [an_attempt(settings, f"r-{age}", ended_s=age * HOUR_S, mib=1) for age in (5, 2, 4, 3)]
    swept = sweep(settings)
    # Four of them, with what lies beside each log, are two too many.
    assert (swept.removed, swept.kept, swept.is_over) == (2, 2, False)
    assert [folder.path.exists() for folder in folders] == [False, True, False, True]
    assert 2 * MIB < swept.kept_bytes < 3 * MIB
    assert sweep(settings).removed == 0


def test_given_a_run_that_wrote_more_than_there_is_room_then_it_goes_and_the_logs_of_others_stay(
    settings: LocalSettings,
) -> None:
    """The oldest went first, so that the endless log of one run was the last one there was."""
    roomy = replace(settings, keep_runs_bytes=20 * MIB)
    others = [an_attempt(roomy, f"r-{age}", ended_s=age * HOUR_S, mib=1) for age in (9, 8, 7, 6)]
    endless = [an_attempt(roomy, "endless", number, ended_s=(4 - number) * HOUR_S, mib=12) for number in (1, 2)]
    swept = sweep(roomy)
    assert (swept.removed, swept.is_over) == (1, False)
    assert [folder.path.exists() for folder in (*others, *endless)] == [True] * 4 + [False, True]


def test_given_a_run_that_goes_on_and_has_more_than_there_is_room_then_the_logs_of_others_stay(
    settings: LocalSettings,
) -> None:
    roomy = replace(settings, keep_runs_bytes=20 * MIB)
    others = [an_attempt(roomy, f"r-{age}", ended_s=age * HOUR_S, mib=1) for age in (9, 8, 7, 6)]
    endless = an_attempt(roomy, "endless", mib=30)
    swept = sweep(roomy)
    assert (swept.removed, swept.is_over) == (0, True)
    assert all(folder.path.exists() for folder in (*others, endless))


@pytest.mark.parametrize(
    ("ended_s", "is_removed"), [pytest.param(HOUR_S, True, id="an hour"), pytest.param(HOUR_S - 1, False)]
)
def test_given_too_little_room_then_what_ended_just_now_stays_all_the_same(
    settings: LocalSettings, ended_s: float, is_removed: bool
) -> None:
    """Its owner may not have seen the end, and would take a run without a folder for one that never started here."""
    folder = an_attempt(settings, "r-1", ended_s=ended_s, mib=4)
    swept = sweep(settings)
    assert (folder.path.exists(), swept.is_over) == (not is_removed, not is_removed)


@pytest.mark.parametrize(
    ("changed_s", "is_removed"), [pytest.param(WEEK_S, True, id="a week"), pytest.param(WEEK_S - 1, False, id="less")]
)
def test_given_an_end_that_nobody_recorded_then_it_goes_by_age_alone(
    settings: LocalSettings, changed_s: float, is_removed: bool
) -> None:
    """The host went down with it, or it never started."""
    folders = [
        an_attempt(settings, "r-1", changed_s=NOW_S - changed_s, mib=4),
        an_attempt(settings, "r-2", changed_s=NOW_S - changed_s, process=None),
    ]
    sweep(settings)
    assert [folder.path.exists() for folder in folders] == [not is_removed] * 2


def test_given_a_program_that_lives_then_its_folder_stays(settings: LocalSettings) -> None:
    with a_process() as process:
        facts = facts_of(process.pid)
        assert facts is not None
        old = NOW_S - 2 * WEEK_S
        folder = an_attempt(settings, "r-1", changed_s=old, process=(process.pid, facts.started))
        reused = an_attempt(settings, "r-2", changed_s=old, process=(process.pid, "another one's"))
        former_boot = an_attempt(settings, "r-3", changed_s=old, process=(process.pid, facts.started), boot="before")
        swept = sweep(settings)
    assert (swept.kept, folder.path.exists()) == (1, True)
    assert not reused.path.exists()
    assert not former_boot.path.exists()
    assert sweep(settings).removed == 1


def test_given_a_daemon_that_its_program_left_behind_then_the_folder_stays(settings: LocalSettings) -> None:
    """The run is not over: whoever waits for its end waits for all of it."""
    folder = an_attempt(settings, "r-1", ended_s=2 * WEEK_S)
    with a_process({MARKER_VARIABLE: str(folder.path)}):
        assert sweep(settings).removed == 0
    assert sweep(settings).removed == 1


def test_given_a_data_folder_of_several_hosts_then_another_ones_runs_are_left_alone(settings: LocalSettings) -> None:
    folder = an_attempt(settings, "r-1", ended_s=2 * WEEK_S, host="node-2")
    assert sweep(settings) == Swept(0, 0, 0, 0, is_over=False)
    assert sweep(replace(settings, host="node-2")).removed == 1
    assert not folder.path.exists()


@pytest.mark.parametrize("text", ["{", '{"code": 0}'], ids=["damaged", "of another release"])
def test_given_a_record_that_cannot_be_read_then_its_folder_is_left_and_the_others_go(
    settings: LocalSettings, text: str
) -> None:
    folder = an_attempt(settings, "r-1", ended_s=2 * WEEK_S)
    (folder.path / "exit.json").write_text(text)
    other = an_attempt(settings, "r-2", ended_s=2 * WEEK_S)
    assert sweep(settings).removed == 1
    assert [each.path.exists() for each in (folder, other)] == [True, False]


def test_given_one_that_fell_while_it_removed_then_the_next_look_ends_it(
    settings: LocalSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = an_attempt(settings, "r-1", ended_s=2 * WEEK_S)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
        sweep(settings)
    assert not folder.path.exists()
    assert [path.name for path in folder.path.parent.iterdir()] == [f"{GOING}a1"]
    assert sweep(settings) == Swept(0, 0, 0, 0, is_over=False)
    assert not folder.path.parent.exists()


def test_given_folders_that_may_not_be_written_then_they_go_and_where_their_links_lead_stays(
    settings: LocalSettings, tmp_path: Path
) -> None:
    """Root writes there all the same: of who is not, their room was never given back, and not counted either."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    folder = an_attempt(settings, "r-1", ended_s=2 * WEEK_S)
    inner = folder.work / "cache" / "module"
    inner.mkdir(parents=True)
    (inner / "source.go").touch()
    (inner / "link").symlink_to(elsewhere)
    inner.chmod(0o500)
    inner.parent.chmod(0o400)
    folder.path.chmod(0o555)
    assert sweep(settings).removed == 1
    assert not folder.path.parent.exists()
    assert elsewhere.stat().st_mode & 0o777 == 0o755


def test_given_another_process_of_the_host_at_it_then_this_one_does_nothing(settings: LocalSettings) -> None:
    sweep(settings)
    folder = an_attempt(settings, "r-1", ended_s=2 * WEEK_S)
    with (settings.data_dir / "runs" / ".sweep").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert LocalKeeping(settings).sweep(int(NOW_S * 1000), int((NOW_S - HOUR_S) * 1000)) is None
    assert folder.path.exists()
    assert sweep(settings).removed == 1

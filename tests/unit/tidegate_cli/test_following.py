"""Jobs and runs as a person follows them: lists, logs, waits and ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from tests.unit.tidegate_cli.conftest import RUN, Answer, FakeApi, a_run
from tidegate_cli import main, run_follow
from tidegate_cli.exit_codes import CommandFailed
from tidegate_client import Client
from tidegate_client.errors import NotFound


def a_piece(text: str, offset: int, size: int, *, ended: bool, attempt: int = 1, attempts: int = 1) -> Answer:
    piece = {
        "run_id": RUN,
        "attempt": attempt,
        "attempts": attempts,
        "stream": "stdout",
        "offset": offset,
        "next_offset": offset + len(text),
        "size": size,
        "text": text,
        "ended": ended,
    }
    return 200, piece


def test_given_a_failed_run_that_wrote_only_errors_then_a_note_says_where_they_are(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers[f"GET /runs/{RUN}/logs"] = [a_piece("", 0, 0, ended=True), a_piece("", 0, 120, ended=True)]
    assert main.run(["run", "logs", RUN]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "stdout is empty; --stderr shows 120 bytes\n"
    assert [request.url.params["stream"] for request in api.asked] == ["stdout", "stderr"]


def test_given_a_run_that_waits_for_its_next_attempt_then_a_note_says_how_to_read_the_log_of_the_one_before(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was printed of a run that had failed and written why."""
    nothing = a_piece("", 0, 0, ended=False, attempt=2, attempts=2)
    api.answers[f"GET /runs/{RUN}/logs"] = [nothing, nothing]
    assert main.run(["run", "logs", RUN]) == 0
    assert capsys.readouterr() == ("", "attempt 2 has written nothing so far; --attempt 1 shows the previous one\n")
    api.answers[f"GET /runs/{RUN}/logs"] = [nothing, a_piece("", 0, 9, ended=False, attempt=2, attempts=2)]
    assert main.run(["run", "logs", RUN]) == 0
    assert capsys.readouterr() == ("", "stdout is empty; --stderr shows 9 bytes\n")


def test_given_nothing_in_either_log_then_nothing_is_said(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = a_piece("", 0, 0, ended=True)
    api.answers[f"GET /runs/{RUN}/logs"] = [nothing, nothing, nothing, (404, {"title": "Not Found", "status": 404})]
    for _ in range(2):
        assert main.run(["run", "logs", RUN]) == 0
        assert capsys.readouterr() == ("", "")
    api.answers[f"GET /runs/{RUN}/logs"] = [nothing]
    assert main.run(["run", "logs", RUN, "--stderr"]) == 0


def test_given_jobs_then_what_each_waits_for_is_told_up_to_the_end_of_its_run(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {"namespace": "flights", "schedule": "land", "version": 1, "trigger": "time", "id": RUN}
    items = [
        {**job, "state": "pending_trigger", "missing": "1 of 3 data partitions of a"},
        {**job, "state": "pending_constraint", "unmet": {"code": "time_window", "reason": "the window opens at 22:00"}},
        {**job, "state": "pending_launch", "run_state": "submitting"},
        {**job, "state": "pending_launch", "run_state": "submitted"},
        {**job, "state": "launched", "run_state": "running"},
    ]
    api.answers["GET /jobs"] = (200, {"items": items})
    assert main.run(["job", "list"]) == 0
    rows = [line.split("  -  ", 2) for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[-1].strip(" -") for row in rows] == [
        "1 of 3 data partitions of a",
        "the window opens at 22:00",
        "the launcher",
        "the start gate",
        "nothing, its run is running",
    ]


def test_given_a_program_that_a_signal_ended_then_the_signal_is_named(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = a_run(state="failed", reason="no_report", exit_code=137, signal="SIGKILL", ended_at="2026-11-20T22:01:00Z")
    api.answers["GET /runs"] = (200, {"items": [killed]})
    api.answers[f"GET /runs/{RUN}"] = (200, killed)
    assert main.run(["run", "list"]) == 0
    assert "no_report (SIGKILL)" in capsys.readouterr().out
    assert main.run(["run", "get", RUN]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (lines["exit_code"], lines["signal"]) == ("137", "SIGKILL")
    assert main.run(["run", "wait", RUN]) == 1
    assert "failed: no_report (SIGKILL)" in capsys.readouterr().err


LAST_LINES = "Invalid maximum heap size: -Xmx4 gigs\nError: Could not create the Java Virtual Machine."


def test_given_a_program_that_cannot_start_then_list_and_get_show_exit_code_and_last_lines(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = (
        "two attempts ended alike before the start gate: exit code 1: Error: Could not create the Java Virtual Machine."
    )
    failed = a_run(state="failed", reason=reason, error_class="config", exit_code=1, last_lines=LAST_LINES)
    api.answers["GET /runs"] = (200, {"items": [failed]})
    api.answers[f"GET /runs/{RUN}"] = (200, failed)
    assert main.run(["run", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(reason)
    assert main.run(["run", "get", RUN]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3:] == [
        "last lines of the program's error output:",
        *(f"  {line}" for line in LAST_LINES.splitlines()),
    ]
    assert ["exit_code", "1"] in [line.split() for line in lines]


def test_given_an_attempt_that_died_before_the_gate_then_list_and_get_show_it_while_the_next_one_waits(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    setback = {"attempt": 1, "exit_code": 1, "reason": "exit code 1: no heap", "last_lines": LAST_LINES}
    waiting = a_run(state="submitting", attempt=2, last_setback=setback)
    api.answers["GET /runs"] = (200, {"items": [waiting]})
    api.answers[f"GET /runs/{RUN}"] = (200, waiting)
    assert main.run(["run", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("attempt 1: exit code 1: no heap")
    assert main.run(["run", "get", RUN]) == 0
    assert "last lines of attempt 1's error output:" in capsys.readouterr().out.splitlines()


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who follows a log asks again at once."""
    monkeypatch.setattr(run_follow.print_log, "__kwdefaults__", {"pause": lambda _: None})


@pytest.mark.usefixtures("without_pauses")
def test_given_follow_then_the_log_is_printed_until_the_run_has_ended(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers[f"GET /runs/{RUN}/logs"] = [
        a_piece("one\n", 0, 8, ended=False),
        a_piece("two\n", 4, 8, ended=False),
        a_piece("", 8, 8, ended=False),
        a_piece("end\n", 8, 12, ended=True),
    ]
    assert main.run(["run", "logs", "-f", RUN]) == 0
    assert capsys.readouterr().out == "one\ntwo\nend\n"
    assert [request.url.params["offset"] for request in api.asked] == ["0", "4", "8", "8"]


@pytest.mark.usefixtures("without_pauses")
def test_given_follow_of_a_run_that_is_tried_again_then_each_attempts_log_is_printed_from_its_beginning(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers[f"GET /runs/{RUN}/logs"] = [
        a_piece("one\n", 0, 4, ended=False),
        a_piece("failed\n", 4, 11, ended=True, attempts=2),
        a_piece("", 0, 0, ended=False, attempt=2, attempts=2),
        a_piece("again\n", 0, 6, ended=True, attempt=2, attempts=2),
    ]
    assert main.run(["run", "logs", "-f", RUN]) == 0
    assert capsys.readouterr() == ("one\nfailed\nagain\n", "attempt 2\n")
    asked = [(request.url.params.get("attempt"), request.url.params["offset"]) for request in api.asked]
    assert asked == [(None, "0"), ("1", "4"), ("2", "0"), ("2", "0")]


@pytest.mark.usefixtures("without_pauses")
def test_given_follow_and_an_attempt_that_never_began_then_it_goes_on_with_the_next_one(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """A launcher that refuses an attempt is handed the next one: who followed was told that there is no log, and left."""
    detail = f"run {RUN} attempt 1: its program never started, so there is no log"
    none: Answer = (404, {"title": "Not Found", "status": 404, "detail": detail})
    api.answers[f"GET /runs/{RUN}/logs"] = [
        a_piece("", 0, 0, ended=False),
        none,
        a_piece("", 0, 0, ended=False, attempt=2, attempts=2),
        a_piece("begun\n", 0, 6, ended=True, attempt=2, attempts=2),
        a_piece("", 0, 0, ended=False),
        none,
    ]
    api.answers[f"GET /runs/{RUN}"] = [(200, a_run(state="submitting", attempt=2)), (200, a_run(state="failed"))]
    assert main.run(["run", "logs", "-f", RUN]) == 0
    assert capsys.readouterr() == ("begun\n", f"{detail}\nattempt 2\n")
    assert main.run(["run", "logs", "-f", RUN]) == 3
    assert "never started" in capsys.readouterr().err


def test_given_follow_of_one_attempt_then_the_next_ones_log_is_not_printed(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers[f"GET /runs/{RUN}/logs"] = [a_piece("failed\n", 0, 7, ended=True, attempts=2)]
    assert main.run(["run", "logs", "-f", RUN, "--attempt", "1"]) == 0
    assert capsys.readouterr() == ("failed\n", "")


def test_given_a_tail_then_the_log_is_asked_for_from_there_and_followed_by_its_offset(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers[f"GET /runs/{RUN}/logs"] = [a_piece("two\n", 4, 12, ended=True), a_piece("six\n", 8, 12, ended=True)]
    assert main.run(["run", "logs", RUN, "--tail", "2"]) == 0
    assert capsys.readouterr().out == "two\nsix\n"
    asked = [{name: request.url.params.get(name) for name in ("tail", "offset")} for request in api.asked]
    assert asked == [{"tail": "2", "offset": None}, {"tail": None, "offset": "8"}]


def test_given_schedule_instead_of_a_run_then_its_newest_run_is_meant(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["GET /runs"] = (200, {"items": [a_run()]})
    api.answers[f"GET /runs/{RUN}/logs"] = a_piece("one\n", 0, 4, ended=True)
    api.answers[f"GET /runs/{RUN}"] = (200, a_run())
    assert main.run(["run", "logs", "flights/land"]) == 0
    assert capsys.readouterr().out == "one\n"
    asked = api.asked[0].url.params
    assert (asked["namespace"], asked["schedule"], asked["page_size"]) == ("flights", "land", "1")
    assert main.run(["run", "get", "flights/land", "-o", "name"]) == 0
    assert capsys.readouterr().out == f"{RUN}\n"


def test_given_schedule_without_a_run_then_exit_3_or_follow_waits_for_the_first(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule = {"namespace": "flights", "name": "land", "status": "active", "version": 1, "spec": {}}
    api.answers["GET /schedules/flights/land"] = (200, schedule)
    none: Answer = (200, {"items": []})
    api.answers["GET /runs"] = none
    assert main.run(["run", "logs", "flights/land"]) == 3
    assert "flights/land has no run yet" in capsys.readouterr().err
    monkeypatch.setitem(run_follow.resolve_run.__kwdefaults__ or {}, "pause", lambda _: None)
    api.answers["GET /runs"] = [none, none, (200, {"items": [a_run()]})]
    api.answers[f"GET /runs/{RUN}/logs"] = a_piece("one\n", 0, 4, ended=True)
    assert main.run(["run", "logs", "-f", "flights/land"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "one\n"
    assert captured.err.count("waiting for the first") == 1


def test_given_schedule_that_is_not_there_then_follow_does_not_wait_for_its_runs(api: FakeApi) -> None:
    api.answers["GET /runs"] = (200, {"items": []})
    assert main.run(["run", "logs", "-f", "flights/none"]) == 3
    assert main.run(["run", "logs", "flights/"]) == 2


@contextmanager
def waiting(api: FakeApi) -> Iterator[Client]:
    with Client("http://api:1", transport=httpx2.MockTransport(api.handle)) as client:
        yield client


def test_given_job_that_waits_then_wait_goes_on_until_its_run_has_ended(api: FakeApi) -> None:
    missing = (404, {"title": "Not Found", "status": 404, "detail": "none"})
    job = {
        "id": RUN,
        "namespace": "flights",
        "schedule": "land",
        "version": 1,
        "state": "pending_constraint",
        "trigger": "time",
    }
    ended = a_run(state="failed", ended_at="2026-11-20T22:01:00Z", reason="exit code 3")
    api.answers[f"GET /runs/{RUN}"] = [missing, (200, a_run()), (200, ended)]
    api.answers[f"GET /jobs/{RUN}"] = (200, job)
    with waiting(api) as client:
        run = run_follow.await_end(client, RUN, 60, clock=lambda: 0.0, pause=lambda _: None)
    with pytest.raises(CommandFailed, match="exit code 3") as found:
        run_follow.require_success(run)
    assert found.value.code == 1


def test_given_a_job_that_ends_without_a_run_then_wait_says_what_became_of_it(api: FakeApi) -> None:
    """It said that there is no such run, as of an id that never was."""
    missing: Answer = (404, {"title": "Not Found", "status": 404, "detail": "none"})
    reason = {"code": "skipped/window_closed", "text": "no window is open; decided at 2026-11-20T22:00:00Z"}
    api.answers[f"GET /runs/{RUN}"] = api.answers[f"GET /jobs/{RUN}"] = missing
    api.answers[f"GET /jobs/{RUN}/why"] = (
        200,
        {"about": f"job {RUN}", "at": "2026-11-20T22:00:00Z", "reasons": [reason]},
    )
    with waiting(api) as client:
        with pytest.raises(CommandFailed, match=r"has ended without a run: no window is open") as found:
            run_follow.await_end(client, RUN, 60, clock=lambda: 0.0, pause=lambda _: None)
        assert found.value.code == 1
        api.answers[f"GET /jobs/{RUN}/why"] = missing
        with pytest.raises(NotFound):
            run_follow.await_end(client, RUN, 60, clock=lambda: 0.0, pause=lambda _: None)


UNAVAILABLE: Answer = (503, {"title": "Service Unavailable", "status": 503, "detail": "the store does not answer"})


def test_given_an_api_that_is_replaced_meanwhile_then_wait_goes_on_to_the_runs_end(api: FakeApi) -> None:
    """Found by a review: a run that still ran was taken for one that had failed, as a script reads exit 1."""
    ended = a_run(state="succeeded", ended_at="2026-11-20T22:01:00Z")
    api.answers[f"GET /runs/{RUN}"] = [(200, a_run()), UNAVAILABLE, UNAVAILABLE, (200, ended)]
    with waiting(api) as client:
        assert run_follow.await_end(client, RUN, 60, clock=lambda: 0.0, pause=lambda _: None).state == "succeeded"


def test_given_an_api_that_stays_away_then_wait_ends_with_5_and_says_so_and_with_75_when_it_never_answered(
    api: FakeApi,
) -> None:
    api.answers[f"GET /runs/{RUN}"] = [(200, a_run()), UNAVAILABLE]
    now = iter(range(0, 1_000, 20))
    with waiting(api) as client, pytest.raises(CommandFailed, match="the store does not answer") as found:
        run_follow.await_end(client, RUN, 60, clock=lambda: float(next(now)), pause=lambda _: None)
    assert found.value.code == 5
    api.answers[f"GET /runs/{RUN}"] = UNAVAILABLE
    assert main.run(["run", "wait", RUN]) == 75


@pytest.mark.usefixtures("without_pauses")
def test_given_an_api_that_is_replaced_meanwhile_then_follow_goes_on_where_it_was(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = f"GET /runs/{RUN}/logs"
    api.answers[logs] = [
        a_piece("one\n", 0, 4, ended=False),
        UNAVAILABLE,
        UNAVAILABLE,
        a_piece("two\n", 4, 8, ended=True),
    ]
    assert main.run(["run", "logs", "-f", RUN]) == 0
    captured = capsys.readouterr()
    assert captured.out == "one\ntwo\n"
    assert captured.err.count("trying again") == 1
    api.answers[logs] = UNAVAILABLE
    assert main.run(["run", "logs", "-f", RUN]) == 75


def test_given_run_takes_too_long_then_exit_5(api: FakeApi) -> None:
    api.answers[f"GET /runs/{RUN}"] = (200, a_run())
    for timeout in ("0", "0s", "0.0"):
        assert main.run(["run", "wait", RUN, "--timeout", timeout]) == 5
    for timeout in ("5 apples", "-1", "nan"):
        assert main.run(["run", "wait", RUN, "--timeout", timeout]) == 2
    assert main.run(["run", "wait", RUN.replace("0001", "0002"), "--timeout", "0"]) == 3

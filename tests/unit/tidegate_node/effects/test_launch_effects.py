"""Launch effects: guarded, signed, and each answer of a launcher said in the core's words."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidegate_core.rows.effects import (
    Cancel,
    Inspect,
    Inspected,
    LaunchOrder,
    LookedUp,
    Lookup,
    NotSubmitted,
    ProgramEnded,
    Submit,
    SubmitFailed,
    Submitted,
    Watch,
)
from tidegate_node.effects.launch_effects import CANCEL_TRIES_MAX, SUBMITS_UNDER_WAY_MAX
from tidegate_ports.common import program_file_check
from tidegate_ports.common.program_file_check import FileLooks
from tidegate_ports.launcher import (
    Absent,
    Elsewhere,
    Ended,
    Found,
    Launch,
    LaunchRejected,
    LaunchUnavailable,
    Placement,
)

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings

PATIENCE_S = 20.0
RUN = "0007-abcdefghijklmnopqrstuvwxyz"


def _order(**context: Any) -> LaunchOrder:
    return LaunchOrder(RUN, 2, "python", "/p.py", ("a",), {}, {"MODE": "x"}, context)


async def test_given_an_order_then_the_launch_says_all_of_it_and_is_signed(around: Surroundings) -> None:
    order = replace(_order(), due=around.clock.now_ms() - 1_500)

    answer = await around.launch_effects().submit(Submit(order), around.bus.guard_holds)

    assert answer == Submitted("pid 1", "host", "boot")
    (launch,) = around.launcher.launches
    assert (launch.run_id, launch.attempt, launch.file, launch.args) == (RUN, 2, "/p.py", ("a",))
    assert launch.env == {"MODE": "x"}
    assert launch.gate_url == "http://gate"
    assert launch.token == hmac.new(b"s" * 32, f"{RUN}/2".encode(), hashlib.sha256).hexdigest()
    assert around.metrics.value("tidegate_launches_total", program="python", answer="submitted") == 1
    assert around.metrics.value("tidegate_fire_lateness_seconds_sum", plane="run") == pytest.approx(1.5)


async def test_given_no_guard_then_nothing_is_submitted(around: Surroundings) -> None:
    around.bus.holds = False

    answer = await around.launch_effects().submit(Submit(_order()), around.bus.guard_holds)
    assert isinstance(answer, NotSubmitted)
    assert answer.unasked
    assert around.launcher.launches == []


async def test_given_a_guard_that_lapses_while_submits_wait_for_their_turn_then_those_are_not_started(
    around: Surroundings, until: Any
) -> None:
    """DESIGN 3: a start takes seconds on a busy machine, and what was proven before the wait proves nothing after it."""
    effects, launcher = around.launch_effects(), around.launcher
    let_go = asyncio.Event()

    async def slow(launch: Launch) -> Placement:
        launcher.launches.append(launch)
        await let_go.wait()
        return Placement("pid 1", "host", "boot")

    launcher.submit = slow  # type: ignore[method-assign]  # this one takes its time
    submits = [
        asyncio.create_task(effects.submit(Submit(_order()), around.bus.guard_holds))
        for _ in range(SUBMITS_UNDER_WAY_MAX + 3)
    ]
    await until(lambda: len(launcher.launches) == SUBMITS_UNDER_WAY_MAX, "the first ones start")

    around.bus.holds = False
    let_go.set()

    answers = [type(each) for each in await asyncio.gather(*submits)]
    assert answers == [Submitted] * SUBMITS_UNDER_WAY_MAX + [NotSubmitted] * 3
    assert len(launcher.launches) == SUBMITS_UNDER_WAY_MAX


async def test_given_more_programs_than_can_start_then_those_behind_hear_that_no_launcher_was_asked(
    around: Surroundings, until: Any
) -> None:
    """Found in review: they stood in line for as long as it took, and behind an hour their owners gave them up as taken by no launcher."""
    effects, launcher = around.launch_effects(in_line_s=0.05), around.launcher
    let_go = asyncio.Event()

    async def slow(launch: Launch) -> Placement:
        launcher.launches.append(launch)
        await let_go.wait()
        return Placement("pid 1", "host", "boot")

    launcher.submit = slow  # type: ignore[method-assign]  # this one takes its time
    orders = [replace(_order(), attempt=number) for number in range(SUBMITS_UNDER_WAY_MAX)]
    first = [asyncio.create_task(effects.submit(Submit(order), around.bus.guard_holds)) for order in orders]
    await until(lambda: len(launcher.launches) == SUBMITS_UNDER_WAY_MAX, "the first ones start")

    behind = Submit(replace(_order(), attempt=99))
    async with asyncio.timeout(PATIENCE_S):
        answer = await effects.submit(behind, around.bus.guard_holds)
    assert isinstance(answer, NotSubmitted)
    assert answer.unasked
    let_go.set()
    assert [type(each) for each in await asyncio.gather(*first)] == [Submitted] * SUBMITS_UNDER_WAY_MAX
    for _ in range(SUBMITS_UNDER_WAY_MAX + 1):
        assert isinstance(await effects.submit(behind, around.bus.guard_holds), Submitted), "no turn was lost"


async def test_given_a_cancel_while_a_submit_waits_for_its_turn_then_it_is_not_started(
    around: Surroundings, until: Any
) -> None:
    """Found in review: the launcher knew of nothing to cancel, and started it then; only the gate kept its program from running."""
    effects, launcher = around.launch_effects(), around.launcher
    let_go = asyncio.Event()
    launcher.out_of_reach = Absent()

    async def slow(launch: Launch) -> Placement:
        launcher.launches.append(launch)
        await let_go.wait()
        return Placement("pid 1", "host", "boot")

    launcher.submit = slow  # type: ignore[method-assign]  # this one takes its time
    orders = [replace(_order(), attempt=number) for number in range(SUBMITS_UNDER_WAY_MAX + 2)]
    submits = [asyncio.create_task(effects.submit(Submit(order), around.bus.guard_holds)) for order in orders]
    await until(lambda: len(launcher.launches) == SUBMITS_UNDER_WAY_MAX, "the first ones start")

    effects.cancel(Cancel(RUN, SUBMITS_UNDER_WAY_MAX))
    await until(lambda: launcher.cancelled, "the cancel")
    let_go.set()

    answers = [type(each) for each in await asyncio.gather(*submits)]
    assert answers == [*[Submitted] * SUBMITS_UNDER_WAY_MAX, NotSubmitted, Submitted]
    assert SUBMITS_UNDER_WAY_MAX not in [launch.attempt for launch in launcher.launches]
    again = await effects.submit(Submit(orders[SUBMITS_UNDER_WAY_MAX]), around.bus.guard_holds)
    assert isinstance(again, Submitted), "its owner knows whether it is wanted still"


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (LaunchRejected("config", "no such file"), SubmitFailed("config", "no such file")),
        (LaunchUnavailable("no room"), NotSubmitted("no room")),
    ],
)
async def test_given_a_launcher_that_does_not_take_it_then_its_reason_is_said(
    around: Surroundings, failure: Exception, answer: SubmitFailed | NotSubmitted
) -> None:
    around.launcher.submission = failure

    assert await around.launch_effects().submit(Submit(_order()), around.bus.guard_holds) == answer


async def test_given_look_ups_then_each_answer_has_its_word(around: Surroundings) -> None:
    effects, lookup = around.launch_effects(), Lookup(RUN, 1, "host", "boot")

    assert await effects.lookup(lookup) == LookedUp("absent")
    around.launcher.found = Found(Placement("pid 1", "host", "boot"))
    assert await effects.lookup(lookup) == LookedUp("found", "pid 1", "host", "boot")
    around.launcher.found = Elsewhere("other")
    assert await effects.lookup(lookup) == LookedUp("elsewhere")
    for _ in range(2):
        around.launcher.unavailable = 1
        assert await effects.lookup(lookup) == LookedUp("unknown")
    assert around.notes.names() == ["watch_failed"]  # Once: it is asked again every 10 s, for days perhaps.


async def test_given_a_program_that_ends_then_it_is_gone_unless_the_launcher_cannot_tell(around: Surroundings) -> None:
    around.launcher.ended = Ended(3, None, "transient", "it fell")
    around.launcher.unavailable = 1
    effects = around.launch_effects()

    assert await effects.watch(Watch(RUN, 1)) == LookedUp("unknown")
    assert around.notes.names() == ["watch_failed"]
    assert await effects.watch(Watch(RUN, 1)) == ProgramEnded(3, "transient", "it fell")


async def test_given_a_cancel_then_it_is_tried_until_it_worked_and_once_at_a_time(
    around: Surroundings, until: Any
) -> None:
    around.launcher.unavailable = 2
    effects = around.launch_effects()

    effects.cancel(Cancel(RUN, 1))
    effects.cancel(Cancel(RUN, 1))

    await until(lambda: around.launcher.cancelled, "the cancel")
    assert around.launcher.cancelled == [(RUN, 1)]
    assert around.notes.names() == ["cancel_failed", "cancel_failed"]


@pytest.mark.parametrize(("found", "host"), [(Absent(), None), (Elsewhere("host-2"), "host-2")])
async def test_given_a_program_on_another_host_then_a_cancel_says_that_it_is_out_of_reach(
    around: Surroundings, until: Any, found: Absent | Elsewhere, host: str | None
) -> None:
    around.launcher.out_of_reach = found

    around.launch_effects().cancel(Cancel(RUN, 1))

    await until(lambda: around.notes.said, "the answer")
    assert around.notes.said == [("cancel_out_of_reach", {"run_id": RUN, "attempt": 1, "host": host})]
    assert around.launcher.cancelled == [(RUN, 1)], "once: the run's owner asks again while it is wanted"


async def test_given_a_program_on_another_host_for_days_then_that_is_said_now_and_then(
    around: Surroundings, until: Any
) -> None:
    """Found in review: its run's owner asks with each look, and each time was a line of the log: 8,640 a day for each such run."""
    around.launcher.out_of_reach = Elsewhere("host-2")
    effects = around.launch_effects()

    async def ask() -> None:
        effects.cancel(Cancel(RUN, 1))
        await until(lambda: not effects._cancels, "the answer")

    for _ in range(60):
        await ask()
        around.clock.pass_ms(10_000)
    assert around.notes.names() == ["cancel_out_of_reach"]
    await ask()
    assert around.notes.names() == ["cancel_out_of_reach"] * 2
    assert len(around.launcher.cancelled) == 61


async def test_given_a_launcher_that_stays_away_then_cancels_are_bounded(around: Surroundings, until: Any) -> None:
    around.launcher.unavailable = 10_000
    effects = around.launch_effects()

    effects.cancel(Cancel(RUN, 1))

    await until(lambda: not effects._cancels, "it is given up")
    assert around.notes.names() == ["cancel_failed"] * CANCEL_TRIES_MAX
    assert around.launcher.unavailable == 10_000 - CANCEL_TRIES_MAX, "asked as often as it was said, and no more"


async def test_given_a_launcher_that_fails_at_a_cancel_then_that_is_said_and_it_is_asked_again(
    around: Surroundings, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancel ended with it, and nobody was told: the program of a closed run ran on."""
    bugs, cancel = iter([KeyError("pid"), RuntimeError()]), around.launcher.cancel

    async def fails_twice(run_id: str, attempt: int) -> Ended | Absent | Elsewhere:
        if (bug := next(bugs, None)) is not None:
            raise bug
        return await cancel(run_id, attempt)

    monkeypatch.setattr(around.launcher, "cancel", fails_twice)

    around.launch_effects().cancel(Cancel(RUN, 1))

    await until(lambda: around.launcher.cancelled, "the cancel")
    assert around.notes.names() == ["task_failed", "task_failed"]


async def test_given_program_files_then_what_is_wrong_with_them_is_said(around: Surroundings, tmp_path: Path) -> None:
    effects = around.launch_effects()
    good = tmp_path / "program.py"
    good.write_text("", encoding="utf-8")

    assert await effects.inspect(Inspect("python", str(good))) == Inspected()
    for file, said in (("jobs/p.py", "absolute"), ("/nowhere/p.py", "does not exist"), (str(tmp_path), "is no file")):
        answer = await effects.inspect(Inspect("python", file))
        assert answer.problem is not None
        assert said in answer.problem


async def test_given_a_program_that_the_launcher_takes_never_then_the_apply_hears_why(
    around: Surroundings, tmp_path: Path
) -> None:
    good = tmp_path / "program.py"
    good.write_text("", encoding="utf-8")
    around.launcher.refused = "client mode only"
    inspect = Inspect("pyspark", str(good), {"spark.submit.deployMode": "cluster"})
    assert await around.launch_effects().inspect(inspect) == Inspected(None, "client mode only")


async def test_given_a_stop_then_cancels_under_way_are_let_go(around: Surroundings, until: Any) -> None:
    around.launcher.unavailable = 10_000
    effects = around.launch_effects()
    effects.cancel(Cancel(RUN, 1))
    await until(lambda: around.notes.said, "a first try")

    effects.stop()

    before = len(around.notes.said)
    await until(lambda: not effects._cancels, "let go")
    assert len(around.notes.said) <= before + 1


async def test_given_a_file_whose_mount_hangs_then_the_apply_is_told_so(
    around: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lane waits for the answer, and all schedules of the shard behind it; the successor would meet it again."""
    answers = threading.Event()
    monkeypatch.setattr(program_file_check, "problem_with", lambda *_: answers.wait() and None)
    effects = around.launch_effects(looks=FileLooks(patience_s=0.01))
    inspected = await effects.inspect(Inspect("python", "/hung/land.py"))
    answers.set()
    assert "gave no answer" in str(inspected.problem)

"""What every launcher must do: one suite, run on the local launcher with real processes and on the launcher in memory.

A test module makes it its own with a rig, which starts programs of known behaviour on the launcher's platform:

    class TestMemoryLauncher(LauncherConformance):
        @pytest.fixture
        def rig(self) -> LauncherRig: ...

Each test names its rule of `tidegate_ports/launcher.py`. A rig gives every test runs of its own.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import replace
from typing import Literal, NamedTuple, Protocol, TypeAlias

import pytest

from tidegate_ports.launcher import (
    NAME_CHARACTERS_MAX,
    Absent,
    Elsewhere,
    Ended,
    Found,
    Launch,
    Launcher,
    LaunchRejected,
    LaunchUnavailable,
    Placement,
)

PATIENCE_S = 60.0
"""Deadline of every wait; the machine may be busy, a pass never takes it."""
GRACE_S = 600.0
"""Grace of a launcher whose test does not wait for it."""
SHORT_GRACE_S = 0.2
"""Grace of a launcher whose test waits for it."""
STILL_THERE_S = 0.1
"""Several looks of each launcher at a program; a wrong end shows in this time."""
NEVER_STARTED = Ended(None, None, "transient")
RIVALS = 5

Does: TypeAlias = Literal["exits", "holds", "is killed", "ignores the request", "is missing", "cannot begin"]
"""What a program does.

- `exits`: ends at once with the code that is its argument.
- `holds`: says that it began, and ends with 0 when it is let go. It heeds a request to end.
- `is killed`: ends itself by signal 9.
- `ignores the request`: says that it began and that it got a request, and lives until it is killed.
- `is missing`: its file is not there.
- `cannot begin`: the platform accepts it and cannot begin it.
"""


class HeldSubmission(NamedTuple):
    """A submission that is under way, and the launcher that was asked."""

    launcher: Launcher
    submission: asyncio.Task[Placement]


class LauncherRig(Protocol):
    """A platform with programs of known behaviour.

    Attributes:
        place: The place of its launchers.
        other_place: Another place that shares the platform's records.
    """

    place: str
    other_place: str

    def launcher(self, *, place: str | None = None, grace_s: float = GRACE_S) -> Launcher:
        """Returns a further launcher, as of another node or of a node that restarted."""
        ...

    def launch(self, does: Does, code: int = 0) -> Launch:
        """Returns attempt 1 of a new run."""
        ...

    async def began(self, launch: Launch) -> None:
        """Returns when the program says that it began."""
        ...

    async def let_go(self, launch: Launch) -> None:
        """Lets a program end that holds."""
        ...

    def starts(self, launch: Launch) -> int:
        """Returns how many programs of the attempt passed the start gate."""
        ...

    def silent(self, launch: Launch) -> AbstractContextManager[None]:
        """The platform gives no answer about this attempt until the block ends."""
        ...

    async def asked(self, launch: Launch) -> None:
        """Returns when a program that ignores the request says that it got it."""
        ...

    def submission_held(self, launch: Launch) -> AbstractAsyncContextManager[HeldSubmission]:
        """A submission that is under way in the block, and goes on when the block ends."""
        ...

    def age_cancel(self, launch: Launch, seconds: float) -> None:
        """Moves the first request to end into the past."""
        ...


async def ended(launcher: Launcher, launch: Launch) -> Ended:
    async with asyncio.timeout(PATIENCE_S):
        return await launcher.wait_until_gone(launch.run_id, launch.attempt)


async def cancelled(launcher: Launcher, launch: Launch) -> Ended | Absent | Elsewhere:
    async with asyncio.timeout(PATIENCE_S):
        return await launcher.cancel(launch.run_id, launch.attempt)


async def found(launcher: Launcher, launch: Launch) -> object:
    return await launcher.lookup(launch.run_id, launch.attempt, None, None)


def essence(end: object) -> object:
    """An end without its words for people."""
    return replace(end, reason="") if isinstance(end, Ended) else end


class LauncherConformance:
    """The suite; `rig` is the implementation's own fixture."""

    # -- submit -------------------------------------------------------------------------------------------------------

    async def test_given_a_submission_then_every_launcher_finds_it_with_its_placement(self, rig: LauncherRig) -> None:
        """R1, R10 and R15."""
        launch = rig.launch("holds")
        placement = await rig.launcher().submit(launch)
        assert placement.place == rig.place
        assert await found(rig.launcher(), launch) == Found(placement)
        recorded = (launch.run_id, launch.attempt, placement.place, placement.instance)
        assert await rig.launcher().lookup(*recorded) == Found(placement)
        await rig.began(launch)
        waiting = asyncio.create_task(ended(rig.launcher(), launch))
        done, _ = await asyncio.wait({waiting}, timeout=STILL_THERE_S)
        assert not done
        assert await found(rig.launcher(), launch) == Found(placement)
        await rig.let_go(launch)
        assert await waiting == Ended(0)
        assert await found(rig.launcher(), launch) == Found(placement)

    async def test_given_a_second_submit_while_it_lives_and_after_its_end_then_it_is_adopted(
        self, rig: LauncherRig
    ) -> None:
        """R2."""
        launch, launcher = rig.launch("holds"), rig.launcher()
        placement = await launcher.submit(launch)
        await rig.began(launch)
        assert await launcher.submit(launch) == placement
        await rig.let_go(launch)
        assert await ended(launcher, launch) == Ended(0)
        assert await launcher.submit(launch) == placement
        assert await ended(launcher, launch) == Ended(0)
        assert rig.starts(launch) == 1

    async def test_given_submits_at_the_same_time_then_one_program_starts(self, rig: LauncherRig) -> None:
        """R3."""
        launch = rig.launch("holds")
        placements = await asyncio.gather(*(rig.launcher().submit(launch) for _ in range(RIVALS)))
        assert len(set(placements)) == 1
        await rig.began(launch)
        await rig.let_go(launch)
        assert await ended(rig.launcher(), launch) == Ended(0)
        assert rig.starts(launch) == 1

    async def test_given_two_attempts_of_a_run_then_each_has_a_name_and_an_end(self, rig: LauncherRig) -> None:
        """R4."""
        first = rig.launch("exits", 3)
        second = replace(rig.launch("exits", 0), run_id=first.run_id, attempt=2)
        launcher = rig.launcher()
        placements = [await launcher.submit(each) for each in (first, second)]
        assert first.name != second.name
        assert max(len(first.name), len(second.name)) <= NAME_CHARACTERS_MAX
        assert placements[0].external_id != placements[1].external_id
        assert (await ended(launcher, first)).exit_code == 3
        assert (await ended(launcher, second)).exit_code == 0

    async def test_given_a_program_that_is_missing_then_it_is_rejected_and_nothing_started(
        self, rig: LauncherRig
    ) -> None:
        """R5."""
        launch, launcher = rig.launch("is missing"), rig.launcher()
        with pytest.raises(LaunchRejected) as rejected:
            await launcher.submit(launch)
        assert rejected.value.error_class == "config"
        assert launch.file in rejected.value.message
        assert await found(launcher, launch) == Absent()
        assert rig.starts(launch) == 0

    async def test_given_a_program_that_the_platform_cannot_begin_then_it_ends_as_config(
        self, rig: LauncherRig
    ) -> None:
        """R6."""
        launch, launcher = rig.launch("cannot begin"), rig.launcher()
        await launcher.submit(launch)
        end = await ended(launcher, launch)
        assert end.error_class == "config"
        assert end.reason
        assert rig.starts(launch) == 0

    async def test_given_a_silent_platform_then_all_calls_are_unavailable_and_true_after_that(
        self, rig: LauncherRig
    ) -> None:
        """R7."""
        launch, launcher = rig.launch("holds"), rig.launcher()
        placement = await launcher.submit(launch)
        await rig.began(launch)
        with rig.silent(launch):
            questions = (launcher.submit(launch), found(launcher, launch), ended(launcher, launch))
            for question in (*questions, cancelled(launcher, launch)):
                with pytest.raises(LaunchUnavailable):
                    await question
        assert await launcher.submit(launch) == placement
        assert await found(launcher, launch) == Found(placement)
        await rig.let_go(launch)
        assert await ended(launcher, launch) == Ended(0)

    async def test_given_a_submit_without_an_answer_then_a_repeat_starts_it_once(self, rig: LauncherRig) -> None:
        """R8."""
        launch, launcher = rig.launch("exits"), rig.launcher()
        with rig.silent(launch), pytest.raises(LaunchUnavailable):
            await launcher.submit(launch)
        await launcher.submit(launch)
        assert await ended(launcher, launch) == Ended(0)
        assert rig.starts(launch) == 1

    # -- look up ------------------------------------------------------------------------------------------------------

    async def test_given_nothing_submitted_then_it_is_absent_and_a_wait_returns_at_once(self, rig: LauncherRig) -> None:
        """R9 and R17."""
        launch, launcher = rig.launch("exits"), rig.launcher()
        assert await found(launcher, launch) == Absent()
        assert essence(await ended(launcher, launch)) == NEVER_STARTED
        assert await found(launcher, launch) == Absent()

    async def test_given_an_attempt_of_another_place_then_it_can_be_neither_awaited_nor_cancelled(
        self, rig: LauncherRig
    ) -> None:
        """R11."""
        launch, owner, stranger = rig.launch("holds"), rig.launcher(place=rig.other_place), rig.launcher()
        placement = await owner.submit(launch)
        await rig.began(launch)
        elsewhere = Elsewhere(rig.other_place)
        assert await found(stranger, launch) == elsewhere
        unseen = rig.launch("exits")
        assert await stranger.lookup(unseen.run_id, 1, rig.other_place, "an instance") == elsewhere
        recorded = (launch.run_id, launch.attempt, placement.place, placement.instance)
        assert await stranger.lookup(*recorded) == elsewhere
        assert await cancelled(stranger, launch) == elsewhere
        with pytest.raises(LaunchUnavailable):
            await ended(stranger, launch)
        await rig.let_go(launch)
        assert await ended(owner, launch) == Ended(0)

    # -- ends ---------------------------------------------------------------------------------------------------------

    async def test_given_an_exit_code_then_it_decides_the_class_of_the_end(self, rig: LauncherRig) -> None:
        """R12."""
        wanted = {0: None, 3: "unknown", 137: "transient", 75: "transient", 78: "config", 79: "duplicate"}
        launcher = rig.launcher()
        launches = {code: rig.launch("exits", code) for code in wanted}
        await asyncio.gather(*(launcher.submit(launch) for launch in launches.values()))
        ends = {code: await ended(launcher, launch) for code, launch in launches.items()}
        assert {code: end.exit_code for code, end in ends.items()} == {code: code for code in wanted}
        assert {code: end.error_class for code, end in ends.items()} == wanted
        assert {end.signal for end in ends.values()} == {None}
        assert all(end.reason for code, end in ends.items() if code)

    async def test_given_a_signal_then_the_end_names_it_and_is_transient(self, rig: LauncherRig) -> None:
        """R13."""
        launch, launcher = rig.launch("is killed"), rig.launcher()
        await launcher.submit(launch)
        assert essence(await ended(launcher, launch)) == Ended(137, 9, "transient")

    async def test_given_several_waiters_then_all_get_the_same_end_also_later(self, rig: LauncherRig) -> None:
        """R14."""
        launch, starter = rig.launch("holds"), rig.launcher()
        await starter.submit(launch)
        await rig.began(launch)
        waits = [asyncio.create_task(ended(each, launch)) for each in (starter, starter, rig.launcher())]
        await rig.let_go(launch)
        assert await asyncio.gather(*waits) == [Ended(0)] * 3
        assert await ended(rig.launcher(), launch) == Ended(0)

    async def test_given_an_abandoned_wait_then_the_program_lives_and_the_next_wait_gets_its_end(
        self, rig: LauncherRig
    ) -> None:
        """R16."""
        launch, launcher = rig.launch("holds"), rig.launcher()
        placement = await launcher.submit(launch)
        await rig.began(launch)
        waiting = asyncio.create_task(ended(launcher, launch))
        await asyncio.wait({waiting}, timeout=STILL_THERE_S)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await found(launcher, launch) == Found(placement)
        await rig.let_go(launch)
        assert await ended(launcher, launch) == Ended(0)

    # -- cancel -------------------------------------------------------------------------------------------------------

    async def test_given_a_running_program_then_cancel_returns_with_the_end_that_waiters_get(
        self, rig: LauncherRig
    ) -> None:
        """R18."""
        launch, launcher = rig.launch("holds"), rig.launcher()
        await launcher.submit(launch)
        await rig.began(launch)
        waiting = asyncio.create_task(ended(launcher, launch))
        end = await cancelled(launcher, launch)
        assert isinstance(end, Ended)
        assert end.error_class == "transient"
        assert end.signal != 9, "it was killed without its grace"
        assert await waiting == end

    async def test_given_a_program_that_ignores_the_request_then_it_is_killed_after_the_grace(
        self, rig: LauncherRig
    ) -> None:
        """R19."""
        launch, launcher = rig.launch("ignores the request"), rig.launcher(grace_s=SHORT_GRACE_S)
        await launcher.submit(launch)
        await rig.began(launch)
        assert essence(await cancelled(launcher, launch)) == Ended(137, 9, "transient")

    async def test_given_a_cancel_after_the_end_then_the_end_stays_as_it_is(self, rig: LauncherRig) -> None:
        """R20."""
        launch, launcher = rig.launch("exits", 3), rig.launcher()
        await launcher.submit(launch)
        end = await ended(launcher, launch)
        assert await cancelled(launcher, launch) == end
        assert await cancelled(rig.launcher(), launch) == end
        assert await ended(launcher, launch) == end

    async def test_given_a_cancel_of_what_was_never_submitted_then_a_later_submit_starts_it(
        self, rig: LauncherRig
    ) -> None:
        """R21."""
        launch, launcher = rig.launch("exits"), rig.launcher()
        assert await cancelled(launcher, launch) == Absent()
        assert await found(launcher, launch) == Absent()
        await launcher.submit(launch)
        assert await ended(launcher, launch) == Ended(0)

    async def test_given_a_cancel_during_the_submission_then_the_program_never_starts(self, rig: LauncherRig) -> None:
        """R22."""
        launch = rig.launch("exits")
        async with rig.submission_held(launch) as held:
            assert essence(await cancelled(held.launcher, launch)) == NEVER_STARTED
        with pytest.raises(LaunchRejected) as rejected:
            await held.submission
        assert rejected.value.error_class == "config"
        with pytest.raises(LaunchRejected):
            await rig.launcher().submit(launch)
        assert await found(rig.launcher(), launch) == Absent()
        assert rig.starts(launch) == 0

    async def test_given_cancels_at_the_same_time_then_all_return_the_same_end(self, rig: LauncherRig) -> None:
        """R23."""
        launch, launcher = rig.launch("holds"), rig.launcher()
        await launcher.submit(launch)
        await rig.began(launch)
        ends = await asyncio.gather(*(cancelled(each, launch) for each in (launcher, launcher, rig.launcher())))
        assert len(set(ends)) == 1
        assert isinstance(ends[0], Ended)

    async def test_given_the_first_caller_died_then_a_repeat_goes_on_with_the_first_grace(
        self, rig: LauncherRig
    ) -> None:
        """R24: the program would live for ten minutes after a grace that began again."""
        launch, first = rig.launch("ignores the request"), rig.launcher()
        await first.submit(launch)
        await rig.began(launch)
        abandoned = asyncio.create_task(cancelled(first, launch))
        await rig.asked(launch)
        abandoned.cancel()
        with pytest.raises(asyncio.CancelledError):
            await abandoned
        rig.age_cancel(launch, GRACE_S)
        assert essence(await cancelled(rig.launcher(), launch)) == Ended(137, 9, "transient")

    # -- restart ------------------------------------------------------------------------------------------------------

    async def test_given_a_restart_then_the_next_launcher_finds_adopts_awaits_and_cancels(
        self, rig: LauncherRig
    ) -> None:
        """R25."""
        kept, stopped = rig.launch("holds"), rig.launch("holds")
        placements = {launch.run_id: await rig.launcher().submit(launch) for launch in (kept, stopped)}
        for launch in (kept, stopped):
            await rig.began(launch)
        restarted = rig.launcher()
        for launch in (kept, stopped):
            assert await found(restarted, launch) == Found(placements[launch.run_id])
            assert await restarted.submit(launch) == placements[launch.run_id]
        end = await cancelled(restarted, stopped)
        assert isinstance(end, Ended)
        assert end.error_class == "transient"
        await rig.let_go(kept)
        assert await ended(restarted, kept) == Ended(0)
        assert [rig.starts(launch) for launch in (kept, stopped)] == [1, 1]

"""Carries out the launcher effects of actors: submit, look up, watch, cancel, inspect.

Called by `effect_router.py`. A submission is irreversible, so it requires proven membership.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final, TypeVar, cast

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
from tidegate_node.effects.launch_queue import LaunchLine
from tidegate_ports.bus import Notices
from tidegate_ports.clock import Clock
from tidegate_ports.common.program_file_check import FileLooks, FileSystemSilent
from tidegate_ports.common.run_tokens import run_token
from tidegate_ports.common.shortened_text import keep_ends
from tidegate_ports.launcher import (
    Absent,
    Elsewhere,
    Ended,
    Found,
    Launch,
    Launcher,
    LaunchRejected,
    LaunchUnavailable,
    ProgramType,
)
from tidegate_telemetry.metrics import Metrics

ASK_AGAIN_S: Final = 5.0
"""Pause before a launcher that could not be reached is asked again to end a program."""
SUBMITS_UNDER_WAY_MAX: Final = 4
"""Concurrent submissions. Each start costs one or two processes and, on a busy machine, seconds. More at once would
slow all of them."""
IN_LINE_S: Final = 600.0
"""Time after which the owner learns that no launcher was asked. It then submits again. This is well below the hour that
a submission may take, and that hour stops while a run waits here.
"""
CANCEL_TRIES_MAX: Final = 120
"""Ten minutes of a launcher that cannot be reached. After that the run's owner sees the program run and may cancel it
again."""
SAID_AGAIN_MS: Final = 600_000
"""Time between two log lines that a program cannot be reached. The run's owner asks every 10 s while the program runs
elsewhere, which may take days."""
Answered = TypeVar("Answered", Submitted, SubmitFailed, NotSubmitted)


class LaunchEffects:
    """One per process.

    Args:
        launcher: The port.
        gate_url: Address of the start gate.
        secret: Secret that signs the programs' requests.
    """

    def __init__(
        self,
        launcher: Launcher,
        *,
        gate_url: str,
        secret: bytes,
        clock: Clock,
        metrics: Metrics,
        notices: Notices,
        ask_again_s: float = ASK_AGAIN_S,
        in_line_s: float = IN_LINE_S,
        looks: FileLooks | None = None,
    ) -> None:
        self._launcher = launcher
        self._gate_url = gate_url
        self._secret = secret
        self._clock = clock
        self._metrics = metrics
        self._notices = notices
        self._ask_again_s = ask_again_s
        self._in_line_s = in_line_s
        self._cancels: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._said: dict[tuple[str, str, int], int] = {}
        """Time of the last log line about a program; old entries are dropped."""
        self._looks = looks or FileLooks()
        self._submits = LaunchLine(SUBMITS_UNDER_WAY_MAX)
        self._in_line: Counter[tuple[str, int]] = Counter()
        self._withdrawn: set[tuple[str, int]] = set()
        """Waiting submissions that were cancelled before the launcher knew of them."""

    async def submit(self, effect: Submit, may_act: Callable[[], bool]) -> Submitted | SubmitFailed | NotSubmitted:
        name = (effect.order.run_id, effect.order.attempt)
        self._in_line[name] += 1
        try:
            try:
                async with asyncio.timeout(self._in_line_s):
                    await self._submits.take(effect.order.priority)
            except TimeoutError:
                return self._counted(effect.order, NotSubmitted("others are in line before it", unasked=True))
            try:
                # Checked after the wait, because a proof from before the wait may have expired.
                if not may_act():
                    message = "membership of the group is not proven, or the topic partition is another one's"
                    return self._counted(effect.order, NotSubmitted(message, unasked=True))
                if name in self._withdrawn:
                    return self._counted(effect.order, NotSubmitted("it was cancelled before its turn"))
                return await self._submit(effect.order)
            finally:
                self._submits.give_back()
        finally:
            self._in_line -= Counter((name,))
            if name not in self._in_line:
                self._withdrawn.discard(name)

    async def _submit(self, order: LaunchOrder) -> Submitted | SubmitFailed | NotSubmitted:
        try:
            taken = await self._launcher.submit(self._launch(order))
        except LaunchRejected as rejected:
            message = keep_ends(rejected.message)
            return self._counted(order, SubmitFailed(rejected.error_class, message))
        except LaunchUnavailable as unavailable:
            return self._counted(order, NotSubmitted(keep_ends(unavailable.message)))
        if order.due is not None:
            late_ms = self._clock.now_ms() - order.due
            self._metrics.observe("tidegate_fire_lateness_seconds", late_ms / 1000, plane="run")
        return self._counted(order, Submitted(taken.external_id, taken.place, taken.instance))

    async def lookup(self, effect: Lookup) -> LookedUp:
        try:
            found = await self._launcher.lookup(effect.run_id, effect.attempt, effect.host, effect.boot_id)
        except LaunchUnavailable as unavailable:
            self._say_seldom("watch_failed", effect, message=unavailable.message)
            return LookedUp("unknown")
        match found:
            case Found(placement):
                return LookedUp("found", placement.external_id, placement.place, placement.instance)
            case Absent():
                return LookedUp("absent")
            case Elsewhere():
                return LookedUp("elsewhere")

    async def watch(self, effect: Watch) -> ProgramEnded | LookedUp:
        """Waits until the program ends, or until its launcher cannot answer."""
        try:
            ended = await self._launcher.wait_until_gone(effect.run_id, effect.attempt)
        except LaunchUnavailable as unavailable:
            self._notices("watch_failed", run_id=effect.run_id, attempt=effect.attempt, message=unavailable.message)
            return LookedUp("unknown")
        return ProgramEnded(ended.exit_code, ended.error_class, ended.reason, ended.last_lines)

    def cancel(self, effect: Cancel) -> None:
        """Cancels in the background, even after the end of the requesting actor: no owner may ask again for a closed
        run.
        """
        name = (effect.run_id, effect.attempt)
        if name in self._in_line:
            self._withdrawn.add(name)
        if name not in self._cancels:
            task = asyncio.get_running_loop().create_task(self._cancel(effect))
            self._cancels[name] = task
            task.add_done_callback(lambda _: self._cancels.pop(name, None))

    async def inspect(self, effect: Inspect) -> Inspected:
        refused = self._launcher.refuses(_program_type(effect.program_type), effect.conf)
        try:
            problem = await self._looks.problem_with(effect.file, "the node that applied the schedule")
        except FileSystemSilent as silent:
            problem = str(silent)
        return Inspected(problem, refused)

    def stop(self) -> None:
        """Stops pending cancels. The launcher keeps their requests, and another node continues."""
        for task in self._cancels.values():
            task.cancel()

    async def _cancel(self, effect: Cancel) -> None:
        for _ in range(CANCEL_TRIES_MAX):
            try:
                found = await self._launcher.cancel(effect.run_id, effect.attempt)
            except LaunchUnavailable as unavailable:
                self._notices(
                    "cancel_failed", run_id=effect.run_id, attempt=effect.attempt, message=unavailable.message
                )
                await asyncio.sleep(self._ask_again_s)
                continue
            except Exception as bug:  # noqa: BLE001 - after this no owner may ask again for the end of a closed run
                self._notices("task_failed", task="cancel", exc_info=bug)
                await asyncio.sleep(self._ask_again_s)
                continue
            if not isinstance(found, Ended):
                host = found.place if isinstance(found, Elsewhere) else None
                self._say_seldom("cancel_out_of_reach", effect, host=host)
            return

    def _say_seldom(self, event: str, effect: Cancel | Lookup, **fields: str | None) -> None:
        now, name = self._clock.monotonic_ms(), (event, effect.run_id, effect.attempt)
        self._said = {of: at for of, at in self._said.items() if now - at < SAID_AGAIN_MS}
        if name not in self._said:
            self._said[name] = now
            self._notices(event, run_id=effect.run_id, attempt=effect.attempt, **fields)

    def _launch(self, order: LaunchOrder) -> Launch:
        return Launch(
            run_id=order.run_id,
            attempt=order.attempt,
            program_type=_program_type(order.program_type),
            file=order.file,
            args=order.args,
            conf=order.conf,
            env=order.env,
            context=order.context,
            gate_url=self._gate_url,
            token=run_token(self._secret, order.run_id, order.attempt),
        )

    def _counted(self, order: LaunchOrder, answer: Answered) -> Answered:
        name = type(answer).__name__.lower()
        self._metrics.count("tidegate_launches_total", program=order.program_type, answer=name)
        return answer


def _program_type(name: str) -> ProgramType:
    return cast("ProgramType", name)  # The schema of programs allows only these.

"""The wrapper around a user's program: claims the run at the start gate, runs the program, reports its end.

A launcher starts it as `run_program.py <file> <args…>`. No code of the user is imported, and nothing runs, before the
gate admitted the run. It does not promise a report after SIGKILL, `os._exit` or a crash of the interpreter; the
launcher then sees the process group disappear.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tidegate_spark.current_run import set_gate
from tidegate_spark.gate_client import Answer, Deadline, GateClient, GateMisconfigured, GateUnreachable
from tidegate_spark.reports import outputs_so_far
from tidegate_spark.run_identity import IdentityIncomplete, RunIdentity
from tidegate_spark.user_program import EXIT_TERMINATED, TERMINATED, Outcome, Terminated, run_script

EXIT_DUPLICATE = 79
"""Another driver has the run, or it was closed; this driver has no error. The code is distinct, because the launcher
must not take this end for that of the driver that runs, perhaps on another host."""

EXIT_GATE_UNREACHABLE = 75
"""EX_TEMPFAIL: the launcher reads it as `transient`."""

EXIT_CONFIG = 78
"""EX_CONFIG: the launcher reads it as `config`, which is never retried."""

TERMINATED_WAIT_S = 5.0
"""Time-out for the gate's answer and for the report after SIGTERM. A kill follows, 60 s later by default. If the host
stays, the run's end is known without the report as well.
"""


class NotRun(Exception):
    """The program must not run; holds the exit code and one line for the log."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(slots=True)
class Ending:
    """Reports the end of the program, once, as the last act of this process.

    It is registered with `atexit` before the program runs, so it runs last: after the program's own exit
    handlers and after the threads that Python waits for. The program is over when those are.

    Attributes:
        gate: Client that sends the report.
        deadline: Deadline of the current exchange, with the gate or for the report; None while the program runs.
        outcome: End to report.
        process_id: Pid of the driver; a forked child reports nothing.
    """

    gate: GateClient
    deadline: Deadline | None
    outcome: Outcome | None = None
    process_id: int = field(default_factory=os.getpid)

    def on_sigterm(self, _signal: int, _frame: FrameType | None) -> None:
        if (
            os.getpid() != self.process_id
        ):  # A child during its fork: it dies of SIGTERM as it would without the wrapper.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        if self.deadline is not None:
            # The report is being sent, or the gate may have admitted this driver and its answer has not arrived. Only
            # shorten the wait: ending now would lose the run's end.
            self.outcome = self.outcome or TERMINATED
            self.deadline.shorten(TERMINATED_WAIT_S)
            return
        self.outcome = TERMINATED  # Set first, because Python swallows the exception while it waits for threads.
        raise Terminated

    def in_a_forked_child(self) -> None:
        """Restores SIGTERM's default, unless the program has its own handler.

        Python runs a handler between two instructions. A forked child that is about to wait for a lock, such as a
        pool's worker, may never reach one, and a process that waits for its end would wait for ever.
        """
        if signal.getsignal(signal.SIGTERM) == self.on_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def report(self) -> None:
        if os.getpid() != self.process_id or self.outcome is None:
            return
        terminated = self.outcome is TERMINATED
        self.deadline = Deadline(TERMINATED_WAIT_S if terminated else self.gate.identity.report_wait_s)
        fields = {
            "outcome": self.outcome.outcome,
            "reason": self.outcome.reason,
            "exit_code": self.outcome.exit_code,
            "outputs": outputs_so_far(),
        }
        try:
            answer = self.gate.post("finished", fields, self.deadline)
        except GateUnreachable as error:
            say(f"the end ({self.outcome.outcome}) could not be reported to {self.gate.identity.gate_url}: {error}")
            return
        if not answer.ok:  # 409: settled before (cancelled, timed out), and that end stands.
            say(f"the end ({self.outcome.outcome}) was not recorded: {answer.problem}")


def main(argv: list[str]) -> NoReturn:
    """Runs `argv` = [file, *args] as the attempt that the environment names, and exits with the program's code."""
    try:
        gate = GateClient(_identity(argv))
        ending = Ending(gate, Deadline(gate.identity.gate_wait_s))
        signal.signal(signal.SIGTERM, ending.on_sigterm)
        claim(ending)
    except NotRun as answer:
        say(str(answer))
        sys.exit(answer.exit_code)
    set_gate(gate)
    atexit.register(ending.report)
    os.register_at_fork(after_in_child=ending.in_a_forked_child)
    ending.deadline = None
    if ending.outcome is None:
        # SIGTERM between these lines must not find a success, so the outcome is stored in one step.
        ending.outcome = run_script(argv[0], argv[1:])
    sys.exit(ending.outcome.exit_code)


def _identity(argv: list[str]) -> RunIdentity:
    """Returns the identity of this process.

    Raises:
        NotRun: The environment is incomplete, or the script is missing.
    """
    try:
        identity = RunIdentity.take(os.environ)
    except IdentityIncomplete as error:
        raise NotRun(EXIT_CONFIG, str(error)) from error
    # Checked before the gate, where a failure uses up no try: the file existed at submission and may have been removed
    # since.
    if not argv or not Path(argv[0]).is_file():
        raise NotRun(
            EXIT_CONFIG, f"program file {argv[0] if argv else '(none)'} does not exist; restore it or apply anew"
        )
    return identity


def claim(ending: Ending) -> None:
    """Passes the start gate. After SIGTERM it still waits for the gate's answer: a driver that was admitted must report
    the run's end.

    Raises:
        NotRun: The run belongs to another driver, or the gate cannot be passed.
    """
    identity, deadline = ending.gate.identity, ending.deadline
    assert deadline is not None
    told = {"host": socket.gethostname(), "pid": os.getpid(), "launcher_host": identity.launcher_host}
    try:
        answer = ending.gate.post("start", told, deadline)
    except GateMisconfigured as error:
        raise NotRun(EXIT_CONFIG, str(error)) from error
    except GateUnreachable as error:
        no_word = f"no word from the start gate {identity.gate_url}"
        if ending.outcome is TERMINATED:
            raise NotRun(EXIT_TERMINATED, f"asked to end, {no_word}, not run (last: {error})") from error
        raise NotRun(
            EXIT_GATE_UNREACHABLE, f"{no_word} within {identity.gate_wait_s:g} s, not run (last: {error})"
        ) from error
    _require_go(answer, identity)


def _require_go(answer: Answer, identity: RunIdentity) -> None:
    attempt = f"run {identity.run_id} attempt {identity.attempt}"
    if answer.ok:
        return
    if answer.status in (409, 410):
        raise NotRun(EXIT_DUPLICATE, f"duplicate, not run: {attempt}: {answer.problem}")
    raise NotRun(
        EXIT_CONFIG,
        f"the start gate refused {attempt} with {answer.status}: {answer.problem}; check the gate's URL and secret",
    )


def say(message: str) -> None:
    """Writes one line to stderr, which launchers read; a closed stderr is no reason to fail."""
    try:
        sys.stderr.write(f"tidegate: {message}\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # A program may have set it to None.
        return

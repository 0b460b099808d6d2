"""The wrapper around a user's program: claim the run at the start gate, run the program, report its end.

Started by a launcher as `run_program.py <file> <args…>`. Nothing of the user's is imported before the gate said go,
and without the gate's word nothing runs. What it does not promise: a report after SIGKILL, `os._exit` or a crash of the
interpreter; the launcher then sees the process group go.
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
"""Another driver has the run, or it was closed: nothing is wrong with this one. A code of its own, because the launcher
must not take this end for that of the driver that runs, on another host maybe."""

EXIT_GATE_UNREACHABLE = 75
"""EX_TEMPFAIL: the launcher reads it as `transient`."""

EXIT_CONFIG = 78
"""EX_CONFIG: the launcher reads it as `config`, which is never retried."""

TERMINATED_WAIT_S = 5.0
"""For the gate's word and for the report. After SIGTERM a kill follows, 60 s later by default; where its host stays, a run's end is known
without the report, too.
"""


class NotRun(Exception):
    """The program must not run; carries the exit code and one line for the log."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(slots=True)
class Ending:
    """Reports how the program ended, once, as the last act of this process.

    It hangs on `atexit` and is registered before the program runs, so it comes last: after the program's own exit
    handlers and after the threads that Python waits for. A program is over when those are.

    Attributes:
        gate: Where it is reported.
        deadline: Of what is under way and has to be answered: at the gate, and for the report. None: the program runs.
        outcome: What is to be reported.
        process_id: Of the driver; a forked child reports nothing.
    """

    gate: GateClient
    deadline: Deadline | None
    outcome: Outcome | None = None
    process_id: int = field(default_factory=os.getpid)

    def on_sigterm(self, _signal: int, _frame: FrameType | None) -> None:
        if os.getpid() != self.process_id:  # A child amid its fork: it dies of SIGTERM as it would without us.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        if self.deadline is not None:
            # The report is on its way, or the gate has let this driver pass, perhaps, and its word is not here: only hurry, or
            # the run's end would be lost.
            self.outcome = self.outcome or TERMINATED
            self.deadline.shorten(TERMINATED_WAIT_S)
            return
        self.outcome = TERMINATED  # Also where Python swallows what is raised: while it waits for threads.
        raise Terminated

    def in_a_forked_child(self) -> None:
        """Gives SIGTERM back, unless the program has a handler of its own.

        Python runs a handler between two instructions. A child that is about to wait for a lock, such as the worker of a
        pool, may never come to one again, and whoever waits for its end waits for ever.
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
        if not answer.ok:  # 409: settled by someone else already (cancelled, timed out). Theirs stands.
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
        # Kept before the program's own `exit` is known: SIGTERM between these lines must not find a success.
        ending.outcome = run_script(argv[0], argv[1:])
    sys.exit(ending.outcome.exit_code)


def _identity(argv: list[str]) -> RunIdentity:
    """Returns who this process is.

    Raises:
        NotRun: The environment does not say it, or the script is missing.
    """
    try:
        identity = RunIdentity.take(os.environ)
    except IdentityIncomplete as error:
        raise NotRun(EXIT_CONFIG, str(error)) from error
    # Before the gate, where a failure costs no try: the file was there at submit, and may be gone since.
    if not argv or not Path(argv[0]).is_file():
        raise NotRun(
            EXIT_CONFIG, f"program file {argv[0] if argv else '(none)'} does not exist; restore it or apply anew"
        )
    return identity


def claim(ending: Ending) -> None:
    """Passes the start gate. Asked to end meanwhile, it waits for the gate's word all the same: who has passed owes the run its end.

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
    """Writes one line to stderr, which launchers read back; a reader that is gone is no reason to fail."""
    try:
        sys.stderr.write(f"tidegate: {message}\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # A program may have set it to None.
        return

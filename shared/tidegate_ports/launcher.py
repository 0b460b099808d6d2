"""Port to a platform that runs programs: submit, look up, wait and cancel, under a name derived from run and attempt.

The node's bootstrap builds one launcher and hands it to the loop that carries effects out. Every launcher passes the suite
`tests/conformance/launcher_suite.py`. The suite has one test for each rule below and names the rule.

Rules of a submission:

- R1: A submission is durable when `submit` returns: every launcher of the place finds it then, with the same placement.
- R2: A second submit of an attempt adopts the first, during the program's life and after its end.
- R3: Submits of one attempt at the same time, from several launchers of a place, start one program.
- R4: Attempts of one run have different names and separate ends.
- R5: A program that cannot work is rejected as `config`, and nothing of it has started.
- R6: An accepted program that the platform cannot begin ends as `config`.
- R7: While the platform does not answer, all four calls raise LaunchUnavailable. The answer after that is the true one.
- R8: A submit that the platform did not answer may be repeated, and the program starts once.

Rules of a look-up:

- R9: An attempt that was never submitted is `Absent`.
- R10: A started attempt is `Found` during the program's life and after its end.
- R11: An attempt of a place that this launcher does not reach is `Elsewhere`. Its end cannot be awaited or caused from here.

Rules of an end:

- R12: The exit code decides the class of an end: 0 none, 75 `transient`, 78 `config`, 79 `duplicate`, 128 + n `transient`, every other
  one `unknown`. An unobserved end is `transient`.
- R13: A program that a signal ended has the code 128 + n, and its class is `transient`.
- R14: `wait_until_gone` returns the same end to every waiter, also to launchers that did not start the program.
- R15: `wait_until_gone` does not return while the program lives.
- R16: An abandoned wait does not end the program, and the next wait still gets the end.
- R17: Waiting for an attempt that was never submitted returns at once, as `transient` and without an exit code.

Rules of a cancel:

- R18: A cancel returns when the program is gone, and waiters get the same end.
- R19: A program that ignores the request is killed after the grace.
- R20: A cancel after the end returns that end and changes nothing.
- R21: A cancel of an attempt that was never submitted is `Absent`, and a later submit starts the program.
- R22: A cancel during a submission by the same launcher stops it: `submit` raises LaunchRejected, and the program never starts.
- R23: Cancels at the same time, from several launchers, return the same end.
- R24: A cancel outlives its caller: a repeat goes on with the first grace.

Rule of a restart:

- R25: A launcher that was built after the first one died finds, awaits, adopts and cancels what the first one started.

The port does not promise:

- that `submit` is called once. Two nodes may submit the same attempt, because nothing closes the gap between the fence check and this
  call. A launcher adopts what it can see; the start gate admits at most one driver of an attempt;
- that a launcher knows of a submission which another launcher has begun and not finished, or that two places know of each other;
- an exit code for an unobserved end, or a form of `external_id` and `instance`;
- files, logs, processes or signals. Launchers with such things offer them outside of this port (`tidegate_ports/run_folders.py`,
  `tidegate_ports/host_programs.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

ProgramType = Literal["pyspark", "python"]
ErrorClass = Literal[
    "config", "auth", "user_code", "oom", "preempted", "quota", "transient", "lost", "duplicate", "unknown"
]
"""Classes of an end. `duplicate`: the attempt did not run because another driver had passed the start gate, so its end
says nothing about the run's. A launcher itself only reports `config` (never retried), `transient`, `duplicate` and
`unknown`. A program that ends twice as `unknown` before the gate cannot start."""

NAME_CHARACTERS_MAX = 63
"""Length limit of Kubernetes object names, the shortest limit where the name is used."""


def launch_name(run_id: str, attempt: int) -> str:
    """Returns the external name of an attempt: `tg-<run id>-a<attempt>`."""
    return f"tg-{run_id}-a{attempt}"


@dataclass(frozen=True, slots=True)
class Launch:
    """All values that a launcher needs to start one attempt of a run.

    Attributes:
        run_id: Id of the run, not of the attempt.
        attempt: Number of the attempt, 1 or more.
        program_type: Kind of program; it decides the command line around the wrapper.
        file: Absolute path of the user's program.
        args: Arguments after template resolution.
        conf: Spark settings of the user; ignored by `python`. Keys below `spark.tidegate.` are overruled.
        context: Context document, JSON values only; the program reads it with `tidegate_spark.context()`.
        gate_url: Base URL of the API, such as `http://127.0.0.1:8080`.
        token: Bearer token of this attempt. Secret: travels in the program's environment, never in argv, files or logs.
        env: Environment variables of the user, above what the program inherits and below everything `TIDEGATE_*`.
    """

    run_id: str
    attempt: int
    program_type: ProgramType
    file: str
    args: tuple[str, ...]
    conf: Mapping[str, str]
    context: Mapping[str, object]
    gate_url: str
    token: str = field(repr=False)
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """External name, at most 63 characters for tidegate's run ids and attempts below 10^24."""
        return launch_name(self.run_id, self.attempt)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a platform keeps a started attempt; the run item records it. The same for a fresh start and an adoption.

    Attributes:
        external_id: The platform's name of the attempt, for people.
        place: Part of the platform that runs the attempt, such as a host. Launchers of one place see the same attempts.
        instance: Life of the place, or of the attempt there. A recorded attempt of another instance is gone.
    """

    external_id: str
    place: str
    instance: str


@dataclass(frozen=True, slots=True)
class Found:
    """The attempt was started: it runs or has ended, and `wait_until_gone` returns its end."""

    placement: Placement


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing of the attempt has started where this launcher can see; `submit` it (again)."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The attempt was started at another place; this launcher can neither watch nor cancel it."""

    place: str


Lookup = Found | Absent | Elsewhere


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt is gone; no process of it will ever run again at this place.

    Attributes:
        exit_code: Exit code of the program; 128 + n if signal n ended it; None if its end was not observed.
        signal: Number of the signal that ended it, if one did.
        error_class: Class of the end for an attempt that had NOT passed the start gate; None for exit code 0.
            After the gate only the wrapper's report counts, because a user's program may use any exit code.
        reason: One sentence for users: the wrapper's last line if there is one. At most 1 KiB.
        last_lines: End of its error output, if the platform has it. At most 1 KiB.
    """

    exit_code: int | None
    signal: int | None = None
    error_class: ErrorClass | None = None
    reason: str = ""
    last_lines: str = ""


class LaunchRejected(Exception):
    """No launcher will ever start the attempt: fail the run with `error_class`, without retry."""

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        super().__init__(message)
        self.error_class: ErrorClass = error_class
        self.message = message


class LaunchUnavailable(Exception):
    """The launcher cannot start or see the attempt now: submit (or look up) again later, with the same attempt."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


_BY_CODE: Final[dict[int, ErrorClass | None]] = {0: None, 75: "transient", 78: "config", 79: "duplicate"}
"""Exit codes of the wrapper, from `sysexits.h` where it defines one."""
SIGNAL_BASE: Final = 128
"""Number that shells add to the signal that ended a program."""


def class_of_exit(code: int) -> ErrorClass | None:
    """Returns the class of an exit code for an attempt that has not passed the start gate (R12)."""
    return _BY_CODE.get(code, "transient" if code > SIGNAL_BASE else "unknown")


class Launcher(Protocol):
    """Starts attempts and finds them again. Any node may call all methods, also after the node that started the attempt died.

    Each but `refuses` raises LaunchUnavailable when the platform does not answer: ask again later.
    """

    def refuses(self, program_type: ProgramType, conf: Mapping[str, str]) -> str | None:
        """Returns why this launcher would reject every launch of such a program, or None. Called when a schedule is
        applied.

        Args:
            program_type: Kind of the program.
            conf: Its Spark settings, without values that contain templates.
        """
        ...

    async def submit(self, launch: Launch) -> Placement:
        """Starts the attempt, or adopts it if it was already started at this place. Returns once that is durable.

        An attempt starts at most once at a place, also after its end: a new try needs a new attempt number.

        Raises:
            LaunchRejected: The launch will never work.
            LaunchUnavailable: The launch may work later; it is unknown whether the program started.
        """
        ...

    async def lookup(self, run_id: str, attempt: int, place: str | None, instance: str | None) -> Lookup:
        """Returns the result of an earlier submission.

        Args:
            run_id: Run.
            attempt: Attempt of the run.
            place: Place in the run item, or None if no placement was recorded.
            instance: Instance in the run item, or None.
        """
        ...

    async def wait_until_gone(self, run_id: str, attempt: int) -> Ended:
        """Returns when nothing of the attempt lives; at once for one that has ended or never started.

        Raises:
            LaunchUnavailable: Also when the attempt is known to run at another place: its end cannot be seen from here.
        """
        ...

    async def cancel(self, run_id: str, attempt: int) -> Ended | Absent | Elsewhere:
        """Stops the attempt and returns when it is gone: a request to end, a grace, then a kill until nothing is left.

        Idempotent. Another node may call it again during the first call or after the first node's death. `Absent` and `Elsewhere`
        mean that there was nothing to stop from here: an attempt of another place goes on.
        """
        ...

"""Port to whatever runs programs: submit, look up, wait, cancel, under a name derived from run and attempt.

The node's bootstrap builds one launcher and hands it to the loop that carries effects out. Implementations are
`tidegate_launchers` and the testkit's simulated launcher; both run one conformance suite.

What the port does not promise: that `submit` is called once. Two nodes may submit the same attempt, because the
gap between the fence check and this call cannot be closed. A launcher absorbs what it can see (same host: adopt),
and the start gate absorbs the rest: at most one driver of an attempt passes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

ProgramType = Literal["pyspark", "python"]
ErrorClass = Literal["config", "auth", "user_code", "oom", "preempted", "quota", "transient", "lost", "duplicate"]
"""SEMANTICS 8, and `duplicate`: it did not run because another driver of the attempt had passed the start gate, so its
end says nothing of the run's. A launcher itself only says `config` (never retried), `transient` and `duplicate`."""

NAME_CHARACTERS_MAX = 63
"""A Kubernetes object name, the shortest of the places where the name is used."""


def launch_name(run_id: str, attempt: int) -> str:
    """Returns the name under which an attempt is known outside: `tg-<run id>-a<attempt>`."""
    return f"tg-{run_id}-a{attempt}"


@dataclass(frozen=True, slots=True)
class Launch:
    """All that a launcher needs to start one attempt of a run.

    Attributes:
        run_id: Names the run, not the attempt.
        attempt: 1 or more.
        program_type: Which command line is built around the wrapper.
        file: Absolute path of the user's program.
        args: Arguments after template resolution.
        conf: Spark settings of the user; ignored by `python`. Keys below `spark.tidegate.` are overruled.
        context: The document of SEMANTICS 16, JSON values only; the program reads it with `tidegate_spark.context()`.
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
        """The external name, at most 63 characters for run ids of DESIGN 6 and attempts below 10^24."""
        return launch_name(self.run_id, self.attempt)


@dataclass(frozen=True, slots=True)
class Submission:
    """What the run item records once an attempt was handed over; the same for a fresh start and an adoption."""

    external_id: str
    host: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class Found:
    """The attempt was started: it runs, or has ended, and `wait_until_gone` will tell."""

    external_id: str
    host: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing of the attempt has started where this launcher can see; `submit` it (again)."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The attempt was started on another host; this launcher can neither watch nor cancel it."""

    host: str


Lookup = Found | Absent | Elsewhere


@dataclass(frozen=True, slots=True)
class Ended:
    """The attempt's whole process group on this host is gone; nothing of it will ever run again here.

    Attributes:
        exit_code: Exit code of the program, 128 + n when signal n ended it, or None when nobody saw its end.
        signal: Number of the signal that ended it, if one did.
        error_class: What the end means for an attempt that had NOT passed the start gate; None for exit code 0.
            After the gate only the wrapper's report counts, because a user's program may use any exit code.
        reason: One sentence for people: the wrapper's last line where there is one. At most 1 KiB.
    """

    exit_code: int | None
    signal: int | None = None
    error_class: ErrorClass | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LogPaths:
    """Absolute paths of what the program wrote; the files exist once the attempt was submitted."""

    stdout: str
    stderr: str


class LaunchRejected(Exception):
    """The attempt will never start, whoever tries: fail the run with `error_class`, without retry."""

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        super().__init__(message)
        self.error_class: ErrorClass = error_class
        self.message = message


class LaunchUnavailable(Exception):
    """The launcher cannot start or see the attempt now: submit (or look up) again later, with the same attempt."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Launcher(Protocol):
    """Starts attempts and finds them again. All methods may be called by any node, also after the starter died.

    Each of the asynchronous ones raises LaunchUnavailable when the platform does not answer: ask again later.
    """

    async def submit(self, launch: Launch) -> Submission:
        """Starts the attempt, or adopts it when it was already started here. Returns once that is durable.

        An attempt is started at most once per host, also after its end: a new try needs a new attempt number.

        Raises:
            LaunchRejected: It will never work.
            LaunchUnavailable: It may work later; nothing is known to have started.
        """
        ...

    async def lookup(self, run_id: str, attempt: int, host: str | None, boot_id: str | None) -> Lookup:
        """Says what became of a submit.

        Args:
            run_id: The run.
            attempt: Its attempt.
            host: Host in the run item, or None when no `submitted` was recorded.
            boot_id: Boot id in the run item, or None; another boot of the same host means that the program is gone.
        """
        ...

    async def wait_until_gone(self, run_id: str, attempt: int) -> Ended:
        """Returns when the attempt's whole process group is gone; at once for one that has ended or never started.

        Works for attempts that another node process started on this host. May be cancelled and called again.

        Raises:
            LaunchUnavailable: Also when it is known to run on another host: its end cannot be seen from here.
        """
        ...

    async def cancel(self, run_id: str, attempt: int) -> Ended | Absent | Elsewhere:
        """Stops the attempt and returns when its group is verified gone: SIGTERM, a grace, then SIGKILL until gone.

        Idempotent; may be called again by another node while the first call (or node) is at it: the grace goes on from
        the first request. An attempt whose submission is under way here will not start. `Absent` and `Elsewhere` mean that
        there was nothing to stop from here: what runs on another host goes on, and only a node of that host ends it.
        """
        ...

    def log_paths(self, run_id: str, attempt: int) -> LogPaths:
        """Returns where the attempt's output is, whether or not it has started."""
        ...

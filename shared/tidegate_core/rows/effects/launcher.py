"""Effects on launchers, programs and load sources: everything that runs outside tidegate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate_core.language.definitions.run_policies import Priority
from tidegate_core.rows.store_operations import Value


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """Everything that a launcher needs for one attempt of a run. The core builds it without knowing any launcher.

    Attributes:
        due: Time at which the occurrence was due, in ms since the epoch; its lateness counts from here.
        priority: Class of the run, for the node's queue before the launcher.
    """

    run_id: str
    attempt: int
    program_type: str
    file: str
    args: tuple[str, ...]
    conf: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Value] = field(default_factory=dict)
    due: int | None = None
    priority: Priority = "medium"


@dataclass(frozen=True, slots=True)
class Submit:
    """Starts the attempt under its name, during the membership lease only. Result: `Submitted`, `SubmitFailed` or
    `NotSubmitted`.
    """

    order: LaunchOrder


@dataclass(frozen=True, slots=True)
class Submitted:
    """The launcher accepted the attempt now or earlier.

    Attributes:
        external_id: The launcher's name for the attempt.
        host, boot_id: Host of the attempt, for launchers that can check only their own host.
    """

    external_id: str
    host: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class SubmitFailed:
    """No repeat helps. `error_class` is one of the classes in `docs/schedules.md`."""

    error_class: str
    message: str


@dataclass(frozen=True, slots=True)
class NotSubmitted:
    """The attempt may be submitted again later: the lease lapsed, others were first in the queue, or the launcher was
    unreachable.

    Attributes:
        message: Reason, for people.
        unasked: True when the node stopped before it called the launcher. Otherwise the launcher may have accepted
            the attempt.
    """

    message: str
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """Looks for an attempt under its name. Result: `LookedUp`."""

    run_id: str
    attempt: int
    host: str | None
    boot_id: str | None


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Result of `Lookup`. `where`: `found`, `absent`, `elsewhere` (this node cannot know), `unknown` (launcher
    unreachable).
    """

    where: str
    external_id: str | None = None
    host: str | None = None
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Reports the end of an attempt, possibly much later. Result: `ProgramEnded`, or `LookedUp` with `unknown` when the
    launcher no longer knows.
    """

    run_id: str
    attempt: int


DUPLICATE = "duplicate"
"""`ProgramEnded.error_class` of a copy that did not run: another driver of the attempt had passed the start gate."""


@dataclass(frozen=True, slots=True)
class ProgramEnded:
    """The whole process group, pod or application ended, as far as its launcher sees.

    Attributes:
        exit_code: Exit code; None when unknown.
        error_class: Class of an end before the start gate: `config` and `unknown` blame the program, `transient` an
            accident.
        message: One sentence for people.
        last_lines: End of the program's error output, at most 1 KiB.
    """

    exit_code: int | None
    error_class: str | None = None
    message: str = ""
    last_lines: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ends the attempt and makes sure that it stays ended. `Watch` reports the end. No result."""

    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Inspect:
    """Asks whether a program can be launched from this node. An apply of a schedule requests it. Result: `Inspected`.

    Attributes:
        conf: Configuration without template values: they are known only at the launch.
    """

    program_type: str
    file: str
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inspected:
    """Result of `Inspect`.

    Attributes:
        problem: Problem with the program's file; None when it can run.
        refused: Reason why the launcher would reject the program regardless of its file; None when it would not.
    """

    problem: str | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class SampleLoad:
    """Asks for the present load of a source's resource while a job waits for it. Result: `LoadSampled`."""

    source: str
    resource: str


@dataclass(frozen=True, slots=True)
class LoadSampled:
    """Result of `SampleLoad`. `value` is None when the load is unknown; then `problem` gives the reason."""

    value: float | None
    problem: str = ""

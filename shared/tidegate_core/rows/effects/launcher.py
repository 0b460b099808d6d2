"""Launchers, programs, and loads: what runs outside of tidegate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate_core.language.definitions.priority import Priority
from tidegate_core.rows.store_operations import Value


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """All that a launcher needs for one attempt of a run; a value of the core that knows nothing of any launcher.

    Attributes:
        due: When the occurrence was due, in ms since the epoch: what its lateness counts from.
        priority: Class of the run: its place in the node's line before the launcher.
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
    """Start the attempt under its name; guarded. Answer: `Submitted`, `SubmitFailed` or `NotSubmitted`."""

    order: LaunchOrder


@dataclass(frozen=True, slots=True)
class Submitted:
    """The launcher took the attempt, or had it already.

    Attributes:
        external_id: The launcher's name for it.
        host, boot_id: Where it runs, for launchers that can only look on their own host.
    """

    external_id: str
    host: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class SubmitFailed:
    """Will not work as it is: `error_class` of SEMANTICS 8."""

    error_class: str
    message: str


@dataclass(frozen=True, slots=True)
class NotSubmitted:
    """The guard had lapsed, others were in line before it, or the launcher could not be reached: ask again later.

    Attributes:
        message: What was in the way.
        unasked: The node itself was, and no launcher was asked; else it may have been accepted.
    """

    message: str
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """Is there something under the attempt's name? Answer: `LookedUp`."""

    run_id: str
    attempt: int
    host: str | None
    boot_id: str | None


@dataclass(frozen=True, slots=True)
class LookedUp:
    """`where`: `found`, `absent`, `elsewhere` (this node cannot know), `unknown` (launcher unreachable)."""

    where: str
    external_id: str | None = None
    host: str | None = None
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """Tell me once nothing of the attempt is left. Answer, maybe much later: `ProgramEnded`, or `LookedUp` with `unknown` where the launcher cannot
    say it any more.
    """

    run_id: str
    attempt: int


DUPLICATE = "duplicate"
"""`ProgramEnded.error_class` of what did not run, because another driver of the attempt had passed the start gate."""


@dataclass(frozen=True, slots=True)
class ProgramEnded:
    """The whole process group (or pod, or application) is gone, where its launcher can see it.

    Attributes:
        exit_code: None when it cannot be known.
        error_class: Of an end before the start gate: `config` and `unknown` are the program's, `transient` is an accident.
        message: One sentence for people.
        last_lines: The end of its error output, at most 1 KiB.
    """

    exit_code: int | None
    error_class: str | None = None
    message: str = ""
    last_lines: str = ""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the attempt and see to it that it is gone; `Watch` tells when. No answer."""

    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Inspect:
    """Can this program be launched from here? Asked when a schedule is applied. Answer: `Inspected`.

    Attributes:
        conf: Without values that are templates: what becomes of them is known at the launch alone.
    """

    program_type: str
    file: str
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inspected:
    """What is wrong with the program.

    Attributes:
        problem: With its file; None where it can be run.
        refused: Why the launcher would reject it whatever its file is; None where it would not.
    """

    problem: str | None = None
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class SampleLoad:
    """How busy is this resource of the source now? Asked while a job waits for it. Answer: `LoadSampled`."""

    source: str
    resource: str


@dataclass(frozen=True, slots=True)
class LoadSampled:
    """`value` is None when it cannot be said, and `problem` says why."""

    value: float | None
    problem: str = ""

"""Events of a local stack, as values. The stack emits them; a console shows them or writes them as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """Progress of fetching a component's files; `files_total` is 0 while unknown."""

    component: str
    stage: str
    files_done: int
    files_total: int
    kilobytes_done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentReady:
    """A component answers.

    Attributes:
        seconds: Duration of the start; 0 if the component ran before.
        where: Address for clients, or a sentence.
        log: Path of its log file; None if the stack did not start it.
        note: Remark for the user.
    """

    component: str
    seconds: float
    where: str
    log: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Remark for the user, such as a taken port or a crash."""

    component: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """All components answer.

    Attributes:
        seconds: Seconds since the start of the command.
        nodes: Base URLs of the nodes' health pages.
        folder: Folder from which the command was started. Other commands in this folder use this stack.
        pid: Process id of the command; its end ends the stack.
    """

    seconds: float
    api_url: str
    kafka: str
    dynamodb: str
    data_dir: str
    ephemeral: bool
    folder: str
    nodes: tuple[str, ...]
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The stack drains."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The stack has ended.

    Attributes:
        kept: Sentences about the data and programs that stay, and how to continue.
    """

    seconds: float
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The stack could not be started; `remedy` may be empty."""

    problem: str
    remedy: str


StackEvent: TypeAlias = Fetching | ComponentReady | Notice | Ready | Stopping | Stopped | Failed
EVENT_NAMES: dict[type[StackEvent], str] = {
    Fetching: "fetching",
    ComponentReady: "component",
    Notice: "notice",
    Ready: "ready",
    Stopping: "stopping",
    Stopped: "stopped",
    Failed: "failed",
}
"""Values of the field `event` in the lines of `--json`."""

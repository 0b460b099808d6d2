"""What happens to a local stack, as values: a console shows them to a person or writes them for a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """How far a component's files are; `files_total` is 0 while it is not known."""

    component: str
    stage: str
    files_done: int
    files_total: int
    kilobytes_done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentReady:
    """A component answers.

    Attributes:
        seconds: How long it took; 0 for what was there already.
        where: Address for clients, or a sentence.
        log: What it prints, as a path; None for what we did not start.
        note: What else a user should know.
    """

    component: str
    seconds: float
    where: str
    log: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that a user should know, such as a taken port or a crash."""

    component: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """All components answer.

    Attributes:
        seconds: From the command to here.
        nodes: Base URLs of the nodes' health pages.
        folder: Where the command was started: other commands mean this stack there.
        pid: The process whose end ends the stack.
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
        kept: What is left of it and how to go on, as sentences.
    """

    seconds: float
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The stack could not be started; `remedy` may be empty where the problem says it all."""

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
"""The field `event` of a line of `--json`."""

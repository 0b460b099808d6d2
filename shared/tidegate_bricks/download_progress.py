"""Progress of a brick's download or start, for progress bars of any kind."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Stage(StrEnum):
    """Stages in order of time; a warm start goes from `verifying` to `starting`."""

    VERIFYING = "verifying"
    WAITING = "waiting"  # another process is fetching the same files
    RESOLVING = "resolving"
    DOWNLOADING = "downloading"
    STARTING = "starting"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Progress:
    """A brick's progress at one moment.

    Attributes:
        brick: Name and version, for instance `kafka-4.1.1`.
        stage: Present stage.
        files_done: Files resolved (`RESOLVING`) or downloaded (`DOWNLOADING`) so far, else 0.
        files_total: Expected number of files, else 0. While resolving it is a close estimate.
        kilobytes_done: Kilobytes downloaded so far, else 0.
    """

    brick: str
    stage: Stage
    files_done: int = 0
    files_total: int = 0
    kilobytes_done: int = 0


class ProgressListener(Protocol):
    """Receives each step. Called on the thread that fetches or starts the brick, so it must return quickly."""

    def __call__(self, progress: Progress, /) -> None: ...


def silent(progress: Progress, /) -> None:
    """Ignores all progress."""

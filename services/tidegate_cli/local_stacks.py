"""Finds the running local stacks of this machine by their pointer files, and chooses the one for a command.

Each running `tidegate dev` has a pointer file in the folder `dev` of the user's state. It holds a lock on the file until it ends.
A file without a lock belongs to a killed stack and is ignored.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate_cli.exit_codes import CommandFailed, Exit


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A running stack.

    Attributes:
        folder: Folder from which `tidegate dev` was started; empty if unknown.
        pid: Process id of `tidegate dev`.
    """

    api_url: str
    folder: str
    data_dir: str
    pid: int

    def __str__(self) -> str:
        return f"{self.api_url}  started from {self.folder or 'an unknown folder'} (process {self.pid}, data in {self.data_dir})"


def state_dir(environment: Mapping[str, str]) -> Path:
    """Returns the folder of the user's state: `TIDEGATE_STATE_DIR`, or the XDG folder."""
    return state_dir_and_variable(environment)[0]


def state_dir_and_variable(environment: Mapping[str, str]) -> tuple[Path, str | None]:
    """Returns the folder of the user's state, and the variable that named it; None for the default."""
    given = environment.get("TIDEGATE_STATE_DIR")
    if given:
        return Path(given), "TIDEGATE_STATE_DIR"
    base = environment.get("XDG_STATE_HOME")
    if base:
        return Path(base) / "tidegate", "XDG_STATE_HOME"
    return Path.home() / ".local" / "state" / "tidegate", None


def pointer_dir(environment: Mapping[str, str]) -> Path:
    """Returns the folder of the pointer files."""
    return state_dir(environment) / "dev"


def current_folder() -> str:
    """Returns the current folder with links resolved; empty if the folder was removed."""
    try:
        return os.path.realpath(Path.cwd())
    except OSError:
        return ""


def chosen_stack(stacks: Sequence[LocalStack], folder: str) -> LocalStack | None:
    """Returns the stack that was started from this folder; otherwise the only running stack; None if none runs.

    Raises:
        CommandFailed: Several stacks match; the message lists them (usage).
    """
    near = [stack for stack in stacks if stack.folder == folder and folder]
    candidates = near or stacks
    if len(candidates) > 1:
        how = f"{len(near)} of them were" if near else "none of them was"
        listed = "\n  ".join(map(str, stacks))
        raise CommandFailed(
            f"{len(stacks)} local stacks run, and {how} started from this folder; choose one with --api or "
            f"TIDEGATE_API_URL, or change to its folder:\n  {listed}",
            Exit.USAGE,
        )
    return candidates[0] if candidates else None


def running_stacks(folder: Path) -> list[LocalStack]:
    """Returns the running stacks, by the pointer files in a folder."""
    found = (_running(path) for path in sorted(folder.glob("*.json")))
    return sorted((stack for stack in found if stack is not None), key=lambda stack: stack.api_url)


def _running(path: Path) -> LocalStack | None:
    try:
        with path.open("rb") as file:
            if _is_free(file.fileno()):
                return None
            said = json.load(file)
            return LocalStack(str(said["api_url"]), str(said["folder"]), str(said["data_dir"]), int(said["pid"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None  # The file was removed since the listing, or is no pointer file.


def _is_free(descriptor: int) -> bool:
    """Whether no stack holds the file. The lock is shared, so that two commands that check at the same time do not block each other."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""The local stacks that run on this machine, as their pointer files tell, and which of them a command means.

Each running `tidegate dev` has a file of its own in the folder `dev` of the user's state, and holds a lock on it until it ends. A file
without that lock was left by a stack that was killed, and counts for nothing.
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
    """A stack that runs.

    Attributes:
        folder: Where its `tidegate dev` was started; empty where that was not known.
        pid: Its process.
    """

    api_url: str
    folder: str
    data_dir: str
    pid: int

    def __str__(self) -> str:
        return f"{self.api_url}  started from {self.folder or 'an unknown folder'} (process {self.pid}, data in {self.data_dir})"


def state_dir(environment: Mapping[str, str]) -> Path:
    """Returns the folder of the user's state, `TIDEGATE_STATE_DIR` or as the XDG rules say."""
    return state_dir_and_variable(environment)[0]


def state_dir_and_variable(environment: Mapping[str, str]) -> tuple[Path, str | None]:
    """Returns the folder of the user's state and the variable that named it; None for the default."""
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
    """Returns the current folder without links; empty where it was removed."""
    try:
        return os.path.realpath(Path.cwd())
    except OSError:
        return ""


def chosen_stack(stacks: Sequence[LocalStack], folder: str) -> LocalStack | None:
    """Returns the stack that was started from this folder, else the only one, or None where none runs.

    Raises:
        CommandFailed: Several may be meant; the message lists them (usage).
    """
    near = [stack for stack in stacks if stack.folder == folder and folder]
    candidates = near or stacks
    if len(candidates) > 1:
        how = f"{len(near)} of them were" if near else "none of them was"
        listed = "\n  ".join(map(str, stacks))
        raise CommandFailed(
            f"{len(stacks)} local stacks run, and {how} started from this folder; say which one you mean by --api or "
            f"TIDEGATE_API_URL, or go to its folder:\n  {listed}",
            Exit.USAGE,
        )
    return candidates[0] if candidates else None


def running_stacks(folder: Path) -> list[LocalStack]:
    """Returns the stacks that run, by the pointer files in a folder."""
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
        return None  # Gone meanwhile, or no pointer file.


def _is_free(descriptor: int) -> bool:
    """Whether no stack holds the file. Shared: two commands that look at once do not take each other for a stack."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

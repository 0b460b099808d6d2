"""The pointer file `dev.json`: tells other commands of the same user where the local stack is.

The last stack that was started wins; one that stops takes away only its own.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from tidegate_cli.context import POINTER_FILE
from tidegate_cli.dev.events import Ready

FILE_MODE = 0o600


def write_pointer(folder: Path, ready: Ready) -> None:
    """Writes the file so that readers see all of it or none."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{POINTER_FILE}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(json.dumps(asdict(ready), indent=1) + "\n")
    temporary.replace(folder / POINTER_FILE)


def remove_pointer(folder: Path, pid: int) -> None:
    """Removes the file if it speaks of the stack of process `pid`."""
    path = folder / POINTER_FILE
    try:
        if json.loads(path.read_text(encoding="utf-8")).get("pid") == pid:
            path.unlink(missing_ok=True)
    except (OSError, ValueError, AttributeError):
        # Gone, or not ours: nothing to take away.
        return

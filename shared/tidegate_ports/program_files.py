"""Whether a program's file can be run: asked by an owner before it accepts a schedule, and by the API's dry run of that.

No port, but both judge by it: a dry run that looked less closely would promise what the apply then refuses.
"""

from __future__ import annotations

import os
from pathlib import Path


def problem_with(file: str, who: str) -> str | None:
    """Returns what is wrong with a program's file as this process sees it, or None. Blocking.

    Args:
        file: As the schedule says it.
        who: Names this process in the answer, such as `the node that applied the schedule`.
    """
    path = Path(file)
    if not path.is_absolute():
        return f"{file} is not an absolute path"
    try:
        if not path.is_file():
            return f"{file} does not exist on {who}, or is no file"
    except OSError as failure:
        return f"{file} cannot be looked at: {failure.strerror}"
    return None if os.access(path, os.R_OK) else f"{file} may not be read by {who}"

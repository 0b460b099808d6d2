"""Why a submission came to nothing, as the run's item keeps it, and whether the next one would fare better.

Called by the decisions on runs before the start gate. A program that cannot start dies in the same way each time: two such deaths are
enough to know it, and ten would hold its permits for half an hour.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from tidegate_core.rows.effects import ProgramEnded
from tidegate_core.rows.run import Run

PASSING: Final = frozenset({"transient", "preempted", "quota"})
"""Errors before the gate after which the same submission may work, however often it has failed alike."""
UNKNOWN: Final = "unknown"
"""Error of a program that died before the gate, and nobody says why: tried once more."""
_WORD: Final = re.compile(r"[0-9A-Za-z_-]+")


def setback_of(run: Run, gone: ProgramEnded, reason: str, error_class: str, now: int) -> str:
    """Returns how an attempt that died before the gate is kept, as JSON."""
    return _text(run, gone.exit_code, error_class, reason, gone.last_lines, now)


def silence_of(run: Run, message: str, now: int) -> str:
    """Returns how an attempt that no launcher has taken is kept, as JSON."""
    return _text(run, None, "transient", message, "", now)


def is_same_silence(run: Run, message: str) -> bool:
    """Whether the run says already that its attempt was not taken for this reason: a write for each try would buy nobody anything."""
    last = told(run)
    return last is not None and last["attempt"] == run.attempt and _essence(last["reason"]) == _essence(message)


def dies_alike(run: Run, setback: str) -> bool:
    """Whether the attempt before died in the same way, and nothing says that this passes."""
    last, this = told(run), json.loads(setback)
    if last is None or this["error_class"] in PASSING or last["error_class"] in PASSING:
        return False
    return last["exit_code"] == this["exit_code"] and _essence(last["reason"]) == _essence(this["reason"])


def told(run: Run) -> dict[str, Any] | None:
    """Returns what is kept of the last submission that came to nothing."""
    if run.setback is None:
        return None
    document: dict[str, Any] = json.loads(run.setback)
    return document


def _text(run: Run, exit_code: int | None, error_class: str, reason: str, last_lines: str, now: int) -> str:
    document = {
        "attempt": run.attempt,
        "at": now,
        "exit_code": exit_code,
        "error_class": error_class,
        "reason": reason,
        "last_lines": last_lines,
    }
    return json.dumps(document, sort_keys=True, ensure_ascii=False)


def _essence(reason: str) -> str:
    """Returns the text with `#` for each word that has a digit.

    Times, process ids, ports, addresses and random names differ between two deaths of one cause.
    """
    # An expression that looks for the digit itself takes quadratic time: it tries again from each letter of a long word.
    return _WORD.sub(_unless_it_varies, reason)


def _unless_it_varies(word: re.Match[str]) -> str:
    return "#" if any(map(str.isdigit, word.group())) else word.group()

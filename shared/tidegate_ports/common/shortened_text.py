"""Shortens long error texts: the beginning says what failed, and the end names the cause.

No port: launchers, the node and the API share it. The wrapper in `tidegate_spark` has its own copy, because it may only
use the standard library.
"""

from __future__ import annotations

import re
from typing import Final

BYTES_MAX: Final = 1024
HEAD_BYTES: Final = 256
GAP: Final = " … "
_FRAME: Final = re.compile(r"\s*(?:at [\w.$<>/]+\(.*\)|\.\.\. \d+ more)\s*")
"""A line of a Java stack trace; a hundred of them may separate an exception from its cause."""
_CAUSE: Final = re.compile(r"(?:[\w.$]*(?:Exception|Error|Interrupt|Exit)\b|Caused by|error)(?::| )", re.IGNORECASE)
"""Beginning of a line that names an error, possibly after `Exception in thread "main"`."""


def keep_ends(text: str, most: int = BYTES_MAX) -> str:
    """Returns at most `most` bytes of UTF-8: all of the text, or its beginning and its end, in whole characters.

    `both_ends` of `tidegate_core.language.values.problems` counts characters instead. Neither can use the other: the
    core imports no port, and a limit in bytes is known only after encoding.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode()
    head = min(HEAD_BYTES, most // 4)
    tail = most - head - len(GAP.encode())
    return f"{data[:head].decode('utf-8', 'ignore')}{GAP}{data[-tail:].decode('utf-8', 'ignore')}"


def without_frames(text: str) -> str:
    """Returns a text without the lines of Java stack traces, and without empty lines."""
    return "\n".join(line for line in text.splitlines() if line.strip() and not _FRAME.fullmatch(line))


def last_lines(text: str, most: int = BYTES_MAX) -> str:
    """Returns the last whole lines that fit, without Java stack frames; of a single long line both ends."""
    kept: list[str] = []
    room = most
    for line in reversed(without_frames(text).splitlines()):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        kept.append(line.rstrip())
    return "\n".join(reversed(kept)) if kept else keep_ends(without_frames(text), most)


def cause_in(text: str) -> str:
    """Returns the most telling line about an end: the last one that names an error, else the last one; empty for an
    empty text.
    """
    lines = [line.strip() for line in without_frames(text).splitlines()]
    named = [line for line in lines if _CAUSE.search(line)]
    return keep_ends((named or lines or [""])[-1])

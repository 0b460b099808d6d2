"""JSON pointers (RFC 6901): one value inside of a JSON document."""

from __future__ import annotations

import re
from typing import Any, Final

INDEX_DIGITS_MAX: Final = 7
"""More entries than a record of 1 MiB can hold."""


WRONG_ESCAPE: Final = "has a ~ that is neither ~0 nor ~1"
ESCAPES: Final = "write ~0 for ~, and ~1 for /"
_OPEN_ESCAPE: Final = re.compile("~(?![01])")


class _Missing:
    """Not even null."""


MISSING: Final = _Missing()


def value_at(document: Any, pointer: str) -> Any:
    """Returns what the pointer leads to, or `MISSING`. The empty pointer is the document itself."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name, MISSING)
        elif isinstance(document, list):
            document = document[int(name)] if _is_index(name) and int(name) < len(document) else MISSING
        else:
            return MISSING
    return document


def is_wrongly_escaped(pointer: str) -> bool:
    """Whether a `~` stands for nothing in it, which RFC 6901 forbids: it leads to another name than was meant."""
    return _OPEN_ESCAPE.search(pointer) is not None


def _is_index(name: str) -> bool:
    """Digits without a leading zero, as the RFC wants them."""
    plain = name.isascii() and name.isdigit() and len(name) <= INDEX_DIGITS_MAX
    return plain and (name == "0" or not name.startswith("0"))

"""URL-encoded texts (percent signs, and `+` for a space), as S3 encodes the keys of its notifications."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

_OPEN_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


def url_decoded(text: str) -> str | None:
    """Returns what the text encodes; None where a percent sign begins no escape, or the bytes are not UTF-8."""
    if _OPEN_ESCAPE.search(text):
        return None
    try:
        return unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeDecodeError:
        return None

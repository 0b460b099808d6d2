"""What lets a program speak for its run: the secret that nodes and API read from one file, and the tokens that it signs.

No port, but nodes make tokens and the API checks them: it has to lie where both may import it, or one edit locks all out.
"""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Final

SECRET_CHARACTERS_MIN: Final = 32
"""128 bits when it is hex; a guessed secret would let anybody start runs."""


class SecretUnusable(Exception):
    """The message names the setting and says what to do."""


def read_secret(file: Path | None) -> bytes:
    """Returns the gate's secret without its line end.

    Raises:
        SecretUnusable: No file is named, it cannot be read, or it is too short.
    """
    setting = "gate.secret_file (TIDEGATE_GATE__SECRET_FILE)"
    if file is None:
        raise SecretUnusable(f"{setting} is not set: name a file with a secret that nodes and API share")
    try:
        secret = file.read_bytes().strip()
    except OSError as failure:
        raise SecretUnusable(f"{setting}: {file} cannot be read: {failure.strerror}") from failure
    if len(secret) < SECRET_CHARACTERS_MIN:
        raise SecretUnusable(
            f"{setting}: {file} holds {len(secret)} characters; at least {SECRET_CHARACTERS_MIN} are needed"
        )
    return secret


def run_token(secret: bytes, run_id: str, attempt: int) -> str:
    """Returns what the programs of an attempt show at the gate: HMAC-SHA256 of run and attempt, 64 hex digits (DESIGN 6)."""
    return hmac.new(secret, f"{run_id}/{attempt}".encode(), "sha256").hexdigest()

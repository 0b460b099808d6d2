"""What lets a program speak for its run: the secrets that nodes and API read from one file, and the tokens that they sign.

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


def read_secrets(file: Path | None) -> tuple[bytes, ...]:
    """Returns the gate's secrets, one a line: nodes sign with the first one, the API accepts all.

    Of more than one there is need while a secret is replaced: programs that run hold what the old one has signed.

    Raises:
        SecretUnusable: No file is named, it cannot be read, or one of them is too short.
    """
    setting = "gate.secret_file (TIDEGATE_GATE__SECRET_FILE)"
    if file is None:
        raise SecretUnusable(f"{setting} is not set: name a file with a secret that nodes and API share")
    try:
        lines = file.read_bytes().strip().split(b"\n")
    except OSError as failure:
        raise SecretUnusable(f"{setting}: {file} cannot be read: {failure.strerror}") from failure
    secrets = tuple(line.strip() for line in lines)
    for number, secret in enumerate(secrets, 1):
        if len(secret) < SECRET_CHARACTERS_MIN:
            which = f"line {number} " if len(secrets) > 1 else ""
            raise SecretUnusable(
                f"{setting}: {file} {which}holds {len(secret)} characters; at least {SECRET_CHARACTERS_MIN} are needed"
            )
    return secrets


def run_token(secret: bytes, run_id: str, attempt: int) -> str:
    """Returns what the programs of an attempt show at the gate: HMAC-SHA256 of run and attempt, 64 hex digits (DESIGN 6)."""
    return hmac.new(secret, f"{run_id}/{attempt}".encode(), "sha256").hexdigest()

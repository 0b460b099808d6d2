"""Secrets, and the tokens with which a program proves that it belongs to a run. Nodes and API read the secrets from one file.

No port: nodes create tokens and the API checks them. Both share this module, or a change on one side would lock all
programs out.
"""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Final

SECRET_CHARACTERS_MIN: Final = 32
"""Least length of a secret: 128 bits in hex. With a guessed secret anyone could start runs."""


class SecretUnusable(Exception):
    """The secrets cannot be used; the message names the setting and says what to do."""


def read_secrets(file: Path | None) -> tuple[bytes, ...]:
    """Returns the gate's secrets, one per line: nodes sign with the first one, the API accepts all.

    Several secrets are needed during a replacement: running programs hold tokens signed with the old one.

    Raises:
        SecretUnusable: The file is not set, cannot be read, or contains a secret that is too short.
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
    """Returns the token that an attempt's program presents at the gate: HMAC-SHA256 of run and attempt, 64 hex
    digits.
    """
    return hmac.new(secret, f"{run_id}/{attempt}".encode(), "sha256").hexdigest()

"""Run tokens: what a launcher hands to one attempt, and to nothing else, so that it may speak for its run."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from tidegate_ports.run_tokens import run_token

__all__ = ["run_token", "speaks_for"]

SCHEME = "bearer "


def speaks_for(secrets: Sequence[bytes], authorization: str | None, run_id: str, attempt: int) -> bool:
    """Whether an Authorization header holds the attempt's token, by one of the secrets; takes as long for a near miss as for a wild guess."""
    header = authorization or ""
    given = header[len(SCHEME) :].strip() if header[: len(SCHEME)].lower() == SCHEME else ""
    return any(hmac.compare_digest(given.encode(), run_token(each, run_id, attempt).encode()) for each in secrets)

"""Run tokens: what a launcher hands to one attempt, and to nothing else, so that it may speak for its run."""

from __future__ import annotations

import hmac

from tidegate_ports.run_tokens import run_token

__all__ = ["run_token", "speaks_for"]

SCHEME = "bearer "


def speaks_for(secret: bytes, authorization: str | None, run_id: str, attempt: int) -> bool:
    """Whether an Authorization header holds the attempt's token; takes as long for a near miss as for a wild guess."""
    header = authorization or ""
    given = header[len(SCHEME) :].strip() if header[: len(SCHEME)].lower() == SCHEME else ""
    return hmac.compare_digest(given.encode(), run_token(secret, run_id, attempt).encode())

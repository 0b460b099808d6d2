"""What users import to speak with tidegate's API: a synchronous client, its typed answers and its errors."""

from __future__ import annotations

from tidegate_client.client import Client
from tidegate_client.errors import (
    AnswerPending,
    ApiFailed,
    ApiUnavailable,
    ApiUnreachable,
    Conflict,
    InvalidRequest,
    NotFound,
    TidegateError,
)

__all__ = [
    "AnswerPending",
    "ApiFailed",
    "ApiUnavailable",
    "ApiUnreachable",
    "Client",
    "Conflict",
    "InvalidRequest",
    "NotFound",
    "TidegateError",
]

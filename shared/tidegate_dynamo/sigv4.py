"""Signs requests to one endpoint with Signature Version 4, and keeps the day's signing key.

Source: the AWS guide "Create a signed AWS API request". The tests compare each part with the SDK's signer. Four of the
five keyed hashes depend only on the day, so only the rest is computed for each call.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from botocore.exceptions import HTTPClientError, NoCredentialsError

from tidegate_dynamo.endpoint import Endpoint

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials

CONTENT_TYPE: Final = "application/x-amz-json-1.0"
ALGORITHM: Final = "AWS4-HMAC-SHA256"
STAMP: Final = "%Y%m%dT%H%M%SZ"
DATE_CHARACTERS: Final = 8


class _Day(NamedTuple):
    """Values that all calls of one UTC day share while the credentials stay the same."""

    date: str
    credentials: ReadOnlyCredentials
    scope: str
    key: bytes
    names: str
    token: str


class Signer:
    """Signer of requests. Thread-safe.

    Args:
        endpoint: Receiver of the requests.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._start = (
            f"POST\n{endpoint.canonical_path}\n\ncontent-type:{CONTENT_TYPE}\nhost:{endpoint.host}\nx-amz-date:"
        )
        # Replaced as a whole, so concurrent threads that compute the same value do no harm.
        self._day: _Day | None = None

    def headers(self, credentials: ReadOnlyCredentials, target: str, body: bytes, now_s: float) -> str:
        """Returns the authentication headers, each with its line end.

        Args:
            credentials: Present keys.
            target: Value of `X-Amz-Target`.
            body: Body that will be sent.
            now_s: Seconds since the epoch.

        Raises:
            NoCredentialsError: The keys are empty.
            botocore.exceptions.BotoCoreError: The keys hold a character that no header may have.
        """
        stamp = time.strftime(STAMP, time.gmtime(now_s))
        day = self._day
        if day is None or day.credentials != credentials or day.date != stamp[:DATE_CHARACTERS]:
            self._day = day = self._begin(credentials, stamp[:DATE_CHARACTERS])
        token = f"x-amz-security-token:{day.token}\n" if day.token else ""
        asked = f"{self._start}{stamp}\n{token}x-amz-target:{target}\n\n{day.names}\n{hashlib.sha256(body).hexdigest()}"
        to_sign = f"{ALGORITHM}\n{stamp}\n{day.scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
        signature = hmac.digest(day.key, to_sign.encode(), "sha256").hex()
        token = f"X-Amz-Security-Token: {day.token}\r\n" if day.token else ""
        return (
            f"X-Amz-Date: {stamp}\r\n{token}Authorization: {ALGORITHM} Credential={credentials.access_key}/{day.scope}, "
            f"SignedHeaders={day.names}, Signature={signature}\r\n"
        )

    def _begin(self, credentials: ReadOnlyCredentials, date: str) -> _Day:
        token = credentials.token or ""
        if not credentials.access_key or not credentials.secret_key:
            raise NoCredentialsError
        for part in (credentials.access_key, token):
            # A line end, for example from a carelessly written file, would end the header and begin another one.
            if not part.isascii() or not part.isprintable() or " " in part:
                raise HTTPClientError(error="the credentials hold a character that no header may have")
        scope = (date, self._endpoint.region, self._endpoint.signing_name, "aws4_request")
        key = f"AWS4{credentials.secret_key}".encode()
        for part in scope:
            key = hmac.digest(key, part.encode(), "sha256")
        names = f"content-type;host;x-amz-date;{'x-amz-security-token;' if token else ''}x-amz-target"
        return _Day(date, credentials, "/".join(scope), key, names, token)

"""HTTP client of the start gate and of the reports: one POST, retried with full jitter until a deadline.

Used by the wrapper and by the reports. The server treats all its requests as idempotent, by the driver id. So a request
whose answer was lost is repeated. Only answers with the API's own mark are believed; others, such as a proxy's, count
as lost. The client uses no proxy of the environment, because the token is for the gate alone.
"""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, urlsplit

from tidegate_spark.run_identity import RunIdentity

BACKOFF_BASE_S = 0.2
"""Longest first pause. It is short, because the usual cause is an API process that restarts behind a load balancer."""

BACKOFF_CAP_S = 5.0
"""Longest pause: a program starts at most this long after the gate's return."""

REQUEST_TIMEOUT_S = 10.0
"""Time-out of one request; many times what the gate's conditional write takes."""

ANSWER_BYTES_MAX = 64 * 1024
"""Part of an answer that is read; a problem document is below 2 KiB."""

PROBLEM_TYPES = "urn:tidegate:problem:"
"""Prefix of the types of the API's problem documents. It distinguishes the API's 404 from a proxy's."""

_RETRIED_STATUSES = frozenset({408, 425, 429})


class GateMisconfigured(Exception):
    """The gate's URL is unusable; a retry cannot help."""


class GateUnreachable(Exception):
    """No usable answer came before the deadline; the message holds the last problem."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer of the API: success or a refusal that no retry changes."""

    status: int
    document: Mapping[str, object]

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def problem(self) -> str:
        """The server's explanation: the detail of its problem document, or else the reason's code or the title."""
        for key in ("detail", "reason", "title"):
            words = self.document.get(key)
            if isinstance(words, str) and words:
                return words
        return f"HTTP {self.status}"

    def is_of_the_api(self, run_id: str) -> bool:
        """Whether the API itself answered: its successes name the run, its refusals have the API's problem types."""
        if self.ok:
            return self.document.get("run_id") == run_id
        return str(self.document.get("type", "")).startswith(PROBLEM_TYPES)


class Deadline:
    """An instant on the monotonic clock that may be brought forward during the wait."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = clock() + seconds

    def remaining(self) -> float:
        return max(0.0, self._at - self._clock())

    def shorten(self, seconds: float) -> None:
        self._at = min(self._at, self._clock() + seconds)


@dataclass(slots=True)
class GateClient:
    """Sends requests for one driver of one attempt.

    Attributes:
        identity: Run, attempt, driver, URL and token.
        pause: Sleep function; tests replace it.
        jitter: Uniform numbers in [0, 1), from a private generator: the user's program may have seeded the global one.
    """

    identity: RunIdentity
    pause: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default_factory=lambda: random.Random().random)  # noqa: S311 - no secret

    def post(self, action: str, fields: Mapping[str, object], deadline: Deadline) -> Answer:
        """Posts to `/api/v1/runs/{run_id}/{action}`; the body also names attempt and driver.

        Returns:
            The first answer of the API that is neither 5xx nor a request to retry later.

        Raises:
            GateMisconfigured: The URL cannot be used.
            GateUnreachable: The deadline passed; at least one request was made.
        """
        body = json.dumps(
            {"attempt": self.identity.attempt, "driver": self.identity.driver, **fields}, allow_nan=False
        ).encode()
        target = gate_address(self.identity.gate_url)
        backoff_s = BACKOFF_BASE_S
        while True:
            problem = self._try_once(target, action, body, deadline)
            if isinstance(problem, Answer):
                return problem
            if deadline.remaining() <= 0:
                raise GateUnreachable(problem)
            self.pause(min(self.jitter() * backoff_s, deadline.remaining()))
            backoff_s = min(backoff_s * 2, BACKOFF_CAP_S)

    def _try_once(self, target: SplitResult, action: str, body: bytes, deadline: Deadline) -> Answer | str:
        """Sends one request; returns a problem that may pass as text."""
        connect = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
        # At least a second, so that the last try before the deadline can succeed.
        timeout_s = max(1.0, min(REQUEST_TIMEOUT_S, deadline.remaining()))
        connection = connect(target.hostname or "", target.port, timeout=timeout_s)
        path = f"{target.path.rstrip('/')}/api/v1/runs/{quote(self.identity.run_id, safe='')}/{action}"
        headers = {"Authorization": f"Bearer {self.identity.token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            answer = Answer(response.status, _document(response.read(ANSWER_BYTES_MAX)))
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            connection.close()
        if answer.status >= 500 or answer.status in _RETRIED_STATUSES:
            return f"HTTP {answer.status}: {answer.problem}"
        if not answer.is_of_the_api(self.identity.run_id):
            return f"HTTP {answer.status} that is not of tidegate's API: check the gate's URL and any proxy before it"
        return answer


def gate_address(url: str) -> SplitResult:
    """Splits the gate's URL.

    Raises:
        GateMisconfigured: It is not an http(s) URL with a host.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname is not None and parts.port != 0
        # Encodings that the HTTP client would fail at in each try, with an error that is not the network's.
        (parts.hostname or "").encode("idna")
        parts.path.encode("ascii")
    except ValueError as error:
        raise GateMisconfigured(f"TIDEGATE_GATE_URL {url!r} is no URL: {error}") from error
    if not usable:
        raise GateMisconfigured(f"TIDEGATE_GATE_URL {url!r} is no http or https URL")
    return parts


def _document(body: bytes) -> Mapping[str, object]:
    try:
        document = json.loads(body)
    except ValueError:  # For example a proxy's HTML page.
        return {}
    return document if isinstance(document, dict) else {}

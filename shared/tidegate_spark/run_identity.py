"""Identity of this process: run, attempt, gate and token, from the environment that the launcher set.

The wrapper reads it once, before any code of the user runs.
"""

from __future__ import annotations

import uuid
from collections.abc import MutableMapping
from dataclasses import dataclass, field

GATE_WAIT_S_DEFAULT = 600.0
"""Time for which a program waits for the gate; longer than a rolling restart of the API."""

REPORT_WAIT_S_DEFAULT = 300.0
"""Time for which a report is retried: several times a restart of store or broker, because a lost `finished` reads as a
failed run."""


class IdentityIncomplete(Exception):
    """The environment lacks a variable that a run needs; the message names it."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """One driver process of one attempt.

    Attributes:
        run_id: Run.
        attempt: Attempt of the run, 1 or more.
        gate_url: Base URL of the API.
        token: Bearer token; secret.
        launcher_host: Host name that the launcher uses; it distinguishes copies of an attempt. Older launchers do not
            set it.
        driver: Random UUID that exists in this process's memory only; the gate distinguishes twin drivers by it.
        gate_wait_s: Seconds for which the gate is retried.
        report_wait_s: Seconds for which each report is retried.
    """

    run_id: str
    attempt: int
    gate_url: str
    token: str = field(repr=False)
    launcher_host: str | None = None
    driver: str = field(default_factory=lambda: str(uuid.uuid4()))
    gate_wait_s: float = GATE_WAIT_S_DEFAULT
    report_wait_s: float = REPORT_WAIT_S_DEFAULT

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> RunIdentity:
        """Reads the identity and removes the token from `environ`.

        Processes that the user's program starts must not inherit the right to report for the run; the library
        keeps the token in memory.

        Raises:
            IdentityIncomplete: A variable is missing or malformed.
        """
        names = ("TIDEGATE_RUN_ID", "TIDEGATE_ATTEMPT", "TIDEGATE_GATE_URL", "TIDEGATE_RUN_TOKEN")
        missing = [name for name in names if not environ.get(name)]
        if missing:
            raise IdentityIncomplete(f"{', '.join(missing)} not set; programs are started by a tidegate launcher")
        attempt = environ["TIDEGATE_ATTEMPT"]
        if not attempt.isdecimal() or int(attempt) < 1:
            raise IdentityIncomplete(f"TIDEGATE_ATTEMPT is {attempt!r}; it must be a whole number from 1")
        return cls(
            run_id=environ["TIDEGATE_RUN_ID"],
            attempt=int(attempt),
            gate_url=environ["TIDEGATE_GATE_URL"],
            token=environ.pop("TIDEGATE_RUN_TOKEN"),
            launcher_host=environ.get("TIDEGATE_LAUNCHER_HOST") or None,
            gate_wait_s=_seconds(environ, "TIDEGATE_GATE_WAIT_S", GATE_WAIT_S_DEFAULT),
            report_wait_s=_seconds(environ, "TIDEGATE_REPORT_WAIT_S", REPORT_WAIT_S_DEFAULT),
        )


def _seconds(environ: MutableMapping[str, str], name: str, default: float) -> float:
    text = environ.get(name)
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError as error:
        raise IdentityIncomplete(f"{name} is {text!r}; it must be a number of seconds") from error
    if not 0 <= seconds < float("inf"):
        raise IdentityIncomplete(f"{name} is {text!r}; it must be 0 or more seconds")
    return seconds

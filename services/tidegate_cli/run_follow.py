"""Follows runs for `run logs` and `run wait`: prints logs as they grow, and waits for the end of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from tidegate_cli.commands.arguments import split_schedule
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.output import note, write
from tidegate_client.errors import ApiUnavailable, ApiUnreachable, NotFound

if TYPE_CHECKING:
    from tidegate_client import Client
    from tidegate_client.views import RunView

POLL_S = 0.5
"""Seconds between two checks. A check reads one item; twice a second feels immediate."""

WITHOUT_A_RUN = frozenset({"skipped", "expired", "cancelled", "coalesced"})
"""Outcomes of a job that never became a run."""
PAST_ANY_END = 2**53
"""Offset beyond any log: the answer has the log's size and no text."""


def resolve_run(api: Client, text: str, *, wait: bool = False, pause: Callable[[float], None] = time.sleep) -> str:
    """Returns a run id. `text` is a run id, or NAMESPACE/NAME for the newest run of a schedule.

    With `wait` it waits for a schedule's first run.

    Raises:
        CommandFailed: The schedule has no run.
        NotFound: There is no such schedule.
    """
    if "/" not in text:
        return text
    namespace, name = split_schedule(text)
    waits = False
    while not (newest := api.runs(namespace, name, limit=1)):
        api.schedule(namespace, name)  # Raises NotFound for an unknown schedule, which would never have a run.
        if not wait:
            raise CommandFailed(f"schedule {text} has no run yet; -f waits for the first", Exit.NOT_FOUND)
        if not waits:
            note(f"schedule {text} has no run yet; waiting for the first")
            waits = True
        pause(POLL_S)
    return newest[0].id


def print_log(
    api: Client,
    run_id: str,
    stream: Literal["stdout", "stderr"],
    attempt: int | None,
    *,
    follow: bool,
    tail: int | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Writes a log to stdout, from its beginning or from `tail` lines before its end.

    Without `follow` it ends at the present end of the log. With `follow` it goes on until the run has ended; without
    `attempt` it continues with each later attempt. While following it waits for an API that does not answer, and skips
    an attempt without a log when there is a later one. If the output is empty and the error stream is not, a note says
    so.
    """
    number, offset, empty = attempt, 0, True
    begun = silent = False
    while True:
        try:
            piece = api.run_logs(run_id, stream, offset, number, tail)
        except (ApiUnreachable, ApiUnavailable) as silence:
            if not (follow and begun):
                raise
            if not silent:
                note(f"{silence}; trying again")
            silent = True
            pause(POLL_S)
            continue
        except NotFound as nothing:
            # An attempt that its launcher never started has no log; the next attempt may be running.
            if not follow or attempt is not None or number is None or api.run(run_id).attempt <= number:
                raise
            number, offset, tail = number + 1, 0, None
            note(f"{nothing}\nattempt {number}")
            continue
        # From here on the position is a byte offset; the logs of later attempts are shown from their beginning.
        begun, silent, tail = True, False, None
        if not write(piece.text, nl=False):
            return
        at_end = piece.next_offset >= piece.size or piece.next_offset == offset
        # Continue with the attempt of this answer: each attempt has its own log file.
        number, offset, empty = piece.attempt, piece.next_offset, empty and piece.next_offset == 0
        if not at_end:
            continue
        if follow and piece.ended and attempt is None and number < piece.attempts:
            number, offset = number + 1, 0
            note(f"attempt {number}")
            continue
        if piece.ended or not follow:
            break
        pause(POLL_S)
    if not empty or (stream == "stdout" and _points_to_errors(api, run_id, attempt)):
        return
    if attempt is None and not piece.ended and number > 1:
        note(f"attempt {number} has written nothing so far; --attempt {number - 1} shows the previous one")


def _points_to_errors(api: Client, run_id: str, attempt: int | None) -> bool:
    """Notes that the error stream has text, if it has. Returns whether it has."""
    try:
        size = api.run_logs(run_id, "stderr", PAST_ANY_END, attempt).size
    except NotFound:
        return False
    if size:
        note(f"stdout is empty; --stderr shows {size} bytes")
    return size > 0


def await_end(
    api: Client,
    run_id: str,
    timeout_s: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> RunView:
    """Returns the run once it has ended. If the API stops answering after the first answer, for example during its update, it asks again.

    Raises:
        ApiUnreachable, ApiUnavailable: The API did not answer the first request.
        CommandFailed: Timeout; or the job has ended without a run.
        NotFound: There is and was neither a run nor a job with this id.
    """
    deadline = clock() + timeout_s
    begun = False
    while True:
        try:
            run = _run_or_job(api, run_id)
        except (ApiUnreachable, ApiUnavailable) as silence:
            if not begun:
                raise
            state = f"has an unknown state ({silence})"
        else:
            begun = True
            if run is not None and run.is_ended:
                return run
            state = "has not been launched" if run is None else f"is {run.state}"
        if clock() >= deadline:
            raise CommandFailed(f"run {run_id} {state} after {timeout_s:g} s", Exit.TIMEOUT)
        pause(min(POLL_S, max(0.0, deadline - clock())))


def require_success(run: RunView) -> None:
    """Raises CommandFailed when the run did not succeed."""
    if run.state != "succeeded":
        why = run.reason or "no reason given"
        raise CommandFailed(f"run {run.id} {run.state}: {why}{f' ({run.signal})' if run.signal else ''}")


def _run_or_job(api: Client, run_id: str) -> RunView | None:
    """Returns the run, or None while its job waits."""
    try:
        return api.run(run_id)
    except NotFound:
        try:
            api.job(run_id)
        except NotFound:
            return _launched_or_ended(api, run_id)
        return None


def _launched_or_ended(api: Client, run_id: str) -> RunView:
    """Returns the run of a job that launched between two checks.

    Raises:
        CommandFailed: The job has ended without a run.
        NotFound: There is neither a run nor a job.
    """
    try:
        return api.run(run_id)
    except NotFound as nothing:
        try:
            reasons = api.why_job(run_id).reasons
        except NotFound:
            raise nothing from None
        ended = [each.text for each in reasons if each.code.split("/")[0] in WITHOUT_A_RUN]
        if not ended:
            raise
        raise CommandFailed(f"job {run_id} has ended without a run: {'; '.join(ended)}") from nothing

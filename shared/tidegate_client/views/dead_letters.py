"""Dead letters, and actions on them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View


class MarkView(View):
    """Action of a user on a letter.

    Attributes:
        state: `dropped`; `replayed`: its record was produced again; `replaying`: in progress, or its process died and
            the outcome is unknown.
        letter: Copy that the user named.
        replays: Number of times that it was produced again.
    """

    state: Literal["replaying", "replayed", "dropped"]
    letter: str
    at: Moment
    actor: str | None = None
    reason: str | None = None
    replays: int = 0


class DeadLetterView(View):
    """A record that could not be used.

    Attributes:
        id: `<queue>-<topic partition>-<offset>` of the letter itself.
        queue: Dead-letter topic: `requests` (with messages that could not be delivered), `events`, `runs`.
        at: When the letter was written.
        namespace: Namespace, if known.
        topic: Topic of the record, or topic that it was to be delivered to; None if tidegate did not write the letter.
        topic_partition, offset: Place of the record; for a message, that of the request that created it.
        error_class: Class such as `invalid`, `too_large`, `undeliverable`; for a run, the class of its last error.
        message: Explanation of the error.
        sources: Sources that refused the record.
        size_bytes: Size of the value.
        mark: Action on the letter, or on another copy of it.
    """

    id: str
    queue: Literal["requests", "events", "runs"]
    at: Moment
    namespace: str | None = None
    topic: str | None = None
    topic_partition: int | None = None
    offset: int | None = None
    error_class: str | None = None
    message: str | None = None
    sources: list[str] = Field(default_factory=list)
    size_bytes: int = 0
    mark: MarkView | None = None


class DeadLetterAnswer(DeadLetterView):
    """A letter after an action on it.

    Attributes:
        status: `unchanged`: the same action had been done before, and nothing was done.
    """

    status: Literal["accepted", "unchanged"]


class Raw(View):
    """Bytes, either as text, if they are text, or as base64.

    Attributes:
        truncated: Whether only the first 64 KiB are included.
    """

    text: str | None = None
    base64: str | None = None
    truncated: bool = False


class HeaderView(View):
    """A header of the record; a name may repeat."""

    name: str
    value: Raw


class DeadLetterDetail(DeadLetterView):
    """A letter with the original key, value and headers of its record."""

    key: Raw | None = None
    value: Raw
    headers: list[HeaderView] = Field(default_factory=list)

"""Dead letters, and what became of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tidegate_client.views.view import Moment, View


class MarkView(View):
    """What somebody did about a letter.

    Attributes:
        state: `dropped`; `replayed`: its record was produced again; `replaying`: that is under way, or its process fell and
            nobody knows.
        letter: The copy that was named.
        replays: How often it was produced again.
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
        queue: Which dead-letter topic: `requests` (with messages that could not be delivered), `events`, `runs`.
        at: When it was given up.
        namespace: Where it is known.
        topic: Where the record stood, or was to be delivered; None: a stranger wrote the letter.
        topic_partition, offset: Of the record; of a message, those of the request that made it.
        error_class: Such as `invalid`, `too_large`, `undeliverable`; of a run, the class of its last error.
        message: Why.
        sources: Which sources refused it.
        size_bytes: Of the value.
        mark: What was done about it, or about another copy of it.
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
    """A letter after somebody dealt with it.

    Attributes:
        status: `unchanged`: it had been dealt with like this before, and nothing was done.
    """

    status: Literal["accepted", "unchanged"]


class Raw(View):
    """Bytes: as text where they are some, else as base64; one of the two is there.

    Attributes:
        truncated: Only the first 64 KiB.
    """

    text: str | None = None
    base64: str | None = None
    truncated: bool = False


class HeaderView(View):
    """A header of the record; a name may repeat."""

    name: str
    value: Raw


class DeadLetterDetail(DeadLetterView):
    """A letter with its record's key, value and headers, as they were."""

    key: Raw | None = None
    value: Raw
    headers: list[HeaderView] = Field(default_factory=list)

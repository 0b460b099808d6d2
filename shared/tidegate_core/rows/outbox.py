"""Rows on their way to somebody: timers, what comes in, what goes out, and who listens."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """A terminal state on its way to those who listen: event source for `run_status`, record for `tidegate.runs`.

    Also a schedule that is gone: `run_id` is its incarnation then, `attempt` 0, `state` `deleted`.

    Attributes:
        record: JSON of the record for `tidegate.runs`; empty where nothing goes there.
        fact: JSON of the fact that triggers see.
        started: When it had passed the gate, where that was not told before its end.
        page: `<ns>/<name>` of the last schedule that has its inbox row; listeners may come and go between two pages.
        matched: All have.
        given_up: Why no further attempt of a run follows, where one was wanted: it gets a dead letter. None = it gets none.
        error_class: Of such a run.
    """

    run_id: str
    attempt: int
    state: str
    record: str
    fact: str
    started: int | None = None
    page: str = ""
    matched: bool = False
    given_up: str | None = None
    error_class: str | None = None

    def key(self, shard: int) -> Key:
        return keys.outbox(shard, self.run_id, self.attempt, self.state)

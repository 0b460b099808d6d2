"""A terminal state reaches the schedules that listen to it: the outbox row is an event source (DESIGN 6).

Inbox rows of the listeners and the mark on the outbox row are one transaction, so each listener hears it once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate_core.decisions.event_index import Listener
from tidegate_core.effects import Poke
from tidegate_core.model.facts import RunFact, fact_from_json
from tidegate_core.records.run_plane import InboxRow, OutboxRow
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork

LISTENERS_PER_PAGE = 80
"""Inbox rows in one transaction, below DynamoDB's 100 actions."""
ACTIVATION_SLACK_MS = 1_000
"""SEMANTICS 6.8: a run counts when it was admitted not earlier than the activation minus 1 s (twice the allowed clock skew)."""


@dataclass(frozen=True, slots=True)
class Distribute:
    """Writes the next page of inbox rows for one terminal state."""

    key: Key
    listeners: Sequence[Listener]
    shard: int
    stale: tuple[Key, ...] = ()
    name: str = "distribute"

    def decide(self, unit: UnitOfWork, now: int) -> None:
        row = unit.record(OutboxRow, self.key)
        if row is None or row.matched:
            return
        fact = fact_from_json(row.fact)
        assert isinstance(fact, RunFact)
        wanted = [
            each
            for each in sorted(self.listeners, key=lambda each: each.row.key().sk)
            if fact.admitted_at >= each.row.activated_at - ACTIVATION_SLACK_MS and each.row.key().sk > row.page
        ]
        page = wanted[:LISTENERS_PER_PAGE]
        for listener in page:
            inbox = _inbox_row(row, listener, fact.ended_at or now)
            unit.put_new(inbox, inbox.key(listener.row.shard))
            unit.after(Poke(listener.row.shard))
        last = page[-1].row.key().sk if page else row.page
        unit.put(replace(row, page=last, matched=len(page) == len(wanted)), self.key)


def _inbox_row(row: OutboxRow, listener: Listener, at: int) -> InboxRow:
    origin = f"{row.run_id}.{row.attempt:04d}.{row.state}"
    matched = {
        "leaf": listener.row.leaf,
        "incarnation": listener.row.incarnation,
        "generation": listener.row.generation,
        "fact": row.fact,
        "at": at,
        "origin": origin,
    }
    return InboxRow(
        namespace=listener.row.namespace,
        name=listener.row.name,
        kind="X",
        # Two leaves of one schedule may listen to the same run: each has its own row.
        origin=f"{origin}.{listener.row.leaf:02d}",
        body=json.dumps([matched], separators=(",", ":")),
    )

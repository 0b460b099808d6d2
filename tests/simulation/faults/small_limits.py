"""Limits of production that are made small in a world, so that what happens once in a million calls happens in each.

A page of two where production has eighty makes the code behind the page's end run all the time. Only limits are turned, never
a rule: whatever value one has, every invariant has to hold.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from random import Random
from typing import Final, TypeAlias
from unittest import mock

Knob: TypeAlias = tuple[str, int]
"""A limit by `module:NAME`, and its value."""

CORE: Final = "tidegate_core"
TURNED: Final = 0.5
"""Share of the worlds with turned knobs."""
SHARE: Final = 0.3
"""Of the knobs that are turned in such a world."""

KNOBS: Final[Mapping[str, tuple[int, ...]]] = {
    "messages.wire.checkpoints:CHECKPOINT_AFTER_FIRES": (1, 5),
    "messages.wire.delivery:FIRED_TOGETHER": (1, 3),
    "messages.wire.delivery:GROUPS_UNDER_WAY_MAX": (1, 2),
    "messages.wire.payload_budget:PAYLOADS_AHEAD_ROWS_MAX": (1, 3),
    "messages.one_shot.inbox_messages:INBOXED_TOGETHER_MAX": (1, 2),
    "ingest.event_ingest:ROWS_PER_MOVE": (2, 3, 5),
    "ingest.event_ingest:ROW_EVENTS_MAX": (1, 2),
    "engine.shard_writer:GROUP_MAX": (1, 2, 4),
    "ownership.acquisition:ACQUIRED_TOGETHER": (1, 3),
    "ingest.request_ingest:INBOX_ROWS_PER_MOVE": (1, 2, 5),
    "firing.catch_up:MADE_PER_TRANSACTION": (1, 2),
    "evidence.inbox_batches:ACTIONS_PER_DECISION": (15, 30),
    "commands.end_pending:ENDED_PER_PAGE": (1, 2),
    "shard.events.evidence_log:CHUNK_BYTES_MAX": (300, 600),
    "shard.events.outbox:LISTENERS_PER_PAGE": (1, 2),
    "ingest.topic_cursor:BATCH_RECORDS_MAX": (1, 3),
    "writes.read_cache:ITEMS_MAX": (200,),
    "writes.read_cache:RANGES_MAX": (9,),
    "firing.catch_up:WALKED_PER_TRANSACTION": (2, 5),
    "messages.one_shot.held_messages:RELEASE_AHEAD_MAX": (1, 3),
    "messages.one_shot.held_messages:MOVED_TOGETHER": (1, 2),
}
"""Each with the values that it may get. New ones come last: so a known seed keeps those that it has."""


MAP_TRUSTED_MS: Final = 2_000
HAND_OVER_MS: Final = 5_000
OF_MAPS: Final[tuple[Knob, ...]] = (
    ("engine.membership_lease:MAP_TRUSTED_MS", MAP_TRUSTED_MS),
    ("shard.map_transition:HAND_OVER_MS", HAND_OVER_MS),
)
"""How long a node goes by a map that it cannot read, and others wait for it: as far apart as what was sent may take, as in production, where
it is a minute.
"""
ALWAYS_TURNED: Final[tuple[Knob, ...]] = (
    ("shard.retry_budget:BUDGET_WINDOW_MS", 20_000),
    ("language.triggers.trigger:SHORTEST_AT_LEAST_EVERY_MS", 1_000),
    ("ownership.repair.repair_sweep:TIMERS_CHECK_MS", 86_400_000),
    ("ownership.repair.repair_sweep:CHECK_MS", 86_400_000),
    ("messages.wire.checkpoints:TALLY_MS", 60_000),
    *OF_MAPS,
)
"""What is longer than a world lives: it would not come to rest in ten minutes, and would be reminded of nothing in one. And what
mends a store that somebody has changed: no world does, so it would only make all others' reads come otherwise.
"""


def draw_knobs(chance: Random) -> tuple[Knob, ...]:
    # All is drawn, whatever is turned: a knob more leaves the others as they were.
    turned = chance.random() < TURNED
    drawn = [(name, chance.choice(values), chance.random() < SHARE) for name, values in KNOBS.items()]
    return tuple((name, value) for name, value, share in drawn if turned and share)


@contextmanager
def turned(knobs: tuple[Knob, ...]) -> Generator[None]:
    """The limits have these values meanwhile, in each module of the core that has read them."""
    with ExitStack() as stack:
        for path, value in knobs:
            module, name = path.split(":")
            known = getattr(import_module(f"{CORE}.{module}"), name)
            for reader in [each for key, each in sys.modules.items() if key.startswith(f"{CORE}.")]:
                if reader.__dict__.get(name) is known or reader.__name__ == f"{CORE}.{module}":
                    stack.enter_context(mock.patch.object(reader, name, value))
        yield

"""Rows that a bench keeps of messages, and inbox rows of their requests."""

from __future__ import annotations

import json

from tests.support.builders import REQUESTS_ID, Doc
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message, MessageTimer


def messages(bench: ActorHarness) -> list[Message]:
    return [from_item(Message, row) for row in bench.rows("M#")]


def timers(bench: ActorHarness) -> list[MessageTimer]:
    return [from_item(MessageTimer, row) for row in bench.rows("D#")]


def an_inboxed(document: Doc, at: int) -> InboxRow:
    """Returns a request's inbox row as the reader of another topic partition writes it."""
    origin = Position(at, REQUESTS_ID, 7, 1).text()
    return InboxRow(namespace="orders", name="x", kind="M", origin=origin, body=json.dumps(document))

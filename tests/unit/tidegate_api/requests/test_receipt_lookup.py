"""Answers as they lie in the store: one that is throttled keeps no other from being found; silence is no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from tidegate_api.requests.receipt_lookup import Sought, StoredAnswers
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.rows.store_operations import Item, Key
from tidegate_ports.clock import SystemClock
from tidegate_ports.store import PartlyRead, Store, StoreUnavailable

DELETES = [
    Sought(
        parse_request(b'{"id": "%s", "type": "schedule.delete", "namespace": "n", "name": "x"}' % each),
        each.decode(),
        0,
    )
    for each in (b"a", b"b")
]


class Throttled:
    """A store that gives nothing, and has not looked at some of the keys."""

    def __init__(self, unread: int) -> None:
        self._unread = unread

    def get(self, wanted: Sequence[Key]) -> dict[Key, Item]:
        raise PartlyRead("throttled", {}, list(wanted)[: self._unread])


def answers(unread: int) -> StoredAnswers:
    return StoredAnswers(cast("Store", Throttled(unread)), SystemClock())


def test_given_one_key_that_is_throttled_then_the_others_are_answered() -> None:
    assert answers(1).of_all(DELETES) == [None, None]


def test_given_a_store_that_answers_nothing_then_that_is_no_answer() -> None:
    """Found in review: a silent store was taken for one that has no receipts."""
    with pytest.raises(StoreUnavailable):
        answers(2).of_all(DELETES)

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from tests.support.checkers.messages import Sent
from tests.support.cluster.message_load import MessageBook
from tests.support.cluster.topic_reader import Arrived
from tests.support.cluster.user_client import Acknowledged, Client

NOMINAL = 10_000


class Broker:
    """Stands in for the client: takes everything, or nothing from now on."""

    def __init__(self) -> None:
        self.takes = True

    def send(
        self,
        _topic: str,
        _value: Mapping[str, Any],
        key: str | None = None,
        topic_partition: int | None = None,
        on_acknowledged: Callable[[Acknowledged], None] = lambda _: None,
    ) -> None:
        if self.takes:
            on_acknowledged(Acknowledged("tidegate.requests", topic_partition or 0, 0, 1_000))


def a_receipt(request_id: str, status: str, at: int = 2_000) -> Arrived:
    value = json.dumps({"request_id": request_id, "status": status}).encode()
    return Arrived("tidegate.receipts", 0, 0, None, value, {}, at)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def book(broker: Broker) -> MessageBook:
    return MessageBook(cast("Client", broker), "sink")


def test_given_a_cancel_that_the_broker_has_then_its_receipt_is_owed(broker: Broker, book: MessageBook) -> None:
    book.cancel(book.send(NOMINAL, request_id="send-1"))

    assert book.sent([]) == [Sent(1, NOMINAL, "may", unanswered="cancel-1")]
    assert book.owed([], []) == [1]
    assert book.sent([a_receipt("cancel-1", "cancelled")]) == [Sent(1, NOMINAL, "never", cancel_answered_at=2_000)]
    assert book.owed([], [a_receipt("cancel-1", "cancelled")]) == []
    assert book.sent([a_receipt("cancel-1", "not_found")]) == [Sent(1, NOMINAL, cancel_answered_at=2_000)]
    both = [a_receipt("cancel-1", "not_found"), a_receipt("send-1", "cancelled")]
    assert book.sent(both) == [Sent(1, NOMINAL, "never", cancel_answered_at=2_000)]


def test_given_a_cancel_that_the_broker_may_not_have_then_everything_may_have_happened(
    broker: Broker, book: MessageBook
) -> None:
    message = book.send(NOMINAL, request_id="send-1")
    broker.takes = False
    book.cancel(message)

    assert book.sent([]) == [Sent(1, NOMINAL, "may")]


def test_given_a_replacement_then_its_first_receipt_ends_the_message_and_without_one_it_is_owed(
    book: MessageBook,
) -> None:
    book.replace(book.send(NOMINAL, key="key-1"), NOMINAL + 1_000)

    assert book.sent([])[0] == Sent(1, NOMINAL, "may", unanswered="replace-1")
    answered = [a_receipt("replace-1", "accepted", 2_000), a_receipt("replace-1", "unchanged", 3_000)]
    assert book.sent(answered) == [Sent(1, NOMINAL, "may", not_after=2_000), Sent(2, NOMINAL + 1_000)]
    assert book.sent([a_receipt("replace-1", "rejected")])[0] == Sent(1, NOMINAL)

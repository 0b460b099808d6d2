"""A message's two rows say nothing twice: what the sort key tells, and what nearly every row has, is left out, and comes back."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import FIRST_VERSION, FOR_EVER, Message, MessageFence, MessageName, MessageTimer
from tidegate_dynamo.attribute_values import encoded_item
from tidegate_dynamo.capacity_units import item_bytes

positions = st.builds(
    Position,
    append_time=st.integers(0, 10**13 - 1),
    topic_id=st.integers(0, 16**32 - 1).map(lambda number: f"{number:032x}"),
    topic_partition=st.integers(0, 10**6 - 1),
    offset=st.integers(0, 10**20 - 1),
).map(Position.text)
versions = st.just(FIRST_VERSION) | positions
instants = st.integers(0, 10**13 - 1)
ids = st.text().map(lambda name: MessageName.of_request("n", name).id)
few = st.integers(0, 3)

timers = st.builds(
    MessageTimer,
    slot=instants,
    id=ids,
    version=versions,
    origin=positions,
    attempt=few,
    expires_at=instants,
    size=few,
    ref=st.none() | st.text(),
    generation=few,
    covered=st.none() | few,
    maybe_sent=st.none() | st.booleans(),
)
messages = st.builds(
    Message,
    id=ids,
    version=versions,
    origin=positions,
    namespace=st.text(),
    nominal=instants,
    slot=instants,
    topic=st.text(),
    payload=st.binary(),
    keyed=st.booleans(),
    headers=st.sampled_from(["[]", '[["a","b"]]']),
    expires_at=st.none() | instants,
    key_text=st.none() | st.text(),
    message_key=st.none() | st.text(),
    request_id=st.none() | st.text(),
    expires=st.none() | instants,
    covered_from=st.none() | instants,
    covered_to=st.none() | instants,
    covered_count=few,
)


@given(row=timers | messages, own_slot=st.booleans(), own_origin=st.booleans())
def test_given_any_row_then_it_comes_back_as_it_was(
    row: MessageTimer | Message, own_slot: bool, own_origin: bool
) -> None:
    if own_origin:
        row = dataclasses.replace(row, origin=row.version)
    if own_slot and isinstance(row, Message):
        row = dataclasses.replace(row, slot=row.nominal)
    assert from_item(type(row), to_item(row, row.key(3))) == row


@given(row=timers | messages)
def test_given_a_row_that_says_all_of_it_then_it_is_read_as_well(row: MessageTimer | Message) -> None:
    fields = {name: value for name, value in dataclasses.asdict(row).items() if value is not None}
    key = row.key(3)
    assert from_item(type(row), {"pk": key.pk, "sk": key.sk, **fields}) == row


@given(version=positions, other=st.just(FOR_EVER) | positions)
def test_given_the_version_of_what_has_no_key_then_it_is_below_all_others(version: str, other: str) -> None:
    assert version > FIRST_VERSION
    assert MessageFence(id="m", live_from=other).covers(FIRST_VERSION)
    assert not MessageFence(id="m").covers(FIRST_VERSION)


def a_pair(version: str, origin: str, *, keyed: bool) -> list[MessageTimer | Message]:
    name = MessageName.of_key("orders", "o-1") if keyed else MessageName.of_request("orders", "o-1")
    message = Message(
        id=name.id,
        version=version,
        origin=origin,
        namespace="orders",
        nominal=NOW,
        slot=NOW,
        topic="orders.out",
        payload=bytes(214),
        keyed=keyed,
        headers="[]",
        expires_at=NOW // 1_000,
        key_text="o-1" if keyed else None,
        request_id="o-1",
    )
    timer = MessageTimer(
        slot=NOW, id=name.id, version=version, origin=origin, attempt=1, expires_at=NOW // 1_000, size=214
    )
    return [timer, message]


ORIGIN = Position(NOW, "8" * 32, 3, 14).text()


@pytest.mark.parametrize(
    ("version", "keyed", "attributes"),
    [
        pytest.param(
            FIRST_VERSION,
            False,
            [
                {"origin", "expires_at", "size"},
                {"origin", "namespace", "nominal", "topic", "payload", "expires_at", "request_id"},
            ],
            id="under a request id",
        ),
        pytest.param(
            ORIGIN,
            True,
            [
                {"expires_at", "size"},
                {"namespace", "nominal", "topic", "payload", "keyed", "expires_at", "key_text", "request_id"},
            ],
            id="under a key: its create is its version",
        ),
    ],
)
def test_given_a_message_of_the_usual_kind_then_its_rows_say_nothing_twice(
    version: str, keyed: bool, attributes: list[set[str]]
) -> None:
    items = [to_item(row, row.key(3)) for row in a_pair(version, ORIGIN, keyed=keyed)]
    assert [item.keys() - {"pk", "sk"} for item in items] == attributes


def test_given_a_message_without_a_key_then_its_rows_take_less_than_three_times_its_payload() -> None:
    """1,035 bytes for 214 when all was said twice: a take-over read half as many rows with a read unit."""
    sizes = [item_bytes(encoded_item(to_item(row, row.key(3)))) for row in a_pair(FIRST_VERSION, ORIGIN, keyed=False)]
    assert sum(sizes) < 3 * 214

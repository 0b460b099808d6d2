"""Who listens to an event: cached per node, right at the moment of asking (DESIGN 7)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import EVENTS_ID, NOW, a_holding
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Effect, EffectResult, Items, Read, ReadRange
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Delete, Item, Put, RangeRead
from tidegate_core.rows.trigger_rows import IndexRow
from tidegate_core.shard.events.subscription_index import Subscription, SubscriptionIndex, vector_item
from tidegate_memory.store import MemoryStore

KEY = "data/flights/raw"


def a_row(
    name: str = "s", *, generation: int = 1, leaf: int = 0, event_key: str = KEY, vector: str | None = None
) -> IndexRow:
    return IndexRow(
        event_key=event_key,
        namespace="flights",
        name=name,
        incarnation="I1",
        generation=generation,
        leaf=leaf,
        shard=0,
        activated_at=NOW,
        vector=vector,
    )


class Node:
    """One event index on a store."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.index = SubscriptionIndex()
        self.asked: list[Effect] = []

    def listen(self, *rows: IndexRow, raises: bool = True) -> None:
        self.store.write([Put(row.key(), to_item(row, row.key())) for row in rows])
        if raises:
            for row in rows:
                self.raise_version(row.event_key)

    def raise_version(self, event_key: str) -> None:
        key = keys.index_version(keys.index_shard_of(event_key))
        before = (self.store.peek(key) or {}).get("version", 0)
        assert isinstance(before, int)
        self.store.write([Put(key, {"pk": key.pk, "sk": key.sk, "version": before + 1})])

    def names(self, event_key: str = KEY) -> list[str]:
        return sorted(each.row.name for each in self.match(event_key)[event_key])

    def match(self, *event_keys: str) -> dict[str, tuple[Subscription, ...]]:
        host, found = ActorContext(a_holding()), []

        def ask() -> Operation[None]:
            found.append((yield from self.index.match(host, event_keys)))

        host.operations.start(ask())
        while host.operations.asked:
            asked = host.operations.asked.pop(0)
            self.asked.append(asked.effect)
            host.operations.answer(EffectResult(asked.token, self._result(asked.effect)))
        return found[0]

    def _result(self, effect: Effect) -> Any:
        match effect:
            case Read(wanted):
                return Items(self.store.get(wanted))
            case ReadRange(wanted):
                return self.store.query(RangeRead(wanted.pk, wanted.low, wanted.high, 2, wanted.after))
            case _:
                raise AssertionError(effect)


@pytest.fixture
def node() -> Node:
    return Node()


def test_given_nobody_who_listens_then_the_answer_is_empty(node: Node) -> None:
    assert node.match(KEY) == {KEY: ()}


def test_given_listeners_then_those_of_the_asked_keys_are_named(node: Node) -> None:
    node.listen(a_row("one"), a_row("two"), a_row("other", event_key="data/flights/other"))
    assert node.names() == ["one", "two"]
    assert node.names("data/flights/other") == ["other"]


def test_given_rows_without_a_raised_version_then_they_may_be_unseen_and_with_it_they_are_seen(node: Node) -> None:
    node.listen(a_row("one"))
    assert node.names() == ["one"]
    node.listen(a_row("two"), raises=False)
    assert node.names() == ["one"]
    node.raise_version(KEY)
    assert node.names() == ["one", "two"]


def test_given_an_unchanged_version_then_only_versions_are_read(node: Node) -> None:
    node.listen(a_row("one"))
    node.match(KEY)
    node.asked.clear()
    node.match(KEY)
    assert [type(effect) for effect in node.asked] == [Read]


def test_given_several_keys_then_their_versions_are_read_together(node: Node) -> None:
    event_keys = [f"data/flights/d{number}" for number in range(20)]
    node.match(*event_keys)
    reads = [effect for effect in node.asked if isinstance(effect, Read)]
    assert len(reads) == 1
    assert len(reads[0].keys) == len({keys.index_shard_of(each) for each in event_keys})


def test_given_many_rows_then_all_pages_are_read(node: Node) -> None:
    node.listen(*(a_row(f"s{number}") for number in range(9)))
    assert len(node.names()) == 9


def test_given_leaves_and_generations_then_each_is_a_listener_of_its_own(node: Node) -> None:
    node.listen(a_row("s", leaf=0), a_row("s", leaf=1), a_row("s", generation=2))
    found = node.match(KEY)[KEY]
    assert {(each.row.generation, each.row.leaf) for each in found} == {(1, 0), (1, 1), (2, 0)}


def test_given_an_activation_vector_then_events_below_it_are_not_heard(node: Node) -> None:
    vector, key, item = vector_item("flights/s#1", {f"{EVENTS_ID}/0": 5, f"{EVENTS_ID}/1": 0})
    node.store.write([Put(key, item)])
    node.listen(replace(a_row(vector=vector), asked_at=NOW))
    (listener,) = node.match(KEY)[KEY]
    heard = {
        (each, offset): listener.accepts(EVENTS_ID, each, offset, NOW) for each in (0, 1, 2) for offset in (0, 4, 5)
    }
    assert [heard[0, offset] for offset in (0, 4, 5)] == [False, False, True]
    assert all(heard[1, offset] for offset in (0, 4, 5))
    assert all(heard[2, offset] for offset in (0, 4, 5))  # A topic partition that is newer than the activation.


@pytest.mark.parametrize(("topic", "topic_partition"), [(EVENTS_ID, 2), ("made anew", 0)])
def test_given_a_topic_partition_that_no_broker_told_of_at_the_activation_then_what_came_before_the_request_is_not_heard(
    node: Node, topic: str, topic_partition: int
) -> None:
    """I3: brokers tell the old number for a while after a growth."""
    vector, key, item = vector_item("flights/s#1", {f"{EVENTS_ID}/0": 5})
    node.store.write([Put(key, item)])
    node.listen(replace(a_row(vector=vector), asked_at=NOW))
    (listener,) = node.match(KEY)[KEY]
    heard = [listener.accepts(topic, topic_partition, 0, at) for at in (NOW - 1, NOW, NOW + 1)]
    assert heard == [False, True, True]


def test_given_an_activation_then_its_vector_is_its_own_and_the_same_when_it_is_written_again() -> None:
    one: tuple[str, object, Item] = vector_item("flights/s#1", {"t/0": 1, "t/1": 2})
    assert one == vector_item("flights/s#1", {"t/1": 2, "t/0": 1})
    assert json.loads(str(one[2]["offsets"])) == {"t/0": 1, "t/1": 2}
    assert one[0] not in {
        vector_item("flights/s#1", {"t/0": 1})[0],
        vector_item("flights/s#2", {"t/0": 1, "t/1": 2})[0],
    }


def test_given_a_row_whose_vector_is_gone_then_it_is_nobody_s_any_more(node: Node) -> None:
    """CD-012: a row that points to nothing is passed over, and the others are heard. Both are removed together, and an index that read the row before cannot find the vector any more."""
    node.listen(a_row("gone", vector="v" * 26), a_row("here"))
    assert node.names() == ["here"]


def test_given_many_activations_then_the_cache_keeps_what_is_listened_to_only(node: Node) -> None:
    before: list[Delete] = []
    for generation in range(1, 21):
        vector, key, item = vector_item(f"flights/s#{generation}", {f"{EVENTS_ID}/0": generation})
        row = a_row(generation=generation, vector=vector)
        node.store.write([Put(key, item), *before])
        node.listen(row)
        node.match(KEY)
        before = [Delete(row.key())]
    assert sum(len(each) for each in node.index._vectors.values()) == 1


@pytest.mark.parametrize(("present", "late"), [(5, 9), (9, 5)])
def test_given_a_late_row_with_other_ends_then_the_schedule_listens_once_and_hears_what_either_hears(
    node: Node, present: int, late: int
) -> None:
    """A former owner read the ends again, behind the receipt perhaps: its row takes nothing away, and counts nothing twice."""
    for first in (present, late):
        vector, key, item = vector_item("flights/s#1", {f"{EVENTS_ID}/0": first})
        node.store.write([Put(key, item)])
        node.listen(a_row(vector=vector))
    (listener,) = node.match(KEY)[KEY]
    assert [listener.accepts(EVENTS_ID, 0, offset, NOW) for offset in (4, 5, 8, 9)] == [False, True, True, True]

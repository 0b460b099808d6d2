"""Writes and removes a schedule's subscriptions: present before its activation, removed after its state has moved on.

Matching reads the versions of the index after it fetched an event. So rows are written first, then their versions,
then the schedule's state, then the receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from tidegate_core.engine.actor_context import RETRY_FIRST_MS
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.requests.requests import ScheduleApply, ScheduleRequest
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Batch, Delete, Put, Transaction, Update
from tidegate_core.rows.trigger_rows import IndexRow
from tidegate_core.shard.events.end_offsets import as_vector, read_end_offsets
from tidegate_core.shard.events.subscription_index import vector_item
from tidegate_core.shard.schedule_state import parsed

ROWS_TOGETHER = 90
"""Rows of one transaction, below DynamoDB's 100 actions."""
FAILED_ROWS_TOGETHER = 45
"""Rows of one transaction when each may have a vector that is removed with it."""
RUNS = "run/"
"""Prefix of event keys of runs: their owners publish these events, no topic carries them."""


def subscribe(
    writer: ShardWriter, state: ScheduleState, spec: ScheduleSpec, arrived: int, asked_at: int | None = None
) -> Operation[None]:
    """Writes the subscriptions and raises their versions, before the state changes and long before the receipt.

    So any reader of an event that was produced after the receipt reads a version that includes these rows. If the
    request fails later, `unsubscribe_failed` removes them.

    Args:
        writer: Shard writer of the schedule's shard.
        state: Next state.
        spec: Definition with the trigger.
        arrived: Number of the last end-offset reading that had started when the request arrived.
        asked_at: As in `IndexRow`, when it differs from the append time of the state's request.
    """
    rows = yield from _index_rows(writer, state, spec, arrived)
    if asked_at is not None:
        rows = [replace(row, asked_at=asked_at) for row in rows]
    if rows:
        yield from listen_again(writer, rows)


def unsubscribe(writer: ShardWriter, state: ScheduleState) -> Operation[None]:
    """Removes the subscriptions of all earlier generations and raises the versions.

    Until readers see that, the owner drops their matches.

    The rows are read from the index, so a successor can do this for a request that is already answered.
    """
    heard = yield from _rows_of_before(writer, state)
    # Vectors go first, because only the rows lead a successor to them. A row without a vector is judged by append
    # times (`Subscription.accepts`). Leaves of one trigger share a vector.
    vectors = {row.vector for rows in heard.values() for row in rows if row.vector is not None}
    if vectors:
        yield from writer.host.write_for_good(
            Batch("unindex_vectors", tuple(Delete(keys.offsets_vector(vector)) for vector in sorted(vectors)))
        )
    for event_key, rows in heard.items():
        for first in range(0, len(rows), ROWS_TOGETHER):
            # One transaction: if the rows were gone, a successor would not know that their version must rise. A
            # reader with removed rows stores ids of events that no schedule counts. Their repeats would not count for
            # a later subscriber either.
            gone = [Delete(row.key()) for row in rows[first : first + ROWS_TOGETHER]]
            yield from _raise_version(writer, keys.index_shard_of(event_key), gone)


def unsubscribe_failed(writer: ShardWriter, request: ScheduleRequest, state: ScheduleState | None) -> Operation[None]:
    """Removes the subscriptions of a failed request.

    Its owner may have lost the shard, decided otherwise, or had its write refused.

    Otherwise readers would store ids of events that no schedule counts. The next accepted request also has their
    generation, so they would count as its own, with end offsets from long before it. The removal checks the lease: a
    former owner could mistake its successor's new rows for failed ones.

    Args:
        writer: Shard writer of the schedule's shard.
        request: Failed request.
        state: Unchanged state of the schedule.
    """
    present = None if state is None or state.status == "deleted" else (state.incarnation, state.generation)
    least = 0 if state is None else state.generation
    event_keys = set[str]() if state is None else {*(yield from _event_keys(writer, state))}
    if isinstance(request, ScheduleApply):
        event_keys |= {leaf.event_key for leaf in heard_leaves(request.spec)}
    for event_key in sorted(event_keys):
        while True:
            rows = yield from _rows_of(writer, event_key, request.namespace, request.name)
            stays = {row.vector for row in rows if (row.incarnation, row.generation) == present}
            former = (row for row in rows if row.generation >= least and (row.incarnation, row.generation) != present)
            vain = list(islice(former, FAILED_ROWS_TOGETHER))
            if not vain:
                break
            ends = sorted({row.vector for row in vain if row.vector is not None} - stays)
            gone = [*(Delete(row.key()) for row in vain), *(Delete(keys.offsets_vector(each)) for each in ends)]
            update, token = _raised(writer, keys.index_shard_of(event_key))
            if not (yield from writer.commit_alone("raise_index", (*gone, update), token, update.key)):
                yield from writer.host.sleep(RETRY_FIRST_MS)


def _rows_of(writer: ShardWriter, event_key: str, namespace: str, name: str) -> Operation[list[IndexRow]]:
    pk, low, high = keys.index_rows_of(event_key, namespace, name)
    return [from_item(IndexRow, item) for item in (yield from writer.read_range(low, high, pk))]


def _rows_of_before(writer: ShardWriter, state: ScheduleState) -> Operation[dict[str, list[IndexRow]]]:
    """Returns the rows of earlier generations by event key."""
    heard: dict[str, list[IndexRow]] = {}
    for event_key in (yield from _event_keys(writer, state)):
        rows = yield from _rows_of(writer, event_key, state.namespace, state.name)
        heard[event_key] = [row for row in rows if row.generation < state.generation]
    return heard


def _event_keys(writer: ShardWriter, state: ScheduleState) -> Operation[list[str]]:
    """Returns the event keys of the present version and the one before. Earlier requests removed the subscriptions of older versions."""
    versions = [version for version in (state.version - 1, state.version) if version > 0]
    wanted = tuple(keys.definition(writer.shard, state.namespace, state.name, version) for version in versions)
    found = yield from writer.host.read_for_good(Read(wanted))
    assert isinstance(found, Items)
    triggers = [parsed(from_item(Definition, item).spec).trigger for item in found.found.values()]
    leaves = [leaf for trigger in triggers if isinstance(trigger, EventTrigger) for leaf in trigger.leaves()]
    return sorted({leaf.event_key(state.namespace) for leaf in leaves} - {""})


class SubscribedLeaf(NamedTuple):
    """A leaf of a trigger with a subscription.

    Attributes:
        number: Number of the leaf within the trigger.
        starts: As in `IndexRow.starts`.
    """

    number: int
    event_key: str
    starts: bool | None


def heard_leaves(spec: ScheduleSpec) -> tuple[SubscribedLeaf, ...]:
    """Returns the subscribed leaves of a schedule; a time leaf has no subscription."""
    if not isinstance(spec.trigger, EventTrigger):
        return ()
    keyed = [(number, leaf, leaf.event_key(spec.namespace)) for number, leaf in enumerate(spec.trigger.leaves())]
    return tuple(
        SubscribedLeaf(number, event_key, leaf.hears_starts or None) for number, leaf, event_key in keyed if event_key
    )


def _index_rows(
    writer: ShardWriter, state: ScheduleState, spec: ScheduleSpec, arrived: int
) -> Operation[list[IndexRow]]:
    heard = heard_leaves(spec)
    vector = None
    if any(not leaf.event_key.startswith(RUNS) for leaf in heard):
        vector = yield from _activation_vector(writer, state, arrived)
    return [_row(writer, state, leaf, vector) for leaf in heard]


def _row(writer: ShardWriter, state: ScheduleState, leaf: SubscribedLeaf, vector: str | None) -> IndexRow:
    return IndexRow(
        event_key=leaf.event_key,
        namespace=state.namespace,
        name=state.name,
        incarnation=state.incarnation,
        generation=state.generation,
        leaf=leaf.number,
        shard=writer.shard,
        activated_at=state.activated_at,
        vector=None if leaf.event_key.startswith(RUNS) else vector,
        asked_at=Position.parse(state.position).append_time,
        starts=leaf.starts,
    )


def missing_rows(
    writer: ShardWriter, state: ScheduleState, heard: Sequence[SubscribedLeaf]
) -> Operation[list[IndexRow]]:
    """Returns the missing rows of the present generation, and rows whose vector is gone, for a rewrite.

    They get the vector of their sibling leaves. If none is left, append times decide which events follow the last
    request (`Subscription.accepts`).
    """
    rows: list[IndexRow] = []
    for event_key in sorted({leaf.event_key for leaf in heard}):
        rows += yield from _rows_of(writer, event_key, state.namespace, state.name)
    present = [row for row in rows if (row.incarnation, row.generation) == (state.incarnation, state.generation)]
    named = sorted({row.vector for row in present if row.vector is not None})
    there: set[str] = set()
    if named:
        found = yield from writer.host.read_for_good(Read(tuple(keys.offsets_vector(vector) for vector in named)))
        assert isinstance(found, Items)
        there = {vector for vector in named if keys.offsets_vector(vector) in found.found}
    hears = {row.leaf for row in present if row.vector is None or row.vector in there}
    vector = min(there, default=None)
    return [_row(writer, state, leaf, vector) for leaf in heard if leaf.number not in hears]


def listen_again(writer: ShardWriter, rows: Sequence[IndexRow]) -> Operation[None]:
    """Writes missing subscriptions and raises their versions."""
    yield from writer.host.write_for_good(
        Batch("index", tuple(Put(row.key(), to_item(row, row.key())) for row in rows))
    )
    yield from _raise_versions(writer, rows)


def _activation_vector(writer: ShardWriter, state: ScheduleState, arrived: int) -> Operation[str]:
    """Stores end offsets that were read after the request arrived: earlier events never count, events after the receipt
    always do.
    """
    ends = yield from read_end_offsets(writer.host, [state.namespace], arrived)
    # A failed request shares its generation with the next one, and its vector is removed. The position keeps the two
    # vectors apart.
    owner = f"{keys.schedule_ref(state.namespace, state.name)}#{state.generation}#{state.position}"
    vector_id, key, item = vector_item(owner, as_vector(ends))
    yield from writer.host.write_for_good(Batch("vector", (Put(key, item),)))
    return vector_id


def _raise_versions(writer: ShardWriter, rows: Sequence[IndexRow]) -> Operation[None]:
    for index_shard in sorted({keys.index_shard_of(row.event_key) for row in rows}):
        yield from _raise_version(writer, index_shard)


def _raise_version(writer: ShardWriter, index_shard: int, with_it: Sequence[Delete] = ()) -> Operation[None]:
    update, token = _raised(writer, index_shard)
    yield from writer.host.commit_until_settled(Transaction("raise_index", (*with_it, update), token, update.key))


def _raised(writer: ShardWriter, index_shard: int) -> tuple[Update, str]:
    """Returns the update that raises a version, and its token."""
    key, token = keys.index_version(index_shard), writer.host.token()
    # ADD without a condition: a repeated or late one raises the version once more, at the cost of one query per
    # reader.
    update = Update(key, "ADD #version :one SET #w = :w", {"#version": "version", "#w": "w"}, {":one": 1, ":w": token})
    return update, token

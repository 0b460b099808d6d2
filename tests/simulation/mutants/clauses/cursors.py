"""Clauses that move positions, of topic partitions and of delivery, once and forward only; and those that count once."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.mutants.clauses.clause_mutant import dropped, withheld
from tests.simulation.stories.stage import Stage, a_commit, takes
from tests.support.builders import HOUR, NOW, SECOND, a_send, a_spec, an_apply, an_event, an_inbox_row, on_data
from tidegate_core.records.messages import Guard
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key, Put, Transaction
from tidegate_core.transactions.cursor import BETWEEN_RECORDS, Uses, dedupe_row, move_cursor
from tidegate_core.transactions.delivery import Progress, Tally, checkpoint, raise_guard
from tidegate_core.transactions.ownership import Cursor
from tidegate_memory.store import MemoryStore

TP = Key("TP#brokers#topic#000000", "TP")
DAY = 24 * HOUR


# -- the position of a topic partition -----------------------------------------------------------------------------------------


def a_store_read_up_to(offset: int) -> MemoryStore:
    store = MemoryStore(remembers_tokens=False)
    item: Item = {"pk": TP.pk, "sk": TP.sk, "epoch": 1, "map": 1, "next": offset, "page": BETWEEN_RECORDS}
    store.write([Put(TP, {**item, "last_append_time": NOW})])
    return store


def a_move(seen: tuple[int, str], to: tuple[int, str], row: InboxRow | None = None) -> Transaction:
    cursor = Cursor(TP, epoch=1, map_version=1, next=seen[0], page=seen[1], last_append_time=NOW)
    inbox = [] if row is None else [(0, row)]
    return move_cursor(cursor, *to, last_append_time=NOW, inbox=inbox, dedupe=(), token=f"node-a/0.0/{seen}{to}")


def a_move_arrives_twice() -> Iterable[str]:
    store = a_store_read_up_to(5)
    first = a_move((5, "-"), (6, "-"), an_inbox_row(1))
    assert takes(store, first)
    assert takes(store, a_move((6, "-"), (7, "-")))
    if takes(store, first):
        yield "I3: a position went back, and what its records had become is there again"


def a_move_within_a_record_arrives_twice() -> Iterable[str]:
    store = a_store_read_up_to(5)
    first = a_move((5, "-"), (5, "0000#a"), an_inbox_row(1))
    assert takes(store, first)
    assert takes(store, a_move((5, "0000#a"), (5, "0000#b"), an_inbox_row(2)))
    if takes(store, first):
        yield "I3: a page went back, and its listeners hear the event again"


# -- event ids -------------------------------------------------------------------------------------------------------------------


def two_repeats_of_an_event_are_counted_at_once() -> Iterable[str]:
    """In two topic partitions, whose readers both looked for the id before either of them had written it down."""
    stage = Stage(event_topic_partitions=2)
    bench = stage.first
    bench.request(an_apply(a_spec(trigger=on_data(), overlap="allow")))
    bench.run(3 * SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.event(an_event("d1"), topic_partition=0)
    bench.event(an_event("d1"), topic_partition=1)
    bench.run(3 * SECOND)
    bench.release()
    bench.run(5 * SECOND)
    runs = [row for row in bench.ledger() if row[1] == "nightly"]
    if len(runs) > 1:
        yield f"I3: one event made {len(runs)} runs"


def an_id_is_written_down(store: MemoryStore, at: int, token: str, seen: Uses | None = None) -> bool:
    uses = Uses((at,), at + DAY) if seen is None else seen.and_at(at, at + DAY)
    row = dedupe_row("flights", "d1", uses, at + 2 * DAY, seen)
    return takes(store, Transaction("cursor", (row,), token, None))


def an_id_is_used_for_the_first_time() -> Iterable[str]:
    if not an_id_is_written_down(MemoryStore(), NOW, "1"):
        yield "liveness: an event whose id was never used is not counted"


def an_id_is_used_again_after_its_horizon() -> Iterable[str]:
    """The row is still there: its time to live only cleans up."""
    store = MemoryStore()
    assert an_id_is_written_down(store, NOW, "1")
    if not an_id_is_written_down(store, NOW + DAY, "2", Uses((NOW,), NOW + DAY)):
        yield "liveness: an event whose id was used a day ago is never counted"


def an_id_whose_row_was_read_is_used_when_the_row_is_gone() -> Iterable[str]:
    if not an_id_is_written_down(MemoryStore(), NOW + DAY, "1", Uses((NOW,), NOW + DAY)):
        yield "liveness: an event whose id was used is never counted once its row is cleaned up"


def two_earlier_uses_of_an_id_are_counted_at_once() -> Iterable[str]:
    """Both were read behind a later one: the end of its horizon stays what it was."""
    store = MemoryStore()
    later = Uses((NOW + 2 * DAY,), NOW + 3 * DAY)
    assert an_id_is_written_down(store, NOW + 2 * DAY, "1")
    assert an_id_is_written_down(store, NOW, "2", later)
    if an_id_is_written_down(store, NOW + HOUR, "3", later):
        yield "I3: an event and its repeat of an hour later both count"


def a_row_of_before(store: MemoryStore, at: int) -> Uses:
    key = keys.dedupe("flights", "d1")
    item: Item = {"pk": key.pk, "sk": key.sk, "until": at + DAY, "at": at, "expires_at": (at + 2 * DAY) // 1000}
    store.write([Put(key, item)])
    return Uses.of(item)


def an_id_with_a_row_of_before_is_used_again() -> Iterable[str]:
    store = MemoryStore()
    if not an_id_is_written_down(store, NOW + DAY, "1", a_row_of_before(store, NOW)):
        yield "liveness: an event whose id an older node has counted a day ago is never counted"


def an_id_is_used_again_while_a_node_of_before_counts_it() -> Iterable[str]:
    store = MemoryStore()
    seen = a_row_of_before(store, NOW)
    a_row_of_before(store, NOW + DAY)
    if an_id_is_written_down(store, NOW + DAY + HOUR, "1", seen):
        yield "I3: an event that an older node has counted counts again an hour later"


def two_earlier_uses_of_an_id_with_a_row_of_before_are_counted_at_once() -> Iterable[str]:
    store = MemoryStore()
    seen = a_row_of_before(store, NOW + 2 * DAY)
    assert an_id_is_written_down(store, NOW, "1", seen)
    if an_id_is_written_down(store, NOW + HOUR, "2", seen):
        yield "I3: an event and its repeat of an hour later both count"


# -- the position of delivery ------------------------------------------------------------------------------------------------------


def a_delivery_store() -> MemoryStore:
    store = MemoryStore(remembers_tokens=False)
    key = keys.progress(0)
    tally = {"delivered": 0, "expired": 0, "cancelled": 0, "dead": 0, "digest": 0}
    store.write([Put(key, {"pk": key.pk, "sk": key.sk, "epoch": 1, "fired_slot": NOW, "fired_id": "a#1", **tally})])
    return store


def a_checkpoint(seen: tuple[int, str], to: tuple[int, str]) -> Transaction:
    return checkpoint(0, Progress(1, *seen, tally=Tally()), *to, Tally(), None, f"node-a/0.0/{seen}{to}")


def a_checkpoint_arrives_twice() -> Iterable[str]:
    store = a_delivery_store()
    first = a_checkpoint((NOW, "a#1"), (NOW + 5, "a#1"))
    assert takes(store, first)
    assert takes(store, a_checkpoint((NOW + 5, "a#1"), (NOW + 9, "a#1")))
    if takes(store, first):
        yield "I8: the delivery position went back, behind what may not be sent again"


def a_checkpoint_within_a_millisecond_arrives_twice() -> Iterable[str]:
    store = a_delivery_store()
    first = a_checkpoint((NOW, "a#1"), (NOW, "b#1"))
    assert takes(store, first)
    assert takes(store, a_checkpoint((NOW, "b#1"), (NOW, "c#1")))
    if takes(store, first):
        yield "I8: the delivery position went back among messages of one millisecond"


# -- guards ---------------------------------------------------------------------------------------------------------------------------


def a_replacement_arrives_after_the_next_one() -> Iterable[str]:
    stage = Stage()
    bench = stage.first
    bench.request(a_send("m-1", key="k", after="30s"))
    bench.delay(a_commit("guard"))
    bench.request(a_send("m-2", key="k", after="31s"))
    bench.run(2 * SECOND)
    bench.request(a_send("m-3", key="k", after="32s"))
    bench.run(2 * SECOND)
    bench.release()
    return stage.objections


def a_guard(version: str, token: str) -> Transaction:
    return raise_guard(0, 1, Guard(id="m", live_from=version, expires_at=0), token)


def a_message_is_replaced_for_the_first_time() -> Iterable[str]:
    if not takes(a_delivery_store(), a_guard("2", "1")):
        yield "I7: a message that was replaced has no guard, and the next owner sends it"


def a_message_is_replaced_again() -> Iterable[str]:
    store = a_delivery_store()
    assert takes(store, a_guard("2", "1"))
    if not takes(store, a_guard("3", "2")):
        yield "I7: a message that was replaced again keeps its older guard, and the next owner sends it"


CLAUSES_OF_POSITIONS = (
    dropped(
        "cursor_at",
        "#next = :next_seen",
        "a move that arrives a second time takes the position back, and its records are handed out again",
        breaks="I3",
        scenario=a_move_arrives_twice,
    ),
    dropped(
        "cursor_at",
        "#page = :page_seen",
        "a page that arrives a second time takes the position back, and its listeners are served again",
        breaks="I3",
        scenario=a_move_within_a_record_arrives_twice,
    ),
    dropped(
        "not_counted_before",
        "attribute_not_exists(#pk) OR (#until = :until_seen AND attribute_not_exists(#uses))",
        "an event that is announced twice at the same moment counts twice",
        breaks="I3",
        scenario=two_repeats_of_an_event_are_counted_at_once,
    ),
    withheld(
        "not_counted_before",
        "attribute_not_exists(#pk)",
        "no event is ever counted",
        breaks="liveness",
        scenario=an_id_is_used_for_the_first_time,
    ),
    withheld(
        "not_counted_before",
        "(#until = :until_seen AND attribute_not_exists(#uses))",
        "an event id that an older node has counted is used up until the store's TTL acts",
        breaks="liveness",
        scenario=an_id_with_a_row_of_before_is_used_again,
    ),
    dropped(
        "not_counted_before",
        "#until = :until_seen",
        "a repeat of what an older node has counted meanwhile counts",
        breaks="I3",
        scenario=an_id_is_used_again_while_a_node_of_before_counts_it,
    ),
    dropped(
        "not_counted_before",
        "attribute_not_exists(#uses)",
        "a use and its repeat that are read at once, behind a later use that an older node has counted, both count",
        breaks="I3",
        scenario=two_earlier_uses_of_an_id_with_a_row_of_before_are_counted_at_once,
    ),
    dropped(
        "used_as_seen",
        "attribute_not_exists(#pk) OR #uses = :uses_seen",
        "a use and its repeat that are read at once, behind a later use, both count",
        breaks="I3",
        scenario=two_earlier_uses_of_an_id_are_counted_at_once,
    ),
    withheld(
        "used_as_seen",
        "attribute_not_exists(#pk)",
        "an event id whose row is cleaned up between its reading and its writing is never counted",
        breaks="liveness",
        scenario=an_id_whose_row_was_read_is_used_when_the_row_is_gone,
    ),
    withheld(
        "used_as_seen",
        "#uses = :uses_seen",
        "an event id is used up until the store's TTL acts, days after its horizon",
        breaks="liveness",
        scenario=an_id_is_used_again_after_its_horizon,
    ),
    dropped(
        "fired_through",
        "#slot = :slot_seen",
        "a checkpoint that arrives a second time takes the position back",
        breaks="I8",
        scenario=a_checkpoint_arrives_twice,
    ),
    dropped(
        "fired_through",
        "#id = :id_seen",
        "a checkpoint among messages of one millisecond that arrives a second time takes the position back",
        breaks="I8",
        scenario=a_checkpoint_within_a_millisecond_arrives_twice,
    ),
    dropped(
        "guard_older",
        "attribute_not_exists(#live_from) OR #live_from < :version",
        "a late replacement lowers the guard that a younger one has raised",
        breaks="I5",
        scenario=a_replacement_arrives_after_the_next_one,
    ),
    withheld(
        "guard_older",
        "attribute_not_exists(#live_from)",
        "nothing is ever guarded",
        breaks="I7",
        scenario=a_message_is_replaced_for_the_first_time,
    ),
    withheld(
        "guard_older",
        "#live_from < :version",
        "a guard is raised once and never again",
        breaks="I7",
        scenario=a_message_is_replaced_again,
    ),
)

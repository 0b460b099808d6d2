"""The audit of stores and topics in which more is amiss than one row of a history: it names it, and goes on with all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.builders import DEFAULT_SHARDS, MINUTE, NOW, a_recurring, a_send, a_spec, an_apply, every
from tests.unit.tidegate_node.audit.audited_bench import OUT, AuditedBench, kinds
from tidegate_core.explain.audit.audit_shard import CANNOT_TELL, CLEAN, DIFFERS, exit_code_of
from tidegate_core.explain.audit.delivered_records import OnTopics, Seen, judge_sink, sink_facts
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message
from tidegate_core.rows.store_operations import Put
from tidegate_core.writes.partition_map import ClusterMap, Cut, put_first_map
from tidegate_node.commands.audit.message_reader import read_messages
from tidegate_node.commands.audit.shard_reader import Reader, read_shard
from tidegate_node.commands.audit.topic_records import on_topics_of
from tidegate_ports.topic_snapshot import Landed

MINUTELY = an_apply(a_spec(trigger=every("1m")))


@pytest.fixture
def bench() -> AuditedBench:
    bench = AuditedBench()
    bench.does(MINUTELY, an_apply(a_recurring()), a_send("m-1"), a_send("m-2", after="1m"), then=5 * MINUTE)
    return bench


def headers(**given: str) -> tuple[tuple[str, bytes], ...]:
    return tuple((name.replace("_", "-"), value.encode()) for name, value in given.items())


def test_given_a_schedule_whose_state_is_gone_then_it_is_named_and_not_passed_over(bench: AuditedBench) -> None:
    bench.remove(bench.rows("S#flights/nightly", "main")[0], "main")
    found = bench.audit()

    assert [(each.kind, each.subject) for each in found.differences] == [("state_gone", "flights/nightly")]
    assert exit_code_of(found) == DIFFERS
    assert kinds(bench.audit(namespace="orders")) == []


def test_given_an_entry_that_says_something_else_than_its_run_then_it_is_named(bench: AuditedBench) -> None:
    """Each is there, once and where it should be."""
    entry = bench.rows("L#flights/nightly#")[3]
    bench.put(entry, disposition="skipped", reason="overlap")
    found = bench.audit()

    assert [(each.kind, each.occurrence) for each in found.differences] == [("entry_differs", str(entry["job_id"]))]
    assert found.differences[0].found == "disposition skipped; reason overlap"
    assert "disposition launched" in found.differences[0].expected


def test_given_a_shard_whose_position_is_gone_then_its_messages_are_not_passed_over(bench: AuditedBench) -> None:
    progress = next(row for row in bench.rows("PROGRESS", "main") if row["pk"] == "SH#0002")
    bench.remove(progress, "main")

    assert [(each.kind, each.subject) for each in bench.audit().differences] == [("position_gone", "shard 2")]
    assert kinds(bench.audit(of_messages=False)) == []


def test_given_a_row_that_cannot_be_worked_on_then_its_shard_is_named_and_all_others_are_judged(
    bench: AuditedBench,
) -> None:
    place = bench.rows("LJ#")[0]
    bench.put(place, entry="no entry at all")
    found = bench.audit()

    assert [each.subject for each in found.unjudged if each.is_grave] == [f"shard {int(str(place['pk'])[3:])}"]
    assert exit_code_of(found) == CANNOT_TELL
    assert found.counts["passed"] > 0, "of the other shards"


@pytest.mark.parametrize(
    "strange",
    [
        headers(tidegate_id="0000-x", tidegate_nominal="yesterday"),
        headers(tidegate_id="0000-x", tidegate_nominal="9" * 400),
        headers(tidegate_id="0000-x"),
        headers(tidegate_nominal="2026-01-01T00:00:00Z"),
        (("tidegate-id", b"\xff"), ("tidegate-nominal", b"\xff\xfe")),
    ],
)
def test_given_somebodys_record_with_our_headers_then_it_is_not_ours(bench: AuditedBench, strange: Any) -> None:
    """Anybody who may write to a user's topic may put headers of any name."""
    bench.landed.more = [Landed(OUT, bench.now, strange)]
    found = bench.audit()

    assert kinds(found) == []
    assert exit_code_of(found) == CLEAN


def test_given_a_dead_letter_that_was_replayed_then_the_message_is_there_once(bench: AuditedBench) -> None:
    of_m_1 = next(sent for sent in bench.sent if sent.value == b'{"of":"m-1"}')
    delivered = next(each for each in bench.landed.read([OUT], 0) if dict(each.headers) == _encoded(of_m_1.headers))
    dead = delivered._replace(topic="tidegate.requests.dlq")
    clean = bench.audit().counts
    bench.landed.more = [dead]
    assert bench.audit().counts == clean

    bench.landed.lost = {of_m_1.headers["tidegate-id"]}
    alone = bench.audit()
    assert (alone.counts["dead"], alone.counts["seen"], kinds(alone)) == (1, clean["seen"] - 1, [])


def _encoded(headers: Mapping[str, str]) -> dict[str, bytes]:
    return {name: value.encode() for name, value in headers.items()}


def test_given_a_topic_that_has_lost_its_records_then_it_cannot_tell_and_nothing_is_called_lost(
    bench: AuditedBench,
) -> None:
    bench.landed.lost = {sent.headers["tidegate-id"] for sent in bench.sent if sent.topic == OUT}
    assert set(kinds(bench.audit())) == {"message_lost"}

    bench.landed.more = [Landed(OUT, bench.now, (), True)]
    found = bench.audit()
    assert kinds(found) == []
    assert exit_code_of(found) == CANNOT_TELL


def test_given_another_topic_that_has_lost_its_records_then_what_is_lost_is_found_all_the_same(
    bench: AuditedBench,
) -> None:
    of_m_1 = next(sent for sent in bench.sent if sent.value == b'{"of":"m-1"}')
    bench.landed.lost = {of_m_1.headers["tidegate-id"]}
    bench.landed.more = [Landed("another", bench.now, (), True)]

    assert kinds(bench.audit()) == ["message_lost"]


def test_given_a_topic_that_has_lost_nothing_that_was_due_then_it_is_clean(bench: AuditedBench) -> None:
    bench.landed.more = [Landed(OUT, bench.now, (), True)]

    assert exit_code_of(bench.audit()) == CLEAN


def test_given_dead_letters_that_are_forgotten_then_nothing_is_called_lost(bench: AuditedBench) -> None:
    """A message that is not on its topic may have been among them."""
    of_m_1 = next(sent for sent in bench.sent if sent.value == b'{"of":"m-1"}')
    bench.landed.lost = {of_m_1.headers["tidegate-id"]}
    bench.landed.more = [Landed("tidegate.requests.dlq", bench.now, (), True)]

    assert exit_code_of(bench.audit()) == CANNOT_TELL


class _Counting(dict[str, Seen]):
    """Counts who walks through all of it."""

    walked = 0

    def values(self) -> Any:
        self.walked += 1
        return super().values()

    def items(self) -> Any:
        self.walked += 1
        return super().items()


def test_given_many_shards_and_recurring_messages_then_what_the_topics_have_is_walked_through_once_for_all() -> None:
    """Else a hundred of each, and a million records, are a day's work."""
    bench = AuditedBench()
    bench.does(*(an_apply(a_recurring(name=f"ping-{number}")) for number in range(6)), then=2 * MINUTE)
    reader, window = Reader(bench.store, bench.now, lambda: None), Window(NOW, bench.now - MINUTE)
    seen = _Counting(on_topics_of(bench.landed.read([OUT], 0), "dead", window).seen)
    del seen[min(seen)]
    on_topics, intervals, lost = OnTopics(seen), 0, []
    for shard in range(DEFAULT_SHARDS):
        messages = read_messages(reader, shard, None)
        assert messages is not None
        intervals += len(messages.intervals)
        found = judge_sink(sink_facts(read_shard(reader, shard, window, None), messages, window), window, on_topics)
        lost += kinds(found)

    assert lost == ["message_lost"]
    assert (intervals, len(seen) > 6, seen.walked) == (6, True, 2)


def test_given_messages_of_other_times_then_none_of_them_is_held_while_topics_are_read() -> None:
    """All shards are held together by then."""
    bench = AuditedBench()
    bench.does(*(a_send(f"m-{number}", after="1h") for number in range(20)), a_send("now"), then=MINUTE)
    reader = Reader(bench.store, bench.now, lambda: None)
    window = Window(NOW, bench.now)
    kept = []
    for shard in range(DEFAULT_SHARDS):
        messages = read_messages(reader, shard, None)
        assert messages is not None
        kept.append(sink_facts(read_shard(reader, shard, window, None), messages, window).messages)

    assert sum(len(each.rows) for each in kept) == 1
    assert sum(len(each.timers) for each in kept) == 1


def test_given_a_requests_topic_that_was_made_anew_then_what_nobody_had_read_of_it_is_gone_and_not_lost(
    bench: AuditedBench,
) -> None:
    """Only once its position carries the map that followed: before that somebody may still move it."""
    of_m_1 = next(sent for sent in bench.sent if sent.value == b'{"of":"m-1"}')
    bench.landed.lost = {of_m_1.headers["tidegate-id"]}
    row = next(row for row in bench.rows("M#", "main") if row["payload"] == b'{"of":"m-1"}')
    create = Position.parse(from_item(Message, row).origin)
    place = keys.topic_position("brokers", create.topic_id, create.topic_partition)
    position = {**bench.store.get([place])[place], "next": create.offset, "map": 1}
    bench.put(position, "main")

    def with_maps(*topic_ids: str) -> AuditedBench:
        cuts = tuple(Cut(number, 1, topic_id) for number, topic_id in enumerate(topic_ids, 1))
        present = ClusterMap(len(cuts), 1, DEFAULT_SHARDS, topic_ids[-1], "brokers", cuts)
        first = put_first_map(present, "w").actions[0]
        assert isinstance(first, Put)
        bench.put(dict(first.item), "main")
        return bench

    assert kinds(bench.audit()) == ["message_lost"]
    assert kinds(with_maps(create.topic_id, "c" * 32).audit()) == ["message_lost"]

    bench.put(position, "main", map=2)
    found = bench.audit()
    assert kinds(found) == []
    # m-2 came after it.
    assert found.counts["gone"] == 2
    assert kinds(with_maps(create.topic_id, create.topic_id).audit()) == ["message_lost"], "it grew: read elsewhere"

    bench.put(position, "main", map=2, next=create.offset + 1)
    assert kinds(with_maps(create.topic_id, "c" * 32).audit()) == ["message_lost"], "it was passed"

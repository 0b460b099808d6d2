"""A composite's time-out waits for events that could still prevent it, and not for ever (SEMANTICS 6.2, 6.6; DESIGN 8)."""

from __future__ import annotations

import pytest

from tidegate_core.decisions.run_plane.expire import WATERMARK_PATIENCE_MS
from tidegate_core.model.shards import schedule_shard
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Put
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import EVENTS_ID, SECOND, a_spec, all_of, an_apply, an_event, on_data

NAME = next(name for name in (f"s-{number}" for number in range(99)) if schedule_shard("flights", name, 4) % 2 == 0)
BOTH = all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="30s")


@pytest.fixture
def bench() -> Bench:
    """Holds one of two topic partitions; the other one's events are read by somebody else, or by nobody."""
    made = Bench(topic_partitions=2)
    made.run(SECOND)
    made.request(an_apply(a_spec(NAME, BOTH)))
    made.run(SECOND)
    made.event(an_event("d1", "a"), 0)
    return made


def read_by_the_other(bench: Bench, next_offset: int) -> None:
    key = keys.topic_position("brokers", EVENTS_ID, 1)
    item: Item = {
        "pk": key.pk,
        "sk": key.sk,
        "epoch": 1,
        "map": 1,
        "next": next_offset,
        "page": "-",
        "last_append_time": 0,
    }
    bench.store.write([Put(key, item)])


def dispositions(bench: Bench) -> list[str]:
    return [entry[0] for entry in bench.ledger()]


def test_given_everything_read_then_the_time_out_comes_at_its_time(bench: Bench) -> None:
    bench.run(29 * SECOND)
    assert dispositions(bench) == []
    bench.run(2 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]


def test_given_unread_events_then_the_time_out_waits_for_them_and_no_longer(bench: Bench) -> None:
    bench.event(an_event("d9", "b"), 1)
    bench.run(60 * SECOND)
    assert dispositions(bench) == []
    read_by_the_other(bench, 1)
    bench.run(2 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]


def test_given_events_that_nobody_reads_then_the_decision_names_what_it_did_not_wait_for(bench: Bench) -> None:
    bench.event(an_event("d9", "b"), 1)
    bench.run(30 * SECOND + WATERMARK_PATIENCE_MS - SECOND)
    assert dispositions(bench) == []
    bench.run(5 * SECOND)
    assert dispositions(bench) == ["expired/trigger_timeout"]
    (row,) = bench.rows("L#")
    assert "topic partitions 1 of the events topic" in str(row["detail"])


def test_given_the_missing_event_in_time_then_there_is_no_time_out(bench: Bench) -> None:
    bench.run(29 * SECOND)
    bench.event(an_event("d1", "b"), 0)
    bench.run(60 * SECOND)
    assert dispositions(bench) == ["launched"]

"""What is recorded of runs, events and creates can be sent to a store, and says the same again."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.benchmarks.rig.bulk_producer import message
from tests.benchmarks.rig.call_recordings import (
    PREFIX,
    Lookup,
    Recording,
    RecordingBench,
    recorded_creates,
    recorded_events,
    recorded_runs,
)
from tests.benchmarks.rig.call_replays import replay_s
from tests.benchmarks.rig.store_bounds import batched_rows_per_s
from tests.support.builders import HOUR, MINUTE, NOW, Doc, a_spec
from tidegate_core.store.values import Batch, Key, Put, RangeRead, Transaction
from tidegate_dynamo.calls import KEYS_PER_CALL_MAX
from tidegate_memory.store import MemoryStore

RUNS, SHARDS = 5, 3


@pytest.fixture(scope="module")
def recording() -> Recording:
    return recorded_runs(RUNS, SHARDS)


def keys(recording: Recording) -> set[Key]:
    return {action.key for write in recording.writes for action in write.actions}


def test_given_recorded_runs_then_each_of_their_writes_is_there_and_none_is_another_cluster_s(
    recording: Recording,
) -> None:
    names = [write.name for write in recording.writes]
    assert names.count("start") == names.count("finished") == names.count("look") == RUNS
    assert any(isinstance(write, Batch) for write in recording.writes)
    assert all(key.pk.startswith(PREFIX) for key in keys(recording))
    assert all(isinstance(row, Put) and row.item["pk"] == row.key.pk for row in recording.rows)
    assert all(row.key.pk.startswith(PREFIX) for row in recording.rows)


def test_given_recorded_runs_then_what_the_protocol_reads_is_there_too_and_what_an_idle_node_looks_for_is_not(
    recording: Recording,
) -> None:
    read = {key for call in recording.reads if isinstance(call, Lookup) for key in call.keys}
    assert {key for key in read if key.sk.startswith("R#")}, "the gate reads each run"
    ranges = [call for call in recording.reads if isinstance(call, RangeRead)]
    assert {call.low[:2] for call in ranges} == {"S#"}, "inboxes were empty"
    assert all(key.pk.startswith(PREFIX) for key in read)
    assert all(call.pk.startswith(PREFIX) for call in ranges)
    assert len(recording.produced) == 2 * RUNS, "each begins and ends on the topic of runs"


def ended_runs(store: MemoryStore) -> int:
    return sum(str(item["sk"]).startswith("R#") for item in store.items("history"))


def test_given_a_store_then_all_writes_are_applied_and_the_runs_are_history(recording: Recording) -> None:
    store = MemoryStore()
    replay_s(store, recording)
    assert ended_runs(store) == RUNS
    assert not [item for item in store.items("main") if str(item["sk"]).startswith(("J#", "R#"))]


def test_given_two_recordings_then_one_store_takes_both() -> None:
    """Two cases of one benchmark on one cluster: the emulator knows the tokens of the first one's transactions."""
    store = MemoryStore()
    for count in (2, 3):
        replay_s(store, recorded_runs(count, SHARDS))
    assert ended_runs(store) == 2 + 3


def test_given_a_store_that_refuses_one_then_it_is_no_figure(recording: Recording) -> None:
    """Without the rows of before, conditions do not hold."""
    first = next(write for write in recording.writes if isinstance(write, Transaction))
    with pytest.raises(AssertionError, match="Cancelled"):
        replay_s(MemoryStore(), Recording((), [[first]]))


class Counting:
    """A broker's part that keeps what it was given; with `fails` its part comes to nothing."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.log: list[str] = []

    def prepared(self, recording: Recording) -> list[Callable[[], None]]:
        self.log.append(f"{len(recording.read)} read, {len(recording.produced)} produced")
        return [self._part]

    def close(self) -> None:
        self.log.append("closed")

    def _part(self) -> None:
        self.log.append("part")
        assert not self.fails, "no more records"


def test_given_a_broker_s_part_then_it_is_carried_out_beside_the_store_s_and_closed(recording: Recording) -> None:
    logs = Counting()
    replay_s(MemoryStore(), recording, logs)
    assert logs.log == [f"0 read, {2 * RUNS} produced", "part", "closed"]


def test_given_a_broker_s_part_that_comes_to_nothing_then_it_is_no_figure(recording: Recording) -> None:
    logs = Counting(fails=True)
    with pytest.raises(AssertionError, match="no more records"):
        replay_s(MemoryStore(), recording, logs)
    assert logs.log[-1] == "closed"


def test_given_reads_of_single_items_then_full_calls_ask_for_each_of_them_as_often() -> None:
    bench = RecordingBench(shards=SHARDS)
    for number in range(70):
        bench.request(message(number, NOW + HOUR, "sink", SHARDS, name=f"m{number}").value)
    bench.run(MINUTE)
    asked = Counter(key for call in bench.calls if isinstance(call, Lookup) for key in call.keys)
    assert asked.total() > KEYS_PER_CALL_MAX
    assert max(asked.values()) > 1
    assert Counter(key for call in bench.lookups() for key in call.keys) == asked


def test_given_recorded_events_then_a_store_counts_each_of_them_once() -> None:
    def spec(name: str) -> Doc:
        return a_spec(trigger={"type": "event", "name": f"custom.{name}", "count": 100})

    store = MemoryStore()
    recording = recorded_events(2, 60, 1, spec, SHARDS, 4)
    assert len(recording.read) == 60
    assert {call.low[:2] for call in recording.reads if isinstance(call, RangeRead)} >= {"I#"}, "inboxes are read"
    replay_s(store, recording)
    evidence = [item for item in store.items("main") if str(item["sk"]).startswith("E#")]
    assert [item["counts"] for item in evidence] == [[60], [60]]
    assert not [item for item in store.items("main") if str(item["sk"]).startswith("I#")]


@pytest.mark.parametrize(("key", "rows"), [(None, 2), ("k", 3)])
def test_given_recorded_creates_then_their_rows_come_in_full_calls(key: str | None, rows: int) -> None:
    creates = 30
    requests = [
        message(each, NOW + HOUR, "sink", SHARDS, name=f"m{each}", key=key and f"{key}{each}").value
        for each in range(creates)
    ]
    recording = recorded_creates(requests, SHARDS)
    calls = [len(write.actions) for write in recording.writes if isinstance(write, Batch)]
    assert sum(calls) == creates * rows
    assert set(calls[:-1]) == {25}
    lookups = [call.keys for call in recording.reads if isinstance(call, Lookup)]
    assert [len(set(each)) for each in lookups] == [len(each) for each in lookups]
    assert max(len(each) for each in lookups) <= KEYS_PER_CALL_MAX
    assert sum(len(each) for each in lookups) >= creates, "whether one was there before is read of each"
    assert list(recording.read) == requests
    assert len(recording.batched_rows) == creates * rows
    store = MemoryStore()
    assert batched_rows_per_s(store, recording.batched_rows) > 0
    assert not list(store.items("main")), "the next ones find it as these did"
    replay_s(store, recording)
    assert len([item for item in store.items("main") if str(item["sk"]).startswith("M#")]) == creates


def test_given_creates_without_id_and_key_then_each_holder_has_a_partition_key_of_its_own() -> None:
    holders, creates = 4, 30
    requests = [message(each, NOW + HOUR, "sink", SHARDS, name=None, key=None).value for each in range(creates)]
    recording = recorded_creates(requests, SHARDS, holders)
    batches = [write for write in recording.writes if isinstance(write, Batch)]
    lines = [{action.key.pk for action in batch.actions} for batch in batches]
    assert {len(line) for line in lines} == {1}
    assert len(set().union(*lines)) == holders
    assert len(set().union(*lines[:holders])) == holders, "they take turns"
    assert list(recording.read) == requests
    store = MemoryStore()
    replay_s(store, recording)
    assert len([item for item in store.items("main") if str(item["sk"]).startswith("M#")]) == creates

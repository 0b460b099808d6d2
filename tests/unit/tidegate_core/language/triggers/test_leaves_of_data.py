"""What leaves count: distinct data partitions, events, files, bytes, rows, custom events (rows CD-064, CD-069)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.triggers import CustomEventTrigger, DataPartitionsTrigger, DataSizeTrigger, Node


def leaf(**fields: Any) -> Any:
    adapter: TypeAdapter[Any] = TypeAdapter(Node)
    return adapter.validate_python(fields)


def arrival(data_partition: str = "d1", **fields: Any) -> DataPartitionEvent:
    document = {"namespace": "flights", "dataset": "raw", "partition": data_partition, **fields}
    return DataPartitionEvent.model_validate(document)


def counting(**fields: Any) -> Any:
    return leaf(type="data_partitions", dataset="raw", **fields)


def sized(**fields: Any) -> Any:
    return leaf(type="data_size", dataset="raw", **fields)


def test_given_units_then_entries_are_what_they_count() -> None:
    first, again, newer = arrival(id="e1", version="1"), arrival(id="e2", version="1"), arrival(id="e3", version="2")
    counted = {
        unit: len({counting(unit=unit).accepts(each, "flights") for each in (first, again, newer)})
        for unit in ("partitions", "events", "files")
    }
    assert counted == {"partitions": 1, "events": 3, "files": 2}


@pytest.mark.parametrize("kind", ["appended", "replaced", "deleted"])
def test_given_a_kind_that_is_not_asked_for_then_it_does_not_count(kind: str) -> None:
    assert counting().accepts(arrival(kind=kind), "flights") is None
    assert counting(kinds=["created", kind]).accepts(arrival(kind=kind), "flights") == "d1"


def test_given_deleted_then_it_takes_back_whatever_the_filter_says() -> None:
    only_large = counting(kinds=["created", "deleted"], where={"field": "bytes", "at_least": 5})
    assert only_large.accepts(arrival(bytes=4), "flights") is None
    gone = arrival(kind="deleted")
    assert only_large.accepts(gone, "flights") == "d1"
    assert only_large.takes_back(gone)


def test_given_sizes_then_the_same_again_counts_as_last_told_and_what_was_appended_beside_it() -> None:
    """Row CD-069: sum(field) >= x."""
    size = sized(bytes="1KB", kinds=["created", "appended"])
    assert isinstance(size, DataSizeTrigger)
    created, appended = arrival(bytes=400), arrival(kind="appended", bytes=5, id="e9")
    assert (size.weight_of(created), size.starts_anew(created)) == (400, True)
    assert (size.weight_of(appended), size.starts_anew(appended)) == (5, False)
    assert size.accepts(created, "flights") != size.accepts(appended, "flights")
    assert size.weight_of(arrival()) == 0
    assert size.shortfall(405) == "595B of 1KB of raw"
    assert size.shortfall(1000) is None


def test_given_rows_then_rows_are_counted() -> None:
    assert sized(rows=10).weight_of(arrival(rows=3, bytes=99)) == 3
    assert sized(rows=10).shortfall(3) == "7 of 10 rows of raw"


def test_given_a_custom_event_then_its_name_namespace_and_filter_decide() -> None:
    truck = leaf(type="event", name="custom.truck", count=2, where={"field": "/data/n", "at_least": 5})
    assert isinstance(truck, CustomEventTrigger)
    event = CustomEvent.model_validate(
        {"type": "custom.truck", "namespace": "flights", "subject": "s", "data": {"n": 5}}
    )
    assert truck.accepts(event, "flights") == event.dedupe_id
    assert truck.accepts(event, "other") is None
    assert truck.accepts(event.model_copy(update={"data": {"n": 4}}), "flights") is None
    assert truck.accepts(arrival(), "flights") is None
    assert (truck.correlation_of(event), truck.shortfall(1)) == ("s", "1 of 2 events custom.truck")


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "data_size", "dataset": "raw"},
        {"type": "data_size", "dataset": "raw", "bytes": 5, "rows": 5},
        {"type": "data_size", "dataset": "raw", "bytes": 0},
        {"type": "data_size", "dataset": "raw", "bytes": 5, "take": "exactly_n"},
        {"type": "data_partitions", "dataset": "raw", "kinds": ["deleted"]},
        {"type": "data_partitions", "dataset": "raw", "kinds": ["created", "created"]},
        {"type": "data_partitions", "dataset": "raw", "kinds": []},
        {"type": "data_partitions", "dataset": "raw", "max_settle": "1m"},
        {"type": "data_partitions", "dataset": "raw", "settle": "2m", "max_settle": "1m"},
        {"type": "data_partitions", "dataset": "raw", "settle": "2m", "take": "exactly_n"},
        {"type": "data_partitions", "dataset": "raw", "allow_empty": True},
        {"type": "data_partitions", "dataset": "raw", "at_least_every": "59s"},
        {"type": "data_partitions", "dataset": "raw", "unit": "bytes"},
        {"type": "event", "name": "truck"},
        {"type": "event", "name": "custom.truck", "count": 10_001},
        {"type": "run_status", "schedule": "a", "times": 0},
    ],
)
def test_given_what_does_not_fit_then_it_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        leaf(**fields)


def test_given_a_custom_event_with_too_much_data_then_it_is_refused() -> None:
    with pytest.raises(ValidationError, match="64 KiB"):
        CustomEvent.model_validate({"type": "custom.x", "namespace": "n", "data": "x" * 70_000})


def test_given_defaults_then_only_words_of_the_first_version_are_stored() -> None:
    read = counting()
    assert isinstance(read, DataPartitionsTrigger)
    assert read.canonical_json() == '{"count":1,"dataset":"raw","type":"data_partitions"}'

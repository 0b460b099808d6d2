"""A data partition that is announced again: what was appended last holds, whichever topic partition is read first (SEMANTICS 5.3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.builders import HOUR, MINUTE, all_of
from tests.support.harness.evidence_bench import a_desk, count, entries, evidence, jobs
from tests.support.tier import examples
from tests.unit.tidegate_core.evidence.test_accumulator import A, B, C, came, days, expire
from tidegate_core.language.triggers.latches import Latches, Terms
from tidegate_core.rows.evidence import Evidence, EvidenceChunk
from tidegate_core.shard.events.evidence_log import Entry, merged, replayed

KINDS = ["created", "replaced", "deleted"]
SIZE = {"type": "data_size", "dataset": "a", "rows": 100, "kinds": KINDS}


def test_given_an_older_version_that_is_read_late_then_the_job_has_the_newer_one() -> None:
    """Behind an outage the topic partition with the older one was read last, and its data were what the run was told of."""
    desk = a_desk(all_of(A, B))
    count(desk, came(1, 0, "x", 3 * HOUR, version="new"))
    count(desk, came(2, 0, "x", HOUR, version="old"))
    count(desk, came(3, 1, "y", 4 * HOUR))
    (job,) = jobs(desk)
    assert [entry["version"] for entry in merged(entries(desk, job.id))] == ["new", None]


def test_given_an_older_size_that_is_read_late_then_the_newer_one_counts() -> None:
    desk = a_desk(all_of(SIZE, B))
    count(desk, came(1, 0, "x", 3 * HOUR, id="1", kind="created", rows=10))
    count(desk, came(2, 0, "x", HOUR, id="2", kind="created", rows=90))
    assert evidence(desk) == {"": (10, 0)}


def test_given_a_delete_that_is_older_than_what_is_here_then_that_stays() -> None:
    desk = a_desk(all_of({**A, "kinds": KINDS}, B))
    count(desk, came(1, 0, "x", 3 * HOUR))
    count(desk, came(2, 0, "x", HOUR, id="e", kind="deleted"))
    assert evidence(desk) == {"": (1, 0)}
    count(desk, came(3, 1, "y", 4 * HOUR))
    assert days(desk) == ["xy"]


def test_given_what_was_deleted_before_it_was_read_then_it_does_not_come_back() -> None:
    desk = a_desk(all_of({**A, "kinds": KINDS}, B, C))
    count(desk, came(1, 2, "z"), came(2, 0, "x", HOUR), came(3, 0, "x", 3 * HOUR, id="e", kind="deleted"))
    count(desk, came(4, 0, "x", 2 * HOUR, version="between"))
    assert evidence(desk) == {"": (0, 0, 1)}


def test_given_an_older_version_that_was_deleted_then_what_is_here_counts_from_its_own_time() -> None:
    desk = a_desk(all_of({**A, "kinds": KINDS, "ttl": "9h"}, B))
    count(desk, came(1, 0, "x", 3 * HOUR))
    count(desk, came(2, 0, "x", HOUR), came(3, 0, "x", HOUR + MINUTE, id="e", kind="deleted"))
    (held,) = desk.records(Evidence, "E#")
    assert [entry["at"] for entry in merged(entries(desk, held.id))] == [held.first_at + 2 * HOUR]
    assert expire(desk) == 12 * HOUR


def test_given_what_was_replaced_before_it_was_read_then_its_time_counts_all_the_same() -> None:
    """In order the newer one takes its time over, and the deadline with it (review)."""
    sizes = {**SIZE, "rows": 1000, "kinds": [*KINDS, "appended"], "max_wait": "5h"}
    desk = a_desk(sizes)
    count(desk, came(2, 0, "x", 3 * HOUR, id="2", kind="replaced", rows=20))
    count(desk, came(1, 0, "x", HOUR, id="1", kind="appended", rows=10))
    assert evidence(desk) == {"": (20,)}
    assert expire(desk) == 6 * HOUR


@pytest.mark.parametrize("by", ["its deadline", "another event"])
def test_given_a_log_that_was_counted_by_the_rule_of_before_and_is_enough_by_this_one_then_it_fires(by: str) -> None:
    """A node of before let the older version that it had read late replace the newer one, and evidence waits by its row (review)."""
    desk = a_desk(all_of(SIZE, B, C, timeout="9h"))
    count(desk, came(1, 2, "z", 2 * HOUR), came(2, 0, "x", 3 * HOUR, id="1", kind="created", rows=10))
    count(desk, came(3, 1, "y", 4 * HOUR))
    chunk = desk.records(EvidenceChunk, "EC#")[0]
    (other,) = (entry for entry in json.loads(chunk.entries) if entry["partition"] == "z")
    (older,) = (entry for entry in json.loads(chunk.entries) if entry["partition"] == "x")
    newer = {**older, "weight": 100, "version": "newer"}
    desk.lay(replace(chunk, entries=json.dumps([other, newer, {**older, "at": older["at"] - HOUR}])))
    if by == "its deadline":
        expire(desk)
    else:
        count(desk, came(4, 2, "w", 5 * HOUR))
    (job,) = jobs(desk)
    assert "newer" in [entry["version"] for entry in merged(entries(desk, job.id))]


ABOUT = "pq"
EVENTS = st.lists(
    st.tuples(st.sampled_from(ABOUT), st.sampled_from(["", "beside", "gone", "anew"]), st.integers(1, 5)), max_size=6
)
ALSO = st.lists(st.integers(0, 40), min_size=12, max_size=12, unique=True)


@settings(max_examples=examples(300), deadline=None)
@example([("p", "", 1), ("p", "gone", 1)], [("p", "", 2)], list(range(0, 36, 3)))
@given(EVENTS, EVENTS, ALSO)
def test_given_two_topic_partitions_then_what_holds_is_that_of_append_times(
    first: Sequence[tuple[str, str, int]], late: Sequence[tuple[str, str, int]], times: Sequence[int]
) -> None:
    """Each by itself in order, and one behind the other."""
    one, other = sorted(times[: len(first)]), sorted(times[6 : 6 + len(late)])
    log = [*map(_entry, one, first), *map(_entry, other, late)]
    in_order = sorted(log, key=lambda entry: int(entry["at"]))
    assert _held(log) == _held(in_order)
    assert _counts(log) == _counts(in_order) == sum(weight for *_, weight in _held(log))
    if not any(
        entry.get("gone") for entry in log
    ):  # What is taken back late takes the time along that another one had from it.
        assert _first_at(log) == _first_at(in_order)


def _entry(at: int, event: tuple[str, str, int]) -> Entry:
    about, kind, weight = event
    key = f"{about} at {at}" if kind == "beside" else about
    entry: Entry = {"leaf": 0, "key": key, "at": at, "partition": about, "weight": weight, "kind": "data_partition"}
    return {**entry, kind: True} if kind in {"gone", "anew"} else entry


def _held(log: Sequence[Entry]) -> list[tuple[Any, ...]]:
    return sorted((entry["partition"], entry["key"], entry["at"], entry["weight"]) for entry in merged(log))


def _counts(log: Sequence[Entry]) -> int:
    (found,) = _latches(log).counts
    return found


def _first_at(log: Sequence[Entry]) -> int | None:
    return _latches(log).first_at


def _latches(log: Sequence[Entry]) -> Latches:
    return replayed(Latches(lambda _: False, Terms(ttls=(None,))), log)

"""A source that is updated while a record is handed out page by page: who has not heard of the record hears what it says now.

Found by reading: pages bear the source's name, so that whoever went on after a crash took the new mapping's event for begun.
"""

from __future__ import annotations

import json

import pytest

from tests.support.builders import SECOND, Doc, a_spec, an_apply, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.source_bench import TOPIC, a_source, a_source_apply, ask, counted, produce
from tidegate_core.ingest import event_ingest
from tidegate_core.rows.effects import Commit, Effect, StartReading
from tidegate_core.rows.store_operations import Key, Put

PAGE = 2
"""Rows of a move, its dedupe row included beside the first."""
OLD = [f"old-{number}" for number in range(9)]
NEW = [f"new-{number}" for number in range(5)]
BY_HEADER: Doc = {"id": {"header": "commit"}}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_ingest, "ROWS_PER_MOVE", PAGE + 2)


def is_page(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "cursor"


def reads(effect: Effect) -> bool:
    return isinstance(effect, StartReading) and effect.topic == TOPIC


def a_world(dataset: str, before: Doc) -> ActorHarness:
    """`OLD` listen to what the source maps to, `NEW` to another dataset."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=None))
    bench.create_topic(TOPIC)
    bench.run(SECOND)
    ask(bench, a_source_apply(a_source(event=before)))
    listeners = dict.fromkeys(OLD, "raw") | dict.fromkeys(NEW, dataset)
    for name, heard in listeners.items():
        bench.request(an_apply(a_spec(name, on_data(heard, count=99)), name))
    bench.run(5 * SECOND)
    return bench


def fallen_amid_a_record(bench: ActorHarness, pages: int, headers: dict[str, bytes]) -> None:
    """A record is handed out for some pages, then its reader falls; the next one does not come to it yet."""
    moves = iter(range(1, 99))
    bench.crash_at(lambda effect: is_page(effect) and next(moves) == pages)
    bench.answer_with(reads, None, 99)
    produce(bench, "d1", headers=headers)
    bench.run(5 * SECOND)


def updated(bench: ActorHarness, dataset: str, after: Doc) -> None:
    """The source maps to another dataset, and somebody reads on."""
    # Something else of it changes as well, or the same mapping would be no update.
    event: Doc = {"dataset": dataset, "version": {"header": "commit"}, **after}
    assert ask(bench, a_source_apply(a_source(event=event), "update"))["status"] == "accepted"
    bench.end_scripts()
    bench.crash()
    bench.run(10 * SECOND)


def updated_amid_a_record(
    dataset: str, before: Doc, after: Doc, pages: int = 1, commit: bytes = b"c-1"
) -> ActorHarness:
    bench = a_world(dataset, before)
    fallen_amid_a_record(bench, pages, {"commit": commit})
    updated(bench, dataset, after)
    return bench


def heard_by(bench: ActorHarness, names: list[str]) -> list[int]:
    return [counted(bench, name) for name in names]


@pytest.mark.parametrize("pages", [1, 2, 3])
@pytest.mark.parametrize("dataset", ["a", "z"])
@pytest.mark.parametrize("mapped", [{}, BY_HEADER], ids=["id of the record", "id in it"])
def test_given_another_dataset_then_all_that_listen_to_it_hear_the_record(
    mapped: Doc, dataset: str, pages: int
) -> None:
    bench = updated_amid_a_record(dataset, mapped, mapped, pages)
    assert heard_by(bench, NEW) == [1] * len(NEW)
    assert max(heard_by(bench, OLD)) == 1
    assert 0 < sum(heard_by(bench, OLD)) < len(OLD)


@pytest.mark.parametrize("pages", [1, 2, 3])
@pytest.mark.parametrize("before", [{}, BY_HEADER], ids=["id of the record", "id in it"])
@pytest.mark.parametrize("after", [{}, BY_HEADER], ids=["then of the record", "then in it"])
def test_given_the_same_dataset_then_each_hears_the_record_once(before: Doc, after: Doc, pages: int) -> None:
    bench = updated_amid_a_record("raw", before, after, pages)
    assert heard_by(bench, [*OLD, *NEW]) == [1] * len([*OLD, *NEW])


def test_given_another_id_then_it_is_noted_and_a_repeat_of_it_counts_for_nobody() -> None:
    bench = updated_amid_a_record("a", {}, BY_HEADER)
    produce(bench, "d1 again", headers={"commit": b"c-1"})
    assert heard_by(bench, NEW) == [1] * len(NEW)


def test_given_another_id_that_was_counted_before_then_nobody_hears_of_it_again() -> None:
    bench = a_world("a", {"id": {"header": "former"}})
    produce(bench, "d0", headers={"former": b"c-1"})
    assert heard_by(bench, OLD) == [1] * len(OLD)
    fallen_amid_a_record(bench, 1, {"former": b"c-2", "commit": b"c-1"})
    updated(bench, "a", BY_HEADER)
    assert heard_by(bench, NEW) == [0] * len(NEW)


def pages_of_before(bench: ActorHarness) -> None:
    """Takes the id of its event out of the page of the position, as nodes wrote it that knew of none."""
    (row,) = (row for row in bench.rows("TP") if " " in str(row["page"]))
    key = Key(str(row["pk"]), str(row["sk"]))
    bench.store.write([Put(key, {**row, "page": str(row["page"]).partition(" ")[0]})])


@pytest.mark.parametrize("pages", [1, 2, 3])
@pytest.mark.parametrize("dataset", ["a", "raw", "z"])
def test_given_a_page_of_before_then_it_says_how_far_the_record_was_handed_out(dataset: str, pages: int) -> None:
    """While nodes are replaced both kinds are there."""
    bench = a_world(dataset, BY_HEADER)
    fallen_amid_a_record(bench, pages, {"commit": b"c-1"})
    pages_of_before(bench)
    updated(bench, dataset, BY_HEADER)
    assert heard_by(bench, NEW) == [1] * len(NEW)
    assert max(heard_by(bench, OLD)) == 1
    assert all(heard_by(bench, OLD)) == (dataset == "raw")


def dedupe_unknown(bench: ActorHarness) -> list[bool]:
    entries = [entry for row in bench.rows("EC#") for entry in json.loads(str(row["entries"]))]
    return [entry.get("dedupe_unknown", False) for entry in entries]


@pytest.mark.parametrize("read_later", [False, True], ids=["times of the broker", "times of the reading"])
def test_given_a_fall_amid_a_record_then_its_id_is_not_taken_for_an_earlier_use_of_it(read_later: bool) -> None:
    """Found in review: records that their producers date are as old as their reading, another one behind the fall."""
    bench = a_world("raw", {})
    fallen_amid_a_record(bench, 1, {})
    if read_later:
        log = bench.log(TOPIC, 0)
        log[:] = [record._replace(append_time=bench.now) for record in log]
    bench.end_scripts()
    bench.crash()
    bench.run(10 * SECOND)
    assert heard_by(bench, [*OLD, *NEW]) == [1] * len([*OLD, *NEW])
    assert dedupe_unknown(bench) == [False] * len([*OLD, *NEW])

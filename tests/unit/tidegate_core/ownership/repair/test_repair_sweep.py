"""A schedule that has lost what it hears, or sends, by does so again: the owner of its shard finds it, writes it anew and tells."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    DEFAULT_SHARDS,
    HOUR,
    MINUTE,
    SECOND,
    a_recurring,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.decision_harness import rows_of
from tidegate_core.ownership.repair.repair_sweep import CHECK_MS
from tidegate_core.rows.effects import Read, ReadRange
from tidegate_core.rows.store_operations import Delete, Item, Key

FOUND_WITHIN_MS = CHECK_MS + CHECK_MS // 5 + SECOND


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def index_rows(bench: ActorHarness) -> list[Item]:
    return [item for item in bench.store.items() if str(item["pk"]).startswith("IX#") and item["sk"] != "!VERSION"]


def remove(bench: ActorHarness, *rows: Item) -> None:
    """Takes rows out of the store, behind the back of whoever remembers them."""
    bench.store.write([Delete(Key(str(row["pk"]), str(row["sk"]))) for row in rows])


def fires(bench: ActorHarness) -> int:
    bench.run(SECOND)
    return len([row for row in bench.store.items("history") if str(row["sk"]).startswith("L#")])


# -- what hears ---------------------------------------------------------------------------------------------------------------


def test_given_an_index_row_that_is_gone_then_the_schedule_hears_again_and_it_is_told(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    remove(bench, *index_rows(bench))
    bench.crash()  # Who remembers the index hears on; nobody else does.
    bench.run(MINUTE)
    bench.event(an_event("lost"))
    assert fires(bench) == 0
    bench.run(FOUND_WITHIN_MS)
    bench.event(an_event("heard"))

    assert fires(bench) == 1
    (told,) = bench.notices("index_row_missing")
    assert (told.fields["schedule"], told.fields["leaf"]) == ("flights/nightly", 0)


def test_given_one_leaf_of_several_that_is_gone_then_it_has_the_vector_of_those_beside_it(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=all_of(on_data("raw"), on_data("weather"), on_run_of("other")))))
    bench.run(SECOND)
    before = index_rows(bench)
    (gone,) = [row for row in before if row["leaf"] == 1]
    remove(bench, gone)
    bench.run(FOUND_WITHIN_MS)

    assert index_rows(bench) == before
    assert [told.fields["leaf"] for told in bench.notices("index_row_missing")] == [1]


def test_given_a_vector_that_is_gone_then_its_rows_are_written_anew_without_one(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    remove(bench, *(item for item in bench.store.items() if str(item["pk"]).startswith("VEC#")))
    bench.crash()
    bench.run(FOUND_WITHIN_MS)
    bench.event(an_event("heard"))

    assert fires(bench) == 1
    assert len(bench.notices("index_row_missing")) == 1
    bench.run(FOUND_WITHIN_MS)
    assert len(bench.notices("index_row_missing")) == 1


@pytest.mark.parametrize("mode", ["hold", "drop"])
def test_given_a_suspended_schedule_then_its_rows_are_missed_where_events_count_all_the_same(
    bench: ActorHarness, mode: str
) -> None:
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    bench.request(a_request("suspend", mode=mode))
    bench.run(SECOND)
    remove(bench, *index_rows(bench))
    bench.run(FOUND_WITHIN_MS)

    assert len(index_rows(bench)) == len(bench.notices("index_row_missing")) == (1 if mode == "hold" else 0)


# -- what sends ---------------------------------------------------------------------------------------------------------------


def records(bench: ActorHarness) -> list[Item]:
    return [*rows_of(bench.store, "C#"), *rows_of(bench.store, "CF#")]


def test_given_a_near_record_that_is_gone_then_its_owner_writes_the_same_one(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring(trigger=every("10s"))))
    bench.run(MINUTE)
    (before,) = records(bench)
    remove(bench, before)
    bench.run(FOUND_WITHIN_MS)

    (mended,) = records(bench)
    assert mended["intervals"] == before["intervals"]
    assert [told.fields["row"] for told in bench.notices("recurring_row_missing")] == ["C"]
    sent = len(bench.delivered())
    bench.crash()
    bench.run(5 * MINUTE)
    assert 30 <= len(bench.delivered()) - sent <= 31


def test_given_a_record_that_went_before_a_take_over_then_the_schedule_sends_what_comes_from_then_on(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_recurring(trigger=every("1m"))))
    bench.run(SECOND)
    remove(bench, *records(bench))
    bench.crash()
    bench.run(5 * MINUTE)
    assert bench.delivered() == []
    bench.run(FOUND_WITHIN_MS)
    sent = len(bench.delivered())
    bench.run(10 * MINUTE)

    assert len(bench.notices("recurring_row_missing")) == 1
    assert len(bench.delivered()) - sent == 10


@pytest.mark.parametrize("again", [False, True], ids=["the same owner", "the next one"])
def test_given_a_far_record_whose_summons_is_gone_then_it_comes_near_all_the_same(
    bench: ActorHarness, again: bool
) -> None:
    bench.request(an_apply(a_recurring(trigger=every("2h"))))
    bench.run(5 * MINUTE)
    (summons,) = [row for row in rows_of(bench.store, "D#") if str(row["sk"]).endswith("#+")]
    remove(bench, summons)
    if again:
        bench.crash()
    bench.run(FOUND_WITHIN_MS)
    (mended,) = [row for row in rows_of(bench.store, "D#") if str(row["sk"]).endswith("#+")]
    assert mended["sk"] == summons["sk"]
    assert [told.fields["row"] for told in bench.notices("recurring_row_missing")] == ["D"]
    bench.run(2 * HOUR)
    assert len(bench.delivered()) == 1


def test_given_a_far_record_that_is_gone_then_it_is_opened_anew(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring(trigger=every("2h"))))
    bench.run(5 * MINUTE)
    remove(bench, *records(bench))
    bench.crash()
    bench.run(2 * HOUR + MINUTE)

    assert len(bench.notices("recurring_row_missing")) == 1
    assert len(bench.delivered()) == 1


# -- what cannot be mended, and what it costs -----------------------------------------------------------------------------------


def test_given_a_definition_that_is_gone_then_it_is_told(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    remove(bench, *rows_of(bench.store, "DEF#"))
    bench.run(FOUND_WITHIN_MS)

    (told,) = bench.notices("definition_missing")
    assert (told.fields["schedule"], told.fields["version"]) == ("flights/nightly", 1)


def test_given_schedules_that_have_all_that_they_need_then_nothing_is_mended_and_it_costs_little(
    bench: ActorHarness,
) -> None:
    """One read of the page, one for each event key, one for each vector, one of the records; the definitions once."""
    bench.request(an_apply(a_spec("hears", trigger=on_data())))
    bench.request(an_apply(a_recurring("sends", trigger=every("2h"))))
    bench.request(an_apply(a_spec("once", trigger={"type": "at", "instant": "2025-11-13T02:14:00Z"})))
    bench.event(an_event("one"))
    bench.run(2 * FOUND_WITHIN_MS)
    bench.asked.clear()
    bench.run(3 * CHECK_MS)

    for told in ("index_row_missing", "recurring_row_missing", "definition_missing"):
        assert bench.notices(told) == []
    looks = [each for each in bench.asked if isinstance(each, ReadRange) and each.range.limit == 25]
    of_the_index = [each for each in bench.asked if isinstance(each, ReadRange) and each.range.pk.startswith("IX#")]
    of_records = [
        each for each in bench.asked if isinstance(each, Read) and any(key.sk.startswith("CF#") for key in each.keys)
    ]
    definitions = [
        each for each in bench.asked if isinstance(each, Read) and any(key.sk.startswith("DEF#") for key in each.keys)
    ]
    assert 2 * DEFAULT_SHARDS <= len(looks) <= 3 * DEFAULT_SHARDS
    assert len(of_the_index) <= 3
    assert len(of_records) <= 3
    assert definitions == []

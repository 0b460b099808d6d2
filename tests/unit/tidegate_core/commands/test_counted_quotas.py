"""Quotas that are counted: schedules of a namespace, exactly, and those that hear one event, as far as one look goes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import (
    REQUESTS,
    SECOND,
    Doc,
    a_recurring,
    a_request,
    a_spec,
    all_of,
    an_apply,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.commands.apply_checks import COUNTED_FOR_MS, COUNTS_MAX
from tidegate_core.language.definitions.quotas import Quota
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, Effect
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.schedule import ScheduleCount
from tidegate_core.rows.store_operations import Delete, Put

COUNT = keys.schedule_count("flights")
HOURLY = every("1h")


def bench_with(quota: Quota, beside: ActorHarness | None = None, **holding: Any) -> ActorHarness:
    bench = ActorHarness(beside=beside, owner=None if beside is None else "other", quotas={"flights": quota}, **holding)
    bench.run(SECOND)
    return bench


def said(bench: ActorHarness, document: Doc, run: int = SECOND) -> Doc:
    bench.request(document)
    bench.run(run)
    return bench.receipts()[str(document["id"])]


def status(bench: ActorHarness, document: Doc) -> str:
    return str(said(bench, document)["status"])


def made(name: str, again: str = "", **more: Any) -> Doc:
    return an_apply(a_spec(name, HOURLY, **more), f"apply-{name}{again}")


def counted(bench: ActorHarness) -> int:
    return from_item(ScheduleCount, bench.store.get([COUNT])[COUNT]).schedules


def a_count(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "count_schedules"


def in_a_shard_apart(bench: ActorHarness, others: list[str]) -> str:
    """Returns a schedule's name whose shard is not that of any of these."""
    shards = bench.holding.shards
    taken = {schedule_shard("flights", name, shards) for name in others}
    return next(name for number in range(99) if schedule_shard("flights", name := f"x{number}", shards) not in taken)


def test_given_as_many_schedules_as_the_quota_then_another_is_rejected_until_one_is_deleted() -> None:
    bench = bench_with(Quota(schedules_max=2))
    assert status(bench, made("a")) == "accepted"
    assert status(bench, made("b", suspended=True)) == "accepted"

    refused = said(bench, made("c"))

    assert (refused["status"], refused["errors"][0]["field"]) == ("rejected", "namespace")
    assert "flights has 2 schedules, 2 are its quota" in refused["errors"][0]["problem"]
    assert "TIDEGATE_QUOTAS (flights)" in refused["errors"][0]["hint"]
    assert status(bench, made("a", "-changed", labels={"team": "x"})) == "accepted", "it is there already"
    assert status(bench, a_request("delete", "a")) == "accepted"
    assert status(bench, a_request("delete", "a", "again")) == "not_found"
    assert status(bench, made("c", "-again")) == "accepted"
    assert counted(bench) == 2


def test_given_a_schedule_that_sends_messages_then_it_counts_like_any_other() -> None:
    bench = bench_with(Quota(schedules_max=1))
    ping = a_recurring() | {"namespace": "flights"}
    assert status(bench, an_apply(ping, "ping")) == "accepted"
    assert status(bench, made("a")) == "rejected"
    assert status(bench, a_request("delete", "ping")) == "accepted"
    assert status(bench, made("a", "-again")) == "accepted"


def test_given_schedules_of_before_the_quota_then_the_first_create_counts_them_in_all_shards() -> None:
    before = ActorHarness()
    before.run(SECOND)
    names = [f"s{number}" for number in range(6)]
    assert len({schedule_shard("flights", name, before.holding.shards) for name in names}) > 1
    for name in names:
        assert status(before, made(name)) == "accepted"
    assert status(before, a_request("delete", "s0")) == "accepted"
    assert status(before, an_apply(a_spec("x", HOURLY) | {"namespace": "orders"}, "x")) == "accepted"
    assert COUNT not in before.store.get([COUNT])

    strict = bench_with(Quota(schedules_max=6), before)

    assert status(strict, made("sixth")) == "accepted"
    assert status(strict, made("seventh")) == "rejected"
    assert status(strict, an_apply(a_spec("y", HOURLY) | {"namespace": "orders"}, "y")) == "accepted"


def test_given_shards_that_create_at_the_same_moment_then_no_more_come_than_the_quota_allows() -> None:
    """Each shard decides for itself: who has read a count that another one has moved is refused, reads again, and rejects."""
    bench = bench_with(Quota(schedules_max=3))
    bench.store_answers_after = 20
    names = [f"s{number}" for number in range(8)]
    assert len({schedule_shard("flights", name, bench.holding.shards) for name in names}) > 1
    bench.append(REQUESTS, 0, *(made(name) for name in names))
    bench.run(30 * SECOND)

    answers = [bench.receipts()[f"apply-{name}"]["status"] for name in names]
    assert sorted(answers) == ["accepted"] * 3 + ["rejected"] * 5
    assert counted(bench) == 3
    assert "control" in {notice.fields["name"] for notice in bench.notices("transaction_refused")}, "they have met"


@pytest.mark.parametrize("crash_after", range(1, 40))
def test_given_an_owner_that_falls_at_any_moment_then_the_count_is_that_of_the_schedules(crash_after: int) -> None:
    bench = bench_with(Quota(schedules_max=2))
    bench.crash_after = crash_after
    for document in (made("a"), made("b"), made("c"), a_request("delete", "a"), made("d")):
        bench.request(document)
    bench.run(30 * SECOND)

    answers = {name: receipt["status"] for name, receipt in bench.receipts().items()}
    there = {"a", "b", "c", "d"} & {name.removeprefix("apply-") for name in answers if answers[name] == "accepted"}
    assert len(there - {"a"}) == 2
    assert answers["delete-a"] == "accepted"
    assert counted(bench) == 2


@pytest.mark.parametrize(("age", "wanted"), [(COUNTED_FOR_MS - 2 * SECOND, "rejected"), (COUNTED_FOR_MS, "accepted")])
def test_given_a_count_that_is_too_high_then_it_is_made_anew_before_it_refuses_but_not_all_the_time(
    age: int, wanted: str
) -> None:
    """So it becomes when a node without the quota deletes a schedule."""
    bench = bench_with(Quota(schedules_max=2))
    assert status(bench, made("a")) == "accepted"
    wrong = ScheduleCount(namespace="flights", schedules=9, counted_at=bench.now - age)
    bench.store.write([Put(COUNT, {**to_item(wrong, COUNT), "rev": 7, "w": "hand"})])

    assert status(bench, made("b")) == wanted
    assert counted(bench) == (2 if wanted == "accepted" else 9)


def test_given_a_count_that_was_removed_then_deletes_go_on_and_the_next_create_counts() -> None:
    bench = bench_with(Quota(schedules_max=2))
    assert [status(bench, made("a")), status(bench, made("b"))] == ["accepted"] * 2
    bench.store.write([Delete(COUNT)])
    assert status(bench, a_request("delete", "b")) == "accepted"
    assert [status(bench, made("c")), status(bench, made("d"))] == ["accepted", "rejected"]


def test_given_as_many_that_hear_an_event_as_the_quota_then_another_is_rejected() -> None:
    bench = bench_with(Quota(fan_out_max=2))
    for name in ("a", "b"):
        assert status(bench, an_apply(a_spec(name, on_data("raw")))) == "accepted"

    refused = said(bench, an_apply(a_spec("c", all_of(on_data("clean"), on_data("raw")))))

    assert (refused["status"], refused["errors"][0]["field"]) == ("rejected", "trigger")
    assert "2 schedules of namespace flights subscribe to data/flights/raw" in refused["errors"][0]["problem"]
    assert status(bench, an_apply(a_spec("d", on_data("clean")))) == "accepted"
    assert status(bench, an_apply(a_spec("a", on_data("raw", count=3)), "a-changed")) == "accepted", "one of the two"
    assert status(bench, a_request("delete", "b")) == "accepted"
    assert status(bench, an_apply(a_spec("c", on_data("raw")), "c-again")) == "accepted"


def test_given_a_delete_amid_the_first_count_then_it_is_counted_again() -> None:
    """Found in review: the count had one too many, and for ten minutes nothing could be created in the place of what was deleted."""
    before = ActorHarness()
    before.run(SECOND)
    for number in range(4):
        assert status(before, made(f"s{number}")) == "accepted"
    bench = bench_with(Quota(schedules_max=4), beside=before)
    other = in_a_shard_apart(bench, ["s0"])
    bench.hold_back(a_count)
    bench.request(made(other))
    bench.run(50)
    assert bench.holds_something
    assert status(bench, a_request("delete", "s0")) == "accepted"
    bench.release()
    bench.run(SECOND)
    assert bench.receipts()[f"apply-{other}"]["status"] == "accepted"
    assert counted(bench) == 4
    assert status(bench, made("one-more")) == "rejected"


def test_given_deletes_amid_each_first_count_then_who_creates_is_told_to_try_again() -> None:
    """Found in review: it was told that the namespace is full, by a number that nobody had counted."""
    before = ActorHarness()
    before.run(SECOND)
    gone = [f"s{number}" for number in range(COUNTS_MAX)]
    for name in gone:
        assert status(before, made(name)) == "accepted"
    bench = bench_with(Quota(schedules_max=2), beside=before)
    new = in_a_shard_apart(bench, gone)
    bench.hold_back(a_count, times=COUNTS_MAX)
    bench.request(made(new))
    for name in gone:
        bench.run(SECOND)
        assert bench.holds_something
        assert status(bench, a_request("delete", name)) == "accepted"
        bench.release()
    bench.run(SECOND)
    (problem,) = bench.receipts()[f"apply-{new}"]["errors"]
    assert problem["problem"] == "is being counted"
    assert status(bench, made(new, "-again")) == "accepted"
    assert counted(bench) == 1


def test_given_deletes_before_anybody_has_counted_then_a_create_counts() -> None:
    before = ActorHarness()
    before.run(SECOND)
    for number in range(5):
        assert status(before, made(f"s{number}")) == "accepted"
    bench = bench_with(Quota(schedules_max=4), beside=before)
    assert [status(bench, a_request("delete", f"s{number}")) for number in range(2)] == ["accepted", "accepted"]
    assert status(bench, made("a")) == "accepted"
    assert counted(bench) == 4
    assert status(bench, made("b")) == "rejected"

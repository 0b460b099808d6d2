"""Limits in use over REST: who holds, who waits, since when, what is stuck, and when the next change comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.builders import a_job, a_run
from tests.unit.tidegate_api.conftest import NOW, Process
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.shared_limit import QueueEntry, count_name
from tidegate_core.rows.store_operations import Delete, Item, Key, Put
from tidegate_core.writes.limit_permits import Permit, key_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

JOBS = keys.shared_limit("flights", "program", "/jobs/load.py")
WIDE = keys.shared_limit("flights", "group", "desk")
RATE = keys.shared_rate("other", "key", "x", 60_000, None)


def write(process: Process, *records: DataclassInstance, home: int = 0) -> None:
    for record in records:
        key: Key = record.key(home)  # type: ignore[attr-defined]  # every record of ours names its key
        process.store.write([Put(key, to_item(record, key))])


def write_item(process: Process, key: Key, **fields: Any) -> None:
    item: Item = {"pk": key.pk, "sk": key.sk, **fields}
    process.store.write([Put(key, item)])


def a_waiter(limit: Key, job_id: str, since: int, **more: Any) -> QueueEntry:
    return QueueEntry(limit=limit.pk, job_id=job_id, satisfied_at=since, order=since, most=2, asked_at=NOW, **more)


GONE = a_job(8, shard=1).id
LONG, SHORT, LOST = (a_run(number, shard=1, state="running") for number in (1, 2, 3))


@pytest.fixture
def used(process: Process) -> Process:
    """A program's limit with two holders and one that is not there; a group's with a permit of its own; a rate; a schedule's own."""
    inline, own = key_text(JOBS), Permit(WIDE, SHORT.id, inline=False).text()
    mine = OwnLimit(namespace=LONG.namespace, name=LONG.name, holders=(LONG.id,))
    long = a_run(1, shard=1, state="running", admitted_at=NOW - 90_000, limits=(inline, key_text(mine.key(1))))
    short = a_run(2, shard=1, state="running", admitted_at=NOW - 1_000, limits=(inline, own))
    write(process, long, short, mine, home=1)
    write_item(process, JOBS, in_use=3, holders=frozenset({LONG.id, SHORT.id, LOST.id}), offered=frozenset({GONE}))
    write_item(process, WIDE, in_use=1)
    write_item(process, keys.permit(WIDE, SHORT.id), run_id=SHORT.id)
    job = a_job(7, shard=1)
    write(process, job, home=1)
    waiters = (a_waiter(JOBS, job.id, NOW - 60_000, aside=True), a_waiter(JOBS, GONE, NOW - 30_000))
    write(process, *waiters, home=2)
    counts = {count_name(NOW - 5): 1, count_name(NOW + 5_000): 2, count_name(NOW + 9_000): 1}
    write_item(process, RATE, in_use=4, **counts)
    write(process, a_waiter(RATE, a_job(9, shard=1).id, NOW - 10), home=3)
    return process


def listed(process: Process, **query: str) -> dict[str, dict[str, Any]]:
    answer = process.http.get("/api/v1/limits", params=query)
    assert answer.status_code == 200, answer.text
    return {each["id"]: each for each in answer.json()["items"]}


def id_of(limit: Key) -> str:
    return limit.pk.removeprefix("LIMIT#").replace("#", "/")


def test_given_limits_in_use_then_each_says_who_waits_since_when_and_what_is_stuck(used: Process) -> None:
    found = listed(used)
    own = f"{LONG.namespace}/schedule/{LONG.name}"
    assert next(iter(found)) == id_of(JOBS), "what is stuck comes first"
    assert set(found) == {id_of(JOBS), id_of(WIDE), id_of(RATE), own}
    jobs = found[id_of(JOBS)]
    assert (jobs["scope"], jobs["kind"], jobs["in_use"], jobs["most"], jobs["waiting"]) == (
        "program",
        "concurrency",
        3,
        2,
        2,
    )
    assert (jobs["held_since"], jobs["waiting_since"]) == (format_instant(NOW - 90_000), format_instant(NOW - 60_000))
    assert (jobs["stuck"], jobs["schedules"], jobs["next_change"]) == ([LOST.id], [LONG.ref], None)
    rate = found[id_of(RATE)]
    assert (rate["scope"], rate["kind"], rate["in_use"], rate["stuck"]) == ("key", "rate", 3, [])
    assert rate["next_change"] == format_instant(NOW + 5_000), "what has expired counts no more"
    assert [found[each]["stuck"] for each in (own, id_of(WIDE))] == [[], []]
    assert listed(used, namespace="other").keys() == {id_of(RATE)}


def test_given_a_limit_then_its_holders_and_waiters_are_shown_in_their_order(used: Process) -> None:
    answer = used.http.get(f"/api/v1/limits/{id_of(JOBS)}")
    assert answer.status_code == 200, answer.text
    limit = answer.json()
    assert [(each["run"], each["stuck"]) for each in limit["holders"]] == [
        (LOST.id, True),
        (LONG.id, False),
        (SHORT.id, False),
    ]
    assert [(each["job"], each["offered"], each["aside"]) for each in limit["waiters"]] == [
        (a_job(7, shard=1).id, False, True),
        (GONE, True, False),
    ]
    assert [each["schedule"] for each in limit["waiters"]] == [LONG.ref, None]
    wide = used.http.get(f"/api/v1/limits/{id_of(WIDE)}").json()
    assert [each["run"] for each in wide["holders"]] == [SHORT.id]


def test_given_more_holders_and_waiters_than_are_asked_for_then_the_answer_says_how_many_are_left_out(
    used: Process,
) -> None:
    """The lists were cut at 100, and nothing said so."""
    limit = used.http.get(f"/api/v1/limits/{id_of(JOBS)}", params={"page_size": 1}).json()
    assert [each["run"] for each in limit["holders"]] == [LOST.id]
    assert [each["job"] for each in limit["waiters"]] == [a_job(7, shard=1).id]
    assert (limit["holders_left_out"], limit["waiters_left_out"], limit["waiting"]) == (2, 1, 2)
    whole = used.http.get(f"/api/v1/limits/{id_of(JOBS)}").json()
    assert (whole["holders_left_out"], whole["waiters_left_out"]) == (0, 0)


def test_given_a_rate_whose_runs_have_ended_then_the_schedules_of_those_who_wait_say_whose_it_is(used: Process) -> None:
    """Its name is a hash: without them the list named nobody."""
    job = a_job(9, shard=1)
    write(used, job, home=1)
    found = listed(used)
    assert found[id_of(RATE)]["schedules"] == [job.ref]
    assert found[id_of(JOBS)]["schedules"] == [LONG.ref], "of whom its holders are"
    shown = used.http.get(f"/api/v1/limits/{id_of(RATE)}").json()
    assert (shown["schedules"], shown["waiters"][0]["schedule"]) == ([job.ref], job.ref)


def test_given_a_limit_that_nobody_uses_or_no_limit_then_it_is_not_found_or_refused(used: Process) -> None:
    assert used.http.get("/api/v1/limits/flights/program/nothing").status_code == 404
    assert used.http.get("/api/v1/limits/flights/color/red").status_code in (400, 422)


def test_given_a_run_that_ends_while_it_is_looked_at_then_its_permit_is_not_stuck(
    used: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its permit goes back in the transaction that removes it: whoever has read the limit before looks at it again."""
    get, looked = used.store.get, [0]

    def ending(wanted: Any) -> Any:
        if keys.run(1, LOST.id) in wanted:
            looked[0] += 1
            write_item(used, JOBS, in_use=2, holders=frozenset({LONG.id, SHORT.id}))
        return get(wanted)

    monkeypatch.setattr(used.store, "get", ending)
    found = listed(used)
    assert looked == [1]
    assert (found[id_of(JOBS)]["stuck"], found[id_of(JOBS)]["in_use"]) == ([], 2)


def test_given_a_permit_that_was_freed_then_nothing_is_stuck(used: Process) -> None:
    used.store.write([Delete(JOBS)])
    assert listed(used)[id_of(JOBS)]["stuck"] == []

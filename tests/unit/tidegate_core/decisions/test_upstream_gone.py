"""A schedule that others wait for is deleted: OR goes on without it, AND ends, and the ledger says why (row CD-017)."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate_core.decisions.run_plane.outbox import ACTIVATION_SLACK_MS
from tidegate_core.effects import Commit, Effect
from tidegate_core.store.values import Key, Put
from tidegate_testkit.bench import Behaviour, Bench
from tidegate_testkit.builders import (
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)

UP = on_run_of("up")
EITHER: Doc = {"type": "any_of", "triggers": [UP, on_data("a", 2)]}


def a_bench(trigger: Doc, **more: Any) -> Bench:
    """One schedule `down`, and `up` that it waits for, which runs each minute."""
    bench = Bench()
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("1m"))))
    bench.request(an_apply(a_spec("down", trigger, **more)))
    bench.run(SECOND)
    return bench


def delete(bench: Bench, name: str = "up") -> None:
    bench.request(a_request("delete", name, f"delete-{name}-{len(bench.receipts())}"))
    bench.run(5 * SECOND)


def status(bench: Bench, name: str = "down") -> tuple[str, tuple[str, ...]]:
    (row,) = bench.rows(f"S#flights/{name}")
    gone: Any = row.get("gone") or ()
    return str(row["status"]), tuple(gone)


def of(bench: Bench, name: str = "down") -> list[str]:
    return [entry[0] for entry in bench.ledger() if entry[1] == name]


@pytest.mark.parametrize("trigger", [UP, all_of(UP, on_data("a"))], ids=["single", "and"])
def test_given_a_trigger_that_cannot_fire_without_it_then_the_schedule_is_deleted_as_well(trigger: Doc) -> None:
    """Row CD-017."""
    bench = a_bench(trigger)
    delete(bench)
    assert status(bench) == ("deleted", ())
    (row,) = bench.rows("S#flights/down")
    assert (row["actor"], row["reason"]) == ("tidegate", "flights/up, which it waited for, was deleted")
    (told,) = bench.notices("upstream_deleted")
    assert told.fields == {"schedule": "flights/down", "upstream": "flights/up", "ended": True}
    assert bench.rows("I#") == bench.rows("Z#") == []


def test_given_evidence_that_waits_for_it_then_the_ledger_says_why_it_waits_no_more() -> None:
    bench = a_bench(all_of(UP, on_data("a")))
    bench.event(an_event("d1", "a"))
    delete(bench)
    assert of(bench) == ["expired/upstream_deleted"]
    (entry,) = [row for row in bench.rows("L#") if row["name"] == "down"]
    assert entry["detail"] == "flights/up, which it waited for, was deleted"
    assert bench.rows("E#") == []


def test_given_a_job_that_waits_then_it_ends_with_its_schedule() -> None:
    bench = a_bench(UP, constraints=[{"type": "delay", "after": "1h"}])
    bench.run(MINUTE + 5 * SECOND)
    delete(bench)
    assert of(bench) == ["cancelled/upstream_deleted"]
    assert bench.rows("J#") == []


def test_given_a_run_past_the_gate_then_it_goes_on() -> None:
    bench = a_bench(UP)
    bench.behaves = lambda order: Behaviour(runs_for=5 * MINUTE if "down" in str(order.context) else SECOND)
    bench.run(MINUTE + 5 * SECOND)
    delete(bench)
    assert (status(bench)[0], of(bench)) == ("deleted", [])
    bench.run(6 * MINUTE)
    assert of(bench) == ["launched"]


def test_given_an_alternative_then_the_schedule_goes_on_with_what_it_has_counted() -> None:
    """Row CD-017: its status stays, and no event is lost."""
    bench = a_bench(EITHER)
    bench.event(an_event("d1", "a"))
    delete(bench)
    assert status(bench) == ("active", ("flights/up",))
    bench.event(an_event("d2", "a"))
    bench.run(2 * SECOND)
    assert of(bench) == ["launched"]
    assert len(bench.started[-1].context["manifest"]) == 2  # type: ignore[arg-type]  # a list


def test_given_a_later_life_of_it_then_the_pruned_trigger_does_without_it_until_it_is_applied_again() -> None:
    bench = a_bench(EITHER)
    delete(bench)
    bench.request(an_apply(a_spec("up", every("1m")), "again"))
    bench.run(2 * MINUTE)
    assert of(bench) == []
    bench.request(an_apply(a_spec("down", EITHER), "anew"))
    assert bench.status_of("anew") == "accepted"
    bench.run(2 * MINUTE)
    assert status(bench) == ("active", ())
    assert "launched" in of(bench)


def test_given_a_schedule_that_is_applied_later_then_it_waits_for_what_comes_under_that_name() -> None:
    bench = a_bench(EITHER)
    delete(bench)
    bench.request(an_apply(a_spec("later", UP)))
    bench.request(an_apply(a_spec("up", every("1m")), "again"))
    bench.run(2 * MINUTE)
    assert "launched" in of(bench, "later")


@pytest.mark.parametrize("slack_ms", [ACTIVATION_SLACK_MS - 5 * SECOND, ACTIVATION_SLACK_MS + MINUTE])
def test_given_a_row_of_a_former_owner_then_the_state_says_whether_it_was_activated_before_the_delete(
    slack_ms: int,
) -> None:
    """Seed 20500047: what the index says of the instant is what whoever wrote the row last took for it."""
    bench = a_bench(UP)
    (item,) = bench.rows("S#flights/down")
    bench.new_actor()
    bench.store.write([Put(Key(str(item["pk"]), str(item["sk"])), {**item, "activated_at": bench.now + slack_ms})])
    delete(bench)
    assert status(bench)[0] == ("active" if slack_ms > ACTIVATION_SLACK_MS else "deleted")
    assert bench.rows("I#") == bench.rows("Z#") == []


def test_given_the_end_of_a_run_before_the_delete_then_it_counts_before_that() -> None:
    """The end is handed on late: what tells of the delete waits for it."""
    bench = a_bench(EITHER)
    bench.hold_back(a_page_of_listeners)
    bench.run(MINUTE + 5 * SECOND)
    assert of(bench, "up") == ["launched"]
    delete(bench)
    assert status(bench) == ("active", ())
    bench.release()
    bench.run(5 * SECOND)
    assert of(bench) == ["launched"]
    assert status(bench) == ("active", ("flights/up",))


def a_page_of_listeners(effect: Effect) -> bool:
    return isinstance(effect, Commit) and any(
        action.key.sk.startswith("I#flights/down#X") for action in effect.transaction.actions
    )


def test_given_a_chain_then_each_that_cannot_fire_any_more_ends() -> None:
    bench = a_bench(UP)
    bench.request(an_apply(a_spec("last", all_of(on_run_of("down"), on_data("a")))))
    bench.run(SECOND)
    delete(bench)
    assert status(bench, "last")[0] == "deleted"


def test_given_a_suspended_schedule_then_it_does_not_hear_of_it() -> None:
    bench = a_bench(UP)
    bench.request(a_request("suspend", "down"))
    delete(bench)
    assert status(bench) == ("suspended", ())


def test_given_a_held_schedule_then_its_trigger_goes_on_and_is_pruned() -> None:
    bench = a_bench(EITHER)
    bench.request(a_request("suspend", "down", mode="hold"))
    delete(bench)
    assert status(bench) == ("suspended", ("flights/up",))
    bench.request(a_request("resume", "down"))
    assert status(bench) == ("active", ("flights/up",))


def test_given_more_than_a_page_of_evidence_then_all_of_it_ends() -> None:
    bench = a_bench(all_of(UP, on_data("a"), correlate="data_partition"))
    for number in range(15):
        bench.event(an_event(f"d{number}", "a"))
    delete(bench)
    assert of(bench) == ["expired/upstream_deleted"] * 15
    assert bench.rows("E#") == []

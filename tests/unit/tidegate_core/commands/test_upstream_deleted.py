"""A schedule that others wait for is deleted: OR goes on without it, AND ends, and the ledger says why (row CD-017)."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from tests.support.builders import (
    EVENTS,
    MINUTE,
    RUNS,
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
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.engine.actor_inputs import LogRecord, Woken
from tidegate_core.rows.effects import Commit, Effect, LaunchOrder, ProgramEnded, Write
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Delete, Key, Put
from tidegate_core.shard.events.outbox import ACTIVATION_SLACK_MS

UP = on_run_of("up")
EITHER: Doc = {"type": "any_of", "triggers": [UP, on_data("a", 2)]}


def a_bench(trigger: Doc, **more: Any) -> ActorHarness:
    """One schedule `down`, and `up` that it waits for, which runs each minute."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("1m"))))
    bench.request(an_apply(a_spec("down", trigger, **more)))
    bench.run(SECOND)
    return bench


def delete(bench: ActorHarness, name: str = "up") -> None:
    bench.request(a_request("delete", name, f"delete-{name}-{len(bench.receipts())}"))
    bench.run(5 * SECOND)


def status(bench: ActorHarness, name: str = "down") -> tuple[str, tuple[str, ...]]:
    (row,) = bench.rows(f"S#flights/{name}")
    gone: Any = row.get("gone") or ()
    return str(row["status"]), tuple(gone)


def of(bench: ActorHarness, name: str = "down") -> list[str]:
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


@pytest.mark.parametrize(
    "body",
    [
        json.dumps([{"fact": json.dumps({"vanished": "up"}), "incarnation": "1", "generation": 1}]),
        '[{"another": 1}]',
        "{}",
        "[]",
        "[null]",
    ],
)
def test_given_a_row_that_a_newer_release_wrote_then_it_stays_for_who_can_read_it_and_all_else_goes_on(
    body: str,
) -> None:
    """Behind a roll-back: an unreadable fact ended the whole topic partition, again at each recovery."""
    bench = a_bench(UP)
    row = InboxRow(namespace="flights", name="down", kind="G", origin="newer", body=body)
    bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1})])
    bench.give(Woken(0))
    bench.crash()
    bench.run(2 * MINUTE)
    assert {each.fields["name"] for each in bench.notices("decision_failed")} == {"upstream_gone"}
    assert [each["origin"] for each in bench.rows("I#")] == ["newer"]
    assert status(bench) == ("active", ())
    assert of(bench, "up")


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


class Unheard(ActorHarness):
    """What a program reports is told to its shard late, or never: its poke is under way, or lost, and it ends long after its report.

    Attributes:
        pokes_after: Milliseconds; None: never.
    """

    pokes_after: int | None = None

    def _poke(self, order: LaunchOrder) -> None:
        if self.pokes_after is not None:
            self._later(self.pokes_after, lambda: super(Unheard, self)._poke(order))

    def _end(self, process: Any, gone: ProgramEnded) -> None:
        self._later(MINUTE, lambda: super(Unheard, self)._end(process, gone))


def an_unheard_report(
    trigger: Doc, reported: str, pokes_after: int | None = None, outcome: str = "succeeded", **more: Any
) -> Unheard:
    """`up` has a run that has just reported something, which its shard does not know of."""
    bench = Unheard()
    bench.pokes_after = pokes_after
    bench.behaves = lambda order: Behaviour(runs_for=2 * SECOND, outcome=outcome)
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("1m"), **more)))
    bench.request(an_apply(a_spec("down", trigger)))
    while not any(row.get(reported) for row in bench.rows("R#")):
        bench.run((bench.next_moment() or bench.now) - bench.now)
    bench.run(100)
    assert of(bench, "up") == []
    return bench


def has_run(bench: ActorHarness, name: str = "down") -> bool:
    return name in {*(row["name"] for row in bench.rows("R#")), *(entry[1] for entry in bench.ledger())}


@pytest.mark.parametrize("trigger", [UP, EITHER], ids=["single", "either"])
@pytest.mark.parametrize("pokes_after", [200, None], ids=["late", "lost"])
def test_given_an_end_that_is_reported_and_not_told_then_it_counts_before_the_delete(
    trigger: Doc, pokes_after: int | None
) -> None:
    bench = an_unheard_report(trigger, "ended_at", pokes_after)
    bench.request(a_request("delete", "up", "gone"))
    assert bench.receipts()["gone"]["running"] == []
    bench.run(5 * SECOND)
    assert of(bench, "up") == ["launched"]
    assert has_run(bench)
    assert status(bench) == (("deleted", ()) if trigger is UP else ("active", ("flights/up",)))


def test_given_a_failure_that_is_not_told_and_tries_left_then_it_is_final_and_counts_before_the_delete() -> None:
    bench = an_unheard_report(on_run_of("up", "failed"), "ended_at", outcome="failed", retry={"tries": 3})
    bench.request(a_request("delete", "up", "gone"))
    assert bench.receipts()["gone"]["running"] == []
    bench.run(5 * SECOND)
    assert has_run(bench)


def test_given_a_start_that_is_not_told_then_it_counts_before_the_delete() -> None:
    bench = an_unheard_report(on_run_of("up", "started"), "started_at")
    bench.request(a_request("delete", "up", "gone"))
    assert len(bench.receipts()["gone"]["running"]) == 1
    bench.run(5 * SECOND)
    assert has_run(bench)
    told = [each.document["state"] for each in bench.on(RUNS) if each.document["schedule"] == "up"]
    assert told.count("running") == 1  # Outsiders hear of it as well.


def test_given_an_end_that_is_reported_while_the_delete_is_applied_then_it_is_listed_as_running_or_counts() -> None:
    seen: list[tuple[bool, bool]] = []
    for ends_in_ms in range(0, 400, 10):
        bench = an_unheard_report(UP, "started_at")
        bench.run(2 * SECOND - 100 - ends_in_ms)
        bench.store_answers_after = 20
        bench.request(a_request("delete", "up", "gone"))
        bench.run(MINUTE)
        seen.append((bench.receipts()["gone"]["running"] == [], has_run(bench)))
    assert all(counts for is_over, counts in seen if is_over)
    assert {(True, True), (False, False)} <= set(seen)


def test_given_a_crash_anywhere_then_an_end_that_is_not_told_counts_before_the_delete() -> None:
    for effect in count(1):
        bench = an_unheard_report(UP, "ended_at")
        bench.crash_after = bench.effects_outside + effect
        bench.request(a_request("delete", "up", "gone"))
        bench.run(5 * SECOND)
        assert has_run(bench), effect
        assert (status(bench)[0], of(bench, "up")) == ("deleted", ["launched"]), effect
        if bench.lives == 1:
            return


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


def test_given_a_record_whose_removal_comes_late_then_a_delete_is_told_all_the_same() -> None:
    """Found in review: the successor waited for that record, which was gone, before it told of the delete."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=5, runs_for=10))
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("10h"))))
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "outbox_done")
    bench.request(a_request("trigger", "up"))
    bench.run(100)
    bench.request(an_apply(a_spec("down", UP)))  # Nobody listened when the run ended.
    bench.run(100)
    (row,) = bench.rows("Z#")
    bench.end_scripts()
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "distribute")
    bench.crash()
    bench.run(10)
    assert bench.holds_something
    bench.store.write([Delete(Key(str(row["pk"]), str(row["sk"])))])
    bench.release()
    bench.run(SECOND)
    delete(bench)
    assert status(bench)[0] == "deleted"
    assert bench.rows("Z#") == []


@pytest.mark.parametrize("unread", [False, True])
def test_given_an_end_that_waits_for_what_may_have_come_before_it_and_a_delete_behind_it_then_it_counts_first(
    unread: bool,
) -> None:
    """Read again: a run had ended behind a time-out, and waited in the inbox as the delete was taken: nobody counted it."""
    trigger = {"type": "at_least", "k": 2, "triggers": [UP, on_data("a"), on_data("c")], "timeout": "30s"}
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("10h"))))
    bench.request(an_apply(a_spec("down", trigger, overlap="allow")))
    bench.run(SECOND)
    bench.event(an_event("a1", "a"))
    bench.run(30 * SECOND + 200)
    if unread:
        bench.log(EVENTS, 1).append(LogRecord(0, bench.now, None, b"{}"))
    bench.request(a_request("trigger", "up"))
    bench.run(500)
    assert [row["kind"] for row in bench.rows("I#")] == ["X"]
    bench.request(a_request("delete", "up"))
    bench.run(10 * MINUTE if unread else 5 * SECOND)
    assert status(bench) == ("active", ("flights/up",))
    assert bench.rows("I#") == []
    if unread:  # It was given up by itself.
        assert of(bench) == ["expired/trigger_timeout"] * 2
        return
    bench.event(an_event("c2", "c"))
    bench.run(5 * SECOND)
    assert of(bench) == ["expired/trigger_timeout", "launched"]


def test_given_a_delete_that_waits_behind_an_end_and_a_hand_over_then_the_successor_counts_it_first_as_well() -> None:
    trigger = {"type": "at_least", "k": 2, "triggers": [UP, on_data("a"), on_data("c")], "timeout": "30s"}
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec("up", every("10h"))))
    bench.request(an_apply(a_spec("down", trigger, overlap="allow")))
    bench.run(SECOND)
    bench.event(an_event("a1", "a"))
    bench.run(30 * SECOND + 200)
    bench.request(a_request("trigger", "up"))
    bench.run(500)
    bench.request(a_request("delete", "up"))
    bench.run(10)
    assert sorted(str(row["kind"]) for row in bench.rows("I#")) == ["G", "X"]
    bench.drain()
    bench.new_actor()
    bench.run(5 * SECOND)
    assert status(bench) == ("active", ("flights/up",))
    bench.event(an_event("c2", "c"))
    bench.run(5 * SECOND)
    assert of(bench)[-1] == "launched"

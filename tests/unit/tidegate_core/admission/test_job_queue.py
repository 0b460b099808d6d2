"""The job queue by the rows of CDAP's: states, one job at a time, crashes, a launcher that is away (rows CD-030 to CD-042)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, a_request, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import a_bench, a_submit
from tidegate_core.rows.effects import Commit, Effect, NotSubmitted
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.store_operations import Delete, Put, Transaction

QUICK = Behaviour(starts_after=10, runs_for=200)
ORDER = ("pending_constraint", "pending_launch", "launched")


def counting(bench: ActorHarness, count: int, name: str = "nightly", **more: Any) -> None:
    bench.request(an_apply(a_spec(name, on_data(count=count), overlap="allow", **more), f"apply-{name}-{bench.now}"))
    bench.run(SECOND)


def told(bench: ActorHarness) -> list[list[str]]:
    """Returns the events that each run's program was told of."""
    manifests = [order.context["manifest"] for order in bench.started]
    return [sorted(str(row["event_id"]) for row in each) for each in manifests]  # type: ignore[union-attr,call-overload,index]


def test_given_any_story_then_a_job_goes_through_its_states_in_their_order_and_is_removed() -> None:
    """CD-030: pending_trigger is evidence, then pending_constraint, pending_launch, launched; nothing else, and nothing back."""
    bench = a_bench(QUICK)
    seen: defaultdict[str, list[str]] = defaultdict(list)

    def applied(written: Transaction | Sequence[Put | Delete], before: object) -> None:
        for action in written.actions if isinstance(written, Transaction) else ():
            if isinstance(action, Put) and action.key.sk.startswith("J#"):
                seen[action.key.sk].append(str(action.item["state"]))

    bench.store.on_applied = applied
    counting(bench, 2)
    bench.request(an_apply(a_spec("timed", every("5s"))))
    for number in range(20):
        bench.event(an_event(f"d-{number}"))
        bench.run(SECOND)
    bench.request(a_request("suspend", "timed"))
    bench.run(MINUTE)
    assert len(seen) >= 14
    for states in seen.values():
        places = [ORDER.index(state) for state in states]
        assert places == sorted(places)
    assert bench.rows("J#") == []


def test_given_a_thousand_events_at_once_for_a_thousand_then_one_job_has_all_of_them() -> None:
    """CD-031: one unsealed job of a schedule at a time."""
    bench = a_bench(QUICK)
    counting(bench, 1_000)
    bench.append("tidegate.events", 0, *(an_event(f"d-{number}") for number in range(1_000)))
    bench.run(MINUTE)
    assert [len(events) for events in told(bench)] == [1_000]


def test_given_one_job_after_another_then_none_ever_has_the_id_of_a_former_one() -> None:
    """CD-032: also when the queue was empty in between, and when the schedule was made anew."""
    bench = a_bench(QUICK)
    for life in range(3):
        counting(bench, 1)
        for number in range(3):
            bench.event(an_event(f"d-{life}-{number}"))
            bench.run(5 * SECOND)
        bench.request(a_request("delete", request_id=f"delete-{life}"))
        bench.run(SECOND)
    ids = [order.run_id for order in bench.started]
    assert len(ids) == len(set(ids)) == 9


@pytest.mark.parametrize("how", ["suspend", "delete", "update"])
def test_given_a_stop_amid_a_stream_of_events_then_neither_has_to_be_made_again(how: str) -> None:
    """CD-034: the request's transaction is never refused for an event's, and at most one job is left."""
    bench = a_bench(QUICK)
    bench.store_answers_after = 4
    counting(bench, 50)
    for number in range(30):
        bench.event(an_event(f"d-{number}"))
        if number == 15:
            again = an_apply(a_spec(trigger=on_data(count=40), overlap="allow"), "again")
            bench.request(again if how == "update" else a_request(how))
        bench.run(3)
    bench.run(10 * SECOND)
    assert [note.fields for note in bench.notices("transaction_refused")] == []
    assert len(bench.rows("E#")) <= 1


@pytest.mark.parametrize("crash_after", [1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_given_a_crash_while_events_flow_then_each_is_counted_once(crash_after: int) -> None:
    """CD-038: the position moves with what was made of the events: no loss, no double count."""
    bench = a_bench(QUICK)
    counting(bench, 10)
    bench.crash_after = bench.effects_outside + crash_after
    for number in range(60):
        bench.event(an_event(f"d-{number}"))
        bench.run(20)
    bench.run(2 * MINUTE)
    counted = [event for events in told(bench) for event in events]
    left = sum(sum(from_item(Evidence, row).counts) for row in bench.rows("E#"))
    assert len(counted) == len(set(counted))
    assert len(counted) + left == 60


def test_given_a_delete_then_jobs_and_evidence_go_at_once() -> None:
    """CD-039: conditional writes need no grace; the ledger says what became of them."""
    bench = a_bench(QUICK)
    closed = {"type": "delay", "after": "1h"}
    counting(bench, 1, constraints=[closed])
    counting(bench, 5, name="half")
    bench.event(an_event("d-1"))
    bench.run(SECOND)
    assert len(bench.rows("J#")) == 1
    assert len(bench.rows("E#")) == 2
    for name in ("nightly", "half"):
        bench.request(a_request("delete", name))
    assert bench.rows("J#") == []
    assert bench.rows("E#") == []
    assert [entry[0] for entry in bench.ledger()] == ["cancelled/schedule_deleted"]


def an_admission(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "admit"


def a_finish(effect: Effect) -> bool:
    """The transaction that removes the job."""
    return isinstance(effect, Commit) and any(
        isinstance(action, Delete) and action.key.sk.startswith("J#") for action in effect.transaction.actions
    )


@pytest.mark.parametrize("moment", [an_admission, a_submit, a_finish], ids=["state", "launch", "removal"])
def test_given_a_crash_between_state_and_launch_or_launch_and_removal_then_there_is_exactly_one_run(
    moment: Any,
) -> None:
    """CD-041: what was on its way is looked up under its name, adopted or submitted, never dropped."""
    bench = a_bench(QUICK)
    counting(bench, 1)
    bench.crash_at(moment)
    bench.event(an_event("d-1"))
    bench.run(2 * MINUTE)
    assert bench.lives == 2
    assert told(bench) == [["raw/d-1"]]
    assert [entry[0] for entry in bench.ledger()] == ["launched"]


def test_given_a_launcher_that_is_down_for_five_minutes_then_the_job_is_launched_after_it() -> None:
    """CD-042."""
    bench = a_bench(QUICK)
    counting(bench, 1)
    bench.answer_with(a_submit, NotSubmitted("nobody answers"), times=1_000)
    bench.event(an_event("d-1"))
    bench.run(5 * MINUTE)
    assert bench.started == []
    bench.as_usual()
    bench.run(MINUTE)
    assert [entry[0] for entry in bench.ledger()] == ["launched"]

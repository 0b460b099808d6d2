"""What comes behind a wide resume while what the suspend ends has not ended: the store has refused a page (SEMANTICS 10).

The shard goes on under what was asked for last, be it by who was there all along or by a successor that has heard of both at once.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders import MINUTE, SECOND, a_send, a_spec, all_of, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.effect_matchers import a_produce
from tests.unit.tidegate_core.commands.test_scope_commands import control, leases
from tidegate_core.commands.shard_suspension import EndPage
from tidegate_core.messages.one_shot import held_messages
from tidegate_core.rows.effects import Commit, Effect, Invalid
from tidegate_core.rows.evidence import Evidence, EvidenceChunk
from tidegate_core.rows.item_codec import from_item

TRIED_AGAIN = 11 * MINUTE


def is_a_page(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "end_covered"


def waiting(trigger: dict[str, Any], *partitions: str, **more: Any) -> ActorHarness:
    """What has come for a schedule, in a store that takes no page of a wide suspend."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, **more)))
    for partition in partitions:
        bench.event(an_event(partition))
    bench.run(SECOND)
    bench.answer_with(is_a_page, Invalid("scripted"), times=100)
    return bench


def suspend_and_resume(bench: ActorHarness, crashes: bool = True) -> None:
    for kind in ("suspend", "resume"):
        bench.request(control(kind))
        bench.run(SECOND)
    if crashes:
        bench.crash()
        bench.run(SECOND)


def told(bench: ActorHarness) -> list[list[str]]:
    """Returns the data partitions that each run was started for."""
    chunks = [from_item(EvidenceChunk, item) for item in bench.rows("EC#")]
    return [
        [entry["partition"] for each in chunks if each.evidence_id == run.run_id for entry in json.loads(each.entries)]
        for run in bench.started
    ]


@pytest.mark.parametrize("crashes", [False, True])
def test_given_what_had_come_then_it_counts_for_nothing_behind_the_resume(crashes: bool) -> None:
    """Review: it counted on, and a run started with what had been dropped."""
    bench = waiting(on_data(count=2), "d1")
    suspend_and_resume(bench, crashes)
    bench.event(an_event("d2"))
    bench.run(5 * SECOND)
    assert bench.started == []
    bench.as_usual()
    bench.run(TRIED_AGAIN)
    bench.event(an_event("d3"))
    bench.run(5 * SECOND)
    assert told(bench) == [["d2", "d3"]]
    assert bench.rows("I#") == [], "both have their receipts"


@pytest.mark.parametrize("crashes", [False, True])
def test_given_a_job_that_waits_then_it_takes_up_nothing_and_does_not_start(crashes: bool) -> None:
    delayed = [{"type": "delay", "after": "2m"}]
    bench = waiting(on_data(), "d1", constraints=delayed, overlap="allow")
    suspend_and_resume(bench, crashes)
    bench.event(an_event("d2"))
    bench.run(5 * MINUTE)
    assert told(bench) == [["d2"]]
    bench.as_usual()
    bench.run(TRIED_AGAIN)
    assert told(bench) == [["d2"]]
    assert sorted(entry[0] for entry in bench.ledger()) == ["cancelled/suspended", "launched"]


def test_given_a_page_that_is_refused_then_a_control_that_comes_meanwhile_takes_effect_at_once() -> None:
    """Review: it waited for ten minutes, and then again, while programs of another namespace started: an emergency stop that stops nothing."""
    bench = waiting(on_data(count=2), "d1")
    bench.request(an_apply({**a_spec("tick", every("10s")), "namespace": "orders"}))
    bench.run(15 * SECOND)
    bench.request(control("suspend"))
    bench.run(SECOND)
    bench.request(control("suspend", None))
    bench.run(SECOND)
    started = len(bench.started)
    bench.run(5 * MINUTE)
    assert len(bench.started) == started > 0
    assert leases(bench) == {(2, 0)}
    assert bench.receipts().keys().isdisjoint({"suspend-flights", "suspend-None"}), "nothing of it has ended so far"
    bench.as_usual()
    bench.run(TRIED_AGAIN)
    assert leases(bench) == {(2, 2)}
    assert {bench.status_of(each) for each in ("suspend-flights", "suspend-None")} == {"accepted"}
    assert bench.rows("E#") == []


def test_given_one_thing_that_cannot_end_then_the_others_do_and_other_namespaces_messages_are_let_go() -> None:
    """Found in review: the others waited with it, and so did each message that was held back in the shard, whose namespace had been resumed."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    delayed = [{"type": "delay", "after": "1h"}]
    for number in range(8):
        bench.request(an_apply(a_spec(f"s-{number}", on_data(), constraints=delayed), f"apply-{number}"))
    bench.request(control("suspend", "orders"))
    bench.run(SECOND)
    bench.request(a_send())
    bench.event(an_event("d1"))
    bench.run(15 * SECOND)
    poisoned = sorted(str(row["sk"]) for row in bench.rows("J#"))[3]

    def is_poisoned(effect: Effect) -> bool:
        keys = [action.key.sk for action in effect.transaction.actions] if isinstance(effect, Commit) else []
        return is_a_page(effect) and poisoned in keys

    bench.answer_with(is_poisoned, Invalid("scripted"), times=100)
    bench.request(control("suspend"))
    bench.run(5 * SECOND)
    assert [row["sk"] for row in bench.rows("J#")] == [poisoned]
    bench.request(control("resume", "orders"))
    bench.run(5 * SECOND)
    assert len(bench.delivered()) == 1
    assert bench.status_of("suspend-flights") is None
    bench.as_usual()
    bench.run(TRIED_AGAIN)
    assert bench.rows("J#") == []
    assert {bench.status_of(each) for each in ("suspend-flights", "resume-orders")} == {"accepted"}


def test_given_more_held_messages_than_are_let_go_ahead_and_no_broker_then_a_stop_takes_effect_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found in review: the shard waited for the broker to take what had been let go, and programs started meanwhile in all namespaces."""
    monkeypatch.setattr(held_messages, "RELEASE_AHEAD_MAX", 10)
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.request(control("suspend", "orders"))
    bench.run(SECOND)
    for number in range(100):
        bench.request(a_send(f"m-{number}"))
    bench.run(20 * SECOND)
    bench.hold_back(a_produce("out"), times=1_000)
    bench.request(control("resume", "orders"))
    bench.run(10 * SECOND)
    assert bench.status_of("resume-orders") is None
    bench.request(control("suspend", None))
    bench.run(8 * SECOND)
    started = len(bench.started)
    bench.run(2 * MINUTE)
    assert len(bench.started) == started > 0
    assert {bench.status_of(each) for each in ("resume-orders", "suspend-None")} == {"accepted"}
    bench.as_usual()
    bench.request(control("resume", None))
    bench.run(MINUTE)
    assert len(set(bench.delivered())) == 100
    assert bench.rows("H#") == []


@pytest.mark.parametrize("order", ["resumed before", "resumed behind", "successor"])
def test_given_more_held_messages_than_are_let_go_ahead_and_no_broker_then_a_stop_of_others_is_answered(
    monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """Found in review: all was stopped, and who asked for it heard nothing until the broker took another namespace's messages."""
    monkeypatch.setattr(held_messages, "RELEASE_AHEAD_MAX", 10)
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.request(control("suspend", "orders"))
    bench.run(SECOND)
    for number in range(100):
        bench.request(a_send(f"m-{number}"))
    bench.run(20 * SECOND)
    bench.hold_back(a_produce("out"), times=1_000)
    if order == "resumed behind":
        bench.request(control("suspend"))
        bench.request(control("resume", "orders"))
    else:
        bench.request(control("resume", "orders"))
        bench.run(10 * SECOND)
        bench.request(control("suspend"))
    if order == "successor":
        bench.run(100)
        bench.crash()
    bench.run(20 * SECOND)
    assert bench.status_of("suspend-flights") == "accepted"
    assert len(bench.rows("H#")) > 0
    bench.as_usual()
    bench.run(MINUTE)
    assert bench.status_of("resume-orders") == "accepted"
    assert len(set(bench.delivered())) == 100
    assert bench.rows("H#") == []


@pytest.mark.parametrize("overlap", ["coalesce", "keep_latest"])
def test_given_a_job_that_waits_then_nothing_that_comes_behind_the_resume_takes_its_place(overlap: str) -> None:
    """Review: one that was merged with it would have run for what was dropped, too."""
    bench = waiting(
        every("1m"), constraints=[{"type": "time_window", "opens": "03:00", "closes": "04:00"}], overlap=overlap
    )
    bench.run(MINUTE)
    (dropped,) = bench.rows("J#")
    suspend_and_resume(bench)
    bench.run(MINUTE)
    assert bench.ledger() == []
    bench.as_usual()
    bench.run(TRIED_AGAIN)
    assert {entry[0] for entry in bench.ledger() if entry[2] == dropped["nominal"]} == {"cancelled/suspended"}


@pytest.mark.parametrize("on_timeout", ["partial", "abort"])
def test_given_what_had_come_and_its_time_is_over_then_nothing_is_made_of_it(on_timeout: str) -> None:
    trigger = all_of(on_data(), on_data("b"), timeout="5m", on_timeout=on_timeout)
    bench = waiting(trigger, "d1")
    suspend_and_resume(bench)
    bench.run(7 * MINUTE)
    assert (bench.started, bench.ledger()) == ([], [])
    bench.as_usual()
    bench.run(TRIED_AGAIN)
    assert (bench.started, bench.ledger(), bench.rows("E#")) == ([], [], [])


@pytest.mark.parametrize(("job", "first_at", "stays"), [(False, 5, False), (False, 15, True), (True, 5, True)])
def test_given_a_page_that_comes_when_something_else_lies_in_the_place_then_that_stays(
    job: bool, first_at: int, stays: bool
) -> None:
    """Review: between two pages a job may have been made of what was to end, or what came since may lie where that was."""
    evidence = Evidence(
        id="e",
        namespace="flights",
        name="nightly",
        incarnation="i",
        version=1,
        correlation="",
        counts=(1,),
        chunks=1,
        first_at=first_at,
        job=job,
    )
    desk = DecisionHarness(evidence)
    desk.decide(EndPage((evidence.key(0),), lambda namespace, since: since <= 10))
    assert (desk.records(Evidence, "E#") == [evidence]) == stays

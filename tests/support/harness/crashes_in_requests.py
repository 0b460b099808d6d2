"""Scenarios that a crash may meet: requests on schedules, runs and messages, and programs that die."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.builders import (
    SECOND,
    a_cancel,
    a_request,
    a_send,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour

CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}
"""Closed from the bench's first instant on (02:13:20) for 46 minutes: jobs wait."""
NEVER_STARTS = Behaviour(starts_after=None)
FOR_EVER = Behaviour(runs_for=None)


def update_while_pending(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), constraints=[CLOSED])))
    bench.run(75 * SECOND)
    bench.request(an_apply(a_spec(trigger=every("20s"), args=["new"]), "second"))
    bench.run(30 * SECOND)


def delete_with_many_pending(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s"), constraints=[CLOSED])))
    bench.run(95 * SECOND)
    bench.request(a_request("delete"))
    bench.run(20 * SECOND)


def suspend_before_the_gate(bench: ActorHarness) -> None:
    bench.behaves = lambda order: NEVER_STARTS
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.run(25 * SECOND)
    bench.request(a_request("suspend"))
    bench.run(20 * SECOND)
    bench.behaves = lambda order: Behaviour()
    bench.request(a_request("resume"))
    bench.run(15 * SECOND)


def suspend_under_a_shared_limit(bench: ActorHarness) -> None:
    bench.behaves = lambda order: NEVER_STARTS
    limits = [at_most(3, "program")]
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow", constraints=limits)))
    bench.run(35 * SECOND)
    bench.request(a_request("suspend"))
    bench.run(15 * SECOND)


def drop_evidence(bench: ActorHarness) -> None:
    trigger = all_of(on_data("a"), on_data("b"), correlate="data_partition")
    bench.request(an_apply(a_spec(trigger=trigger)))
    bench.run(3 * SECOND)
    for number in range(7):
        bench.event(an_event(f"d{number}", "a"))
    bench.run(3 * SECOND)
    bench.request(an_apply(a_spec(trigger=trigger, args=["changed"]), "second"))
    bench.run(3 * SECOND)
    for number in range(2):
        bench.event(an_event(f"d{number}", "b"))
    bench.run(2 * SECOND)


def trigger_by_hand(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(2 * SECOND)


def cancel_a_job(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("10s", end="2025-11-13T02:13:32Z"), constraints=[CLOSED])))
    bench.run(15 * SECOND)
    job = str(bench.rows("J#")[0]["id"])
    bench.request({"id": "cancel", "type": "job.cancel", "job_id": job})
    bench.run(5 * SECOND)


def cancel_a_run_before_the_gate(bench: ActorHarness) -> None:
    bench.behaves = lambda order: NEVER_STARTS
    bench.request(an_apply(a_spec(trigger=every("10s"))))
    bench.run(11 * SECOND)
    run = str(bench.rows("R#")[0]["id"])
    bench.behaves = lambda order: Behaviour()
    bench.request({"id": "cancel", "type": "run.cancel", "run_id": run})
    bench.run(12 * SECOND)


def cancel_a_running_run(bench: ActorHarness) -> None:
    bench.behaves = lambda order: FOR_EVER
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(4 * SECOND)
    run = str(bench.rows("R#")[0]["id"])
    bench.request({"id": "cancel", "type": "run.cancel", "run_id": run})
    bench.run(15 * SECOND)


def a_program_that_dies_before_the_gate(bench: ActorHarness) -> None:
    behaviours = {1: NEVER_STARTS, 2: Behaviour()}
    bench.behaves = lambda order: behaviours[order.attempt]
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    bench.run(4 * SECOND)
    bench.vanish(str(bench.rows("R#")[0]["id"]))
    bench.run(20 * SECOND)


def send(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="2s", receipt=True))
    bench.request(a_send("m-2", key="k", after="3s"))
    bench.request(a_send(None, after="4s"))
    bench.request(a_send("m-4", after="1s", deliver_at=None) | {"payload": {"x": 1}})
    bench.run(20 * SECOND)


def replace(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", key="k", after="5s"))
    bench.run(SECOND)
    bench.request(a_send("m-2", key="k", after="6s"))
    bench.run(20 * SECOND)


def replace_after_delivery(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(3 * SECOND)
    bench.request(a_send("m-2", key="k", after="1s"))
    bench.run(20 * SECOND)


def cancel_in_time(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="5m"))
    bench.request(a_send("m-2", key="k", after="5m"))
    bench.run(SECOND)
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.request(a_cancel("c-2", key="k"))
    bench.run(330 * SECOND)


def cancel_too_late(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.run(3 * SECOND)
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(20 * SECOND)


def cancel_nothing(bench: ActorHarness) -> None:
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(2 * SECOND)
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)


OF_REQUESTS: list[Callable[[ActorHarness], None]] = [
    update_while_pending,
    delete_with_many_pending,
    suspend_before_the_gate,
    suspend_under_a_shared_limit,
    drop_evidence,
    trigger_by_hand,
    cancel_a_job,
    cancel_a_run_before_the_gate,
    cancel_a_running_run,
    a_program_that_dies_before_the_gate,
    send,
    replace,
    replace_after_delivery,
    cancel_in_time,
    cancel_too_late,
    cancel_nothing,
]

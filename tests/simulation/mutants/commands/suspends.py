"""Bugs in what a suspend, its resume, and an update make of what is pending (SEMANTICS 10, 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.support.builders import (
    HOUR,
    MINUTE,
    SECOND,
    a_recurring,
    a_request,
    a_spec,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions.delivery_plane.recurring import Series
from tidegate_core.decisions.run_plane import (
    admit,
    by_id,
    control,
    count,
    gathering,
    missed,
    parking,
    releasing,
    suspending,
)
from tidegate_core.decisions.run_plane.answers import Outcome
from tidegate_core.decisions.run_plane.quarantine import TRY_AGAIN_MS
from tidegate_core.effects import Commit, Effect, Invalid
from tidegate_core.model.instants import format_instant, parse_instant
from tidegate_core.model.receipts import Receipt
from tidegate_core.records.codec import from_item
from tidegate_core.records.controls import StoredControls
from tidegate_core.records.run_plane import Evidence, Job, LedgerRow, ScheduleState
from tidegate_core.store import keys
from tidegate_core.transactions.unit_of_work import UnitOfWork

Restarted = Callable[..., ScheduleState]


def keeping_the_old(restarted: Restarted) -> Restarted:
    return lambda *arguments: replace(restarted(*arguments), kept_from=0)


def admitting_what_is_held(admits: Callable[[ScheduleState], bool]) -> Callable[[ScheduleState], bool]:
    return lambda state: admits(state) or (state.status == "suspended" and state.mode == "hold")


def hearing_while_frozen(fires: Callable[[ScheduleState], bool]) -> Callable[[ScheduleState], bool]:
    return lambda state: fires(state) and state.mode != "hold"


def saying_no_more(answer: Callable[..., None]) -> Callable[..., None]:
    def said(unit: UnitOfWork, outcome: Outcome, receipt: Receipt, now: int) -> None:
        answer(unit, outcome, receipt.model_copy(update={"errors": ()}), now)

    return said


def forgetting_whose_it_is(after_apply: Restarted) -> Restarted:
    return lambda *arguments: replace(after_apply(*arguments), missed_by_update=None)


def going_by_the_last_change(_: Callable[[ScheduleState], int]) -> Callable[[ScheduleState], int]:
    return lambda state: state.changed_at


def taking_all_up(_: Callable[..., bool]) -> Callable[..., bool]:
    return lambda gathering, evidence: False


def taking_up_what_is_cut(_: Callable[[ScheduleState, Job], bool]) -> Callable[[ScheduleState, Job], bool]:
    return lambda state, job: False


def going_by_the_version(_: Callable[[ScheduleState, Evidence], bool]) -> Callable[[ScheduleState, Evidence], bool]:
    return lambda state, evidence: evidence.version != state.version


def forgetting_the_cut(with_cut: Restarted) -> Restarted:
    def forgotten(state: ScheduleState, before: ScheduleState, *arguments: Any) -> ScheduleState:
        return with_cut(replace(state, shedding=None), replace(before, shedding=None), *arguments)

    return forgotten


def at_one_place(_: Any) -> Any:
    return property(lambda series: ())


def waiting_for_the_cut(restarted: Restarted) -> Restarted:
    return lambda state, *arguments: replace(restarted(state, *arguments), shedding=state.shedding)


# -- the stories -------------------------------------------------------------------------------------------------------


def an_update_makes_up_for_what_lies_around_a_wide_suspend() -> Iterator[str]:
    bench = _a_bench()
    bench.request(an_apply(a_spec(trigger=every("1h"), overlap="allow")))
    bench.run(HOUR - bench.now % HOUR + 2 * MINUTE)
    scope = {"scope": "namespace", "namespace": "flights"}
    bench.request({"id": "stop", "type": "control.suspend", **scope})
    bench.run(5 * MINUTE)
    bench.request({"id": "go on", "type": "control.resume", **scope})
    bench.run(2 * MINUTE)
    bench.request(an_apply(a_spec(trigger=every("1m"), overlap="allow", catchup={"after_update": "all"}), "update"))
    bench.run(30 * SECOND)
    item = bench.store.peek(keys.CONTROLS_KEY)
    assert item is not None
    controls = from_item(StoredControls, item).controls
    for row in (from_item(LedgerRow, item) for item in bench.rows("L#")):
        if controls.suspended_until("flights", row.nominal, bench.now) is not None:
            yield f"I7: {row.job_id} was made, of an instant at which all was suspended"


def an_update_is_carried_before_the_release_is_taken() -> Iterator[str]:
    bench = _a_bench()
    spec: dict[str, Any] = {"trigger": every("1h"), "overlap": "allow"}
    bench.request(an_apply(a_spec(**spec)))
    bench.request(a_request("suspend", mode="hold"))
    bench.run(HOUR)
    _refuse(bench, "release")
    bench.request(a_request("resume", backlog="none"))
    bench.run(SECOND)
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(**spec, priority="high"), "update", on_update="carry"))
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    asked = bench.receipts()["trigger-nightly"]["id"]
    for row in (from_item(LedgerRow, item) for item in bench.rows("L#")):
        if row.job_id == asked and row.disposition != "launched":
            yield f"I1: {row.job_id} was asked for behind the resume, and ended as {row.disposition}/{row.reason}"


def an_event_is_counted_before_the_release_is_taken() -> Iterator[str]:
    bench = _parked_with_an_event()
    bench.event(an_event("d2"))
    bench.run(SECOND)
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    if not bench.started:
        yield "I3: an event that came behind the resume ended with the backlog that was cut"


def all_is_resumed_before_an_earlier_release_is_taken() -> Iterator[str]:
    bench = _parked_with_an_event()
    bench.request(a_request("suspend", mode="hold", request_id="again"))
    bench.run(SECOND)
    bench.request(a_request("resume", request_id="all"))
    bench.as_usual()
    bench.run(TRY_AGAIN_MS + MINUTE)
    for run in bench.started:
        yield f"I7: {run.run_id} waited at a resume that left nothing, and started"


def an_update_restarts_before_the_release_is_taken() -> Iterator[str]:
    bench = _parked_with_an_event()
    bench.request(an_apply(a_spec(trigger=on_data(), priority="high"), "update"))
    bench.event(an_event("d2"))
    bench.run(MINUTE)
    if not bench.started:
        yield "liveness: what the new version made waits for a cut that is nothing to it"


def an_event_is_counted_before_an_update_has_sealed_what_it_keeps() -> Iterator[str]:
    bench = _a_bench()
    spec: dict[str, Any] = {"trigger": on_data(), "overlap": "allow"}
    bench.request(an_apply(a_spec(**spec, constraints=[{"type": "delay", "after": "1m"}])))
    bench.event(an_event("d1"))
    bench.run(SECOND)
    kept = [from_item(Evidence, row).id for row in bench.rows("E#")]
    _refuse(bench, "end_pending")
    bench.request(an_apply(a_spec(**spec), "update", on_update="finish_old"))
    bench.event(an_event("d2"))
    bench.run(SECOND)
    bench.as_usual()
    bench.run(2 * TRY_AGAIN_MS)
    started = {run.run_id for run in bench.started}
    for each in kept:
        if each not in started:
            yield f"I1: {each} was to go on under its version, and never started"


def an_event_is_counted_before_a_drop_has_ended_what_was_counted() -> Iterator[str]:
    bench = _a_bench()
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    bench.event(an_event("d1"))
    bench.run(SECOND)
    _refuse(bench, "end_pending")
    bench.request(a_request("suspend", mode="drop"))
    bench.request(a_request("resume"))
    bench.run(SECOND)
    bench.event(an_event("d2"))
    bench.run(MINUTE)
    for run in bench.started:
        yield f"I7: {run.run_id} was started with an event that a suspend had dropped"


def messages_behind_an_end_are_late() -> Iterator[str]:
    bench = _a_bench()
    bench.request(an_apply(a_recurring(trigger=every("10s"))))
    end = (bench.now // (10 * SECOND) + 2) * 10 * SECOND
    bench.request(a_request("suspend", "ping", until=format_instant(end)))
    bench.run(end - bench.now - SECOND)
    bench.away(45 * SECOND)
    bench.run(20 * SECOND)
    sent = {parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out")}
    for nominal in range(end, end + 40 * SECOND, 10 * SECOND):
        if nominal not in sent:
            yield f"I1: the message of {nominal - end} ms behind the end of a suspension was never sent"


def _parked_with_an_event() -> Bench:
    """A held schedule with a job that an event has made, resumed without it; the store takes no release."""
    bench = _a_bench()
    bench.request(an_apply(a_spec(trigger=on_data(), overlap="allow")))
    bench.request(a_request("suspend", mode="hold"))
    bench.event(an_event("d1"))
    bench.run(SECOND)
    _refuse(bench, "release")
    bench.request(a_request("resume", backlog="none"))
    bench.run(SECOND)
    return bench


def _refuse(bench: Bench, name: str) -> None:
    """The store takes no transaction of that name, until all is as usual."""

    def is_it(effect: Effect) -> bool:
        return isinstance(effect, Commit) and effect.transaction.name == name

    bench.answer_with(is_it, Invalid("too large"), times=100)


def _a_bench() -> Bench:
    bench = Bench(shards=1)
    bench.run(SECOND)
    return bench


SUSPENDS = (
    Mutant(
        "no reasons",
        "a manual run is refused, while its schedule is suspended or has a full queue, and nobody says why",
        breaks="answers",
        patches=(Patch(by_id, "answer", saying_no_more),),
        within=3,
    ),
    Mutant(
        "left unparked",
        "hold and freeze leave runs before the gate alone",
        breaks="I7",
        patches=(Patch(parking, "stands_still", lambda _: lambda state: False),),
        within=90,
        directed=(29,),
    ),
    Mutant(
        "held jobs",
        "what is parked is admitted when its constraints hold",
        breaks="I7",
        patches=(Patch(admit, "admits", admitting_what_is_held),),
        within=40,
        directed=(12,),
    ),
    Mutant(
        "old kept",
        "an update that restarts leaves jobs of older versions to be launched",
        breaks="I7",
        patches=(Patch(control, "_restarted", keeping_the_old),),
        within=18,
        directed=(0,),
    ),
    Mutant(
        "deaf hold",
        "events are not counted while a schedule is held, nor after that",
        breaks="I3",
        patches=(Patch(count, "fires", hearing_while_frozen),),
        within=25,
        directed=(6,),
    ),
    Mutant(
        "span made up for",
        "an update makes up for instants at which all was suspended",
        breaks="I7",
        patches=(Patch(missed, "after_apply", forgetting_whose_it_is),),
        scenario=an_update_makes_up_for_what_lies_around_a_wide_suspend,
    ),
    Mutant(
        "backlog by the last change",
        "an update that comes before a release of the backlog is through has it cut what was made since the resume",
        breaks="I1",
        patches=(Patch(releasing, "backlog_through", going_by_the_last_change),),
        scenario=an_update_is_carried_before_the_release_is_taken,
    ),
    Mutant(
        "taken up by what is cut",
        "a job that a resume has cut, and not ended yet, takes up an event that comes, and it ends with it",
        breaks="I3",
        patches=(Patch(gathering, "is_cut", taking_up_what_is_cut),),
        scenario=an_event_is_counted_before_the_release_is_taken,
    ),
    Mutant(
        "cut forgotten",
        "a resume of all takes back what an earlier one has cut, and not ended yet",
        breaks="I7",
        patches=(Patch(suspending, "_with_cut", forgetting_the_cut),),
        scenario=all_is_resumed_before_an_earlier_release_is_taken,
    ),
    Mutant(
        "cut of the former",
        "what an update makes that restarts waits for the cut of a backlog that has ended with the former version",
        breaks="liveness",
        patches=(Patch(control, "_restarted", waiting_for_the_cut),),
        scenario=an_update_restarts_before_the_release_is_taken,
    ),
    Mutant(
        "in the kept one's place",
        "what a new version counts takes the place of the evidence of a job that goes on under the former one, before that is sealed",
        breaks="I1",
        patches=(Patch(gathering.Gathering, "_sealed", taking_all_up),),
        scenario=an_event_is_counted_before_an_update_has_sealed_what_it_keeps,
    ),
    Mutant(
        "dropped and counted",
        "evidence that a suspend has dropped, and not ended yet, counts on behind the resume, and a run starts with it",
        breaks="I7",
        patches=(Patch(gathering, "is_of_before", going_by_the_version),),
        scenario=an_event_is_counted_before_a_drop_has_ended_what_was_counted,
    ),
    Mutant(
        "late ones at one place",
        "messages that are late behind the end of a suspension have one place, and the first of them alone is sent",
        breaks="I1",
        patches=(Patch(Series, "_late", at_one_place),),
        scenario=messages_behind_an_end_are_late,
    ),
)

"""Bugs in what a suspend, its resume, and an update make of what is pending (SEMANTICS 10, 12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tidegate_core.decisions.run_plane import admit, by_id, control, count, missed, parking, releasing
from tidegate_core.decisions.run_plane.answers import Outcome
from tidegate_core.decisions.run_plane.quarantine import TRY_AGAIN_MS
from tidegate_core.effects import Commit, Effect, Invalid
from tidegate_core.model.receipts import Receipt
from tidegate_core.records.codec import from_item
from tidegate_core.records.controls import StoredControls
from tidegate_core.records.run_plane import LedgerRow, ScheduleState
from tidegate_core.store import keys
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, every
from tidegate_testkit.simulation.mutants.mutant import Mutant, Patch

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
    def is_release(effect: Effect) -> bool:
        return isinstance(effect, Commit) and effect.transaction.name == "release"

    bench = _a_bench()
    spec: dict[str, Any] = {"trigger": every("1h"), "overlap": "allow"}
    bench.request(an_apply(a_spec(**spec)))
    bench.request(a_request("suspend", mode="hold"))
    bench.run(HOUR)
    bench.answer_with(is_release, Invalid("too large"), times=100)
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
        within=40,
        directed=(14,),
    ),
    Mutant(
        "held jobs",
        "what is parked is admitted when its constraints hold",
        breaks="I7",
        patches=(Patch(admit, "admits", admitting_what_is_held),),
        within=15,
        directed=(6,),
    ),
    Mutant(
        "old kept",
        "an update that restarts leaves jobs of older versions to be launched",
        breaks="I7",
        patches=(Patch(control, "_restarted", keeping_the_old),),
        within=18,
    ),
    Mutant(
        "deaf hold",
        "events are not counted while a schedule is held, nor after that",
        breaks="I3",
        patches=(Patch(count, "fires", hearing_while_frozen),),
        within=25,
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
)

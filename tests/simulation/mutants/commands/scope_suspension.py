"""Bugs in wide controls and in what holds messages back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from tests.simulation.mutants.clauses.scope_suspension import a_later_hold_arrives_again
from tests.simulation.mutants.clauses.weakened_conditions import without
from tests.simulation.mutants.mutant import Mutant, Patch
from tests.support.builders import (
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_send,
    a_spec,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import Behaviour, Bench
from tests.support.harness.recorded_effects import manifest_text
from tidegate_core.decisions.controls_home import Spread
from tidegate_core.decisions.delivery_plane.holding import Holding
from tidegate_core.decisions.lane import Lane
from tidegate_core.decisions.operations import Operation
from tidegate_core.decisions.run_plane.controls import EndCovered, ShardControls
from tidegate_core.decisions.run_plane.left_rows import LeftRows
from tidegate_core.decisions.run_plane.upstream_gone import UpstreamGone
from tidegate_core.effects import Commit, Read
from tidegate_core.records.controls import Controls
from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.transactions.view import View


def deciding_from_the_first(init: Callable[..., None]) -> Any:
    """An owner goes on deciding from the controls that it began with."""

    def init_with_the_first(
        unit: UnitOfWork, view: View, shard: int, epoch: int, controls: Controls, *others: Any
    ) -> None:
        first = view.__dict__.setdefault("first_controls", controls)
        init(unit, view, shard, epoch, first, *others)

    return init_with_the_first


def waiting_for_nobody(_: Any) -> Any:
    def nobody(_: Spread, wanted: int) -> Generator[Any, Any, int]:
        yield from ()
        return wanted

    return nobody


def leaving_it_pending(_: Any) -> Any:
    def nothing(*_: Any) -> list[Key]:
        return []

    return nothing


def not_at_all(_: Any) -> Any:
    return lambda *_: None


def never(_: Any) -> Any:
    return lambda *_: False


def by_age_alone(may_count: Callable[[LeftRows, int, int], bool]) -> Any:
    """What is known and not carried yet says nothing."""
    return lambda rows, carried, appended: may_count(rows, rows._version, appended)


def behind_all_that_waits(add_first: Any) -> Any:
    def add_last(lane: Lane, *works: Any) -> None:
        for work in works:
            lane.add(work)

    return add_last


def at_once(_: Callable[[UpstreamGone, Lane], Operation[None]]) -> Any:
    def run(gone: UpstreamGone, lane: Lane) -> Operation[None]:
        yield from gone._receipt_once_told(lane)
        gone.done()

    return run


# -- the stories -------------------------------------------------------------------------------------------------------


def an_event_comes_before_its_shard_hears_of_the_resume() -> Iterator[str]:
    bench = _suspended(an_apply(a_spec(trigger=on_data())))
    _resume_unheard(bench)
    bench.event(an_event("2026"))
    bench.run(2 * SECOND)
    bench.as_usual()
    bench.run(5 * SECOND)
    if len(bench.started) != 1:
        yield "I3: an event that was appended behind the resume has counted for nothing"


def a_shard_knows_of_the_resume_and_is_not_done_with_the_suspend() -> Iterator[str]:
    bench = Bench(behaviour=Behaviour(runs_for=100), shards=1)
    bench.run(SECOND)
    for document in (an_apply(a_spec(trigger=on_data())), a_send("m-1", after="1s")):
        bench.request(document)
    for namespace in ("orders", "flights"):
        bench.request(_control("suspend", namespace))
        bench.run(2 * SECOND)
    bench.hold_back(_commit_of("let_go"))  # Messages of another namespace are let go meanwhile, which takes minutes.
    for namespace in ("orders", "flights"):
        bench.request(_control("resume", namespace))
        bench.run(SECOND)
    bench.event(an_event("2026"))
    bench.run(8 * MINUTE)
    bench.as_usual()
    bench.run(MINUTE)
    if len(bench.started) != 1:
        yield "I3: an event that was appended behind the resume has counted for nothing"


def events_come_as_the_lease_takes_the_resume() -> Iterator[str]:
    bench = _suspended(an_apply(a_spec(trigger={**on_data(count=3), "take": "exactly_n"}, overlap="allow")))
    _resume_unheard(bench)
    for number in range(1, 7):
        bench.event(an_event(str(number)))
        bench.run(SECOND)
        if number == 2:
            bench.end_scripts()
            bench.hold_back(_commit_of("controls"), times=99)
            bench.release()
    bench.as_usual()
    bench.run(10 * SECOND)
    told = [manifest_text(order) for order in bench.started]
    if told != ["1,2,3", "4,5,6"]:
        yield f"order: events that came one after the other were told as {'; '.join(told)}"


def an_upstream_ends_and_goes_before_the_resume_is_heard_of() -> Iterator[str]:
    up = an_apply({**a_spec("up", every("1h")), "namespace": "orders"})
    either = {"type": "any_of", "triggers": [on_run_of("orders/up"), on_data()]}
    bench = _suspended(up, an_apply(a_spec("down", either)))
    _resume_unheard(bench)
    for kind in ("trigger", "delete"):
        bench.request({**a_request(kind, "up"), "namespace": "orders"})
        bench.run(SECOND)
    bench.as_usual()
    bench.run(5 * SECOND)
    if [order.file for order in bench.started] != ["/jobs/up.py", "/jobs/down.py"]:
        yield "I3: the end of a run behind the resume has counted for nothing, because its schedule was deleted later"


def _suspended(*documents: Doc) -> Bench:
    bench = Bench(behaviour=Behaviour(runs_for=100))
    bench.run(SECOND)
    for document in (*documents, _control("suspend")):
        bench.request(document)
        bench.run(SECOND)
    bench.run(MINUTE)
    return bench


def _resume_unheard(bench: Bench) -> None:
    """Its home moves the item, and no shard reads that until the bench goes on as usual."""
    moved = len(bench.commits("move_controls"))

    def looks_for_it(effect: Any) -> bool:
        is_look = isinstance(effect, Read) and effect.keys == (keys.CONTROLS_KEY,)
        return is_look and len(bench.commits("move_controls")) > moved

    bench.hold_back(looks_for_it, times=99)
    bench.request(_control("resume"))
    bench.run(SECOND)


def _control(kind: str, namespace: str = "flights") -> Doc:
    named = {"scope": "namespace", "namespace": namespace}
    return {"id": f"{kind}-{namespace}", "type": f"control.{kind}", **named}


def _commit_of(name: str) -> Callable[[Any], bool]:
    return lambda effect: isinstance(effect, Commit) and effect.transaction.name == name


CONTROLS = (
    Mutant(
        "controls clause",
        "what was decided from older controls is admitted after the lease has taken the newer ones",
        breaks="I7",
        # Each layer alone covers for the other: the lane knows the newer controls, and the lease demands their version.
        patches=(
            without("holds_lease", clauses="#epoch = :epoch", values=(":epoch",)),
            Patch(UnitOfWork, "__init__", deciding_from_the_first),
        ),
        within=4,
        directed=(3,),
        trap="wide_controls",
    ),
    Mutant(
        "deaf plane",
        "messages of a suspended namespace are sent",
        breaks="I7",
        patches=(Patch(Holding, "covered", lambda _: lambda holding, namespace: False),),
        within=3,
        trap="wide_controls",
    ),
    Mutant(
        "early receipt",
        "a suspend is acknowledged before all shards have stopped",
        breaks="I7",
        patches=(Patch(Spread, "_done_by_all", waiting_for_nobody),),
        within=2,
        trap="wide_controls",
    ),
    Mutant(
        "left before the gate",
        "a wide suspend leaves what is pending alone, and runs before the gate start",
        breaks="I7",
        patches=(Patch(EndCovered, "_jobs_and_runs", leaving_it_pending),),
        within=75,
        directed=(4,),
        trap="wide_controls",
    ),
    Mutant(
        "span is a miss",
        "occurrences are made of instants at which all was suspended",
        breaks="I7",
        patches=(Patch(Controls, "suspended_until", not_at_all),),
        within=2,
        trap="wide_controls",
    ),
    Mutant(
        "span without end",
        "while a wide suspend goes on cursors pass instants that its resume, of which the shard has not heard, has let go",
        breaks="I1",
        patches=(Patch(Controls, "suspended_since", not_at_all),),
        within=2,
        trap="wide_controls",
    ),
    Mutant(
        "held again",
        "a move that comes again, late, brings back a message that was let go and delivered since",
        breaks="I8",
        patches=(without("moves_seen"),),
        scenario=a_later_hold_arrives_again,
    ),
    Mutant(
        "half a control",
        "a successor does not go on with what its predecessor had begun",
        breaks="liveness",
        patches=(Patch(ShardControls, "recover", not_at_all),),
        within=4,
        directed=(1,),
        trap="wide_controls",
    ),
    Mutant(
        "row of the span",
        "while a wide suspend goes on events are dropped that its resume, of which the shard has not heard, lets count",
        breaks="I3",
        patches=(Patch(LeftRows, "may_count", never),),
        scenario=an_event_comes_before_its_shard_hears_of_the_resume,
    ),
    Mutant(
        "age of a row",
        "a resume that is known, and that the lease does not carry for minutes, finds the events gone that it lets count",
        breaks="I3",
        patches=(Patch(LeftRows, "may_count", by_age_alone),),
        scenario=a_shard_knows_of_the_resume_and_is_not_done_with_the_suspend,
    ),
    Mutant(
        "rows of the span first",
        "what was left in a wide suspend is counted behind what came later",
        breaks="order",
        patches=(Patch(Lane, "add_first", behind_all_that_waits),),
        scenario=events_come_as_the_lease_takes_the_resume,
    ),
    Mutant(
        "upstream gone in a span",
        "a schedule that is gone is told of before ends of its runs that wait for the end of a wide suspend",
        breaks="I3",
        patches=(Patch(UpstreamGone, "run", at_once),),
        scenario=an_upstream_ends_and_goes_before_the_resume_is_heard_of,
    ),
)

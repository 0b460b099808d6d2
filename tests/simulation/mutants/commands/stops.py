"""Rules of what a stop does not wait for, and of what is not acknowledged before it has ended (docs/protocol.md): each is switched off in the
interleaving that it is against.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import writing
from tests.support.builders import (
    MINUTE,
    SECOND,
    Doc,
    a_request,
    a_send,
    a_spec,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
)
from tests.support.harness.actor_harness import Behaviour, Bench
from tests.support.harness.effect_matchers import a_commit, a_produce
from tidegate_core.decisions.delivery_plane import holding
from tidegate_core.decisions.delivery_plane.holding import Holding
from tidegate_core.decisions.lane import Lane
from tidegate_core.decisions.operations import Operation
from tidegate_core.decisions.run_plane import control, request, suspending
from tidegate_core.decisions.run_plane.control import Applied
from tidegate_core.decisions.run_plane.controls import TRY_AGAIN_MS, EndCovered, EndPage, ShardControls
from tidegate_core.decisions.run_plane.memory import PENDING_CONSTRAINT
from tidegate_core.effects import Invalid, Read
from tidegate_core.model.receipts import ReceiptStatus
from tidegate_core.records.controls import Controls
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Key

CAME_TO_NOTHING = (ReceiptStatus.UNCHANGED, ReceiptStatus.NOT_FOUND)

# -- bugs -----------------------------------------------------------------------------------------------------------------


def answered_at_once(apply: Callable[..., Applied]) -> Any:
    """What finds nothing to do."""

    def applied(*arguments: Any) -> Applied:
        found = apply(*arguments)
        return replace(found, has_pages=False) if found.status in CAME_TO_NOTHING else found

    return applied


def trying_again_for_itself(in_lane: Callable[..., Operation[None]]) -> Any:
    """Whatever has been asked for since."""

    def tried(controls: ShardControls, work: Any) -> Generator[Any, Any, None]:
        while True:
            try:
                yield from in_lane(controls, work)
            except Exception:  # noqa: BLE001 - as the lane tells it
                yield from controls._lane.host.sleep(TRY_AGAIN_MS)
            else:
                return

    return tried


def until_the_broker_has_room(until_there_is_room: Callable[..., Operation[None]]) -> Any:
    def until(held: Holding, _: Controls) -> Generator[Any, Any, None]:
        controls = None
        while controls is not held.controls:
            controls = held.controls
            yield from until_there_is_room(held, controls)

    return until


def up_to_the_first_failure(_: Any) -> Any:
    def end(ending: EndCovered, lane: Lane, pending: list[Key]) -> Generator[Any, Any, None]:
        for key in pending:
            yield from lane.decide_alone(EndPage((key,), ending._is_dropped))

    return end


# -- scenarios --------------------------------------------------------------------------------------------------------------


def wide(kind: str, namespace: str | None = "flights") -> Doc:
    scope: Doc = {"scope": "system"} if namespace is None else {"scope": "namespace", "namespace": namespace}
    return {"id": f"{kind}-{namespace}", "type": f"control.{kind}", **scope}


def a_bench(*documents: Doc, **more: Any) -> Bench:
    bench = Bench(shards=1, **more)
    bench.run(SECOND)
    for document in documents:
        bench.request(document)
    return bench


def starts_behind_the_second(kind: str) -> Iterable[str]:
    """The first one is not through: the store refuses its page. A run of before it is on its way to the gate."""
    spec = a_spec(trigger=every("10s"), overlap="allow", constraints=[at_most(1)])
    bench = a_bench(an_apply(spec), behaviour=Behaviour(starts_after=30 * SECOND, runs_for=None))
    bench.run(15 * SECOND)
    bench.answer_with(a_commit("end_pending"), Invalid("scripted"), times=100)
    bench.request(a_request(kind, request_id="first"))
    bench.request(a_request(kind, request_id="second"))
    bench.run(10 * SECOND)
    is_acknowledged, started = bench.status_of("second") is not None, len(bench.started)
    bench.run(MINUTE)
    if is_acknowledged and len(bench.started) > started:
        yield f"I7: a program started behind the answer to the second {kind}"


def a_suspended_schedule_is_suspended() -> Iterable[str]:
    return starts_behind_the_second("suspend")


def a_deleted_schedule_is_deleted() -> Iterable[str]:
    return starts_behind_the_second("delete")


def is_stopped(bench: Bench) -> Iterable[str]:
    """Says what starts a while behind a stop of the whole system."""
    bench.request(wide("suspend", None))
    bench.run(8 * SECOND)
    started = len(bench.started)
    bench.run(5 * MINUTE)
    if len(bench.started) > started:
        yield f"liveness: {len(bench.started) - started} programs started in the five minutes behind an emergency stop"


def a_stop_comes_while_a_page_is_refused() -> Iterable[str]:
    """Of a wide suspend of another namespace."""
    bench = a_bench(an_apply(a_spec(trigger=on_data(count=2))))
    bench.request(an_apply({**a_spec("tick", every("10s"), overlap="allow"), "namespace": "orders"}))
    bench.event(an_event("d1"))
    bench.run(15 * SECOND)
    bench.answer_with(a_commit("end_covered"), Invalid("scripted"), times=100)
    bench.request(wide("suspend"))
    bench.run(SECOND)
    return is_stopped(bench)


def a_stop_comes_while_messages_are_let_go() -> Iterable[str]:
    """More than are let go ahead, to a topic that is away."""
    bench = a_bench(an_apply(a_spec(trigger=every("10s"), overlap="allow")), wide("suspend", "orders"))
    bench.run(SECOND)
    for number in range(100):
        bench.request(a_send(f"m-{number}"))
    bench.run(20 * SECOND)
    bench.hold_back(a_produce("out"), times=1_000)
    bench.request(wide("resume", "orders"))
    bench.run(10 * SECOND)
    return is_stopped(bench)


def held_up(bench: Bench) -> list[Item]:
    return [row for row in bench.rows("J#") if row["state"] == PENDING_CONSTRAINT]


def one_thing_cannot_end() -> Iterable[str]:
    """It is the first of those that a wide suspend ends."""
    spec = a_spec(trigger=every("10s"), overlap="allow", constraints=[at_most(1)])
    bench = a_bench(an_apply(spec), behaviour=Behaviour(runs_for=None))
    bench.run(35 * SECOND)
    first = min(held_up(bench), key=lambda row: int(str(row["nominal"])))
    bench.answer_with(
        lambda effect: a_commit("end_covered")(effect) and writing(str(first["sk"]))(effect),
        Invalid("scripted"),
        times=100,
    )
    bench.request(wide("suspend"))
    bench.run(MINUTE)
    if len(left := held_up(bench)) > 1:
        yield f"liveness: {len(left) - 1} jobs wait for one that the store does not let end"


def a_resume_leaves_out_what_is_not_made_yet() -> Iterable[str]:
    """No shard has heard of the end of a wide suspend when the schedule is resumed by itself, without its backlog."""
    bench = a_bench(an_apply(a_spec(trigger=every("1s"), overlap="allow")), behaviour=Behaviour(runs_for=100))
    bench.run(3_500)
    bench.request(wide("suspend"))
    bench.run(2 * SECOND)
    bench.request(a_request("suspend", mode="hold"))
    bench.run(10 * SECOND)
    moved = len(bench.commits("move_controls"))

    def looks_for_it(effect: Any) -> bool:
        is_look = isinstance(effect, Read) and effect.keys == (keys.CONTROLS_KEY,)
        return is_look and len(bench.commits("move_controls")) > moved

    bench.hold_back(looks_for_it, times=99)
    bench.request(wide("resume"))
    bench.run(5 * SECOND)
    bench.request(a_request("resume", backlog="none"))
    resumed = bench.now
    bench.as_usual()
    bench.run(10 * SECOND)
    late = [
        nominal for what, _, nominal, _ in bench.ledger() if what == "launched" and resumed - 4_000 < nominal < resumed
    ]
    if bench.status_of("resume-nightly") == "accepted" and late:
        yield f"I7: {len(late)} instants that a resume had left out ran behind its answer"


RULES_OF_STOPS = (
    Mutant(
        "suspended at once",
        "a suspend of what is suspended is answered before what the first one could not end yet: that starts behind the answer",
        breaks="I7",
        patches=(Patch(request, "suspended", answered_at_once),),
        scenario=a_suspended_schedule_is_suspended,
    ),
    Mutant(
        "deleted at once",
        "a delete of what is deleted is answered before what the first one could not end yet: that starts behind the answer",
        breaks="I7",
        patches=(Patch(control, "deleted", answered_at_once),),
        scenario=a_deleted_schedule_is_deleted,
    ),
    Mutant(
        "stop behind a refused page",
        "a stop waits for ten minutes, and again, for a page of the control before it that the store refuses",
        breaks="liveness",
        patches=(Patch(ShardControls, "_in_lane", trying_again_for_itself),),
        scenario=a_stop_comes_while_a_page_is_refused,
    ),
    Mutant(
        "stop behind what is let go",
        "a stop waits for the broker to which messages of before are let go",
        breaks="liveness",
        patches=(Patch(Holding, "_until_there_is_room", until_the_broker_has_room),),
        beside=(Patch(holding, "LET_GO_AHEAD_MAX", lambda _: 10),),
        scenario=a_stop_comes_while_messages_are_let_go,
    ),
    Mutant(
        "all behind one that cannot end",
        "one thing that the store does not let end keeps all that a wide suspend ends behind it",
        breaks="liveness",
        patches=(Patch(EndCovered, "_end", up_to_the_first_failure),),
        scenario=one_thing_cannot_end,
    ),
    Mutant(
        "left out, and made later",
        "what a resume leaves out of the backlog runs where its shard makes it later, having heard late that a wide suspend is over",
        breaks="I7",
        patches=(Patch(suspending, "fires_through", lambda _: lambda *_: None),),
        scenario=a_resume_leaves_out_what_is_not_made_yet,
    ),
)

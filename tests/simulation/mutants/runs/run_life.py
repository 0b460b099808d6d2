"""Rules of a schedule's and a run's life (docs/protocol.md), each switched off in the interleaving that it is against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.messages.message_life import nothing_to_do
from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import FOR_EVER, NEVER_STARTS, Stage, a_commit, limit_of, starts, writing
from tests.simulation.mutants.sketch.protocol_sketch import ran
from tests.simulation.mutants.sketch.replacements import torn
from tests.simulation.stories.stage import run_by_hand, two_under_one_limit
from tests.support.builders import (
    MINUTE,
    SECOND,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import Behaviour, Bench
from tidegate_core.decisions.run_plane import count, deadlines, listening, run_ends, runs
from tidegate_core.decisions.run_plane.ending import EndPending
from tidegate_core.decisions.run_plane.runs import RunGone
from tidegate_core.effects import DUPLICATE, Effect, Gone, LookedUp, Lookup, Read
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.run_plane import IndexRow, Run
from tidegate_core.store import keys
from tidegate_core.store.values import Put
from tidegate_core.transactions.gate import start_run
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.latches import Latches

PAIR = all_of(on_data("a"), on_data("b"), timeout="30s")
CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}

# -- bugs -----------------------------------------------------------------------------------------------------------------


def ending_what_cannot_be_asked(_: Any) -> Any:
    def ended(unit: UnitOfWork, run: Run, _now: int) -> None:
        at = run.started_at or run.admitted_at
        run_ends.finish(unit, replace(run, ended_at=at, outcome="failed", reason="lost"), at)

    return ended


def going_by_the_exit_alone(_: Any) -> Any:
    return lambda decision, run: run.external_id is not None and decision.gone.error_class != DUPLICATE


# -- events ---------------------------------------------------------------------------------------------------------------


def a_schedule_listens_to_what_others_hear_already() -> Iterable[str]:
    """So the node knows the index of that dataset, as it was."""
    bench = Stage().first
    bench.request(an_apply(a_spec("first", on_data())))
    bench.run(3 * SECOND)
    bench.event(an_event("d1"))
    bench.run(3 * SECOND)
    bench.request(an_apply(a_spec("second", on_data())))
    bench.event(an_event("d2"))
    bench.run(10 * SECOND)
    return ran(bench, 3, "I3")


def half_of_a_pair_is_read_late() -> Iterable[str]:
    """It was announced in time."""
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=PAIR)))
    bench.run(3 * SECOND)
    bench.event(an_event("d1", "a"))
    bench.run(5 * SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.event(an_event("d1", "b"))
    bench.run(40 * SECOND)
    bench.release()
    bench.run(10 * SECOND)
    return ran(bench, 1, "I3")


def half_of_a_pair_is_read_when_the_next_one_has_begun() -> Iterable[str]:
    """It came in another topic partition, and its own other half never came."""
    bench = Stage(event_topic_partitions=2).first
    bench.request(an_apply(a_spec(trigger=PAIR)))
    bench.run(3 * SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.event(an_event("d1", "b"), topic_partition=1)
    bench.run(60 * SECOND)
    bench.event(an_event("d2", "a"), topic_partition=0)
    bench.run(2 * SECOND)
    bench.release()
    bench.run(10 * SECOND)
    if bench.started:
        yield "I3: two events were paired that are further apart than the time-out"


def an_owner_falls_while_it_tells_of_an_end() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec("down", on_run_of("up"))))
    bench.run(2 * SECOND)
    bench.request(an_apply(a_spec("up", every("1h"))))
    bench.crash_at(a_commit("distribute"))
    bench.request(a_request("trigger", "up"))
    bench.run(30 * SECOND)
    return ran(bench, 2, "I3")


def a_former_owner_writes_a_row_of_the_index_anew() -> Iterable[str]:
    """It was frozen within the request that its successor has carried out meanwhile, and takes the time at which it goes on for that of
    the activation (seed 20500047).
    """
    bench = Stage(behaviour=Behaviour(runs_for=5 * SECOND)).first
    bench.request(an_apply(a_spec("up", every("1h"))))
    bench.request(an_apply(a_spec("down", on_run_of("up"))))
    bench.run(5 * SECOND)
    bench.request(a_request("trigger", "up"))
    bench.run(2 * SECOND)
    row = index_row_of("down", "run/flights/up", bench)
    anew = to_item(replace(row, activated_at=bench.now), row.key())
    version = keys.index_version(keys.index_shard_of(row.event_key))
    bench.store.write([Put(row.key(), anew), Put(version, {"pk": version.pk, "sk": version.sk, "version": 1_000})])
    bench.run(30 * SECOND)
    return ran(bench, 2, "I3")


def index_row_of(name: str, event_key: str, bench: Bench) -> IndexRow:
    pk, low, _ = keys.index_rows_of(event_key, "flights", name)
    (item,) = [item for item in bench.store.items() if item["pk"] == pk and str(item["sk"]).startswith(low)]
    return from_item(IndexRow, item)


def an_activation_comes_late() -> Iterable[str]:
    """It was asked for before the run began, and decided upon afterwards."""
    bench = Stage(behaviour=Behaviour(runs_for=20 * SECOND)).first
    bench.request(an_apply(a_spec("up", every("1h"))))
    bench.run(2 * SECOND)
    state = keys.schedule_state(0, "flights", "down").sk
    bench.hold_back(lambda effect: isinstance(effect, Read) and state in {key.sk for key in effect.keys})
    bench.request(an_apply(a_spec("down", on_run_of("up"))))
    bench.run(SECOND)
    bench.request(a_request("trigger", "up"))
    bench.run(5 * SECOND)
    bench.release()
    bench.run(MINUTE)
    if len(bench.started) > 1:
        yield "I3: a run counted that was admitted before the activation"


# -- runs -----------------------------------------------------------------------------------------------------------------


def a_second_artefact_ends_at_the_gate() -> Iterable[str]:
    """The launcher sees it go; the driver that won is on another host, and its wrapper of a release that does not say which."""
    bench = Stage(behaviour=NEVER_STARTS).first
    run = run_by_hand(bench)
    bench.transact(starts(run, bench.now))
    bench.vanish(run, gone=Gone(0, DUPLICATE))
    bench.run(SECOND)
    return is_open(bench, run)


def a_copy_dies_that_waited_for_the_gate() -> Iterable[str]:
    """It was killed, and has not been answered; the driver is on a host whose launcher did not come to say so."""
    bench = Stage(behaviour=NEVER_STARTS).first
    run = run_by_hand(bench)
    bench.transact(start_run(run, 1, "driver-1", bench.now, "start", host="host-2"))
    bench.vanish(run, gone=Gone(137, "transient"))
    bench.run(SECOND)
    return is_open(bench, run)


def a_driver_leaves_with_the_code_of_a_duplicate() -> Iterable[str]:
    """Without a report: a user's program may exit as it likes."""
    bench = Stage(behaviour=FOR_EVER).first
    run = run_by_hand(bench)
    bench.vanish(run, gone=Gone(79, DUPLICATE))
    bench.run(SECOND)
    if not list(is_open(bench, run)):
        yield f"liveness: nothing of run {run} is left, and its permit is kept until a person acts"


def a_program_runs_where_nobody_can_ask() -> Iterable[str]:
    bench = Stage(behaviour=FOR_EVER).first
    run = run_by_hand(bench)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=10**6)
    bench.run(30 * MINUTE)
    return is_open(bench, run)


def a_lookup(effect: Effect) -> bool:
    return isinstance(effect, Lookup)


def is_open(bench: Bench, run: str) -> Iterable[str]:
    if not [row for row in bench.rows("R#") if row["id"] == run and "ended_at" not in row]:
        yield f"I4: the permit of run {run} is free, and its program runs"


def many_jobs_wait_when_a_suspend_comes() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=every("10s"), constraints=[CLOSED])))
    bench.run(95 * SECOND)
    bench.request(a_request("suspend"))
    bench.run(SECOND)
    if bench.status_of("suspend-nightly") is not None and bench.rows("J#"):
        yield f"I7: {len(bench.rows('J#'))} jobs wait after suspend was acknowledged"


def an_owner_falls_in_the_middle_of_an_ending() -> Iterable[str]:
    bench = Stage().first
    two_under_one_limit(bench)
    bench.crash_at(writing("Z#"))
    bench.run(60 * SECOND)
    if limit_of(bench.store)["in_use"]:
        yield "I4: a permit is held by a run that has ended"
    yield from ran(bench, 2, "I1")


RULES_OF_RUNS = (
    Mutant(
        "index version",
        "rows of the index are there and nobody reads them, because its version says that nothing has changed",
        breaks="I3",
        patches=(Patch(listening, "_raise_versions", nothing_to_do),),
        scenario=a_schedule_listens_to_what_others_hear_already,
    ),
    Mutant(
        "told from the row's instant",
        "whoever writes a row of the index last says since when runs are told to it",
        breaks="I3",
        patches=(Patch(IndexRow, "told_from", lambda _: property(lambda row: row.activated_at)),),
        scenario=a_former_owner_writes_a_row_of_the_index_anew,
    ),
    Mutant(
        "whatever was told counts",
        "runs count since the request for the activation, not since that",
        breaks="I3",
        patches=(
            Patch(count, "heard_by", lambda heard: lambda unit, state: heard(unit, replace(state, activated_at=0))),
        ),
        scenario=an_activation_comes_late,
    ),
    Mutant(
        "watermark",
        "a time-out does not wait for what was announced in time and is not read",
        breaks="I3",
        patches=(Patch(deadlines, "wait_for_watermark", nothing_to_do),),
        scenario=half_of_a_pair_is_read_late,
    ),
    Mutant(
        "order of reading",
        "whether two events are a pair depends on when they are read",
        breaks="I3",
        patches=(Patch(Latches, "ends_amid", lambda _: lambda latches, entry: False),),
        scenario=half_of_a_pair_is_read_when_the_next_one_has_begun,
    ),
    Mutant(
        "told before it is written",
        "an end is marked as told before its listeners have it",
        breaks="I3",
        patches=(torn("distribute", lambda action: not action.key.sk.startswith("I#")),),
        scenario=an_owner_falls_while_it_tells_of_an_end,
    ),
    Mutant(
        "loser's exit",
        "the exit of an artefact that lost at the gate is taken for the run's end",
        breaks="I4",
        patches=(Patch(runs, "DUPLICATE", lambda _: "nothing is called so"),),
        scenario=a_second_artefact_ends_at_the_gate,
    ),
    Mutant(
        "copy's end",
        "the end of a copy that waited for the gate on one host is taken for that of the program on another",
        breaks="I4",
        patches=(Patch(RunGone, "_was_the_driver", going_by_the_exit_alone),),
        scenario=a_copy_dies_that_waited_for_the_gate,
    ),
    Mutant(
        "driver's exit",
        "a program that exits with the wrapper's code for a duplicate counts as one, and its run is never over",
        breaks="liveness",
        patches=(Patch(RunGone, "_was_the_driver", going_by_the_exit_alone),),
        scenario=a_driver_leaves_with_the_code_of_a_duplicate,
    ),
    Mutant(
        "permit by time",
        "a run that cannot be asked for counts as ended after a while",
        breaks="I4",
        patches=(Patch(runs, "mark_lost", ending_what_cannot_be_asked),),
        scenario=a_program_runs_where_nobody_can_ask,
    ),
    Mutant(
        "pending jobs",
        "suspend is acknowledged while jobs wait",
        breaks="I7",
        patches=(Patch(EndPending, "_jobs", lambda _: lambda decision, unit, state: []),),
        scenario=many_jobs_wait_when_a_suspend_comes,
    ),
    Mutant(
        "permit last",
        "a run ends before its permits are back",
        breaks="I4",
        patches=tuple(torn(name, lambda action: action.key.sk != "LIMIT") for name in ("look", "gone", "mixed")),
        scenario=an_owner_falls_in_the_middle_of_an_ending,
    ),
)

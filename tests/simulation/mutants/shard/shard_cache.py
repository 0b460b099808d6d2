"""Rules of what an owner remembers of what others write (docs/protocol.md), each switched off in the interleaving that it is against."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import FOR_EVER, NEVER_STARTS
from tests.support.builders import MINUTE, RUNS, SECOND, Doc, a_request, a_spec, an_apply, every, on_run_of
from tests.support.harness.actor_harness import Behaviour, Bench
from tests.support.harness.effect_matchers import a_batch, a_commit
from tidegate_core.decisions.inputs import Poked
from tidegate_core.decisions.operations import Operation
from tidegate_core.decisions.run_plane import control, outgoing
from tidegate_core.decisions.run_plane.attempts import PROBE_GAP_MS, Attempts
from tidegate_core.decisions.run_plane.memory import Memory
from tidegate_core.decisions.run_plane.outbox import Distribute
from tidegate_core.decisions.run_plane.quotas import NOT_COUNTED
from tidegate_core.decisions.run_plane.runs import BEFORE_GATE
from tidegate_core.effects import Effect, LookedUp, Lookup, Submit, Watch
from tidegate_core.model.problems import Problem
from tidegate_core.model.quotas import Quota
from tidegate_core.model.shards import schedule_shard
from tidegate_core.model.states import RunState
from tidegate_core.records.run_plane import Run, ScheduleCount
from tidegate_core.store.values import Delete, Item, Key
from tidegate_core.transactions.gate import start_run
from tidegate_core.transactions.view import View

# -- bugs -----------------------------------------------------------------------------------------------------------------


def leaving_starts_to_looks(follow: Callable[..., None]) -> Any:
    def followed(attempts: Attempts, before: Run | None, run: Run | None) -> None:
        has_begun = run is not None and run.state == RunState.RUNNING
        if not (has_begun and before is not None and before.state in BEFORE_GATE):
            follow(attempts, before, run)

    return followed


class RunsAsFound:
    """An owner's memory in which a run is as it was found for who looks for it."""

    def __init__(self, memory: Memory, run: Run) -> None:
        self._memory, self._run, self.runs = memory, run, self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def get(self, run_id: str) -> Run | None:
        return self._memory.runs.get(run_id)

    def __getitem__(self, _: str) -> Run:
        return self._run


def as_it_was_found(adopt: Callable[[Attempts, Run], Operation[None]]) -> Any:
    def adopted(attempts: Attempts, run: Run) -> Operation[None]:
        looking: Any = copy(attempts)
        looking._memory = RunsAsFound(attempts._memory, run)
        return adopt(looking, run)

    return adopted


def telling_nobody(distribute: Callable[..., Distribute]) -> Any:
    """That a row is gone."""
    return lambda key, listeners, shard, gone: distribute(key, listeners, shard, lambda: None)


def writing_no_count_down(count_after: Callable[..., ScheduleCount | Problem | None]) -> Any:
    def counted(*arguments: Any) -> ScheduleCount | Problem | None:
        found = count_after(*arguments)
        return None if isinstance(found, ScheduleCount) and found.counted_at == NOT_COUNTED else found

    return counted


def for_good(_: Any) -> Any:
    """What is known not to be there."""

    def offer(view: View, key: Key, item: Item) -> None:
        if not view.knows(key):
            view.learn([key], {key: item})

    return offer


# -- scenarios --------------------------------------------------------------------------------------------------------------


def a_bench(behaviour: Behaviour | None = None) -> Bench:
    bench = Bench(behaviour=behaviour)
    bench.run(SECOND)
    return bench


def triggered(bench: Bench) -> str:
    """A schedule that is run by hand; returns the run's id."""
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.request(a_request("trigger"))
    return str(bench.receipts()["trigger-nightly"]["id"])


def a_lookup(effect: Effect) -> bool:
    return isinstance(effect, Lookup)


def a_watch(effect: Effect) -> bool:
    return isinstance(effect, Watch)


def states(bench: Bench) -> list[str]:
    return [str(each.document["state"]) for each in bench.on(RUNS)]


def in_another_shard(bench: Bench, than: str) -> str:
    """Returns the name of a schedule of another owner."""
    shards = bench.holding.shards
    names = (f"x{number}" for number in range(99))
    return next(
        name for name in names if schedule_shard("flights", name, shards) != schedule_shard("flights", than, shards)
    )


def a_program_begins_before_its_submission_is_written_down() -> Iterable[str]:
    bench = a_bench(FOR_EVER)
    bench.request(an_apply(a_spec("listens", on_run_of("nightly", "started")), "listens"))
    bench.hold_back(a_commit("submitted"))
    triggered(bench)
    bench.run(200)
    bench.release()
    bench.run(MINUTE)
    if [order.file for order in bench.started].count("/jobs/listens.py") != 1:
        yield "I3: who waits for the start of a program that runs has not heard of it"


def a_program_is_seen_as_it_is_taken_for_lost() -> Iterable[str]:
    """In one transaction: a poke says that it has begun, and half a second later nobody has answered for it for long enough."""
    bench = a_bench()
    bench.behaves = lambda order: NEVER_STARTS
    run = triggered(bench)
    bench.run(SECOND)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
    bench.run(PROBE_GAP_MS - 500)
    bench.hold_back(a_commit("trigger"))
    bench.request(a_request("trigger", request_id="again"))
    bench.transact(start_run(run, 1, "driver-1", bench.now, "t", host="host-1"))
    bench.give(Poked(0, run))
    bench.run(SECOND)
    bench.as_usual()
    bench.run(MINUTE)
    (row,) = [row for row in bench.rows("R#") if row["id"] == run]
    if row["state"] == "lost":
        yield "answers: a program that runs, and was found again, is shown as lost"


def a_driver_passes_the_gate_before_its_launcher_answers() -> Iterable[str]:
    """On another host than the copy that a predecessor handed over. Nothing is left of it later, and it has not reported."""
    bench = a_bench()
    bench.hold_back(lambda effect: isinstance(effect, Submit))
    run = triggered(bench)
    bench.crash()
    bench.answer_with(a_lookup, LookedUp("unknown"), times=2)
    bench.run(SECOND)
    bench.transact(start_run(run, 1, "driver-1", bench.now, "t", host="host-2"))
    bench.give(Poked(0, run))
    bench.answer_with(
        lambda effect: isinstance(effect, Lookup) and effect.host == "host-2", LookedUp("elsewhere"), times=6
    )
    bench.run(5 * MINUTE)
    if not bench.ledger():
        yield f"liveness: a program of which nothing is left is {states(bench)[-1]} for good, and nobody looks for it where it was"


def a_row_of_the_outbox_is_removed_late() -> Iterable[str]:
    """By a predecessor, for whom nobody listened; its successor has found the row, and somebody listens by then."""
    bench = a_bench(Behaviour(starts_after=5, runs_for=10))
    bench.request(an_apply(a_spec("up", every("10h"))))
    bench.hold_back(a_batch("outbox_done"))
    bench.request(a_request("trigger", "up"))
    bench.run(100)
    bench.request(an_apply(a_spec("down", on_run_of("up"))))
    bench.run(100)
    (row,) = bench.rows("Z#")
    bench.end_scripts()
    bench.hold_back(a_commit("distribute"))
    bench.crash()
    bench.run(10)
    bench.store.write([Delete(Key(str(row["pk"]), str(row["sk"])))])
    bench.release()
    bench.run(SECOND)
    bench.request(a_request("delete", "up"))
    bench.run(MINUTE)
    (state,) = bench.rows("S#flights/down")
    if state["status"] != "deleted":
        yield "liveness: who waits for a schedule that was deleted is never told"


def a_schedule_is_deleted_amid_the_first_count() -> Iterable[str]:
    before = Bench()
    before.run(SECOND)

    def made(name: str) -> Doc:
        return an_apply(a_spec(name, every("1h")), f"apply-{name}")

    for number in range(4):
        before.request(made(f"s{number}"))
    bench = Bench(beside=before, owner="other", quotas={"flights": Quota(schedules_max=4)})
    bench.run(SECOND)
    other = in_another_shard(bench, "s0")
    bench.hold_back(a_commit("count_schedules"))
    bench.request(made(other))
    bench.run(50)
    bench.request(a_request("delete", "s0"))
    bench.run(SECOND)
    bench.release()
    bench.run(MINUTE)
    if bench.status_of(f"apply-{other}") == "rejected":
        yield "answers: of four schedules that a quota allows there are three, and another one was rejected"


def _until_it_runs(bench: Bench) -> None:
    for _ in range(MINUTE // SECOND):
        bench.run(SECOND)
        if [row["state"] for row in bench.rows("R#") if "ended_at" not in row] == ["running"]:
            return


def a_run_comes_back_and_is_lost_again() -> Iterable[str]:
    """Seed 38024439. Its owner is another one than that of who listens."""
    bench = a_bench()
    up = in_another_shard(bench, "down")
    bench.behaves = lambda order: FOR_EVER if f"flights/{up}" in str(order.context) else Behaviour(runs_for=SECOND)
    bench.request(an_apply(a_spec("down", on_run_of(up, "lost")), "apply-down"))
    bench.request(an_apply(a_spec(up, every("100h")), f"apply-{up}"))
    bench.answer_with(a_watch, LookedUp("unknown"))
    bench.request(a_request("trigger", up))
    for _ in range(2):
        _until_it_runs(bench)
        bench.answer_with(a_lookup, LookedUp("unknown"), times=1_000)
        bench.run(PROBE_GAP_MS + MINUTE)
        bench.end_scripts()
        bench.answer_with(a_watch, LookedUp("unknown"))
    if states(bench).count("lost") != 2:
        yield "the scenario: the run is not lost twice"
    if bench.rows("I#"):
        yield "liveness: what tells of a run that was lost again is never counted"


RULES_OF_MEMORY = (
    Mutant(
        "start left to a look",
        "a start that is found by the transaction that writes the submission down is told by nobody before the program's end",
        breaks="I3",
        patches=(Patch(Attempts, "follow", leaving_starts_to_looks),),
        scenario=a_program_begins_before_its_submission_is_written_down,
    ),
    Mutant(
        "seen before it was lost",
        "a program that is seen and taken for lost in one transaction is remembered as one that runs: nobody tells that it was found",
        breaks="answers",
        patches=(Patch(Attempts, "_as_written", lambda _: lambda attempts, run: run),),
        scenario=a_program_is_seen_as_it_is_taken_for_lost,
    ),
    Mutant(
        "looked for where it was",
        "a predecessor's run that passes the gate before its launcher can be asked is looked for where it is not",
        breaks="liveness",
        patches=(Patch(Attempts, "_adopt", as_it_was_found),),
        scenario=a_driver_passes_the_gate_before_its_launcher_answers,
    ),
    Mutant(
        "row removed late",
        "a delete waits to be told for a row of the outbox that a predecessor has removed meanwhile",
        breaks="liveness",
        patches=(Patch(outgoing, "Distribute", telling_nobody),),
        scenario=a_row_of_the_outbox_is_removed_late,
    ),
    Mutant(
        "counted amid a delete",
        "a delete that comes amid the first count of a namespace is not seen by it: nothing can be made in its place",
        breaks="answers",
        patches=(Patch(control, "count_after", writing_no_count_down),),
        scenario=a_schedule_is_deleted_amid_the_first_count,
    ),
    Mutant(
        "absent for good",
        "a row that is put again where one was deleted stays unseen: an inbox has that of a run's second loss under the key of the first",
        breaks="liveness",
        patches=(Patch(View, "offer", for_good),),
        scenario=a_run_comes_back_and_is_lost_again,
    ),
)

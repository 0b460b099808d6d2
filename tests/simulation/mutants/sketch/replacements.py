"""What the planted bugs of the protocol's sketch do instead of the right thing (`protocol_sketch.py`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Patch, instead, operation_returning
from tests.support.harness import scripted_programs
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.firing.fire import FireSchedule
from tidegate_core.language.triggers.on_time.every import EveryTrigger
from tidegate_core.language.values.derived_ids import run_id
from tidegate_core.ownership.shard_actor import TIMER_WINDOW_MS
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Refused
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Action, Key, RefusalCode, Transaction, Update
from tidegate_core.runs.attempts import Attempts

NOTHING_LATE = Patch(ShardWriter, "_take_in_late", operation_returning(None))
"""What was refused and carried out all the same is never found; beside a bug that takes for refused what was not, this would hide it."""


def torn(name: str, first: Callable[[Action], bool]) -> Patch:
    """What is one transaction is sent as two: `first`, and then the rest."""

    def changed(commit_for_good: Callable[..., Generator[Any, Any, Any]]) -> Any:
        def in_two(host: ActorContext, transaction: Transaction, until: int | None = None) -> Generator[Any, Any, Any]:
            halves = [tuple(a for a in transaction.actions if first(a) is each) for each in (True, False)]
            if transaction.name != name or not all(halves):
                return (yield from commit_for_good(host, transaction, until))
            verdict: Any = None
            for half in halves:
                witness = transaction.witness if transaction.witness in {action.key for action in half} else None
                verdict = yield from commit_for_good(host, Transaction(name, half, transaction.token, witness))
                if isinstance(verdict, Refused):
                    break
            return verdict

        return in_two

    return Patch(ActorContext, "commit_until_settled", changed)


def with_random_ids(time_job: Callable[..., Job]) -> Any:
    numbers = itertools.count()

    def made(shard: int, *rest: Any) -> Job:
        return replace(time_job(shard, *rest), id=run_id(shard, "random", "every", (str(next(numbers)),)))

    return made


def from_now() -> tuple[Patch, Patch]:
    """The next instant is computed from the present."""
    presents = [0]

    def noting(decide: Callable[..., None]) -> Any:
        def decide_now(decision: FireSchedule, unit: Any, now: int) -> None:
            presents[0] = now
            decide(decision, unit, now)
            presents[0] = 0

        return decide_now

    def drifting(next_after: Callable[..., int | None]) -> Any:
        return lambda trigger, after, *rest: next_after(trigger, max(after, presents[0]), *rest)

    return Patch(FireSchedule, "decide", noting), Patch(EveryTrigger, "next_after", drifting)


def reading_from_now(actor: Any) -> Generator[Any, Any, Any]:
    now = actor._host.now
    actor.memory.horizon = now + TIMER_WINDOW_MS
    low, high = (f"T#{keys.instant_text(each)}" for each in (now, actor.memory.horizon))
    return (yield from actor._writer.read_range(low, f"{high}#{keys.LAST}"))


def launching_before_the_commit(
    commit: Callable[..., Generator[Any, Any, bool]], writer: Any, unit: Any, name: str
) -> Generator[Any, Any, bool]:
    for key, item in unit.writes.items():
        if key.sk.startswith("R#") and item is not None:
            writer._observe(key, item)
    return (yield from commit(writer, unit, name))


def forgetting_its_echo(cancelled: Callable[..., Any], standing: Any, reasons: tuple[RefusalCode, ...]) -> Any:
    """A failed condition is always somebody else's doing."""
    anonymous = [
        None if each.item is None else {name: value for name, value in each.item.items() if name != "w"}
        for each in reasons
    ]
    return cancelled(standing, tuple(RefusalCode(a.code, b) for a, b in zip(reasons, anonymous, strict=True)))


def giving_up(actor: Any, pause: int) -> None:
    actor._host.new_life()
    actor._host.ended = True


def launching_again(attempts: Attempts, run: Run) -> Operation[None]:
    return attempts._launch(run)


def under_another_name(submit: Callable[..., None], programs: Any, order: Any) -> None:
    programs._processes.pop((order.run_id, order.attempt), None)
    submit(programs, order)


def asking_nobody(run: str, attempt: int, driver: str, now: int, token: str, *, host: str | None = None) -> Transaction:
    """An artefact that is not wrapped: it starts whatever anybody says."""
    key = Key("UNGATED", run)
    return Transaction("start", (Update(key, "SET #w = :w", {"#w": "w"}, {":w": token}),), token, key)


UNGATED = Patch(scripted_programs, "start_run", instead(asking_nobody))

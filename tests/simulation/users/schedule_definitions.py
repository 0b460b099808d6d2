"""The schedules of a world: what each one is, as its user writes it and as the checks read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tidegate_core.shard.outages.outage_time import CatchUp

NAMESPACE = "sim"
DAYS = 12
WIDE = ("tool", 20)
"""One of the schedules that share a program lets more runs of it be open than a limit's item can name."""
WIDE_SHARE = 0.3
SPACED_SHARE = 0.4
OVERLAPS = ("skip", "keep_latest", "coalesce", "cancel_running")
OVERLAP_SHARE = 0.4
"""Of the schedules whose runs are bounded."""
PRIORITIES = ("highest", "high", "medium", "medium", "low", "lowest")
COMPOSITE_SHARE = 0.5
"""Of the schedules."""
PACE = "pace"
"""Group of those that share a rate."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One schedule's shape.

    Attributes:
        trigger: As in the document.
        most: Runs of the schedule at a time; None = no bound.
        program: Shared program with its bound, as (name, max), or None.
        overlap: What becomes of what comes while as many runs are open; None = `queue`, or `allow` without a bound.
        priority: Before the limit that it shares.
        catch_up: What becomes of instants in an outage.
        max_runs: Of those that have jobs of their own, under `all`.
        max_pending, on_overflow: Of a queue.
        groups: Runs of all schedules of a group at a time, by this schedule's word, as (group, max).
        keys: Runs at a time with one value of a key, likewise, as (template, max).
        tries: Further attempts after a failure.
        aborts: Its jobs end where a limit that it shares, other than the rate, has no permit for them.
        suspended: It begins so.
        suspend_mode: How a suspend stops it that does not say; None: as it says nothing.
        rate: Runs of the group `PACE` that may be admitted in a span, by this schedule's word, and the span; None = it is not in it.
    """

    name: str
    trigger: dict[str, Any]
    most: int | None = 1
    program: tuple[str, int] | None = None
    makes: str | None = None
    window: tuple[str, str] | None = None
    pending_timeout: str | None = None
    catch_up: CatchUp = "all"
    constraints: tuple[dict[str, Any], ...] = ()
    late: str = "abort"
    max_runs: int = 24
    overlap: str | None = None
    priority: str = "medium"
    max_pending: int = 100
    on_overflow: str = "coalesce"
    groups: tuple[tuple[str, int], ...] = ()
    keys: tuple[tuple[str, int], ...] = ()
    tries: int = 0
    rate: tuple[int, str] | None = None
    aborts: bool = False
    suspended: bool = False
    suspend_mode: str | None = None

    @property
    def policy(self) -> str:
        return self.overlap or ("allow" if self.most is None else "queue")

    @property
    def is_timed(self) -> bool:
        return self.trigger["type"] in {"every", "cron", "at", "times"}

    @property
    def ends_by_itself(self) -> bool:
        """Whether it makes nothing more once nobody produces anything."""
        return self.trigger["type"] == "at" or not (self.is_timed or "at_least_every" in self.trigger)

    @property
    def sends_messages(self) -> bool:
        return False

    def document(self, variant: int) -> dict[str, Any]:
        """Returns the spec; each variant differs in its arguments."""
        program: dict[str, Any] = {"type": "python", "file": "/programs/one.py", "args": [f"variant={variant}"]}
        if self.makes is not None:
            program["args"].append(f"makes={self.makes}")
        constraints: list[dict[str, Any]] = []
        if self.program is not None:
            program["name"] = self.program[0]
            constraints.append({"type": "concurrency", "max": self.program[1], "scope": "program"})
        if self.rate is not None:
            most, per = self.rate
            constraints.append({"type": "rate", "max": most, "per": per, "scope": "group", "group": PACE})
        constraints += [
            {"type": "concurrency", "max": most, "scope": scope, scope: name}
            for scope, limits in (("group", self.groups), ("key", self.keys))
            for name, most in limits
        ]
        if self.aborts:
            constraints = [each if each["type"] == "rate" else {**each, "on_unmet": "abort"} for each in constraints]
        if self.most is not None and self.most > 1:
            constraints.append({"type": "concurrency", "max": self.most, "scope": "schedule"})
        if self.window is not None:
            opens, closes = self.window
            constraints.append({"type": "time_window", "opens": opens, "closes": closes, "zone": "UTC"})
        constraints += self.constraints
        spec: dict[str, Any] = {
            "kind": "schedule",
            "namespace": NAMESPACE,
            "name": self.name,
            "target": {"type": "program", "program": program},
            "trigger": self.trigger,
            "constraints": constraints,
            "overlap": self.policy,
            "priority": self.priority,
        }
        if self.policy == "queue":
            spec |= {"max_pending": self.max_pending, "on_overflow": self.on_overflow}
        if self.is_timed:
            spec["catchup"] = {"mode": self.catch_up, "max_runs": self.max_runs}
        if self.pending_timeout is not None:
            spec["pending_timeout"] = self.pending_timeout
        if self.tries:
            spec["retry"] = {"tries": self.tries, "backoff": "1s" if self.tries == 1 else "5s"}
        if self.late != "abort":
            spec["pending_timeout_action"] = self.late
        if self.suspended:
            spec["suspended"] = True
        if self.suspend_mode is not None:
            spec["suspend_mode"] = self.suspend_mode
        return spec


def _tocking(chance: Random) -> dict[str, Any]:
    """A period, at times with a place of its own for each occurrence; or the union of two, which meet now and then.

    Which of them follows from the period: one draw, as ever, so that what is drawn after it stays what it was.
    """
    seconds = chance.randint(3, 6)
    period = {"type": "every", "period": f"{seconds}s"}
    if seconds == 3:
        return {**period, "flexible": "1s"}
    return {"type": "times", "specs": [{"type": "every", "period": "10s"}, period]} if seconds == 6 else period


def draw(chance: Random, begin: int, busy_ms: int) -> list[Definition]:
    """Draws the schedules of a world; instants are given relative to `begin`."""
    from tidegate_core.language.values.instants import format_instant

    shared = ("tool", chance.randint(1, 3))
    drawn = [
        Definition("tick", {"type": "every", "period": f"{chance.randint(2, 3)}s"}, most=chance.choice((1, 2, None))),
        Definition("tock", _tocking(chance), most=None, program=shared),
        Definition(
            "bell",
            {
                "type": "cron",
                "expression": f"*/{chance.choice((3, 4, 5))} * * * * *",
                "dialect": "unix6",
                "zone": "UTC",
            },
            most=chance.choice((1, None)),
            program=shared if chance.random() < 0.5 else None,
            makes="made" if chance.random() < 0.5 else None,
            pending_timeout=chance.choice((None, None, "6s")),
        ),
        Definition(
            "once",
            {"type": "at", "instant": format_instant(begin + chance.randint(-5_000, busy_ms))},
        ),
        Definition("count", _data("a", chance.randint(1, 4)), most=chance.choice((1, None))),
        Definition("pair", _all_of(chance), most=chance.choice((2, None)), program=shared),
        Definition("after-tick", {"type": "run_status", "schedule": "tick", "states": ["succeeded"]}),
    ]
    if chance.random() < 0.5:
        drawn.append(Definition("chain", _data("made", chance.randint(1, 2)), most=1))
    if chance.random() < 0.5:
        begins = format_instant((begin + busy_ms // 2) // 1_000 * 1_000)[11:19]
        drawn.append(Definition("night", {"type": "every", "period": "9s"}, most=None, window=(begins, "23:00:00")))
    if chance.random() < 0.5:
        drawn.append(
            Definition(
                "after-any",
                {"type": "run_status", "schedule": "pair", "states": ["succeeded", "failed"]},
                most=None,
            )
        )
    drawn += _composites(Random(busy_ms))  # Of its own: what else is drawn stays what it was.
    if chance.random() < WIDE_SHARE:
        drawn = [replace(each, program=WIDE) if each.name == "pair" else each for each in drawn]
    if chance.random() < SPACED_SHARE:
        drawn.append(_spaced(chance))
    return drawn


def _spaced(chance: Random) -> Definition:
    """A schedule that fires more often than its constraints let it run."""
    of = chance.choice(("start", "finish", "success"))
    kinds: list[dict[str, Any]] = [
        {"type": "delay", "after": f"{chance.randint(1, 3)}s"},
        {"type": "since_last_run", "at_least": f"{chance.randint(3, 6)}s", "of": of},
        {"type": "rate", "max": chance.randint(1, 3), "per": f"{chance.randint(8, 12)}s"},
    ]
    if chance.random() < 0.3:
        kinds[1]["on_unmet"] = "abort"
    return Definition(
        "spaced",
        {"type": "every", "period": f"{chance.randint(2, 3)}s"},
        most=chance.choice((1, None)),
        pending_timeout=f"{chance.randint(8, 20)}s",
        constraints=tuple(chance.sample(kinds, chance.randint(1, 3))),
        late=chance.choice(("abort", "abort", "force", "alert")),
    )


def _composites(chance: Random) -> list[Definition]:
    """Returns some of the further kinds of event triggers."""
    several = {"triggers": [_data("a", 1), _data("b", 2), _data("c", 1)]}
    kinds = [
        Definition("exactly", {**_data("a", chance.randint(1, 3)), "take": "exactly_n"}, most=chance.choice((1, None))),
        Definition("some", {"type": "at_least", "k": 2, **several, "timeout": chance.choice(("8s", "6h"))}),
        Definition("either", {"type": "any_of", "triggers": [_data("b", 3), _data("c", 2)]}, most=None),
    ]
    drawn = [each for each in kinds if chance.random() < COMPOSITE_SHARE]
    awaited = chance.choice(("bell", "tock", "pair", "count"))
    upstream = {"type": "run_status", "schedule": awaited, "states": ["succeeded", "failed"]}
    if chance.random() < COMPOSITE_SHARE:
        drawn.append(Definition("or-else", {"type": "any_of", "triggers": [upstream, _data("a", 3)]}, most=None))
    if chance.random() < COMPOSITE_SHARE:
        started = {"type": "run_status", "schedule": chance.choice(("tick", "bell")), "states": ["started"]}
        drawn.append(Definition("on-start", started))
    return drawn


def needed_of(trigger: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """Returns the leaves of an event trigger, and how many of them have to be satisfied."""
    leaves: list[dict[str, Any]] = trigger.get("triggers", [trigger])
    needed = {"any_of": 1, "at_least": trigger.get("k", 1)}.get(trigger["type"], len(leaves))
    return leaves, int(needed)


def crowd(chance: Random, drawn: list[Definition], number: int) -> list[Definition]:
    """Returns further schedules that share the program of those that share one: more than its limit lets run."""
    program = next(each.program for each in drawn if each.program not in {None, WIDE})
    periods = [f"{chance.randint(3, 6)}s" for _ in range(number)]
    return [
        Definition(
            f"crowd-{index}",
            {"type": "every", "period": period},
            most=chance.choice((2, None)),
            program=program,
            pending_timeout=chance.choice((None, None, "20s")),
        )
        for index, period in enumerate(periods)
    ]


def with_policies(chance: Random, definitions: list[Definition]) -> list[Definition]:
    """Returns the schedules, some of them with another overlap, all with a priority and a bound of what is made up for."""
    return [_with_policy(chance, each) for each in definitions]


def _with_policy(chance: Random, definition: Definition) -> Definition:
    priority, overlap = chance.choice(PRIORITIES), chance.choice(OVERLAPS)
    keeps_its_own = chance.random() >= OVERLAP_SHARE or definition.most is None
    if definition.sends_messages:
        return definition
    of_events = not definition.is_timed and overlap == "coalesce"
    max_runs = chance.choice((1, 3, 24))
    max_pending, on_overflow = chance.choice((1, 3, 100)), chance.choice(("coalesce", "reject"))
    drawn = replace(definition, priority=priority, max_runs=max_runs, max_pending=max_pending, on_overflow=on_overflow)
    return drawn if keeps_its_own or of_events else replace(drawn, overlap=overlap)


def _data(dataset: str, count: int) -> dict[str, Any]:
    return {"type": "data_partitions", "dataset": dataset, "count": count}


def _all_of(chance: Random) -> dict[str, Any]:
    return {
        "type": "all_of",
        "correlate": "data_partition",
        "triggers": [_data("b", 1), _data("c", 1)],
        "timeout": chance.choice(("10s", "6h")),
    }


if TYPE_CHECKING:
    from tests.simulation.runner.swarm import Swarm

TRAP: Final = "rare_expiries"
TIMEOUT: Final = "8s"


def hurried(definitions: list[Definition], swarm: Swarm) -> list[Definition]:
    """Returns the schedules; in a world with the trap, what waits for several things gives up soon."""
    if TRAP not in swarm.traps:
        return definitions
    return [
        replace(each, trigger={**each.trigger, "timeout": TIMEOUT}) if "timeout" in each.trigger else each
        for each in definitions
    ]


if TYPE_CHECKING:
    from tests.simulation.runner.swarm import Swarm

FAILURES: Final = "failures"
"""The trap whose worlds have only such schedules."""
RETRY_SHARE: Final = 0.4
"""Of the schedules of any other world."""


def with_retries(chance: Random, drawn: list[Definition], swarm: Swarm) -> list[Definition]:
    """Returns the schedules, some of them with further tries of what failed."""
    share = 1 if FAILURES in swarm.traps else RETRY_SHARE
    tries = [chance.choice((1, 2)) if chance.random() < share else 0 for _ in drawn]
    return [
        each if each.sends_messages else replace(each, tries=number) for each, number in zip(drawn, tries, strict=True)
    ]

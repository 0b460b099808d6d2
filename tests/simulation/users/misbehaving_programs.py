"""Launchers and programs that do not do as they are told, in the worlds of their trap, and the user who loses patience.

All is drawn from sources of their own. A healed world has none of it any more, but what was rejected stays so, as a file that is not
there does: whether a node has heard that is nothing that the platform knows.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from tests.simulation.users.absence_schedules import nobody_until
from tests.simulation.world.observations import PlatformVerdict
from tidegate_core.rows.effects import NotSubmitted, ProgramEnded, SubmitFailed

if TYPE_CHECKING:
    from tests.simulation.users.requests import Requests
    from tests.simulation.world.cluster import Cluster
    from tests.simulation.world.node import Node
    from tests.simulation.world.program import Program
    from tidegate_core.rows.effects import LaunchOrder

Name = TypeVar("Name")

TRAP: Final = "stubborn"
REJECTIONS: Final = ("config", "config", "config", "auth", "user_code", "quota", "transient")
"""Classes of what is never taken; a launcher that says so is believed, whatever the class."""
REJECTED_BEHIND_A_START: Final = 0.5
"""Share of what is handed over once more, because nobody heard that it had been taken."""
ENDS_BEFORE_GATE: Final = (("config", 78), ("config", 78), ("auth", 1), ("quota", 137), ("preempted", 137))
"""Class and exit code of programs that end there; after the last two the same submission may work."""
Hang: TypeAlias = Literal["for its wait", "until told"]
HANGS: Final[tuple[Hang, ...]] = ("for its wait", "until told")
"""How long a program stays away from the gate: until its wrapper gives up its wait, or, where that has not begun, until it is told to end or
the world is healed.
"""
REPORTED: Final = ("config", "auth", "user_code", "oom", "transient", "preempted", "quota", "unknown")
DELETED_WITH_RUNS: Final = 0.5
GIVEN_UP_AGAIN: Final = 0.7
"""Share of the programs that end before the gate as one of their run did before."""
IN_LINE_MS: Final = (300, 8_000)
"""Until a node says that others are before it."""
KEPT_MS: Final = (1_000, 60_000)
AWAY_MS: Final = (1_000, 80_000)
UNREACHABLE_MS: Final = 400
OVERSEEN_MS: Final = (1_500, 9_000)
DEAF_TO_MAX: Final = 3
"""Requests to end that a program lets pass."""
PATIENCE_MS: Final = (500, 25_000)
AGAIN_MS: Final = 12_000
"""After which a user asks again for the end of a program that still runs."""
LOOK_MS: Final = 700


class Stubborn:
    """Draws what they do."""

    def __init__(self, cluster: Cluster, chance: Random) -> None:
        self._cluster = cluster
        self._faults = cluster.swarm.launcher
        self._chance = chance
        self._kept: dict[tuple[str, str, int], int] = {}
        """Until when a life of a node keeps an attempt in line."""
        self._away: dict[tuple[str, int], int] = {}
        """Until when nobody can hand an attempt to the platform."""
        self._rejected: dict[tuple[str, int], SubmitFailed] = {}
        self._given_up: set[str] = set()
        """Runs of which a program has ended before the gate."""

    def answers(self, node: Node, order: LaunchOrder, done: Callable[[NotSubmitted | SubmitFailed], None]) -> bool:
        """Answers a submission in the platform's stead, or lets it pass."""
        name = (order.run_id, order.attempt)
        if self._lasts(self._kept, (node.owner, *name), self._faults.in_line, KEPT_MS):
            self._cluster.trace.bit("kept_in_line", "submit")
            in_line = NotSubmitted("others are in line before it", unasked=True)
            node.process.after(self._chance.uniform(*IN_LINE_MS), lambda: done(in_line))
            return True
        if self._lasts(self._away, name, self._faults.away, AWAY_MS):
            self._cluster.trace.bit("launcher_refused", "submit")
            node.process.after(UNREACHABLE_MS, lambda: done(NotSubmitted("unreachable")))
            return True
        rejection = self._rejection(name)
        if rejection is None:
            return False
        self._cluster.trace.bit("rejected", "submit")
        if self._meets(self._faults.lost_answer):
            self._cluster.trace.bit("launch_answer_lost", "submit")
            node.process.after(UNREACHABLE_MS, lambda: done(NotSubmitted("no answer")))
        else:
            node.process.after(self._chance.uniform(1, UNREACHABLE_MS), lambda: done(rejection))
        return True

    def gives_up(self, program: Program) -> ProgramEnded | None:
        run_id = program.order.run_id
        if not self._meets(GIVEN_UP_AGAIN if run_id in self._given_up else self._faults.given_up):
            return None
        self._given_up.add(run_id)
        self._cluster.trace.bit("given_up", "program")
        error_class, exit_code = self._chance.choice(ENDS_BEFORE_GATE)
        return ProgramEnded(exit_code, error_class, f"{program.process.name}: {error_class}")

    def hangs(self, program: Program) -> Hang | None:
        if not self._meets(self._faults.hung):
            return None
        self._cluster.trace.bit("hung", "program")
        return self._chance.choice(HANGS)

    def is_endless(self, program: Program) -> bool:
        if not self._meets(self._faults.endless):
            return False
        self._cluster.trace.bit("endless", "program")
        return True

    def overseen_ms(self, program: Program) -> float | None:
        """Returns after how long its wrapper ends it, or None: nobody does so by himself."""
        if program.host is None and self._chance.random() >= self._faults.overseen:
            return None
        return self._chance.uniform(*OVERSEEN_MS)

    def deaf_to(self) -> int:
        """Returns how many requests to end such a program lets pass."""
        return self._chance.randint(1, DEAF_TO_MAX) if self._chance.random() < self._faults.deaf else 0

    def error_class(self) -> str | None:
        """Returns of what class a program's failure is, by its own report; None: it says none, or does not fail."""
        if not self._meets(self._faults.classed):
            return None
        self._cluster.trace.bit("classed", "program")
        return self._chance.choice(REPORTED)

    def ends_what_runs(self) -> bool:
        """Whether who deletes a schedule wants what runs of it ended as well."""
        return self._chance.random() < DELETED_WITH_RUNS

    def _rejection(self, name: tuple[str, int]) -> SubmitFailed | None:
        rate = self._faults.rejected
        if rate and name in self._cluster.record.taken_on:
            rate = REJECTED_BEHIND_A_START
        if name not in self._rejected and self._meets(rate):
            run_id, attempt = name
            error_class = self._chance.choice(REJECTIONS)
            failed = SubmitFailed(error_class, f"attempt {attempt} of {run_id} will never be taken: {error_class}")
            verdict = PlatformVerdict(self._cluster.timeline.now, attempt, error_class, is_rejected=True)
            self._cluster.record.verdicts[run_id][failed.message] = verdict
            self._rejected[name] = failed
        return self._rejected.get(name)

    def _lasts(self, until: dict[Name, int], name: Name, rate: float, spans: tuple[int, int]) -> bool:
        """Whether something that was drawn for this name, at the first time at which it was asked for, is not over yet."""
        now = self._cluster.timeline.now
        if name not in until:
            until[name] = now + int(self._chance.uniform(*spans)) if self._meets(rate) else now
        return not self._cluster.healed and now < until[name]

    def _meets(self, rate: float) -> bool:
        return rate > 0 and not self._cluster.healed and self._chance.random() < rate


class Impatient:
    """Ends programs that do not end by themselves: some soon, the others at the close of the world."""

    def __init__(self, cluster: Cluster, requests: Requests, chance: Random) -> None:
        self._cluster = cluster
        self._requests = requests
        self._chance = chance
        self._asks_at: dict[str, int] = {}
        """When the end of a driver is asked for."""

    def begin(self) -> None:
        self._cluster.timeline.after(LOOK_MS, self._look)

    def _look(self) -> None:
        now, healed = self._cluster.timeline.now, self._cluster.healed
        running = [body for body in self._cluster.record.bodies if body.endless and body.end is None]
        for body in running:
            if body.driver not in self._asks_at:
                self._asks_at[body.driver] = now + int(self._chance.uniform(*PATIENCE_MS))
            # For hours nobody asks every few seconds (seed 34001383: 697 requests to one shard, each of them repeated then).
            if now >= self._asks_at[body.driver] and nobody_until(self._cluster.swarm, now) is None:
                self._asks_at[body.driver] = now + AGAIN_MS
                self._requests.ask({"type": "run.cancel", "run_id": body.run_id}, lambda asked: None)
        if running or not healed:
            self._cluster.timeline.after(LOOK_MS, self._look)

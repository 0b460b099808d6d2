"""A platform that starts programs: it may accept and not say so, start late, start twice, and lose programs.

In some worlds it is a launcher for each host (`LauncherFaults.hosts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tests.simulation.world.cluster import Cluster
from tests.simulation.world.observations import Said
from tests.simulation.world.program import EXIT_REFUSED, Program
from tidegate_core.rows import keys
from tidegate_core.rows.effects import (
    DUPLICATE,
    LaunchOrder,
    LookedUp,
    NotSubmitted,
    ProgramEnded,
    SubmitFailed,
    Submitted,
)

if TYPE_CHECKING:
    from tests.simulation.world.node import Node

CALL_MS = 10
TIMEOUT_MS = 1_500
NOTICE_MS = 150
"""Mean time after which the platform notices that a program is gone."""
KILL_MS = 800
RESTARTED_MS = (100, 8_000)
"""Until the platform has started an artefact again that died."""
SAID_BEFORE = 0.3
"""Share of the restarts before which it has told that the artefact is gone."""
QUICK_START_MS = 200
SLOW = 0.5
"""Share of the starts that may take as long as the swarm says: quick ones overtake them."""


Answered: TypeAlias = Submitted | SubmitFailed | NotSubmitted


def _in_words(answered: Answered) -> str:
    if isinstance(answered, NotSubmitted):
        return "in line" if answered.unasked else "unreachable"
    return "rejected" if isinstance(answered, SubmitFailed) else "taken"


@dataclass(slots=True)
class _Name:
    """What runs, or ran, under the name of an attempt."""

    programs: list[Program] = field(default_factory=list)
    watchers: list[Callable[[ProgramEnded], None]] = field(default_factory=list)
    starting: int = 0
    gone_at: int | None = None

    def is_over(self) -> bool:
        return not self.starting and all(not program.process.alive for program in self.programs)


class Launcher:
    """One platform for all nodes, or one for each of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._faults = cluster.swarm.launcher
        self._names: dict[tuple[str | None, str, int], _Name] = {}

    def submit(self, node: Node, order: LaunchOrder, answer: Callable[[Answered], None]) -> None:
        timeline, record = self._cluster.timeline, self._cluster.record
        record.handed_over[order.run_id].append((timeline.now, order.attempt))

        def done(answered: Answered) -> None:
            said = Said(timeline.now, node.name, order.attempt, _in_words(answered))
            record.said[order.run_id].append(said)
            answer(answered)

        stubborn = self._cluster.stubborn
        if stubborn is not None and stubborn.answers(node, order, done):
            return
        if self._meets(self._faults.refused):
            self._cluster.trace.bit("launcher_refused", "submit")
            node.process.after(TIMEOUT_MS, lambda: done(NotSubmitted("unreachable")))
            return
        lost = self._meets(self._faults.lost_answer)
        # A request whose answer is lost may also take its time to arrive: long after its sender gave up, or died.
        delay = timeline.between(0, 15_000) if lost and timeline.happens(0.5) else timeline.around(CALL_MS)
        host = self._host_of(node)
        timeline.after(delay, lambda: self._accept(host, order))
        if lost:
            self._cluster.trace.bit("launch_answer_lost", "submit")
            node.process.after(TIMEOUT_MS, lambda: done(NotSubmitted("no answer")))
        else:
            submitted = Submitted(f"pid-{order.run_id}-{order.attempt}", node.name, "boot")
            node.process.after(delay + timeline.around(CALL_MS), lambda: done(submitted))

    def _host_of(self, node: Node) -> str | None:
        """None: there is one platform, and nobody says on which host of it a program runs."""
        return node.name if self._faults.hosts else None

    def _accept(self, host: str | None, order: LaunchOrder) -> None:
        name = self._names.setdefault((host, order.run_id, order.attempt), _Name())
        self._cluster.record.taken_on.setdefault((order.run_id, order.attempt), self._cluster.timeline.now)
        if self._is_forgotten(name):
            self._cluster.trace.bit("name_expired", "submit")
        elif self._faults.unique_names and (name.programs or name.starting):
            return
        if name.programs or name.starting:
            self._cluster.trace.counted("second_artefact", order.run_id)
        name.starting += 1
        longest = self._faults.slow_start_ms if self._meets(SLOW) else QUICK_START_MS
        self._cluster.timeline.after(
            self._cluster.timeline.between(10, longest), lambda: self._start(name, host, order)
        )

    def _start(self, name: _Name, host: str | None, order: LaunchOrder) -> None:
        name.starting -= 1
        name.gone_at = None
        program = Program(self._cluster, order, len(name.programs), host, lambda: self._has_ended(name, host, order))
        name.programs.append(program)
        program.begin()

    def _has_ended(self, name: _Name, host: str | None, order: LaunchOrder) -> None:
        """An artefact is gone: the platform may start it again, whatever it was told, and may have said before that it is gone."""
        if name.programs[-1].exit_code and self._meets(self._faults.restarts):
            self._cluster.trace.bit("platform_restart", "program")
            if self._cluster.timeline.happens(SAID_BEFORE):
                say = self._word_of(name)  # Those who watch later hear of what follows.
                self._cluster.timeline.after(self._cluster.timeline.around(NOTICE_MS), say)
            name.starting += 1
            wait = self._cluster.timeline.between(*RESTARTED_MS)
            self._cluster.timeline.after(wait, lambda: self._start(name, host, order))
            return
        if name.is_over():
            name.gone_at = self._cluster.timeline.now
        self._ended(name)

    def _is_forgotten(self, name: _Name) -> bool:
        """A name lasts for a while after the last of what had it; for ever where nobody wrote down who has the run.

        Of such a run nobody could say any more what it came to: it is `lost` by design until somebody releases it, and a
        world with one never comes to rest.
        """
        kept = self._faults.names_kept_ms
        if kept is None or name.gone_at is None or self._cluster.timeline.now - name.gone_at <= kept:
            return False
        run_id = name.programs[-1].order.run_id
        run = self._cluster.store.memory.peek(keys.run(keys.shard_of_run(run_id), run_id))
        return run is None or run.get("started_at") is None or run.get("external_id") is not None

    def _ended(self, name: _Name) -> None:
        self._cluster.timeline.after(self._cluster.timeline.around(NOTICE_MS), lambda: self._tell(name))

    def _tell(self, name: _Name) -> None:
        if name.is_over():
            self._word_of(name)()

    def _word_of(self, name: _Name) -> Callable[[], None]:
        """Returns what tells those who watch now that it is gone, and how it ended."""
        watchers, name.watchers = name.watchers, []
        exit_code = name.programs[-1].exit_code if name.programs else None
        given_up = name.programs[-1].given_up if name.programs else None
        gone = given_up or ProgramEnded(exit_code, DUPLICATE if exit_code == EXIT_REFUSED else None)

        def say() -> None:
            for watcher in watchers:
                watcher(gone)

        return say

    def look_up(
        self, node: Node, run_id: str, attempt: int, host: str | None, done: Callable[[LookedUp], None]
    ) -> None:
        if self._faults.hosts and host not in (None, node.name):
            node.process.after(self._cluster.timeline.around(CALL_MS), lambda: done(LookedUp("elsewhere")))
            return
        unknown = self._meets(self._faults.unknown)
        name = self._names.get((self._host_of(node), run_id, attempt))
        known = name is not None and (name.programs or name.starting) and not self._is_forgotten(name)
        if name is not None and self._is_forgotten(name) and not unknown:
            self._cluster.trace.bit("name_expired", "lookup")
        where = "unknown" if unknown else "found" if known else "absent"
        if unknown:
            self._cluster.trace.bit("lookup_unknown", "lookup")
        found = where == "found"
        answer = LookedUp(where, f"pid-{run_id}-{attempt}" if found else None, self._host_of(node) if found else None)
        node.process.after(self._cluster.timeline.around(CALL_MS), lambda: done(answer))

    def is_gone(self, run_id: str, attempt: int) -> bool:
        """Whether nothing of an attempt is left, on whatever host."""
        return all(name.is_over() for key, name in self._names.items() if key[1:] == (run_id, attempt))

    def watch(self, node: Node, run_id: str, attempt: int, done: Callable[[ProgramEnded], None]) -> None:
        name = self._names.setdefault((self._host_of(node), run_id, attempt), _Name())
        record, timeline = self._cluster.record, self._cluster.timeline

        def hears(gone: ProgramEnded) -> None:
            record.said[run_id].append(Said(timeline.now, node.name, attempt, gone.message))
            done(gone)

        name.watchers.append(lambda gone: node.process.post(lambda: hears(gone)))
        if name.is_over():
            self._ended(name)

    def cancel(self, node: Node, run_id: str, attempt: int) -> None:
        self._cluster.record.asked_to_end[run_id].append((self._cluster.timeline.now, attempt))
        name = self._names.get((self._host_of(node), run_id, attempt))
        for program in name.programs if name else ():
            self._kill_later(program)

    def _kill_later(self, program: Program) -> None:
        self._cluster.timeline.after(self._cluster.timeline.around(KILL_MS), program.terminate)

    def _meets(self, rate: float) -> bool:
        return not self._cluster.healed and self._cluster.timeline.happens(rate)

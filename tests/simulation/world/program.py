"""A launched artefact: the wrapper passes the gate, the body runs and writes down that it did, the end is reported."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.simulation.faults.random_draws import lies_in
from tests.simulation.world import cluster as world
from tests.simulation.world.broker import Outgoing
from tests.simulation.world.cluster import Cluster
from tests.simulation.world.observations import Body, PlatformVerdict
from tests.simulation.world.store_client import StoreClient, Verdict
from tests.simulation.world.timeline import START, Process
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, LaunchOrder, Produced, ProgramEnded
from tidegate_core.writes.start_gate import finish_run, start_run, was_finished_by

API_MS = 8
API_TIMEOUT_MS = 1_500
GIVEN_UP_MS = 400
STAYS_AWAY_MS = 1_000
EXIT_UNGATED = 75
EXIT_REFUSED = 79
EXIT_KILLED = 137


class Program:
    """One process under the name of an attempt.

    Attributes:
        process: Dead once nothing of it is left.
        driver: A UUID in this process's memory only.
        host: Whose launcher started it; None: its wrapper does not say so.
        given_up: What the platform says of its end, where it knows what was wrong.
    """

    def __init__(
        self, cluster: Cluster, order: LaunchOrder, copy: int, host: str | None, ended: Callable[[], None]
    ) -> None:
        self.cluster = cluster
        self.order = order
        self.host = host
        self.exit_code: int | None = None
        self.given_up: ProgramEnded | None = None
        self.driver = f"driver-{cluster.timeline.chance.getrandbits(64):016x}"
        self.process = Process(cluster.timeline, f"program {order.run_id[:10]}.{order.attempt}.{host or copy}")
        self._api = StoreClient(Process(cluster.timeline, "api"), cluster.store)
        self._ended = ended
        self._calls = 0
        self._body: Body | None = None
        self._is_asked_to_end = self._hangs = False
        self._deaf_to = 0
        self._deadline = cluster.timeline.now + cluster.swarm.launcher.gate_wait_ms

    def begin(self) -> None:
        self.cluster.trace.note(self.process.name, "began")
        if self.host is None and self._meets(self.cluster.swarm.launcher.early_death):
            self.cluster.trace.bit("early_death", "program")
            self.cluster.timeline.after(self.cluster.timeline.around(400), lambda: self.die("before or at the gate"))
        stubborn = self.cluster.stubborn
        if stubborn is None:
            self._knock()
        elif (gone := stubborn.gives_up(self)) is not None:
            self.process.after(self.cluster.timeline.around(GIVEN_UP_MS), lambda: self._give_up(gone))
        elif (hang := stubborn.hangs(self)) is None:
            self._knock()
        else:
            self._hangs = True
            until = self._knock if hang == "for its wait" else self._stay_away
            self.process.after(self._deadline + 1 - self.cluster.timeline.now, until)

    def _stay_away(self) -> None:
        """Also of a driver's place, which the platform has filled with this one: whoever watches it sees a program that lives."""
        self.process.after(STAYS_AWAY_MS, self._knock if self.cluster.healed else self._stay_away)

    def die(self, why: str) -> None:
        """Ends at once; what it was doing stays undone."""
        if not self.process.alive:
            return
        self.process.die()
        self.exit_code = EXIT_KILLED
        if self._body is None:
            self.cluster.record.never_ran.add(self.order.run_id)
        elif self._body.end is None:
            self._body.end = self.cluster.timeline.now
        self.cluster.trace.note(self.process.name, "died", why)
        self._ended()

    def terminate(self) -> None:
        """It is asked to end. At the gate a host's wrapper waits for its word all the same: it may have passed, and owes the run its end."""
        if not self.process.alive:
            return
        if self._deaf_to > 0 and not self.cluster.healed:
            self._deaf_to -= 1
            self.cluster.trace.bit("deaf", "program")
            return
        if self._body is not None and self._body.end is None:
            self._body.was_ended = True
        if self.host is None or self._hangs:
            self.die("cancelled")
        elif self._body is None:
            self.cluster.trace.counted("asked_to_end_at_the_gate", self.order.run_id)
            self._is_asked_to_end = True
        else:
            self._end("failed")

    def _give_up(self, gone: ProgramEnded) -> None:
        assert gone.exit_code is not None
        assert gone.error_class is not None
        self.given_up = gone
        record, now = self.cluster.record, self.cluster.timeline.now
        record.verdicts[self.order.run_id][gone.message] = PlatformVerdict(
            now, self.order.attempt, gone.error_class, is_rejected=False
        )
        record.never_ran.add(self.order.run_id)
        self._exit(gone.exit_code)

    def _exit(self, code: int) -> None:
        self.exit_code = code
        self.process.die()
        self.cluster.trace.note(self.process.name, "exit", code)
        self._ended()

    # -- the gate -----------------------------------------------------------------------------------------------------

    def _knock(self) -> None:
        order, now = self.order, self.cluster.timeline.now
        if now > self._deadline:
            self.cluster.record.never_ran.add(order.run_id)
            self._exit(EXIT_UNGATED)
            return
        start = start_run(order.run_id, order.attempt, self.driver, now, self._token(), host=self.host)
        self._call("gate", lambda answer: self._api.commit(start, answer), self._knocked, self._knock)

    def _knocked(self, verdict: Verdict) -> None:
        if isinstance(verdict, Committed):
            self._poke()
            if self._is_asked_to_end:
                self.cluster.record.never_ran.add(self.order.run_id)
                self._report()
            else:
                self._run()
        elif getattr(verdict, "failed", ()):
            self.cluster.trace.counts["gate_refused"] += 1
            self._exit(self._refused())
        else:
            self.process.after(self.cluster.timeline.between(200, 2_000), self._knock)

    def _refused(self) -> int:
        """A platform is told that nothing is wrong. A host's launcher sees the wrapper's code, or a copy that was killed before
        it heard the answer.
        """
        if self.host is None:
            return 0
        if self._meets(self.cluster.swarm.launcher.early_death):
            self.cluster.trace.bit("early_death", "program")
            return EXIT_KILLED
        return EXIT_REFUSED

    # -- the body -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        order, timeline = self.order, self.cluster.timeline
        self._body = Body(order.run_id, order.attempt, self.driver, timeline.now, order.args, order.context)
        self.cluster.record.bodies.append(self._body)
        self.cluster.trace.note(self.process.name, "body", self._body.schedule, order.context["nominal"])
        duration = timeline.around(self.cluster.swarm.launcher.body_ms)
        if self._meets(self.cluster.swarm.launcher.silent_death):
            self.cluster.trace.bit("silent_death", "program")
            timeline.after(duration * timeline.chance.random(), lambda: self.die("in its body"))
        stubborn = self.cluster.stubborn
        if stubborn is None or not stubborn.is_endless(self):
            self.process.after(duration, self._report_data)
        elif (overseen_ms := stubborn.overseen_ms(self)) is not None:
            self.process.after(overseen_ms, lambda: self._end("timed_out"))
        else:
            self._body.endless = True
            self._deaf_to = stubborn.deaf_to()

    def _report_data(self) -> None:
        """Announces the data partition that it made, when its schedule says so, and waits until it is on the topic."""
        produces = [each for each in self.order.args if each.startswith("makes=")]
        if not produces:
            self._end()
            return
        dataset = produces[0].removeprefix("makes=")
        event = {
            "id": f"{self.order.run_id}/{dataset}",
            "type": "data.partition",
            "namespace": "sim",
            "dataset": dataset,
            "partition": self.order.run_id,
        }

        def done(result: object) -> None:
            self.process.post(self._end if isinstance(result, Produced) else self._report_data)

        value = json.dumps(event).encode()
        outgoing = Outgoing(world.EVENTS, None, value, (), None, API_TIMEOUT_MS, lambda: self.process.alive)
        self.cluster.broker.produce(outgoing, done)

    def _end(self, outcome: str | None = None) -> None:
        assert self._body is not None
        if self._body.end is None:
            self._body.end = self.cluster.timeline.now
            self._body.outcome = outcome or ("failed" if self.cluster.timeline.happens(0.1) else "succeeded")
            if self.cluster.stubborn is not None and outcome is None:
                self._body.error_class = self.cluster.stubborn.error_class()
                self._body.outcome = "failed" if self._body.error_class is not None else self._body.outcome
            self._report()

    def _report(self) -> None:
        order, outcome, now = self.order, self._outcome(), self.cluster.timeline.now
        outputs = json.dumps({"driver": self.driver}, separators=(",", ":"))
        error_class = None if self._body is None else self._body.error_class
        finish = finish_run(
            order.run_id, order.attempt, self.driver, outcome, 0, None, error_class, outputs, now, self._token()
        )
        self._call("report", lambda answer: self._api.commit(finish, answer), self._reported, self._report)

    def _outcome(self) -> str:
        """Returns what is reported; without a body it was asked to end before that began."""
        return (self._body and self._body.outcome) or "failed"

    def _reported(self, verdict: Verdict) -> None:
        outcome = self._outcome()
        failed = dict(getattr(verdict, "failed", ()))
        run = failed.get(keys.run(keys.shard_of_run(self.order.run_id), self.order.run_id))
        if isinstance(verdict, Committed) or was_finished_by(run, self.order.attempt, self.driver, outcome):
            if self._body is not None:
                self._body.reported = True
            self._poke()
            self._exit(0)
        elif failed:
            self._exit(1)
        else:
            self.process.after(self.cluster.timeline.between(200, 1_000), self._report)

    # -- calls to the API ---------------------------------------------------------------------------------------------

    def _call(
        self,
        what: str,
        call: Callable[[Callable[[Verdict], None]], None],
        answered: Callable[[Verdict], None],
        again: Callable[[], None],
    ) -> None:
        """A request to any API process, which may be lost on either way; the wrapper then asks again."""
        timeline, faults = self.cluster.timeline, self.cluster.swarm.launcher
        if not self.cluster.healed and lies_in(faults.gate_downs, timeline.now - START):
            self.cluster.trace.bit("gate_unreachable", what)
            self.process.after(timeline.between(API_TIMEOUT_MS / 2, 2 * API_TIMEOUT_MS), again)
            return
        lost = self._meets(faults.lost_calls)
        arrives = not lost or timeline.happens(0.5)
        if lost:
            self.cluster.trace.bit("api_call_lost", what)
            self.process.after(API_TIMEOUT_MS, again)

        def answer(verdict: Verdict) -> None:
            if not lost:
                self.process.after(timeline.around(API_MS), lambda: answered(verdict))

        if arrives:
            timeline.after(timeline.around(API_MS), lambda: call(answer))

    def _poke(self) -> None:
        self.cluster.poke(int(self.order.run_id[:4]), self.order.run_id)

    def _token(self) -> str:
        self._calls += 1
        return f"{self.driver}/{self._calls}"

    def _meets(self, rate: float) -> bool:
        return not self.cluster.healed and self.cluster.timeline.happens(rate)

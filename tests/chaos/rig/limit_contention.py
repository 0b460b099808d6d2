"""Schedules that share a limit: more of them than it lets in, all due at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.checkers.expected_occurrences import every_nth_second
from tests.support.checkers.faults import Fault
from tests.support.checkers.runs import judge_instants, judge_limit
from tests.support.cluster.evidence import Evidence, ProgramRun
from tests.support.cluster.message_load import instant
from tests.support.cluster.suspension_load import Suspension, suspend_all
from tests.support.cluster.until import now_ms
from tests.support.cluster.user_client import Client

NAMESPACE = "crowd"
MEMBERS = 4
LIMIT = 2
WORK_S = 1.5


class Crowd:
    """Some schedules with the same instants, and room for half of them at a time.

    Args:
        client: Sends the requests.
        evidence: Where the programs write.
        expression: Their instants; only its seconds may say something.
    """

    def __init__(self, client: Client, evidence: Evidence, expression: str) -> None:
        self._client = client
        self._evidence = evidence
        self._expression = expression
        self._start = 0
        self._suspension: Suspension | None = None
        self.names = [f"crowd-{number}" for number in range(1, MEMBERS + 1)]

    def apply(self, start: int) -> None:
        """Applies all of them; their first instant is not before `start`, ms since the epoch."""
        self._start = start
        for name in self.names:
            receipt = self._client.apply(self._spec(name))
            assert receipt["status"] == "accepted", receipt

    def suspend(self) -> None:
        """Ends all of them. Call it when no instant is near, and all that was due has begun."""
        self._suspension = suspend_all(self._client, NAMESPACE, self.names, self._expression)

    def expected(self, name: str, runs: Sequence[ProgramRun]) -> list[int]:
        """Returns the nominal instants of a member, until all were suspended, or now."""
        if self._suspension is None:
            return every_nth_second(self._expression, self._start, now_ms())
        due = every_nth_second(self._expression, self._start, self._suspension.answered)
        return self._suspension.expected(due, {run.nominal for run in runs if run.schedule == name})

    def missing(self) -> list[tuple[str, int]]:
        """Returns (name, instant) of what is due and did not start yet."""
        runs = self._evidence.of(*self.names)
        started = {(run.schedule, run.nominal) for run in runs}
        due = [(name, nominal) for name in self.names for nominal in self.expected(name, runs)]
        return [each for each in due if each not in started]

    def judge(self) -> list[Fault]:
        """Judges everything that the programs wrote; call it once nothing is under way."""
        runs = self._evidence.of(*self.names)
        faults = [fault for name in self.names for fault in judge_instants(name, self.expected(name, runs), runs)]
        return faults + judge_limit(f"the {LIMIT} places of {NAMESPACE}", LIMIT, runs)

    def _spec(self, name: str) -> dict[str, Any]:
        return {
            "namespace": NAMESPACE,
            "name": name,
            "target": self._evidence.target(WORK_S),
            "trigger": {
                "type": "cron",
                "dialect": "unix6",
                "expression": self._expression,
                "zone": "UTC",
                "start": instant(self._start),
            },
            # However late it is applied.
            "catchup": {"on_create": "all"},
            "constraints": [{"type": "concurrency", "max": LIMIT, "scope": "group", "group": NAMESPACE}],
        }

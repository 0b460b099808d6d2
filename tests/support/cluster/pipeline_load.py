"""The demo's kinds of schedules with the program that leaves evidence, and what must come of them.

Two cron schedules land datasets, a third joins a data partition once both have it, a fourth follows each join one at a time,
and a fifth counts a feed of events. The client sends the feed, some of it twice.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.checkers.events import judge_counts
from tests.support.checkers.expected_occurrences import every_nth_second
from tests.support.checkers.faults import Fault
from tests.support.checkers.runs import judge_follow_ups, judge_instants, judge_joins, judge_limit
from tests.support.cluster.evidence import Evidence, ProgramRun
from tests.support.cluster.message_load import instant
from tests.support.cluster.suspension_load import Suspension, suspend_all
from tests.support.cluster.user_client import Acknowledged, Client, apply_of

NAMESPACE = "flights"
LANDING = {"flights.raw": "land-flights", "weather.raw": "land-weather"}
"""Schedule by the dataset that it lands."""
JOIN, REPORT, TALLY = "join-day", "delays", "tally"
FEED = "feed"
FEED_COUNT = 5
"""Events of the feed for one run, where nobody says otherwise."""
EXPRESSION = "*/8 * * * * *"
SENT_TWICE = 0.3
"""Share of the feed's events that are repeated: producers may."""


class Pipeline:
    """The schedules of one scenario.

    Args:
        client: Sends the requests and the feed.
        evidence: Where the programs write.
        expression: Of both landing schedules; only its seconds may say something.
        work_s: How long programs work, by schedule; those that are not named take no time.
        overlap: Of landings and joins: `queue` is one at a time, `allow` all that are due.
        feed_count: Events of the feed for one run.

    Attributes:
        evidence, feed_count: As above.
    """

    def __init__(
        self,
        client: Client,
        evidence: Evidence,
        expression: str = EXPRESSION,
        work_s: Mapping[str, float] | None = None,
        overlap: str = "queue",
        feed_count: int = FEED_COUNT,
    ) -> None:
        self._client = client
        self.evidence = evidence
        self.feed_count = feed_count
        self._expression = expression
        self._work_s = work_s or {}
        self._overlap = overlap
        self._start = 0
        self._suspension: Suspension | None = None
        self._feed: dict[str, int] = {}
        self._lock = threading.Lock()

    # -- requests -----------------------------------------------------------------------------------------------------

    def apply(self, start: int) -> None:
        """Applies all schedules; landings begin at `start`, ms since the epoch."""
        self._start = start
        joining = {
            "type": "all_of",
            "correlate": "data_partition",
            "triggers": [{"type": "data_partitions", "dataset": dataset, "count": 1} for dataset in LANDING],
            "timeout": "1h",
            "on_timeout": "abort",
        }
        specs = [
            self._spec(TALLY, {"type": "data_partitions", "dataset": FEED, "count": self.feed_count}),
            self._spec(REPORT, {"type": "run_status", "schedule": JOIN, "states": ["succeeded"]}, limit=1),
            {**self._spec(JOIN, joining), "overlap": self._overlap},
            *self._landing_specs(),
        ]
        for spec in specs:
            receipt = self._client.apply(spec)
            assert receipt["status"] == "accepted", receipt

    def apply_landings_again(self) -> None:
        """Applies both landings as they are: nothing comes of it but an answer."""
        for receipt in self._client.request_all([apply_of(spec) for spec in self._landing_specs()]):
            assert receipt["status"] == "unchanged", receipt

    def suspend_landings(self) -> None:
        """Ends the landings. Call it when no instant is near, and all that was due has begun."""
        self._suspension = suspend_all(self._client, NAMESPACE, list(LANDING.values()), self._expression)

    def _landing_specs(self) -> Sequence[dict[str, Any]]:
        trigger = {
            "type": "cron",
            "dialect": "unix6",
            "expression": self._expression,
            "zone": "UTC",
            "start": instant(self._start),
        }
        # However late it is applied: what the trigger has named since its start is made up for.
        more = {"overlap": self._overlap, "catchup": {"on_create": "all"}}
        return [{**self._spec(name, trigger, dataset), **more} for dataset, name in LANDING.items()]

    def _spec(
        self, name: str, trigger: Mapping[str, Any], dataset: str | None = None, limit: int | None = None
    ) -> dict[str, Any]:
        return {
            "namespace": NAMESPACE,
            "name": name,
            "target": self.evidence.target(self._work_s.get(name, 0.0), dataset),
            "trigger": dict(trigger),
            "constraints": [] if limit is None else [{"type": "concurrency", "max": limit}],
        }

    # -- the feed -----------------------------------------------------------------------------------------------------

    def feed(self, chance: random.Random) -> None:
        """Announces one more data partition of the feed, now and then twice under the same id."""
        with self._lock:
            number = len(self._feed) + 1
            event_id = f"feed-{number}"
            self._feed[event_id] = 0
        for _ in range(2 if chance.random() < SENT_TWICE else 1):
            self._announce(event_id, number)

    def _announce(self, event_id: str, number: int) -> None:
        def acknowledged(_: Acknowledged) -> None:
            with self._lock:
                self._feed[event_id] += 1

        event = {
            "id": event_id,
            "type": "data.partition",
            "namespace": NAMESPACE,
            "dataset": FEED,
            "partition": f"{number:06d}",
            "kind": "created",
        }
        self._client.send("events", event, key=f"any-{number % 3}", on_acknowledged=acknowledged)

    @property
    def uncounted(self) -> list[str]:
        """Acknowledged events of the feed that no program was told of yet."""
        counted = {entry.event_id for run in self.evidence.of(TALLY) for entry in run.manifest}
        with self._lock:
            return [event for event, count in self._feed.items() if count and event not in counted]

    @property
    def events(self) -> int:
        """How many distinct events of the feed the broker has."""
        with self._lock:
            return sum(1 for count in self._feed.values() if count)

    @property
    def events_of_unknown_fate(self) -> int:
        """How many events of the feed no broker acknowledged."""
        with self._lock:
            return sum(1 for count in self._feed.values() if not count)

    # -- expectation --------------------------------------------------------------------------------------------------

    def expected(self, name: str, before: int | None = None) -> list[int]:
        """Returns a landing's nominal instants until it was suspended, or `before`."""
        until = self._suspension.answered if before is None and self._suspension is not None else before
        assert until is not None
        due = every_nth_second(self._expression, self._start, until)
        if self._suspension is None:
            return due
        return self._suspension.expected(due, {run.nominal for run in self.evidence.of(name)})

    def days(self, before: int | None = None) -> set[int]:
        """Returns the nominal instants of which both landings are expected, as `expected` has them."""
        return set.intersection(*(set(self.expected(name, before)) for name in LANDING.values()))

    def next_landing(self, after: int) -> int:
        """Returns the next nominal instant after `after`."""
        return every_nth_second(self._expression, max(after + 1, self._start), max(after, self._start) + 120_000)[0]

    def is_done(self, before: int | None = None) -> bool:
        """Whether every landing due by then has ended, and every day of which both are due has its join and its report, ended too."""
        wanted = {name: len(self.expected(name, before)) for name in LANDING.values()}
        wanted |= dict.fromkeys((JOIN, REPORT), len(self.days(before)))
        ended = [run for run in self.evidence.runs() if run.ended_ns is not None]
        return all(
            len({run.run_id for run in ended if run.schedule == name}) >= count for name, count in wanted.items()
        )

    def missing(self, before: int | None = None) -> list[int]:
        """Returns the landing instants of which one of the two programs did not start yet, twice where both did not."""
        due = {name: self.expected(name, before) for name in LANDING.values()}
        started = {name: {run.nominal for run in self.evidence.of(name)} for name in LANDING.values()}
        return sorted(each for name, instants in due.items() for each in instants if each not in started[name])

    def judge(self) -> list[Fault]:
        """Judges everything that the programs wrote; call it once nothing is under way."""
        runs = self.evidence.runs()
        faults = [fault for name in LANDING.values() for fault in judge_instants(name, self.expected(name), runs)]
        faults += judge_joins(JOIN, LANDING, runs)
        faults += judge_follow_ups(REPORT, JOIN, runs)
        by_fate: dict[bool, list[str]] = {True: [], False: []}
        for event, count in self._feed.items():
            by_fate[count > 0].append(event)
        faults += judge_counts(TALLY, self.feed_count, by_fate[True], runs, by_fate[False])
        # Overlap `queue`, the default, bounds each of them by 1, the report also by its own constraint.
        queued = (*LANDING.values(), JOIN) if self._overlap == "queue" else ()
        for name in (*queued, REPORT, TALLY):
            faults += judge_limit(name, 1, [run for run in runs if run.schedule == name])
        return faults

    def landings(self) -> list[ProgramRun]:
        """Returns the landings' program runs so far."""
        return self.evidence.of(*LANDING.values())

    def lateness(self) -> list[int]:
        """Returns start minus nominal of the landings, ms."""
        return [run.started_at - run.nominal for run in self.landings() if run.nominal is not None]

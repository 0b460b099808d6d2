"""Follows each occurrence through the rows that the scheduler writes, so that a simulation reports what the store
holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate_core.language.values.instants import Instant, format_instant, parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.recurring_message import fire_id
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.shard.schedule_state import admits
from tidegate_simulator.occurrence_record import BEHIND, SUSPENDED, Wait

_RUN_ID = re.compile(r"\d{4}-[a-z2-7]{26}", re.ASCII)
WORDS = {
    BEHIND: "a job of the same schedule is before it and has to go first",
    SUSPENDED: "the schedule is suspended",
}
NOT_SENT = {
    "outage": ("skipped/outage", None),
    "expire_after": ("expired", "too late to be sent: expire_after had passed"),
}
"""Result and remark of recurring messages that are not sent, by the reason in the node's log."""


@dataclass(slots=True)
class Story:
    """Known facts about one occurrence; fields as in `Occurrence`.

    Attributes:
        ended: Whether the ledger contains it.
    """

    schedule: str
    trigger: str
    nominal: Instant
    result: str
    correlation: str | None = None
    covered: int = 1
    covered_from: Instant | None = None
    first_event_at: Instant | None = None
    made_at: Instant | None = None
    waits: list[Wait] = field(default_factory=list)
    admitted_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    attempts: int = 0
    detail: str | None = None
    missing: tuple[str, ...] = ()
    forced: str | None = None
    ended: bool = False

    @property
    def title(self) -> str:
        return f"{self.schedule} {format_instant(self.nominal)}"


class Stories:
    """Histories of all occurrences.

    Attributes:
        told: Histories by job id, which is also the run's id; messages, and occurrences without a job, have their own
            ids.
    """

    def __init__(self, clock: Callable[[], Instant]) -> None:
        self.told: dict[str, Story] = {}
        self._clock = clock
        self._lives: dict[str, str] = {}
        self._suspended: set[str] = set()

    # -- rows ---------------------------------------------------------------------------------------------------------

    def learn(self, key: Key, item: Item | None, before: Item | None) -> None:
        """Learns from a write: `item` is the new state, None if it was deleted."""
        prefix, _ = keys.split_prefix(key)
        if prefix == keys.STATE_PREFIX and item is not None:
            self._learn_state(from_item(ScheduleState, item))
        elif prefix == keys.JOB_PREFIX:
            self._learn_job(key, None if item is None else from_item(Job, item))
        elif prefix == keys.RUN_PREFIX and item is not None and key.table == "main":
            self._learn_run(from_item(Run, item))
        elif prefix == keys.LEDGER_PREFIX and item is not None:
            self._learn_entry(from_item(LedgerRow, item))
        elif prefix == keys.EVIDENCE_PREFIX:
            self._learn_evidence(item, before)

    def _learn_state(self, state: ScheduleState) -> None:
        ref = f"{state.namespace}/{state.name}"
        self._lives[state.incarnation] = ref
        was_suspended = ref in self._suspended
        if state.status == "suspended" and not admits(state):  # A drain admits jobs: waiting ones have another reason.
            self._suspended.add(ref)
        else:
            self._suspended.discard(ref)
        if was_suspended != (ref in self._suspended):
            for story in self.told.values():
                if story.schedule == ref and story.result == "pending_constraint":
                    self._waits(story, None)

    def _learn_evidence(self, item: Item | None, before: Item | None) -> None:
        if item is not None:
            evidence = from_item(Evidence, item)
            story = self.told.setdefault(
                evidence.id,
                Story(f"{evidence.namespace}/{evidence.name}", "events", evidence.first_at, "pending_trigger"),
            )
            story.first_event_at, story.correlation = evidence.first_at, evidence.value
        elif before is not None and not before.get("job"):
            # Discarded without a ledger entry: it was no occurrence yet.
            story = self.told[str(before["id"])]
            if story.result == "pending_trigger":
                del self.told[str(before["id"])]

    def _learn_job(self, key: Key, job: Job | None) -> None:
        if job is None:
            story = self.told.get(key.sk[2:])
            if story is not None:
                self._waits_no_more(story)
            return
        story = self.told.setdefault(job.id, Story(job.ref, job.trigger, job.nominal, job.state))
        story.nominal, story.result, story.covered = job.nominal, job.state, job.stands_for
        story.covered_from, story.missing = job.covered_from, job.missing
        story.correlation = job.correlation or story.correlation
        story.made_at = job.satisfied_at if story.made_at is None else story.made_at
        if job.state == "pending_constraint":
            self._waits(story, job.unmet)
        else:
            self._waits_no_more(story)

    def _learn_run(self, run: Run) -> None:
        story = self.told[run.id]
        story.result, story.attempts = run.outcome or run.state, run.attempt - run.free_attempts
        story.admitted_at, story.started_at, story.ended_at = run.admitted_at, run.started_at, run.ended_at
        story.forced = None if run.forced is None else str(json.loads(run.forced)["reason"])
        self._waits_no_more(story)

    def _learn_entry(self, row: LedgerRow) -> None:
        story = self.told.setdefault(row.job_id, Story(f"{row.namespace}/{row.name}", row.trigger, row.nominal, ""))
        self._waits_no_more(story)
        story.ended, story.nominal, story.detail = True, row.nominal, row.detail
        story.correlation = row.correlation or story.correlation
        story.covered, story.covered_from = row.covered or 1, row.covered_from
        story.result = row.state or f"{row.disposition}/{row.reason}".rstrip("/")
        if row.admitted_at is not None:
            story.admitted_at, story.started_at, story.ended_at = row.admitted_at, row.started_at, row.ended_at
        elif story.ended_at is None:
            story.ended_at = row.at

    # -- waits --------------------------------------------------------------------------------------------------------

    def _waits(self, story: Story, unmet: str | None) -> None:
        now = self._clock()
        if unmet is None or story.schedule in self._suspended:
            code = SUSPENDED if story.schedule in self._suspended else BEHIND
            wait = Wait(now, None, (code,), WORDS[code])
        else:
            told: dict[str, Any] = json.loads(unmet)
            wait = Wait(now, None, tuple(told["codes"]), told["reason"], tuple(map(_verdict, told["verdicts"])))
        last = story.waits[-1] if story.waits else None
        if last is not None and last.end is None:
            if (last.codes, last.verdicts) == (wait.codes, wait.verdicts):
                return
            self._waits_no_more(story)
        story.waits.append(wait)

    def _waits_no_more(self, story: Story) -> None:
        if not story.waits or story.waits[-1].end is not None:
            return
        now, last = self._clock(), story.waits.pop()
        if last.begin < now:  # A wait that ends at the instant of its begin does not count.
            story.waits.append(replace(last, end=now))

    # -- messages -----------------------------------------------------------------------------------------------------

    def delivered(self, headers: Mapping[str, str], nominal: Instant) -> None:
        """Records that a message of a schedule was delivered; one-shot messages are no occurrences of a schedule."""
        message = headers["tidegate-id"]
        for incarnation, schedule in self._lives.items():
            if fire_id(incarnation, nominal) in message:
                story = self.told.setdefault(message, Story(schedule, "time", nominal, "delivered"))
                story.covered = int(headers.get("tidegate-covered-count", "1"))
                if story.covered > 1:
                    story.covered_from = parse_instant(headers["tidegate-covered-from"])
                story.ended_at, story.ended = self._clock(), True

    def not_sent(self, fields: Mapping[str, Any]) -> None:
        """Records that occurrences of a recurring message ended without a delivery; no row is written for them."""
        schedule, first, last = str(fields["schedule"]), int(fields["first"]), int(fields["last"])
        result, detail = NOT_SENT[str(fields["reason"])]
        story = self.told.setdefault(f"{schedule} {last}", Story(schedule, "time", last, result))
        if story.ended:
            return  # Reported again by a successor.
        story.covered, story.covered_from = int(fields["occurrences"]), first
        story.detail, story.ended_at, story.ended = detail, self._clock(), True

    # -- words --------------------------------------------------------------------------------------------------------

    def in_words(self, text: str) -> str:
        """Returns a text with run ids replaced by the titles of their occurrences, which readers understand."""

        def title(match: re.Match[str]) -> str:
            story = self.told.get(match[0])
            return match[0] if story is None else story.title

        return _RUN_ID.sub(title, text)


def _verdict(told: Mapping[str, Any]) -> dict[str, Any]:
    until = told["until"]
    return {**told, "until": None if until is None else format_instant(until)}

"""Reasons that `why` answers with: code, text, values and the next instant of change; and the closed list of all codes.

Blockers of a waiting job have the codes of `constraints/reason_codes.py`, which the decision itself gives. Outcomes of occurrences have the words
of the ledger, `<disposition>/<reason>`. This file generates `docs/reasons.md`, and a test compares the two. Each code has a test story that
produces it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate_core.language.constraints.constraint import REASONS, Compared, ReasonCode
from tidegate_core.language.values.instants import Instant

STANDING: Final[Mapping[str, str]] = {
    "suspended": "the schedule is suspended, or was at the instant of the question",
    "namespace_suspended": "its namespace is suspended, or was",
    "system_suspended": "everything is suspended, or was",
    "resuming": "it was resumed, and the part of the backlog that the resume leaves out is still being ended",
    "deleted": "the schedule was deleted",
    "not_there_yet": "the schedule was created later",
    "not_served": "no node has served its shard lately; due occurrences are made once a node does",
}
TIME: Final[Mapping[str, str]] = {
    "not_due": "the instant is still to come",
    "not_found_yet": "the exclusions of the trigger are so large that its next instant is still being searched",
    "being_made": "it is due, and its job is made now",
    "not_named": "the trigger names no such instant",
    "excluded": "the trigger leaves it out (`exclude`)",
    "before_start": "it is before the trigger's `start`",
    "after_end": "it is not before the trigger's `end`",
    "dst_gap": "a clock change skips the local time, and the trigger does not shift it",
    "dst_shift": "a clock change skips the local time: it fires at the first instant after the gap",
    "dst_overlap": "a clock change repeats the local time, and it fires in the other pass",
    "zone_jump": "the zone was redefined and skipped the local time",
    "max_fires_reached": "the number of occurrences in `max_fires` is reached",
    "no_more_instants": "the trigger names no further instant",
    "counts_from_later": "since an update or a resume it counts from a later instant on",
    "message_due": "a recurring message was due; nothing is written when it is sent",
    "forgotten": "the ledger entries of that time are expired",
    "not_known": "it was due, and no stored row says how it ended",
}
EVENTS: Final[Mapping[str, str]] = {
    "waiting_for_events": "some events that its trigger needs have arrived, and some are missing",
    "no_events": "no event is counted that waits for more: none has arrived, or a job has taken them",
    "upstream_gone": "a schedule that its trigger waited for was deleted: the trigger goes on without it",
    "not_satisfied": "its trigger was not satisfied at that instant",
}
JOBS: Final[Mapping[str, str]] = {
    "behind": "a job of the same schedule is before it and has to go first",
    "being_decided": "nothing blocks it: the owner decides about it next",
    **dict[str, str](REASONS.items()),
}
RUNS: Final[Mapping[str, str]] = {
    "launching": "it was admitted, and no launcher has taken it yet",
    "submit_pause": "an attempt died before the start gate, and the next one waits a little",
    "retry_pause": "its program failed, and the next attempt waits for its backoff (`retry`)",
    "before_gate": "a launcher has taken it, and its program has not come to the start gate",
    "running": "its program runs",
    "cancelling": "its program was asked to end and has not ended yet",
    "lost": "its program was started, and its host does not answer; it is open until it is found, reports its end, or is released",
}

NEVER_ABORTS: Final[frozenset[ReasonCode]] = frozenset(
    {"delayed", "load_unknown", "flexible_window", "catch_up_pacing"}
)
"""Codes of blockers that hold a job back and never end it."""

LEDGER: Final[Mapping[str, str]] = {
    "launched": "it was launched; its run's state says how it ended",
    "coalesced/overlap": "another job covers it (`overlap: coalesce`)",
    "coalesced/max_pending": "another job covers it: as many as `max_pending` waited",
    "coalesced/backlog": "another job covers it: a resume with `backlog: coalesce`",
    "skipped/overlap": "the limit of open runs was reached (`overlap: skip`)",
    "skipped/replaced": "a later one took its place (`overlap: keep_latest` or `cancel_running`)",
    "skipped/max_pending": "as many jobs as `max_pending` waited (`on_overflow: reject`)",
    "skipped/open_instances": "the limit of open instances was reached: they wait for events of earlier instants (`driver: time`)",
    "skipped/outage": "no node served the schedule then, and `catchup` says `none`",
    "skipped/dst_gap": "a clock change skipped its local time (`dst_gap: skip`)",
    "skipped/zone_jump": "the zone was redefined and skipped its local time",
    "skipped/nothing_new": "no event had arrived when `at_least_every` asked for a job",
    "skipped/unresolved_template": "a template of its program has no value",
    **{
        f"skipped/{code}": f"a constraint with `on_unmet: abort` did not hold: {meaning}"
        for code, meaning in REASONS.items()
        if code not in NEVER_ABORTS
    },
    "expired/catchup_window": "it was missed longer ago than `catchup.window`",
    "expired/constraint_timeout": "its constraints did not hold within `pending_timeout`",
    "expired/trigger_timeout": "its trigger was not satisfied in time",
    "expired/evidence_expired": "counted events expired (`ttl`) before the others arrived",
    "cancelled/suspended": "a suspend ended it",
    "cancelled/superseded": "an update ended it",
    "cancelled/schedule_deleted": "a delete ended it",
    "cancelled/upstream_deleted": "its trigger waited for a schedule that was deleted, and cannot fire without it",
    "expired/upstream_deleted": "its trigger waited for a schedule that was deleted, and the counted events were not enough",
    "cancelled/by_request": "somebody cancelled it",
    "cancelled/overlap": "a later one took its place before its program started (`overlap: cancel_running`)",
}

FAMILIES: Final[Mapping[str, Mapping[str, str]]] = {
    "Where the schedule stands": STANDING,
    "Instants of a time trigger": TIME,
    "Triggers that count events": EVENTS,
    "A job that waits": JOBS,
    "A run": RUNS,
    "What became of an occurrence": LEDGER,
}
CODES: Final[Mapping[str, str]] = {code: text for family in FAMILIES.values() for code, text in family.items()}


_HEAD = """\
# Reason codes

What `tidegate why <namespace>/<name> [--at TIME]` and `tidegate why <job or run>` answer with: a closed list. Each reason carries words, the
values that were used (`-o json`), and the next instant at which it can change, where one is known. How to ask:
[schedules.md](schedules.md#why). This page is made of `shared/tidegate_core/explain/why/reason.py`; the test
`tests/unit/tidegate_core/explain/why/test_golden.py` has a story for each code.
"""


def reasons_page() -> str:
    """Returns the page as Markdown."""
    parts = [_HEAD]
    for title, family in FAMILIES.items():
        rows = "".join(f"| `{code}` | {meaning} |\n" for code, meaning in family.items())
        parts.append(f"## {title}\n\n| code | meaning |\n|---|---|\n{rows}")
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason of an answer.

    Attributes:
        code: Code of the closed list.
        text: Text for people, with the compared values.
        until: Next instant at which the reason can change; None: only an event or a request changes it, or nothing does.
        values: Values for programs: instants as RFC 3339, durations in milliseconds; `job` or `run` names the subject.
    """

    code: str
    text: str
    until: Instant | None = None
    values: Mapping[str, Compared] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Answer to one question.

    Attributes:
        about: Subject: `schedule flights/nightly`, `job <id>` or `run <id>`.
        at: Instant of the question; without one, the instant of the answer.
        local: The same instant on the wall clock of the trigger. A local time that does not exist is given as the user wrote it.
    """

    about: str
    at: Instant
    reasons: tuple[Reason, ...]
    local: str | None = None

    @property
    def next_change(self) -> Instant | None:
        """The earliest instant at which one of the reasons can change."""
        return earliest(self.reasons)


def further(reasons: Sequence[Reason], what: str, command: str) -> list[Reason]:
    """Returns one reason for each code, with the number of items that have it. An answer lists only the first few items one by one.

    Args:
        reasons: One reason for each item that is not listed.
        what: Plural noun of the items, such as `jobs`.
        command: Command that lists the items.
    """
    counts = Counter(each.code for each in reasons)
    return [
        Reason(
            code,
            f"{count} further {what}: {CODES[code]}; {command} shows each",
            earliest([each for each in reasons if each.code == code]),
            {what: count},
        )
        for code, count in counts.items()
    ]


def earliest(reasons: Sequence[Reason]) -> Instant | None:
    return min((each.until for each in reasons if each.until is not None), default=None)

"""All that is compared of one shard.

What an audit says: as a document, in lines, and as an exit code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidegate_core.explain.audit.delivered_records import OnTopics, Seen, judge_sink, sink_facts
from tidegate_core.explain.audit.duplicate_records import crosscheck
from tidegate_core.explain.audit.findings import KINDS, Findings, Unjudged, summed
from tidegate_core.explain.audit.message_tallies import MessageFacts, judge_messages
from tidegate_core.explain.audit.occurrence_comparison import judge_schedules
from tidegate_core.explain.audit.shard_snapshot import ShardFacts, Window
from tidegate_core.language.values.instants import format_instant
from tidegate_core.messages.wire.row_expiry import ROW_DAYS
from tidegate_core.rows.receipt import DAY_S
from tidegate_core.shard.jobs import LEDGER_DAYS


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """What an audit is about.

    Attributes:
        window: Nominal instants of schedules.
        of_messages: Nominal instants of messages, whose rows are kept for a shorter time.
        now: The present: what is kept for so long may be gone.
    """

    window: Window
    of_messages: Window
    now: int


def judge_shard(
    facts: ShardFacts, messages: MessageFacts | None, seen: Mapping[str, Seen] | None, asked: AuditQuery
) -> Findings:
    """Returns what is wrong with a shard.

    Args:
        facts: Rows of its run plane.
        messages: Of its delivery plane; None where they are not asked for, or nobody has ever served it.
        seen: What the topics have, by id; None where they were not read.
        asked: When.
    """
    findings = judge_schedules(facts, asked.window)
    findings.add(crosscheck(facts, asked.window, asked.now))
    if messages is not None:
        findings.add(judge_messages(messages, asked.of_messages))
        if seen is not None:
            of_sink = sink_facts(facts, messages, asked.of_messages)
            findings.add(judge_sink(of_sink, asked.of_messages, OnTopics(seen)))
    return findings


CLEAN: Final = 0
DIFFERS: Final = 1
CANNOT_TELL: Final = 6
"""Nothing is missing of what could be judged, and something could not that should have been."""
BEHIND: Final = 75
"""Nothing is missing so far; a shard has not come to the window's end. As of sysexits.h, EX_TEMPFAIL: run it again."""
SHOWN_MAX: Final = 100
"""Differences that are written line by line; a document has them all."""


def asked_for(window: Window, now: int) -> tuple[AuditQuery, list[Unjudged]]:
    """Returns what can be asked of a window, and what of it lies beyond what is kept."""
    ledger, rows = (now - days * DAY_S * 1_000 for days in (LEDGER_DAYS, ROW_DAYS))
    beyond = []
    if window.begin < ledger:
        beyond.append(
            Unjudged(
                f"it lies before {format_instant(ledger)}: the ledger is kept {LEDGER_DAYS} days",
                "schedules",
                is_grave=True,
            )
        )
    if window.begin < rows:
        beyond.append(
            Unjudged(
                f"it lies before {format_instant(rows)}: their rows are kept {ROW_DAYS} days", "messages", is_grave=True
            )
        )
    return AuditQuery(
        Window(max(window.begin, ledger), window.end), Window(max(window.begin, rows), window.end), now
    ), beyond


def exit_code_of(findings: Findings) -> int:
    """Returns 0 only where nothing is missing, nothing is doubled, and everything could be judged that can be at all."""
    if findings.differences:
        return DIFFERS
    if any(each.is_grave for each in findings.unjudged):
        return CANNOT_TELL
    return BEHIND if findings.behind else CLEAN


def document_of(findings: Findings, window: Window, shards: int) -> dict[str, Any]:
    """Returns the answer as plain data, for `-o json`."""
    return {
        "from": format_instant(window.begin),
        "to": format_instant(window.end),
        "shards": shards,
        "counts": dict(sorted(findings.counts.items())),
        "differences": [
            {
                "kind": each.kind,
                "subject": each.subject,
                "occurrence": each.occurrence,
                "expected": each.expected,
                "found": each.found,
            }
            for each in sorted(findings.differences)
        ],
        "behind": [
            {"shard": each.shard, "subject": each.subject, "since": format_instant(each.stands_at)}
            for each in sorted(set(findings.behind))
        ],
        "not_audited": [
            {"count": count, "because": why, "example": example} for why, count, example in summed(findings.unjudged)
        ],
    }


def lines_of(findings: Findings, window: Window, shards: int) -> Iterator[str]:
    """Yields the answer for people."""
    yield f"audited {format_instant(window.begin)} to {format_instant(window.end)}, {shards} shards"
    for name, count in sorted(findings.counts.items()):
        yield f"  {name.ljust(12)} {count}"
    for each in sorted(findings.differences)[:SHOWN_MAX]:
        yield f"{each.kind}: {each.subject} {each.occurrence} {KINDS[each.kind]}: expected {each.expected}, found {each.found}"
    if len(findings.differences) > SHOWN_MAX:
        yield f"... and {len(findings.differences) - SHOWN_MAX} differences more: -o json has them all"
    for behind in sorted(set(findings.behind))[:SHOWN_MAX]:
        yield f"behind: shard {behind.shard}, {behind.subject}, stands at {format_instant(behind.stands_at)}"
    for why, count, example in summed(findings.unjudged):
        yield f"not audited: {count} ({example}) because {why}"
    yield f"{len(findings.differences)} differences"

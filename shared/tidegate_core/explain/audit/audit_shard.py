"""Audit of one shard by all comparisons, and the report of an audit: a document, lines for people, and an exit code.

`tidegate audit` calls it for each shard, with the rows that it has read.
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
    """Question of an audit.

    Attributes:
        window: Nominal times of schedules.
        of_messages: Nominal times of messages, whose rows are kept for a shorter time.
        now: Present instant, which says how old a row may be before it expires.
    """

    window: Window
    of_messages: Window
    now: int


def judge_shard(
    facts: ShardFacts, messages: MessageFacts | None, seen: Mapping[str, Seen] | None, asked: AuditQuery
) -> Findings:
    """Returns the findings of one shard.

    Args:
        facts: Rows of the shard's schedules, jobs and runs.
        messages: Rows of the shard's messages; None: the audit leaves messages out, or no node has served the shard yet.
        seen: Records of the topics by id; None: the topics were not read.
        asked: Question of the audit.
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
"""No difference was found, but something could not be judged because its rows or records are gone."""
BEHIND: Final = 75
"""No difference was found so far, but a shard has not reached the end of the window. EX_TEMPFAIL of sysexits.h: run the audit again."""
SHOWN_MAX: Final = 100
"""Differences that are printed as lines; the document has all of them."""


def asked_for(window: Window, now: int) -> tuple[AuditQuery, list[Unjudged]]:
    """Returns the part of a window that an audit can judge, and the parts whose rows are expired."""
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
    """Returns 0 only if nothing is missing or doubled, and all could be judged that an audit can judge."""
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

"""All that is compared of one shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_core.explain.audit.delivered_records import OnTopics, Seen, judge_sink, sink_facts
from tidegate_core.explain.audit.duplicate_records import crosscheck
from tidegate_core.explain.audit.findings import Findings
from tidegate_core.explain.audit.message_tallies import MessageFacts, judge_messages
from tidegate_core.explain.audit.occurrence_comparison import judge_schedules
from tidegate_core.explain.audit.shard_snapshot import ShardFacts, Window


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

"""One schedule on a desk, and rows of its inbox that are laid there and counted."""

from __future__ import annotations

import json
from typing import Any

from tests.support.builders import NOW, Doc, a_definition, a_schedule, a_spec, all_of, on_data
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.evidence.inbox_batches import batch_decisions
from tidegate_core.evidence.match import MatchEvents
from tidegate_core.rows.evidence import Evidence, EvidenceChunk
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.job import Job

REF = "flights/nightly"
BOTH = all_of(on_data("a"), on_data("b"), correlate="data_partition", timeout="6h")


def a_desk(trigger: Doc, **state: Any) -> DecisionHarness:
    return DecisionHarness(a_definition(a_spec(trigger=trigger)), a_schedule(**state))


def count(desk: DecisionHarness, *rows: InboxRow, now: int = NOW) -> None:
    """Lays the rows and counts them, in one decision."""
    desk.lay(*rows)
    desk.decide(MatchEvents(REF, tuple(row.key(0) for row in rows)), now)


def count_all(desk: DecisionHarness, *rows: InboxRow, now: int = NOW) -> None:
    """Lays the rows and counts them as an owner does that finds them all at once."""
    desk.lay(*rows)
    for decision in batch_decisions(REF, ((row.key(0), row) for row in rows)):
        desk.decide(decision, now)


def evidence(desk: DecisionHarness) -> dict[str, tuple[int, ...]]:
    return {each.correlation: each.counts for each in desk.records(Evidence, "E#")}


def entries(desk: DecisionHarness, evidence_id: str) -> list[Doc]:
    chunks = [each for each in desk.records(EvidenceChunk, "EC#") if each.evidence_id == evidence_id]
    return [entry for chunk in chunks for entry in json.loads(chunk.entries)]


def jobs(desk: DecisionHarness) -> list[Job]:
    return desk.records(Job, "J#")

"""Compares the topics themselves with what should be on them: which message is not there, which is there and should not be.

Repeats are counted and not judged: how many a crash may leave is bounded (I8), but when owners changed is not written down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tidegate_core.audit.expected import WideSuspends
from tidegate_core.audit.facts import Window
from tidegate_core.audit.findings import Findings, Unjudged
from tidegate_core.audit.messages import MessageFacts, is_passed
from tidegate_core.decisions.delivery_plane.recurring import Fire, Series
from tidegate_core.model.instants import format_instant
from tidegate_core.records.controls import Controls
from tidegate_core.records.messages import FIRST_VERSION, MessageName, public_id
from tidegate_core.records.recurring import Interval, fire_id

WALKED_MAX: Final = 1_000_000
"""Fires of one interval that are looked at."""
MAY_EXPIRE: Final = "messages that are not on their topic and may have expired: the tallies say how many have"
MAY_BE_DROPPED: Final = "fires before a wide suspend that may have been dropped by it: the tallies say how many were"
LEFT_OUT: Final = "fires that may have fallen into an outage, which their schedule leaves out (catchup: none)"
TOO_MANY: Final = f"recurring messages with more than {WALKED_MAX:,} fires in it: take a shorter window"


@dataclass(slots=True)
class Seen:
    """What the topics have under one id.

    Attributes:
        count: Records.
        covered_from, covered_to: Nominals that it stands for, after an outage.
        is_dead: It is on the dead-letter topic.
    """

    nominal: int
    count: int = 1
    covered_from: int | None = None
    covered_to: int | None = None
    is_dead: bool = False

    def covers(self, nominal: int) -> bool:
        first, last = self.covered_from, self.covered_to
        return first is not None and last is not None and first <= nominal <= last


def judge_sink(facts: MessageFacts, controls: Controls, window: Window, seen: Mapping[str, Seen]) -> Findings:
    """Returns what a shard's messages and the topics do not agree on.

    Args:
        facts: Of a shard.
        controls: Wide suspends.
        window: Of nominals.
        seen: By id, of all shards; records from before the window's begin need not be there.
    """
    findings = Findings()
    known = {facts.id_of(named) for named in facts.rows}
    for named, row in facts.rows.items():
        name = facts.id_of(named)
        is_due = window.has(row.nominal) and not facts.is_covered(named) and is_passed(facts, named)
        if not is_due or name in seen or facts.timers[named][0].ref is not None:
            continue
        if row.expires is not None:
            findings.unjudged.append(Unjudged(MAY_EXPIRE, f"shard {facts.shard}"))
        else:
            _lost(findings, facts, name, row.nominal, f"on {row.topic}")
    for ref, interval in facts.intervals:
        known |= set(
            _judge_fires(facts, ref, interval, WideSuspends.of(controls, ref.split("/", 1)[0]), window, seen, findings)
        )
    _judge_seen(facts, known, window, seen, findings)
    return findings


def _judge_fires(
    facts: MessageFacts,
    ref: str,
    interval: Interval,
    wide: WideSuspends,
    window: Window,
    seen: Mapping[str, Seen],
    findings: Findings,
) -> Iterator[str]:
    """Yields the ids that the fires of an interval have."""
    covering = [each for each in seen.values() if each.covered_from is not None]
    namespace, schedule = ref.split("/", 1)
    # What a request has ended before its acknowledgement came may be there all the same.
    for fire in Series(namespace, schedule, interval).cancelled((window.begin, "", "")):
        yield _id_of(facts, fire)
    for walked, fire in enumerate(_fires(ref, interval, window)):
        name = _id_of(facts, fire)
        yield name
        if walked == WALKED_MAX:
            findings.unjudged.append(Unjudged(TOO_MANY, ref))
            return
        if name in seen or fire.slot >= facts.position[0] or wide.cover(fire.nominal):
            continue
        if (fire.message_id, FIRST_VERSION) in facts.rows:
            continue  # The broker refused it: its rows say what becomes of it.
        if any(each.covers(fire.nominal) and _is_of(facts, interval, each, seen) for each in covering):
            findings.counts["coalesced"] += 1
        elif wide.may_have_dropped(fire.nominal):
            findings.unjudged.append(Unjudged(MAY_BE_DROPPED, ref))
        elif interval.catch_up == "none":
            findings.unjudged.append(Unjudged(LEFT_OUT, ref))
        else:
            _lost(findings, facts, f"{ref} {name}", fire.nominal, "on its topic, alone or covered by another")


def _fires(ref: str, interval: Interval, window: Window) -> Iterator[Fire]:
    """Yields what is to be sent in a window, as if there had been no outage."""
    namespace, name = ref.split("/", 1)
    for fire in Series(namespace, name, interval).behind((window.begin, "", "")):
        if fire.nominal > window.end:
            return
        yield fire


def _id_of(facts: MessageFacts, fire: Fire) -> str:
    return public_id(facts.shard, MessageName(fire.message_id, False), FIRST_VERSION)


def _is_of(facts: MessageFacts, interval: Interval, seen: Seen, all_seen: Mapping[str, Seen]) -> bool:
    """Whether a record is a fire of this very schedule's life."""
    name = public_id(facts.shard, MessageName(fire_id(interval.incarnation, seen.nominal), False), FIRST_VERSION)
    return all_seen.get(name) is seen


def _judge_seen(
    facts: MessageFacts, known: set[str], window: Window, seen: Mapping[str, Seen], findings: Findings
) -> None:
    mine = f"{facts.shard:04d}-"
    for name, each in seen.items():
        if not name.startswith(mine) or not window.has(each.nominal):
            continue
        findings.counts["dead" if each.is_dead else "seen"] += 1
        findings.counts["repeated"] += each.count - 1
        if name not in known and facts.namespace is None:
            occurrence = f"{name} {format_instant(each.nominal)}"
            findings.differs("message_unknown", f"shard {facts.shard}", occurrence, "nothing", f"{each.count} records")


def _lost(findings: Findings, facts: MessageFacts, name: str, nominal: int, expected: str) -> None:
    findings.counts["missing"] += 1
    occurrence = f"{name} {format_instant(nominal)}"
    findings.differs("message_lost", f"shard {facts.shard}", occurrence, expected, "no record")

"""Compares topics with the messages that should be on them: missing records, and records that should not be there.

Repeats are counted and not judged. A crash may leave a bounded number of them (I8), but no row says when owners changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from tidegate_core.explain.audit.expected_occurrences import WideSuspends
from tidegate_core.explain.audit.findings import Findings, Unjudged
from tidegate_core.explain.audit.message_tallies import MessageFacts, Named, is_passed
from tidegate_core.explain.audit.shard_snapshot import ShardFacts, Window
from tidegate_core.explain.target_audit import audit_of
from tidegate_core.language.values.instants import format_instant
from tidegate_core.messages.recurring.fire_series import Fire, FireSeries
from tidegate_core.rows.message import FIRST_VERSION, MessageName, public_id
from tidegate_core.rows.recurring_message import Interval, fire_id
from tidegate_core.rows.scope_suspension import ScopeSuspensions
from tidegate_core.shard.schedule_state import parsed

WALKED_MAX: Final = 1_000_000
"""Fires of one interval that an audit walks."""
MAY_EXPIRE: Final = "messages that are not on their topic and may have expired: the tallies say how many have"
MAY_BE_DROPPED: Final = "fires before a wide suspend that may have been dropped by it: the tallies say how many were"
LEFT_OUT: Final = "fires that may have fallen into an outage, which their schedule leaves out (catchup: none)"
TOO_MANY: Final = f"recurring messages with more than {WALKED_MAX:,} fires in it: take a shorter window"


@dataclass(slots=True)
class Seen:
    """Records of the topics with one id.

    Attributes:
        count: Deliveries; 0: only the dead-letter topic has the message.
        covered_from, covered_to: First and last nominal time that the message covers, after an outage.
    """

    nominal: int
    count: int = 1
    covered_from: int | None = None
    covered_to: int | None = None

    def covers(self, nominal: int) -> bool:
        first, last = self.covered_from, self.covered_to
        return first is not None and last is not None and first <= nominal <= last


@dataclass(frozen=True)
class OnTopics:
    """Records that were read from the topics. It computes its indexes once for all shards.

    Attributes:
        seen: Records of all shards, by id.
        gone_before: Instant before which records of a topic may be gone, by topic. A topic that is not named has lost none.
        dead_letters: Dead-letter topic of messages; a record on it counts for any topic.
    """

    seen: Mapping[str, Seen]
    gone_before: Mapping[str, int] = field(default_factory=dict)
    dead_letters: str = ""

    @cached_property
    def covering(self) -> Sequence[Seen]:
        """Records that cover several nominal times."""
        return [each for each in self.seen.values() if each.covered_from is not None]

    @cached_property
    def of_shards(self) -> Mapping[str, Sequence[tuple[str, Seen]]]:
        """Records with their ids, by the four digits with which an id names its shard."""
        found: dict[str, list[tuple[str, Seen]]] = {}
        for name, each in self.seen.items():
            found.setdefault(name.partition("-")[0], []).append((name, each))
        return found

    def may_be_gone(self, topic: str | None, nominal: int) -> int | None:
        """Returns the instant before which records of a topic may be gone, if a message is older; topic None: the topic is unknown."""
        names = self.gone_before.keys() if topic is None else (topic, self.dead_letters)
        cut = max((self.gone_before.get(name, 0) for name in names), default=0)
        return cut if nominal < cut else None


@dataclass(frozen=True, slots=True)
class SinkFacts:
    """Rows of a shard that are compared with topics.

    Attributes:
        sent_to: Topics of recurring messages, by `<ns>/<name>` and version.
    """

    messages: MessageFacts
    controls: ScopeSuspensions
    sent_to: Mapping[tuple[str, int], str]

    def topics(self) -> frozenset[str]:
        return frozenset(row.topic for row in self.messages.rows.values()).union(self.sent_to.values())


def sink_facts(facts: ShardFacts, messages: MessageFacts, window: Window) -> SinkFacts:
    """Returns only the rows of a shard that a comparison needs, because memory holds the rows of all shards at a time."""
    rows = {named: row for named, row in messages.rows.items() if window.has(row.nominal)}
    ids = {message_id for message_id, _ in rows}
    specs = {of: parsed(text) for of, text in facts.specs.items()}
    topics = {of: audit_of(spec).topic(spec) for of, spec in specs.items()}
    return SinkFacts(
        replace(
            messages,
            rows=rows,
            timers={named: timers for named, timers in messages.timers.items() if named in rows},
            guards={message_id: guard for message_id, guard in messages.guards.items() if message_id in ids},
            held=frozenset(),
            tallies=(),
        ),
        facts.controls,
        {of: topic for of, topic in topics.items() if topic is not None},
    )


def judge_sink(facts: SinkFacts, window: Window, on_topics: OnTopics) -> Findings:
    """Returns where the messages of a shard and the topics differ.

    Args:
        facts: Rows of a shard.
        window: Window of nominal times.
        on_topics: Records of the topics; records from before the window are not needed.
    """
    return _Comparison(facts, window, on_topics).judged()


class _Comparison:
    """Comparison for one shard."""

    def __init__(self, facts: SinkFacts, window: Window, on_topics: OnTopics) -> None:
        self._of = facts
        self._messages = facts.messages
        self._window = window
        self._on_topics = on_topics
        self._seen = on_topics.seen
        self._findings = Findings()

    def judged(self) -> Findings:
        facts = self._messages
        known = {facts.id_of(named) for named in facts.rows}
        for named, row in facts.rows.items():
            name = facts.id_of(named)
            self._judge_cancelled(named, name, row.nominal)
            is_due = self._window.has(row.nominal) and not facts.is_covered(named) and is_passed(facts, named)
            if not is_due or name in self._seen or facts.timers[named][0].ref is not None or facts.is_gone(named):
                continue
            if row.expires is not None:
                self._findings.unjudged.append(Unjudged(MAY_EXPIRE, f"shard {facts.shard}"))
            else:
                self._not_there(name, row.nominal, row.topic, f"on {row.topic}")
        for ref, interval in facts.intervals:
            known |= set(self._judge_fires(ref, interval))
        self._judge_seen(known)
        return self._findings

    def _judge_cancelled(self, named: Named, name: str, nominal: int) -> None:
        answer, seen = self._messages.answer_to_cancel(named), self._seen.get(name)
        if answer is None or answer[1] != "cancelled" or seen is None or not self._window.has(nominal):
            return
        found = f"{seen.count} records" if seen.count else "a dead letter"
        expected = f"never delivered (cancel {answer[0]}: cancelled)"
        occurrence = f"{name} {format_instant(nominal)}"
        self._findings.differs("answer_differs", f"shard {self._messages.shard}", occurrence, expected, found)

    def _judge_fires(self, ref: str, interval: Interval) -> Iterator[str]:
        """Yields the ids that the fires of an interval have."""
        facts, window, findings = self._messages, self._window, self._findings
        wide = WideSuspends.of(self._of.controls, ref.split("/", 1)[0])
        namespace, schedule = ref.split("/", 1)
        # The broker may have a fire that a request ended before the broker's acknowledgement arrived.
        for fire in FireSeries(namespace, schedule, interval).cancelled((window.begin, "", "")):
            yield _id_of(facts, fire)
        for walked, fire in enumerate(_fires(ref, interval, window)):
            name = _id_of(facts, fire)
            yield name
            if walked == WALKED_MAX:
                findings.unjudged.append(Unjudged(TOO_MANY, ref))
                return
            if name in self._seen or fire.slot >= facts.position[0] or wide.cover(fire.nominal):
                continue
            if (fire.message_id, FIRST_VERSION) in facts.rows:
                continue  # The broker refused the fire, so its rows decide about it.
            if any(
                each.covers(fire.nominal) and _is_of(facts, interval, each, self._seen)
                for each in self._on_topics.covering
            ):
                findings.counts["coalesced"] += 1
            elif wide.may_have_dropped(fire.nominal):
                findings.unjudged.append(Unjudged(MAY_BE_DROPPED, ref))
            elif interval.catch_up == "none":
                findings.unjudged.append(Unjudged(LEFT_OUT, ref))
            else:
                topic = self._of.sent_to.get((ref, interval.version))
                self._not_there(f"{ref} {name}", fire.nominal, topic, "on its topic, alone or covered by another")

    def _judge_seen(self, known: set[str]) -> None:
        facts, findings = self._messages, self._findings
        for name, each in self._on_topics.of_shards.get(f"{facts.shard:04d}", ()):
            if not self._window.has(each.nominal):
                continue
            findings.counts["seen" if each.count else "dead"] += 1
            findings.counts["repeated"] += max(0, each.count - 1)
            if name not in known and facts.namespace is None:
                occurrence = f"{name} {format_instant(each.nominal)}"
                findings.differs(
                    "message_unknown",
                    f"shard {facts.shard}",
                    occurrence,
                    "nothing",
                    f"{each.count} records" if each.count else "a dead letter",
                )

    def _not_there(self, name: str, nominal: int, topic: str | None, expected: str) -> None:
        """Reports a lost message. If the topic has lost the records of that time, the audit cannot judge it."""
        cut = self._on_topics.may_be_gone(topic, nominal)
        occurrence = f"{name} {format_instant(nominal)}"
        if cut is not None:
            why = f"topic {topic or 'of theirs'}, or that of dead letters, has lost what came before {format_instant(cut)}"
            self._findings.unjudged.append(Unjudged(why, occurrence, is_grave=True))
            return
        self._findings.counts["missing"] += 1
        self._findings.differs("message_lost", f"shard {self._messages.shard}", occurrence, expected, "no record")


def _fires(ref: str, interval: Interval, window: Window) -> Iterator[Fire]:
    """Yields the fires of a window, as if there had been no outage."""
    namespace, name = ref.split("/", 1)
    for fire in FireSeries(namespace, name, interval).behind((window.begin, "", "")):
        if fire.nominal > window.end:
            return
        yield fire


def _id_of(facts: MessageFacts, fire: Fire) -> str:
    return public_id(facts.shard, MessageName(fire.message_id, False), FIRST_VERSION)


def _is_of(facts: MessageFacts, interval: Interval, seen: Seen, all_seen: Mapping[str, Seen]) -> bool:
    """Whether a record is a fire of the interval's incarnation."""
    name = public_id(facts.shard, MessageName(fire_id(interval.incarnation, seen.nominal), False), FIRST_VERSION)
    return all_seen.get(name) is seen

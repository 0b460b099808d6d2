"""The process `tidegate audit`: reads each shard, judges it, checks differences twice, and prints the findings."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tidegate_core.explain.audit.audit_shard import (
    AuditQuery,
    asked_for,
    document_of,
    exit_code_of,
    judge_shard,
    lines_of,
)
from tidegate_core.explain.audit.delivered_records import SinkFacts, judge_sink, sink_facts
from tidegate_core.explain.audit.findings import Findings, Unjudged
from tidegate_core.explain.audit.message_tallies import MessageFacts
from tidegate_core.explain.audit.shard_snapshot import ShardFacts, Window
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.rows import keys
from tidegate_node import bootstrap
from tidegate_node.commands.audit.message_reader import read_messages
from tidegate_node.commands.audit.shard_reader import Reader, read_shard
from tidegate_node.commands.audit.topic_records import on_topics_of
from tidegate_node.startup_checks import EXIT_CONFIGURATION, EXIT_TRY_LATER, shards_of, store_refuses
from tidegate_ports.store import Store, StoreRequestInvalid, StoreUnavailable
from tidegate_ports.topic_snapshot import LandedRecords, LandedUnavailable

EXIT_USAGE: Final = 2
SETTLED_MS: Final = 60_000
"""Default distance of the window's end from now. An occurrence is created within this time, or it is late."""
DAY_MS: Final = 86_400_000
LOOK_AGAIN_S: Final = 1.0
"""Time between two reads of a shard; rows that were being moved have arrived by the second read."""
CLOCKS_APART_MS: Final = 60_000
"""Topics are read from this long before the window: append times are the brokers', and a message's producer uses its
own clock."""


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit.

    Attributes:
        asked: Window and time of the audit.
        namespace: The only namespace to check; None for all.
        of_messages: Whether messages are checked.
        landed: Reader of the messages' topics; None skips them.
        dead_letters: Topic of messages that could not be delivered.
        pause: Callback before each read of the store.
        look_again: Callback between the two reads of a shard.
    """

    store: Store
    shards: int
    asked: AuditQuery
    pause: Callable[[], None]
    look_again: Callable[[], None]
    namespace: str | None = None
    of_messages: bool = True
    landed: LandedRecords | None = None
    dead_letters: str = ""

    def run(self) -> Findings:
        """Returns the findings. Raises StoreUnavailable, LandedUnavailable."""
        findings = Findings()
        kept: list[SinkFacts] = []
        for shard in range(self.shards):
            try:
                found, of_sink = self._judged(shard)
            except StoreUnavailable:
                raise
            except Exception as broken:  # noqa: BLE001 - one faulty row must not hide all other shards
                why = f"their rows cannot be worked on: {broken!r}"
                findings.unjudged.append(Unjudged(why, f"shard {shard}", is_grave=True))
                continue
            findings.add(found)
            if self.landed is not None and of_sink is not None:
                kept.append(of_sink)
        if self.landed is not None:
            self._compare_topics(self.landed, kept, findings)
        return findings

    def _judged(self, shard: int) -> tuple[Findings, SinkFacts | None]:
        facts, messages, found = self._look(shard)
        if found.differences:
            self.look_again()
            facts, messages, again = self._look(shard)
            found = found.confirmed_by(again)
        # The facts of all shards stay in memory until the topics are read, so each keeps only what is compared.
        return found, None if messages is None else sink_facts(facts, messages, self.asked.of_messages)

    def _look(self, shard: int) -> tuple[ShardFacts, MessageFacts | None, Findings]:
        reader = Reader(self.store, self.asked.now, self.pause)
        messages = read_messages(reader, shard, self.namespace) if self.of_messages else None
        facts = read_shard(reader, shard, self.asked.window, self.namespace)
        found = judge_shard(facts, messages, None, self.asked)
        if self.of_messages and messages is None and reader.item(keys.lease(shard)) is not None:
            found.differs("position_gone", f"shard {shard}", "its messages", "its delivery position", "a lease alone")
        return facts, messages, found

    def _compare_topics(self, landed: LandedRecords, kept: list[SinkFacts], findings: Findings) -> None:
        """Reads the topics after all rows, so that all deliveries before the positions are on them."""
        window = self.asked.of_messages
        topics = sorted({topic for facts in kept for topic in facts.topics()})
        records = landed.read([*topics, self.dead_letters], window.begin - CLOCKS_APART_MS)
        on_topics = on_topics_of(records, self.dead_letters, window)
        for facts in kept:
            findings.add(judge_sink(facts, window, on_topics))


# -- the process ---------------------------------------------------------------------------------------------------------


def run(
    begin: str | None = None,
    end: str | None = None,
    namespace: str | None = None,
    *,
    messages: bool = True,
    sink: bool = False,
    as_json: bool = False,
    reads_per_s: float = 50.0,
    settings: bootstrap.Settings | None = None,
) -> int:
    """Prints the findings and returns the exit code.

    Args:
        begin: RFC 3339; a day before the end by default.
        end: RFC 3339; a minute ago by default.
        namespace: Checks only this namespace.
        messages: Checks messages too.
        sink: Reads the messages' topics too.
        as_json: Prints one JSON document.
        reads_per_s: Reads of the store, of 500 rows at most.
        settings: Settings to use instead of the environment's.

    Returns:
        0 nothing is missing; 1 something differs; 2 the window is impossible; 6 a required object is gone; 75 a shard
        is late, or the store or a broker does not answer; 78 the settings or the tables are impossible.
    """
    now = int(time.time() * 1_000)
    try:
        window = window_of(begin, end, now)
        store, landed, dead_letters = bootstrap.audited(bootstrap.load() if settings is None else settings)
        shards = shards_of(store)
    except ValueError as wrong:
        return _fail(str(wrong), EXIT_USAGE)
    except (bootstrap.SettingsRefused, bootstrap.StartRefused) as refusal:
        return _fail(str(refusal), EXIT_CONFIGURATION)
    except StoreRequestInvalid as refusal:
        return _fail(store_refuses(refusal), EXIT_CONFIGURATION)
    except StoreUnavailable as silence:
        return _fail(f"{silence}; try again", EXIT_TRY_LATER)
    asked, beyond = asked_for(window, now)
    audit = Audit(
        store,
        shards,
        asked,
        pause=lambda: time.sleep(1 / reads_per_s),
        look_again=lambda: time.sleep(LOOK_AGAIN_S),
        namespace=namespace,
        of_messages=messages,
        landed=landed if sink else None,
        dead_letters=dead_letters,
    )
    try:
        findings = audit.run()
    except StoreRequestInvalid as refusal:
        return _fail(store_refuses(refusal), EXIT_CONFIGURATION)
    except (StoreUnavailable, LandedUnavailable) as silence:
        return _fail(f"{silence}; try again", EXIT_TRY_LATER)
    findings.unjudged += [each for each in beyond if messages or each.subject != "messages"]
    if as_json:
        _write([json.dumps(document_of(findings, window, shards), indent=2)])
    else:
        _write(lines_of(findings, window, shards))
    return exit_code_of(findings)


def window_of(begin: str | None, end: str | None, now: int) -> Window:
    """Returns the requested window. Raises ValueError that says what to write."""
    last = now - SETTLED_MS if end is None else _instant("--to", end)
    first = last - DAY_MS if begin is None else _instant("--from", begin)
    if last > now:
        raise ValueError(
            f"--to {end} is still to come: what is due by then cannot be there; leave it out for a minute ago"
        )
    if first > last:
        raise ValueError(f"--from {format_instant(first)} is after --to {format_instant(last)}")
    return Window(first, last)


def _instant(option: str, text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError as wrong:
        raise ValueError(f"{option} {text}: {wrong}") from wrong


def _write(lines: Iterable[str]) -> None:
    """Writes the lines. A closed pipe must not change the exit code (`tidegate audit | head`)."""
    try:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"tidegate: {message}\n")
    return code

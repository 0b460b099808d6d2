"""The process `tidegate audit`: reads each shard, judges it, looks twice at what is wrong, and says what it found."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tidegate_core.audit.facts import ShardFacts, Window
from tidegate_core.audit.findings import Findings, Unjudged
from tidegate_core.audit.messages import MessageFacts
from tidegate_core.audit.report import asked_for, document_of, exit_code_of, lines_of
from tidegate_core.audit.shard import Asked, judge_shard
from tidegate_core.audit.sink import Seen, judge_sink
from tidegate_core.decisions.run_plane.definitions import parsed
from tidegate_core.model.instants import format_instant, parse_instant
from tidegate_core.model.message_target import MessageTarget
from tidegate_core.store.keys import MAP_KEY
from tidegate_core.transactions.map import MapUnreadable, map_of
from tidegate_node import bootstrap
from tidegate_node.audit.reading import Reader, read_shard
from tidegate_node.audit.reading_messages import read_messages
from tidegate_node.startup import EXIT_CONFIGURATION, EXIT_TRY_LATER, INITIALISE
from tidegate_ports.landed import Landed, LandedRecords, LandedUnavailable
from tidegate_ports.store import Store, StoreUnavailable

EXIT_USAGE: Final = 2
SETTLED_MS: Final = 60_000
"""What is due is made within this, or is late: by default the window ends so long ago."""
DAY_MS: Final = 86_400_000
LOOK_AGAIN_S: Final = 1.0
"""Between the two looks at a shard: what was on its way from one row to another has arrived."""
CLOCKS_APART_MS: Final = 60_000
"""Topics are read from so long before the window: append times are the brokers', and the producer of a message keeps its own."""
ID, NOMINAL = "tidegate-id", "tidegate-nominal"
COVERED: Final = ("tidegate-covered-from", "tidegate-covered-to")
ERROR: Final = "tidegate.error.class"


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit.

    Attributes:
        asked: What it is about.
        namespace: The only one that is looked at.
        of_messages: Whether messages are looked at.
        landed: Reads their topics; None leaves those alone.
        dead_letters: Topic of messages that could not be delivered.
        pause: Called before each read of the store.
        look_again: Called between the two looks at a shard.
    """

    store: Store
    shards: int
    asked: Asked
    pause: Callable[[], None]
    look_again: Callable[[], None]
    namespace: str | None = None
    of_messages: bool = True
    landed: LandedRecords | None = None
    dead_letters: str = ""

    def run(self) -> Findings:
        """Returns what was found. Raises StoreUnavailable, LandedUnavailable."""
        findings = Findings()
        kept: list[tuple[ShardFacts, MessageFacts]] = []
        for shard in range(self.shards):
            facts, messages, found = self._look(shard)
            if found.differences:
                self.look_again()
                facts, messages, again = self._look(shard)
                found = found.confirmed_by(again)
            findings.add(found)
            if self.landed is not None and messages is not None:
                kept.append((facts, messages))
        if self.landed is not None:
            self._compare_topics(self.landed, kept, findings)
        return findings

    def _look(self, shard: int) -> tuple[ShardFacts, MessageFacts | None, Findings]:
        reader = Reader(self.store, self.asked.now, self.pause)
        messages = read_messages(reader, shard, self.namespace) if self.of_messages else None
        facts = read_shard(reader, shard, self.asked.window, self.namespace)
        return facts, messages, judge_shard(facts, messages, None, self.asked)

    def _compare_topics(
        self, landed: LandedRecords, kept: list[tuple[ShardFacts, MessageFacts]], findings: Findings
    ) -> None:
        """After all rows: what the positions had passed by then is on the topics."""
        window = self.asked.of_messages
        topics = sorted({topic for facts, messages in kept for topic in topics_of(facts, messages)})
        seen, cut = seen_in(landed.read([*topics, self.dead_letters], window.begin - CLOCKS_APART_MS))
        if cut > window.begin:
            why = f"their topics have lost what came before {format_instant(cut)}"
            findings.unjudged.append(Unjudged(why, "messages on topics", is_grave=True))
        for facts, messages in kept:
            of_topics = Window(max(window.begin, cut), window.end)
            findings.add(judge_sink(messages, facts.controls, of_topics, seen))


def topics_of(facts: ShardFacts, messages: MessageFacts) -> Iterable[str]:
    """Yields the topics that a shard's messages go to, or went to."""
    yield from (row.topic for row in messages.rows.values())
    for spec in map(parsed, facts.specs.values()):
        if isinstance(spec.target, MessageTarget):
            yield spec.target.topic


def seen_in(records: Iterable[Landed]) -> tuple[dict[str, Seen], int]:
    """Returns what lies on topics under each id, and the instant before which some of it is gone."""
    seen: dict[str, Seen] = {}
    cut = 0
    for record in records:
        if record.is_cut:
            cut = max(cut, record.append_time)
        headers = {name: value.decode(errors="replace") for name, value in record.headers}
        known = seen.get(headers.get(ID, ""))
        if known is not None:
            known.count += ERROR not in headers
        elif ID in headers and NOMINAL in headers:
            seen[headers[ID]] = _seen(headers)
    return seen, cut


def _seen(headers: Mapping[str, str]) -> Seen:
    first, last = (headers.get(name) for name in COVERED)
    return Seen(
        parse_instant(headers[NOMINAL]),
        covered_from=None if first is None else parse_instant(first),
        covered_to=None if last is None else parse_instant(last),
        is_dead=ERROR in headers,
    )


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
    """Writes what was found to stdout and returns the exit code.

    Args:
        begin: RFC 3339; a day before the end by default.
        end: RFC 3339; a minute ago by default.
        namespace: Looks at this one only.
        messages: Looks at messages as well.
        sink: Reads their topics as well.
        as_json: Writes one JSON document.
        reads_per_s: Reads of the store, of 500 rows at most.
        settings: Instead of those of the environment.

    Returns:
        0 nothing is missing; 1 something differs; 2 the window cannot be; 6 something that is needed is gone; 75 a shard is behind,
        or a brick does not answer; 78 the settings cannot be.
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
    except (StoreUnavailable, LandedUnavailable) as silence:
        return _fail(f"{silence}; try again", EXIT_TRY_LATER)
    findings.unjudged += [each for each in beyond if messages or each.subject != "messages"]
    if as_json:
        sys.stdout.write(f"{json.dumps(document_of(findings, window, shards), indent=2)}\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines_of(findings, window, shards))
    return exit_code_of(findings)


def window_of(begin: str | None, end: str | None, now: int) -> Window:
    """Returns the window that was asked for. Raises ValueError, with what to write instead."""
    last = now - SETTLED_MS if end is None else _instant("--to", end)
    first = last - DAY_MS if begin is None else _instant("--from", begin)
    if last > now:
        raise ValueError(
            f"--to {end} is still to come: what is due by then cannot be there; leave it out for a minute ago"
        )
    if first > last:
        raise ValueError(f"--from {format_instant(first)} is after --to {format_instant(last)}")
    return Window(first, last)


def shards_of(store: Store) -> int:
    """Returns how many shards the cluster has. Raises StartRefused, StoreUnavailable."""
    item = store.get((MAP_KEY,)).get(MAP_KEY)
    if item is None:
        raise bootstrap.StartRefused(f"the store holds no map: {INITIALISE}")
    try:
        return map_of(item).shards
    except MapUnreadable as unreadable:
        raise bootstrap.StartRefused(str(unreadable)) from unreadable


def _instant(option: str, text: str) -> int:
    try:
        return parse_instant(text)
    except ValueError as wrong:
        raise ValueError(f"{option} {text}: {wrong}") from wrong


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"tidegate: {message}\n")
    return code

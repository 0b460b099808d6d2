"""What may have come in time and is not counted yet: events that nobody has read, ends of runs that nobody has handed on.

A time-out that one of them could still prevent waits for them, at most 5 minutes (SEMANTICS 6.2, DESIGN 8).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.membership_lease import CLOCKS_APART_MS_MAX
from tidegate_core.engine.operations import Operation
from tidegate_core.language.triggers import RunStatusTrigger
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.durations import Duration
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.shard_hash import schedule_shard
from tidegate_core.rows import keys
from tidegate_core.rows.effects import FindGaps, Gaps, Items, Membership, ProveMembership, Read, ReadRange
from tidegate_core.rows.store_operations import Item, Key, Page, RangeRead
from tidegate_core.shard.events.end_offsets import SILENT_AFTER_MS, as_vector, ends_within, present_sources
from tidegate_core.shard.schedule_state import parsed
from tidegate_core.writes.fencing import whole

PATIENCE_MS = 5 * 60_000
CHECK_MS = 500
OFTEN_FOR_MS = 30_000
SELDOM_CHECK_MS = 2_000
"""Who has waited for so long may be one of hundreds: each namespace of each shard waits by itself, and for what comes meanwhile once more."""
CHECKS_APART_MS_MAX = 10_000
"""Looks that lie further apart are those of a store that answered nobody, or of a process that stood still: in that time nobody has read
anything either, so that no more of it counts as waiting.
"""
READ_TOGETHER = 100
GAPS_AFTER_MS = 1_000
"""What is being read is read by then: only what stands is looked at, whose marks of transactions look like records."""


def wait_for_watermark(
    host: ActorContext, shard: int, refs: Sequence[str], through: Instant
) -> Operation[tuple[str, ...]]:
    """Waits until all that could satisfy these schedules and came by then lies in the inbox; returns what was not in time.

    Args:
        host: Shared parts of the partition actor.
        shard: Of the schedules.
        refs: `<ns>/<name>` of the schedules whose time-outs are due.
        through: By then; so long ago that no broker dates an event earlier by now.
    """
    upstream = yield from _upstream_schedules(host, shard, refs)
    ahead: Duration = through + CLOCKS_APART_MS_MAX - host.now
    if upstream and ahead > 0:
        yield from host.sleep(ahead)
    patience, looked_at, look_for_gaps_at = PATIENCE_MS, host.now, host.now + GAPS_AFTER_MS
    namespaces = {ref.split("/", 1)[0] for ref in refs}
    events, begun = host.holding.events_topic, host.readings.begun
    topics = (events, *(yield from present_sources(host)).topics_of(namespaces))
    ends: dict[str, dict[str, int]] = {}
    while True:
        ends |= yield from _ends_of(host, [topic for topic in topics if topic not in ends], begun)
        unread = [f"{_named(host, topic)}, which does not answer" for topic in topics if topic not in ends]
        of_all = yield from _unread(host, as_vector(ends))
        for topic, offsets in list(ends.items()):
            behind = {place: span for place, span in of_all.items() if place in offsets}
            if behind and host.now >= look_for_gaps_at:
                behind = yield from _with_records(host, topic, behind)
            if behind and host.now >= look_for_gaps_at:
                ends[topic] = yield from _present_ends(host, topic, offsets)
                behind = {place: span for place, span in behind.items() if place in ends[topic]}
                behind |= yield from _unread(host, _of_others(ends[topic], offsets))
            if behind:
                numbers = sorted(int(place.split("/")[1]) for place in behind)
                unread.append(f"topic partitions {', '.join(map(str, numbers))} of {_named(host, topic)}")
        unread += [f"runs of {ref}" for ref in (yield from _with_news_to_tell(host, upstream))]
        if not unread or patience <= min(host.now - looked_at, CHECKS_APART_MS_MAX):
            return tuple(unread)
        yield from host.sleep(CHECK_MS if patience > PATIENCE_MS - OFTEN_FOR_MS else SELDOM_CHECK_MS)
        while not (yield from _reaches_the_group(host)):
            # Where the brokers are away nobody reads anything either: it does not count as waiting, and there is nothing to look at.
            yield from host.sleep(CHECK_MS)
            looked_at = host.now
        patience -= min(host.now - looked_at, CHECKS_APART_MS_MAX)
        looked_at = host.now
        # A source that is deleted meanwhile has no reader any more: its position stays where it is for good.
        still = (yield from present_sources(host)).topics_of(namespaces)
        topics = tuple(topic for topic in topics if topic in {events, *still})
        ends = {topic: offsets for topic, offsets in ends.items() if topic in topics}


def _named(host: ActorContext, topic: str) -> str:
    return "the events topic" if topic == host.holding.events_topic else f"the topic {topic}"


def _ends_of(host: ActorContext, topics: Sequence[str], begun: int) -> Operation[dict[str, dict[str, int]]]:
    """Returns the ends of those topics that have told them; also of one that has answered later than it was waited for."""
    told = yield from ends_within(host, topics, SILENT_AFTER_MS)
    late = {topic: host.readings.ends(topic, begun) for topic in topics if topic not in told}
    return told | {topic: ends for topic, ends in late.items() if ends is not None}


def _reaches_the_group(host: ActorContext) -> Operation[bool]:
    answer = yield ProveMembership(host.holding.topic_partition)
    return isinstance(answer, Membership) and answer.holds is True


def _unread(host: ActorContext, ends: Mapping[str, int]) -> Operation[dict[str, tuple[int, int]]]:
    """Returns position and end of the topic partitions, `<topic id>/<topic partition>`, whose position is before their end.

    What there is to read is what the brokers say now: this node may have started before the topic grew, or was made anew.
    """
    if not ends:
        return {}
    places = {place: place.split("/") for place in sorted(ends)}
    cluster = host.holding.cluster_id
    wanted = {place: keys.topic_position(cluster, topic, int(number)) for place, (topic, number) in places.items()}
    found = yield from host.read_for_good(Read(tuple(wanted.values())))
    assert isinstance(found, Items)
    behind: dict[str, tuple[int, int]] = {}
    for place, key in wanted.items():
        position = found.found.get(key, {}).get("next", 0)
        assert isinstance(position, int)
        if position < ends[place]:
            behind[place] = position, ends[place]
    return behind


def _with_records(
    host: ActorContext, topic: str, behind: Mapping[str, tuple[int, int]]
) -> Operation[dict[str, tuple[int, int]]]:
    """Returns those between whose position and end there may be a record: others were read to their end, but for marks."""
    left = dict(behind)
    for topic_id in sorted({place.split("/")[0] for place in behind}):
        numbers = {int(place.split("/")[1]): place for place in behind if place.startswith(f"{topic_id}/")}
        answer = yield FindGaps(topic, topic_id, {number: behind[place] for number, place in numbers.items()})
        for number in answer.topic_partitions if isinstance(answer, Gaps) else ():
            del left[numbers[number]]
    return left


def _present_ends(host: ActorContext, topic: str, known: Mapping[str, int]) -> Operation[dict[str, int]]:
    """Returns the ends to wait for where the topic may have been made anew meanwhile: those of the new one, and of the old one what its
    reader may still hand on, which is over once somebody reads the same topic partition of the new one.
    """
    found = yield from ends_within(host, [topic], SILENT_AFTER_MS)
    ends = {**known, **_of_others(found.get(topic, {}), known)}
    present, _ = _split(next(reversed(ends)))  # What a broker tells late of the former one was known before.
    former = {place for place in known if _split(place)[0] != present}
    if not former:
        return dict(known)  # It has grown at most.
    numbers = [_split(place)[1] for place in ends if place not in former]
    wanted = {number: keys.topic_position(host.holding.cluster_id, present, number) for number in numbers}
    read = yield from host.read_for_good(Read(tuple(wanted.values())))
    assert isinstance(read, Items)
    unfollowed = {number for number, key in wanted.items() if key not in read.found}
    return {place: end for place, end in ends.items() if place not in former or _split(place)[1] in unfollowed}


def _of_others(ends: Mapping[str, int], known: Mapping[str, int]) -> dict[str, int]:
    return {place: end for place, end in ends.items() if place not in known}


def _split(place: str) -> tuple[str, int]:
    topic_id, number = place.split("/")
    return topic_id, int(number)


# -- runs -----------------------------------------------------------------------------------------------------------------


def _upstream_schedules(host: ActorContext, shard: int, refs: Sequence[str]) -> Operation[dict[str, bool]]:
    """Returns the schedules whose runs these ones listen to, and whether starts count.

    Read together: behind an outage hundreds of time-outs are due at once, and none of them is decided before that.
    """
    found = yield from _items(host, {ref: keys.schedule_state(shard, *ref.split("/", 1)) for ref in sorted(set(refs))})
    wanted: dict[str, Key] = {}
    for ref, state in found.items():
        namespace, name = ref.split("/", 1)
        wanted[ref] = keys.definition(shard, namespace, name, whole(state, "version"))
    definitions = yield from _items(host, wanted)
    heard: dict[str, bool] = {}
    for ref, definition in definitions.items():
        namespace, _ = ref.split("/", 1)
        try:
            trigger = parsed(str(definition["spec"])).trigger
        except ValidationError as error:
            # Its own decision fails for it, and is told and set aside; the time-outs of the others are due.
            host.failed("watermark", ref, error)
            continue
        if isinstance(trigger, EventTrigger):
            leaves = [leaf for leaf in trigger.leaves() if isinstance(leaf, RunStatusTrigger)]
            for leaf in leaves:
                upstream = leaf.upstream_ref(namespace)
                heard[upstream] = heard.get(upstream, False) or leaf.hears_starts
    return dict(sorted(heard.items()))


def _items(host: ActorContext, wanted: Mapping[str, Key]) -> Operation[dict[str, Item]]:
    """Returns the items that are there, under the same names."""
    items: dict[str, Item] = {}
    names = list(wanted)
    for first in range(0, len(names), READ_TOGETHER):
        page = names[first : first + READ_TOGETHER]
        found = yield from host.read_for_good(Read(tuple(wanted[name] for name in page)))
        assert isinstance(found, Items)
        items |= {name: found.found[wanted[name]] for name in page if wanted[name] in found.found}
    return items


def _with_news_to_tell(host: ActorContext, upstream: Mapping[str, bool]) -> Operation[list[str]]:
    """Returns the schedules of which a run has ended, or started, that its owner has not handed on to the inboxes yet.

    Each of their shards is looked at once, and all of them together. Runs first: what ends in between is among what is handed on then.
    """
    told: set[str] = set()
    names = (ref.split("/", 1) for ref in upstream)
    shards = sorted({schedule_shard(namespace, name, host.holding.shards) for namespace, name in names})
    for item in (yield from _ranges(host, shards, keys.RUN_PREFIX)):
        ref = keys.schedule_ref(str(item["namespace"]), str(item["name"]))
        has_started = item.get("started_at") is not None and not item.get("told")
        if item.get("ended_at") is not None or (has_started and upstream.get(ref, False)):
            told.add(ref)
    for item in (yield from _ranges(host, shards, keys.OUTBOX_PREFIX)):
        if not item["matched"]:
            fact = json.loads(str(item["fact"]))
            told.add(keys.schedule_ref(fact["namespace"], fact["schedule"]))
    return [ref for ref in upstream if ref in told]


def _ranges(host: ActorContext, shards: Sequence[int], prefix: str) -> Operation[list[Item]]:
    items: list[Item] = []
    for first in range(0, len(shards), READ_TOGETHER):
        group = shards[first : first + READ_TOGETHER]
        left = tuple(ReadRange(RangeRead(keys.shard_pk(each), prefix, f"{prefix}{keys.LAST}")) for each in group)
        while left:
            further: list[ReadRange] = []
            for asked, answer in zip(left, (yield left), strict=True):
                page = answer if isinstance(answer, Page) else (yield from host.read_for_good(asked))
                assert isinstance(page, Page)
                items.extend(page.items)
                if page.next_after is not None:
                    further.append(ReadRange(replace(asked.range, after=page.next_after)))
            left = tuple(further)
    return items

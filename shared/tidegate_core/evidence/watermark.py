"""Waits for the low watermark: events that no node has read, and ends of runs that no owner has published.

A time-out that one of these could prevent waits for them, at most 5 minutes.
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
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.durations import Duration
from tidegate_core.language.values.instants import Instant
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
"""A wait of this length may be one of hundreds: each namespace of each shard waits separately, and waits again for later
events.
"""
CHECKS_APART_MS_MAX = 10_000
"""Checks further apart come from a silent store or a frozen process.

No node read anything in that time, so no more of it counts.
"""
READ_TOGETHER = 100
GAPS_AFTER_MS = 1_000
"""Topic partitions in progress are read by then.

Only stuck ones are checked for gaps: transaction markers look like records.
"""


def wait_for_watermark(
    host: ActorContext, shard: int, refs: Sequence[str], through: Instant
) -> Operation[tuple[str, ...]]:
    """Waits until everything that could satisfy these schedules by `through` is in the inbox.

    Returns what was not in time.

    Args:
        host: Context of the partition actor.
        shard: Shard of the schedules.
        refs: `<ns>/<name>` of the schedules with due time-outs.
        through: Append time, so long ago that no broker assigns it to a new event.
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
        unread += [f"runs of {ref}" for ref in (yield from _with_unpublished_runs(host, upstream))]
        if not unread or patience <= min(host.now - looked_at, CHECKS_APART_MS_MAX):
            return tuple(unread)
        yield from host.sleep(CHECK_MS if patience > PATIENCE_MS - OFTEN_FOR_MS else SELDOM_CHECK_MS)
        while not (yield from _reaches_the_group(host)):
            # Without brokers no node reads anything. That time does not count as waiting, and nothing can be checked.
            yield from host.sleep(CHECK_MS)
            looked_at = host.now
        patience -= min(host.now - looked_at, CHECKS_APART_MS_MAX)
        looked_at = host.now
        # A source that was deleted since has no reader, and its cursor stays where it is.
        still = (yield from present_sources(host)).topics_of(namespaces)
        topics = tuple(topic for topic in topics if topic in {events, *still})
        ends = {topic: offsets for topic, offsets in ends.items() if topic in topics}


def _named(host: ActorContext, topic: str) -> str:
    return "the events topic" if topic == host.holding.events_topic else f"the topic {topic}"


def _ends_of(host: ActorContext, topics: Sequence[str], begun: int) -> Operation[dict[str, dict[str, int]]]:
    """Returns the end offsets of topics that answered, late answers included."""
    told = yield from ends_within(host, topics, SILENT_AFTER_MS)
    late = {topic: host.readings.ends(topic, begun) for topic in topics if topic not in told}
    return told | {topic: ends for topic, ends in late.items() if ends is not None}


def _reaches_the_group(host: ActorContext) -> Operation[bool]:
    answer = yield ProveMembership(host.holding.topic_partition)
    return isinstance(answer, Membership) and answer.holds is True


def _unread(host: ActorContext, ends: Mapping[str, int]) -> Operation[dict[str, tuple[int, int]]]:
    """Returns cursor and end offset of the topic partitions (`<topic id>/<topic partition>`) that are not read to the
    end.

    The end offsets come from the brokers: the topic may have grown or been recreated since this node started.
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
    """Returns the topic partitions that may have a record before their end; the others have only markers there."""
    left = dict(behind)
    for topic_id in sorted({place.split("/")[0] for place in behind}):
        numbers = {int(place.split("/")[1]): place for place in behind if place.startswith(f"{topic_id}/")}
        answer = yield FindGaps(topic, topic_id, {number: behind[place] for number, place in numbers.items()})
        for number in answer.topic_partitions if isinstance(answer, Gaps) else ():
            del left[numbers[number]]
    return left


def _present_ends(host: ActorContext, topic: str, known: Mapping[str, int]) -> Operation[dict[str, int]]:
    """Returns the end offsets to wait for when the topic may have been recreated: those of the new topic and some of the
    old one.

    The reader of the old topic may still pass on its records, until a node reads the same topic partition of the new
    topic.
    """
    found = yield from ends_within(host, [topic], SILENT_AFTER_MS)
    ends = {**known, **_of_others(found.get(topic, {}), known)}
    present, _ = _split(next(reversed(ends)))  # A late report about the former topic was known before.
    former = {place for place in known if _split(place)[0] != present}
    if not former:
        return dict(known)  # At most it has grown.
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
    """Returns the schedules whose runs these schedules subscribe to, and whether starts count.

    They are read together: after an outage hundreds of time-outs are due at once, and each waits for this.
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
            # The schedule's own decision fails for the same reason, is reported and quarantined. The other time-outs
            # are due.
            host.failed("watermark", ref, error)
            continue
        if isinstance(trigger, EventTrigger):
            leaves = [leaf for leaf in trigger.leaves() if isinstance(leaf, RunStatusTrigger)]
            for leaf in leaves:
                upstream = leaf.upstream_ref(namespace)
                heard[upstream] = heard.get(upstream, False) or leaf.hears_starts
    return dict(sorted(heard.items()))


def _items(host: ActorContext, wanted: Mapping[str, Key]) -> Operation[dict[str, Item]]:
    """Returns the existing items under the same names."""
    items: dict[str, Item] = {}
    names = list(wanted)
    for first in range(0, len(names), READ_TOGETHER):
        page = names[first : first + READ_TOGETHER]
        found = yield from host.read_for_good(Read(tuple(wanted[name] for name in page)))
        assert isinstance(found, Items)
        items |= {name: found.found[wanted[name]] for name in page if wanted[name] in found.found}
    return items


def _with_unpublished_runs(host: ActorContext, upstream: Mapping[str, bool]) -> Operation[list[str]]:
    """Returns the schedules with a run whose end or start its owner has not passed to the inboxes.

    Each shard is read once, all of them together. Runs come first: a run that ends between the reads is in the outbox
    then.
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

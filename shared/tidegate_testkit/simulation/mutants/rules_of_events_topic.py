"""Rules of the events topic as it changes while it is read (docs/protocol.md), each switched off in the interleaving that it is against."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from tidegate_core.decisions.followed_topics import ASK_AGAIN_MS, FollowedTopics
from tidegate_core.decisions.host import Host
from tidegate_core.decisions.inputs import LogRecord, PositionGone, TopicFacts
from tidegate_core.decisions.run_plane import watermark
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import EVENTS, MINUTE, SECOND, a_spec, all_of, an_apply, an_event, on_data
from tidegate_testkit.simulation.mutants.mutant import Mutant, Patch
from tidegate_testkit.simulation.mutants.sketch import ran
from tidegate_testkit.simulation.mutants.stage import Stage

NOTICED_MS = ASK_AGAIN_MS + 10 * SECOND

# -- bugs -----------------------------------------------------------------------------------------------------------------


def by_its_own_number(_: Any) -> Any:
    def mine(topics: FollowedTopics, facts: TopicFacts) -> range:
        first = topics._host.holding.topic_partition % facts.topic_partitions
        return range(first, facts.topic_partitions, facts.topic_partitions)

    return mine


def asking_once(_: Any) -> Any:
    return lambda topics, topic: topic not in topics._asked_at


def by_name_alone(_: Any) -> Any:
    return lambda topics, facts: False


def believing_that_it_holds(_: Any) -> Any:
    def nothing_is_read(_: FollowedTopics) -> Generator[Any, Any, None]:
        yield ()

    return nothing_is_read


def as_it_was(_: Any) -> Any:
    def known(host: Host, topic: str, ends: Mapping[str, int]) -> Generator[Any, Any, dict[str, int]]:
        yield from ()
        return dict(ends)

    return known


# -- scenarios --------------------------------------------------------------------------------------------------------------


def a_topic_has_fewer_topic_partitions_than_the_map() -> Iterable[str]:
    """There are two holders, and one of them has nothing of it to read."""
    first = Stage(topic_partitions=2, event_topic_partitions=1).first
    second = Bench(beside=first, owner="node-b", topic_partitions=2, topic_partition=1)
    second.run(SECOND)
    first.event(an_event("d1"))
    first.run(SECOND)
    return fenced(first)


def fenced(bench: Bench) -> Iterable[str]:
    if bench.notices("fenced"):
        yield "liveness: a holder was fenced to whom its topic partition still belongs"


def a_topic_grows_while_it_is_read() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    bench.event(an_event("d1"), bench.event_topic_partitions)
    bench.run(NOTICED_MS)
    return ran(bench, 1, "I3")


def a_topic_is_made_anew_while_it_is_read() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    bench.event(an_event("d1"))
    bench.run(SECOND)
    bench.logs.pop((EVENTS, 0))
    bench.create_topic(EVENTS, topic_id="d" * 32)
    bench.log(EVENTS, 0).append(LogRecord(0, bench.now, None, json.dumps(an_event("d2")).encode()))
    bench.give(PositionGone(EVENTS, 0, 1))
    bench.run(NOTICED_MS)
    return ran(bench, 1, "I3")


def a_former_holder_learns_of_growth_after_its_successor() -> Iterable[str]:
    """It was frozen, and nobody has told it yet that it holds nothing."""
    former = Stage().first
    present = Bench(beside=former, owner="node-b")
    present.run(SECOND)
    present.event(an_event("d1"), former.event_topic_partitions)
    present.run(NOTICED_MS)
    former.is_member = False
    former.run(NOTICED_MS)
    present.event(an_event("d2"), former.event_topic_partitions)
    present.run(SECOND)
    return fenced(present)


def a_topic_is_made_anew_with_something_unread() -> Iterable[str]:
    """Of two topic partitions one has a record that nobody reads; from the other one come two events 25 minutes apart, at once."""
    bench = Bench(shards=1, event_topic_partitions=2)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=all_of(on_data("a"), on_data("b"), timeout="20m"))))
    bench.run(SECOND)
    begun = bench.now
    unread, first, second = (json.dumps(an_event(name, "a")).encode() for name in "yxz")
    bench.log(EVENTS, 0).append(LogRecord(0, begun, None, unread))
    bench.run(30 * MINUTE)
    bench.log(EVENTS, 1).extend([LogRecord(0, begun, None, first), LogRecord(1, begun + 25 * MINUTE, None, second)])
    bench.hand_over(EVENTS, 1, 0)
    bench.run(2 * SECOND)
    for topic_partition in range(2):
        bench.log(EVENTS, topic_partition).clear()
    bench.create_topic(EVENTS, 2, "d" * 32)
    bench.run(NOTICED_MS)
    if not bench.ledger():
        yield "liveness: what came behind a deadline waits for what is gone with its topic"


RULES_OF_EVENTS_TOPIC = (
    Mutant(
        "waiting for what is gone",
        "what is behind a deadline waits for five minutes for what was unread of a topic that has been made anew",
        breaks="liveness",
        patches=(Patch(watermark, "_present_ends", as_it_was),),
        scenario=a_topic_is_made_anew_with_something_unread,
    ),
    Mutant(
        "overlap of readers",
        "whose a topic partition of events is depends on how many a holder has seen, and two fence each other",
        breaks="liveness",
        patches=(Patch(FollowedTopics, "_mine", by_its_own_number),),
        scenario=a_topic_has_fewer_topic_partitions_than_the_map,
    ),
    Mutant(
        "growth unseen",
        "topic partitions that the events topic gets are read by nodes that start later, and by nobody until then",
        breaks="I3",
        patches=(Patch(FollowedTopics, "is_due", asking_once),),
        scenario=a_topic_grows_while_it_is_read,
    ),
    Mutant(
        "old topic goes on",
        "cursors of a topic that is gone stay in the way of the one that was made anew",
        breaks="I3",
        patches=(Patch(FollowedTopics, "_is_another", by_name_alone),),
        scenario=a_topic_is_made_anew_while_it_is_read,
    ),
    Mutant(
        "growth seen by a former holder",
        "a former holder that learns of growth late raises positions, and fences the present one",
        breaks="liveness",
        patches=(Patch(FollowedTopics, "_check_holding", believing_that_it_holds),),
        scenario=a_former_holder_learns_of_growth_after_its_successor,
    ),
)

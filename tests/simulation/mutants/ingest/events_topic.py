"""Rules of the events topic as it changes while it is read (docs/protocol.md), each switched off in the interleaving that it is against."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import Stage
from tests.simulation.mutants.sketch.protocol_sketch import ran
from tests.support.builders import (
    EVENTS,
    EVENTS_ID,
    MINUTE,
    REQUESTS,
    SECOND,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_commit
from tidegate_core.decisions import log_ends
from tidegate_core.decisions.controls_home import ApplyControl
from tidegate_core.decisions.followed_topics import ASK_AGAIN_MS, FollowedTopics
from tidegate_core.decisions.host import Host
from tidegate_core.decisions.inputs import LogRecord, PositionGone, TopicFacts
from tidegate_core.decisions.run_plane import until, watermark
from tidegate_core.decisions.run_plane.request import ApplyRequest
from tidegate_core.decisions.run_plane.until import ResumeWhenDue
from tidegate_core.effects import Commit, EndOffsets, ReadEndOffsets, StartReading
from tidegate_core.model.instants import format_instant

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


def waiting_in_the_lane(_: Any) -> Any:
    def told(host: Host, after: int) -> Generator[Any, Any, dict[str, dict[str, int]]]:
        answer: Any = yield from host.read_for_good(ReadEndOffsets(host.holding.events_topic))
        return {host.holding.events_topic: dict(answer.offsets)}

    return told


def in_order_of_all(_: Any) -> Any:
    return property(lambda request: "controls")


def in_no_order(_: Any) -> Any:
    return property(lambda request: None)


def by_what_was_read_before(resume_when_due: Callable[..., ResumeWhenDue]) -> Any:
    return lambda timer, memory, recurring, begun: resume_when_due(timer, memory, recurring, 0)


def as_of_its_suspend(_: Any) -> Any:
    return property(lambda resume: None)


def asked_as_it_is_read(follow: Callable[..., Generator[Any, Any, None]]) -> Any:
    def follows(topics: FollowedTopics, topic: str, asked: object, version: int = 0) -> Generator[Any, Any, None]:
        yield from follow(topics, topic, asked, version)
        if topic in topics._asked_at:
            topics._asked_at[topic] = topics._host.now

    return follows


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


def with_a_silent_topic() -> Bench:
    """A schedule that goes by time, and one by events, in one shard."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec("tick", every("10s"), overlap="allow"), "apply-tick"))
    bench.request(an_apply(a_spec("heard", on_data()), "apply-heard"))
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, ReadEndOffsets) and effect.topic == EVENTS, times=1_000)
    return bench


def an_update_waits_for_its_ends() -> Iterable[str]:
    bench = with_a_silent_topic()
    started = len(bench.started)
    bench.request(an_apply(a_spec("heard", on_data(count=2)), "update"))
    bench.run(MINUTE)
    if len(bench.started) - started < 5:
        yield "liveness: no schedule of the shard fires while one request waits for the ends of the events topic"


def a_wide_resume_waits_for_its_ends() -> Iterable[str]:
    """Of a namespace; a stop of the whole system comes behind it."""
    bench = with_a_silent_topic()
    for kind in ("suspend", "resume"):
        bench.request({"id": kind, "type": f"control.{kind}", "scope": "namespace", "namespace": "orders"})
        bench.run(5 * SECOND)
    bench.request({"id": "stop", "type": "control.suspend", "scope": "system"})
    bench.run(MINUTE)
    if bench.status_of("resume") is None and bench.status_of("stop") != "accepted":
        yield "liveness: an emergency stop waits with a resume for the ends of the events topic"


def an_update_and_a_suspend_of_one_schedule_wait() -> Iterable[str]:
    bench = with_a_silent_topic()
    bench.request(an_apply(a_spec("heard", on_data(count=2)), "update"))
    bench.request(a_request("suspend", "heard", "suspend", mode="freeze"))
    bench.run(MINUTE)
    bench.as_usual()
    bench.run(5 * SECOND)
    answers = [bench.status_of(each) for each in ("update", "suspend")]
    if answers != ["accepted"] * 2:
        yield f"answers: an update and a suspend behind it were answered {answers}"


def suspended() -> tuple[Bench, int]:
    """A schedule that goes by events and is suspended until an instant, which comes with it."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    end = bench.now + 20 * SECOND
    bench.request(a_request("suspend", mode="drop", until=format_instant(end), request_id="until"))
    bench.run(SECOND)
    return bench, end


def counted_amid_the_suspension(bench: Bench) -> Iterable[str]:
    if bench.started:
        yield "I3: an event that came while its schedule was suspended has counted"


def ends_were_read_before_a_suspension_was_over() -> Iterable[str]:
    """For another request that was read with the one that finds the suspension over, and ends it. An event came in between."""
    bench, end = suspended()
    bench.hold_back(a_commit("control"))
    other = an_apply(a_spec("other", trigger=on_data("other")), "other")
    bench.append(REQUESTS, 0, other, an_apply(a_spec(trigger=on_data(), args=["x"]), "another", on_update="carry"))
    bench.run(SECOND)
    bench.log(EVENTS, 0).append(LogRecord(0, bench.now, None, json.dumps(an_event("d1")).encode()))
    bench.now = end
    bench.release()
    bench.hand_over(EVENTS, 0, 0)
    bench.run(MINUTE)
    yield from counted_amid_the_suspension(bench)


def no_broker_tells_of_a_topic_partition_at_the_end_of_a_suspension() -> Iterable[str]:
    """An event has come there amid the suspension, and is read behind its end."""
    bench, _ = suspended()
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets), EndOffsets({f"{EVENTS_ID}/0": 0}), 1)
    bench.log(EVENTS, 1).append(LogRecord(0, bench.now, None, json.dumps(an_event("d1")).encode()))
    bench.run(NOTICED_MS)
    yield from counted_amid_the_suspension(bench)


def a_topic_grows_while_it_is_taken_over() -> Iterable[str]:
    """Brokers have told of it, and its position is raised for half a minute."""
    bench = Bench(shards=1)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and EVENTS_ID in effect.transaction.actions[0].key.pk)
    bench.run(ASK_AGAIN_MS // 2)
    bench.event(an_event("d1"), 1)
    bench.release()
    bench.run(NOTICED_MS - ASK_AGAIN_MS // 2)
    if (EVENTS, 1) not in [(each.topic, each.topic_partition) for each in bench.all_asked(StartReading)]:
        yield "liveness: what the events topic grew by is not read a minute after it was told of"


RULES_OF_EVENTS_TOPIC = (
    Mutant(
        "ends in the lane",
        "a request that has to know where the events topic ends holds up all of its shard while that does not tell",
        breaks="liveness",
        patches=(Patch(log_ends, "_own_ends_at_once", waiting_in_the_lane),),
        scenario=an_update_waits_for_its_ends,
    ),
    Mutant(
        "stop behind a resume that waits",
        "an emergency stop goes in order with a wide resume that waits for the events topic",
        breaks="liveness",
        patches=(Patch(ApplyControl, "in_order_of", in_order_of_all),),
        scenario=a_wide_resume_waits_for_its_ends,
    ),
    Mutant(
        "passing what stands aside",
        "a request on a schedule passes an earlier one that waits for the events topic, which is superseded then",
        breaks="answers",
        patches=(Patch(ApplyRequest, "in_order_of", in_no_order),),
        scenario=an_update_and_a_suspend_of_one_schedule_wait,
    ),
    Mutant(
        "ends of before the end",
        "a suspension that a request carries out ends at log ends that were read amid it, and what came behind these counts",
        breaks="I3",
        patches=(Patch(until, "resume_when_due", by_what_was_read_before),),
        scenario=ends_were_read_before_a_suspension_was_over,
    ),
    Mutant(
        "end as of its suspend",
        "where no end was told of, a suspension that ends by itself lets count what came since its record, and not since its end",
        breaks="I3",
        patches=(Patch(ResumeWhenDue, "_asked_at", as_of_its_suspend),),
        scenario=no_broker_tells_of_a_topic_partition_at_the_end_of_a_suspension,
    ),
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
        "growth amid a take-over",
        "the minute until a holder asks about a topic again begins once it reads it, however long ago it was told of it",
        breaks="liveness",
        patches=(Patch(FollowedTopics, "follow", asked_as_it_is_read),),
        scenario=a_topic_grows_while_it_is_taken_over,
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

"""Recurring messages (I1, I7, I8): each nominal of each span of activity is delivered or covered, none of another time is,
and none is sent once its stop was acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.checks.fires import at_text, check_shown, maybe_due, shown_in, surely_due
from tests.simulation.checks.repeat_bound import is_at_bound
from tests.simulation.checks.request_history import SKEW_MS, Segment
from tests.simulation.users.schedule_definitions import NAMESPACE
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.messages.wire.delivery import GROUPS_UNDER_WAY_MAX

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.schedule_users import Life
    from tests.simulation.world.observations import Delivery

SETTLE_MS: Final = 4_000
"""An owner that can work delivers what is due within this, once it has delivered what was due before."""

UNDER_WAY: Final = "messages.wire.delivery:GROUPS_UNDER_WAY_MAX"
"""The knob that says how many groups of messages a shard may have under way."""


def check_recurring(case: Case) -> Iterator[str]:
    by_name: dict[str, list[Delivery]] = {}
    for delivery in case.record.deliveries:
        by_name.setdefault(delivery.message.split("/")[0], []).append(delivery)
    for life in case.recurring:
        mine = by_name.get(life.name, [])
        yield from _check_delivered(case, life, mine)
        yield from _check_wanted(case, life, mine)
        yield from _check_withdrawn(case, life, mine)
        for segment in case.segments(life):
            yield from check_shown(life, segment)


def _check_delivered(case: Case, life: Life, mine: list[Delivery]) -> Iterator[str]:
    """Each nominal in as many lives of the name as it was due in, unless a request came before it could be sent."""
    ids: dict[int, set[str]] = {}
    for delivery in mine:
        ids.setdefault(delivery.nominal, set()).add(delivery.id)
    wanted: dict[int, set[int]] = {}
    for segment in case.segments(life):
        for nominal in surely_due(case, life, segment, case.world.ended_at):
            if _was_made_before(case, life, segment, nominal) or _is_covered(mine, nominal):
                continue
            if _could_be_sent(case, life, segment, nominal):
                wanted.setdefault(nominal, set()).add(segment.begin.incarnation)
    for nominal, lives in sorted(wanted.items()):
        found = len(ids.get(nominal, ()))
        if found < len(lives):
            yield f"I1: {life.name} {at_text(nominal)} was due and was delivered in {found} of {len(lives)} lives"
    may: dict[int, set[int]] = {}
    for segment in case.segments(life):
        for nominal in maybe_due(life, segment, case.world.ended_at):
            may.setdefault(nominal, set()).add(segment.begin.incarnation)
    for nominal, found_ids in sorted(ids.items()):
        if len(found_ids) > len(may.get(nominal, ())):
            yield f"I1: {life.name} {at_text(nominal)} has {len(found_ids)} ids, {len(may.get(nominal, ()))} were due"


def _check_withdrawn(case: Case, life: Life, mine: list[Delivery]) -> Iterator[str]:
    """What the broker had refused when a request ended its span, and what never came, is counted by that request's receipt."""
    if life.definition.catch_up == "none":
        return  # An outage may have left it out.
    delivered = {delivery.nominal for delivery in mine}
    for segment in case.segments(life):
        end = segment.end
        if end is None or not end.is_asked_for or end.asked.receipt is None:
            continue
        withdrawn = [
            nominal
            for nominal in surely_due(case, life, segment, case.world.ended_at)
            if nominal not in delivered
            and not _is_covered(mine, nominal)
            and not _may_be_dropped(case, nominal, end.done)
            and any(segment.begin.done < at < end.sent for at in case.record.refused.get(f"{life.name}@{nominal}", ()))
        ]
        told = (end.asked.receipt.body.get("discarded") or {}).get("messages", 0)
        if told < len(withdrawn):
            yield f"I1: {life.name}: {len(withdrawn)} fires were withdrawn by {end.asked.id}, whose receipt says {told}"


def _may_be_dropped(case: Case, nominal: int, until: int) -> bool:
    """Whether a wide suspend may have ended it before the request did."""
    suspended = case.wide.next_begin(NAMESPACE, nominal)
    return suspended is not None and suspended <= until


def _is_covered(mine: list[Delivery], nominal: int) -> bool:
    return any(each.covered is not None and each.covered[0] <= nominal <= each.covered[1] for each in mine)


def _was_made_before(case: Case, life: Life, segment: Segment, nominal: int) -> bool:
    """Whether an earlier version of this life made it, the broker refused it, and the update ended it, as its receipt says.

    A later version brings the past instant of an `at` only when it was not made before, whatever became of it.
    """
    if life.definition.trigger["type"] != "at" or shown_in(segment) or segment.begin.counts_from is not None:
        return False
    lives = (each.begin for each in case.segments(life) if each.begin.incarnation == segment.begin.incarnation)
    begin = min(each.sent for each in lives)
    return any(begin <= at <= segment.begin.done for at in case.record.refused.get(f"{life.name}@{nominal}", ()))


def _could_be_sent(case: Case, life: Life, segment: Segment, nominal: int) -> bool:
    """Whether some owner had the time to send it before the request that ended the span, or a wide suspend, and nothing in its way."""
    ends = [case.wide.next_begin(NAMESPACE, nominal), None if segment.end is None else segment.end.sent]
    until = min((each for each in ends if each is not None), default=None)
    if until is None:
        return True
    if f"{life.name}@{nominal}" in case.record.not_sent:
        return False
    shard = schedule_shard(NAMESPACE, life.name, case.swarm.shards)
    first = max(nominal, segment.begin.done) + SKEW_MS
    served = [each.serving for each in case.stints_of_shard(shard) if each.serving is not None]
    passed = [at for at, _slot in case.record.passed[shard]]  # An owner that I8's bound has stopped goes on then.
    looks = [first, *(each for each in (*served, *passed) if each >= first)]
    return any(
        (turn := _settled(case, life, shard, turn_of(case, shard, nominal, look))) < until
        and case.is_served(shard, look, turn)
        and not case.is_disturbed(look, turn)
        and not case.is_unsettled(look, turn)
        and not is_at_bound(case, shard, look, turn)
        for look in looks
    )


def _settled(case: Case, life: Life, shard: int, turn: int) -> int:
    """Returns when a fire was sent at the latest whose turn had come. Behind a request that holds its schedule it goes out once that is
    decided, and while faults keep the shard's lane from that, it has no time (seed 39023072).
    """
    settled = turn + SETTLE_MS
    is_held = any(
        asked.appended and asked.appended[0] < settled and (asked.receipt is None or asked.receipt.at > turn)
        for asked in life.steps
    )
    return case.lane_had(shard, turn, SETTLE_MS) if is_held else settled


def turn_of(case: Case, shard: int, nominal: int, look: int) -> int:
    """Returns when a fire had its turn at the latest with an owner that looks at `look`.

    Rows go out in their order, so many groups at a time as may be under way, and a group may be a single row. So a fire waits
    until fewer of those before it than that are left: in a world that lets one go at a time behind the last of them, elsewhere
    hardly ever. A try that nobody answers keeps its place until it is given up, and whoever made it tries again.
    """
    mark = f"{shard:04d}-"
    ahead = [each.at for each in case.record.deliveries if each.nominal < nominal and each.id.startswith(mark)]
    ahead += [at for each, tries in case.record.tried.items() if each.startswith(mark) for at in tries]
    waited_for = sorted(each for each in ahead if each >= look)
    at_a_time = dict(case.swarm.knobs).get(UNDER_WAY, GROUPS_UNDER_WAY_MAX)
    turn = look
    for at in waited_for[: max(0, len(waited_for) - at_a_time + 1)]:
        if at > turn + SETTLE_MS:
            break
        turn = at
    return turn


def _check_wanted(case: Case, life: Life, mine: list[Delivery]) -> Iterator[str]:
    """What was sent was due then, under the version that said so, and nobody had been told that it would not be."""
    spans = [(segment, set(maybe_due(life, segment, case.world.ended_at))) for segment in case.segments(life)]
    variants = _variants(case, life)
    for delivery in mine:
        if delivery.sent.clock < delivery.nominal:
            early = delivery.nominal - delivery.sent.clock
            yield f"I8: {life.name} {at_text(delivery.nominal)} was sent {early} ms early by {delivery.sent.stint}"
        variant = int(delivery.message.split("/")[1])
        of = [each for each, due in spans if delivery.nominal in due and variants[each.begin.asked.id] == variant]
        if not of:
            yield f"I1: {delivery.message} {at_text(delivery.nominal)} was sent, and no such version was due then"
        elif all(each.end is not None and each.end.done < delivery.sent.at for each in of):
            last = max(each.end.done for each in of if each.end is not None)
            late = delivery.sent.at - last
            yield f"I7: {delivery.message} {at_text(delivery.nominal)} was sent {late} ms after its end was acknowledged"


def _variants(case: Case, life: Life) -> dict[str, int]:
    """Returns which variant holds from each request on."""
    found: dict[str, int] = {}
    variant = -1
    for step in case.steps(life):
        if step.kind == "apply" and step.moves:
            document: Any = step.asked.document
            variant = int(document["spec"]["target"]["payload_text"].split("/")[1])
        found[step.asked.id] = variant
    return found

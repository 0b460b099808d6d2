"""Writes on rates that several shards share: limits whose permits return by time, not with the end of a run.

A rate's item counts `in_use` like any shared limit, so the condition `in_use < max` and the queue are the same. It
also states until when each admission counts (`SharedLimit.counts`). An admission that finds the item full of passed
counts removes them in its own write, a forced admission too. The coordinator removes them with an offer, and when
many have accumulated. Each write states the counts that it saw, so none is removed twice. No write demands a
revision, so up to `max` shards admit at the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tidegate_core.rows import keys
from tidegate_core.rows.shared_limit import EXPIRED_MAX, SharedLimit, count_name
from tidegate_core.rows.store_operations import Condition, Key, Update, Value
from tidegate_core.writes import conditions

_RATE: Final = "RATE#"


class Counted(NamedTuple):
    """An admission that a rate counts.

    Attributes:
        until: Instant from which it no longer counts.
        seen: Number of admissions that the item was seen to count until then, for a withdrawal.
    """

    limit: Key
    until: int
    seen: int = 0

    @classmethod
    def named(cls, text: str) -> Counted:
        """Returns the admission that a run names by `text`."""
        pk, sk = text.split("|")
        return cls(keys.limit_of(pk), int(sk.removeprefix(_RATE)))

    def text(self) -> str:
        """Returns the text by which the run names it."""
        return f"{self.limit.pk}|{_RATE}{keys.instant_text(self.until)}"


def count_admission(
    counted: Counted, job_id: str, most: int, state: SharedLimit, now: int, *, forced: bool = False
) -> Update:
    """Counts an admission (I4), with one action and one write.

    Args:
        counted: Admission to count.
        job_id: Job; an offer to it is used up.
        most: Limit according to the admitting schedule's version.
        state: Item as read.
        now: Present time.
        forced: True to ignore the limit. The admission still counts, and removes passed counts. If all admissions are
            forced, no other write removes them, until they are too many for one condition.
    """
    names = {"#in_use": "in_use", "#until": count_name(counted.until)}
    values: dict[str, Value] = {":one": 1}
    offered = job_id in state.offered
    rest = " DELETE #offered :runs" if offered else ""
    if offered:
        names["#offered"], values[":runs"] = "offered", frozenset({job_id})
    expired = state.expired(now)
    if len(expired) < EXPIRED_MAX and (forced or state.in_use < most):
        expired = {}
    gone = sum(expired.values())
    demand = conditions.permit_offered if offered else conditions.permit_free
    condition = None if forced else demand(job_id, most + gone)
    values[":plus"] = 1 - gone
    if expired:
        seen = conditions.counted_as_seen(expired)
        names |= seen.names
        rest += f" REMOVE {', '.join(seen.names)}"
        condition = seen if condition is None else _both(condition, seen)
    return Update(counted.limit, f"ADD #in_use :plus, #until :one{rest}", names, values, condition)


def take_back(limit: Key, counted: Sequence[Counted]) -> Update:
    """Withdraws admissions of runs that did not start; refused when one of the counts has changed since it was read."""
    seen = {each.until: each.seen for each in counted}
    condition = conditions.counted_as_seen(seen)
    minus = {until: sum(each.until == until for each in counted) for until in seen}
    adds, removes = ["#in_use :minus"], list[str]()
    values: dict[str, Value] = {":minus": -len(counted)}
    for name, (until, count) in zip(condition.names, seen.items(), strict=True):
        if minus[until] == count:
            removes.append(name)
        else:
            adds.append(f"{name} :{name[1:]}_minus")
            values[f":{name[1:]}_minus"] = -minus[until]
    expression = f"ADD {', '.join(adds)}" + (f" REMOVE {', '.join(removes)}" if removes else "")
    return Update(limit, expression, {"#in_use": "in_use", **condition.names}, values, condition)


def _both(first: Condition, second: Condition) -> Condition:
    return Condition(
        f"{first.expression} AND {second.expression}",
        {**first.names, **second.names},
        {**first.values, **second.values},
    )

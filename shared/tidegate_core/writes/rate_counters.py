"""Rates that several shards share: limits whose permits come back by time, and not with the end of their run (SEMANTICS 7.5).

The item counts in `in_use`, as that of each shared limit, so `in_use < max` is the condition of every admission, and the queue is
the same. Beside it stands until when each admission counts (`SharedLimit.counts`). Whoever comes and finds the item full of what
counts no more takes that out in the very write of its own admission, a forced one, too; the home does when it offers, and when much
has gathered. All say what they have seen, so nothing is taken out twice, and nobody has to agree on a revision: up to `max` shards
admit at the same moment.
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
        until: From when it counts no more.
        seen: How many the item was seen to count until then; for what is taken back.
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
        """Returns how the run names it."""
        return f"{self.limit.pk}|{_RATE}{keys.instant_text(self.until)}"


def count_admission(
    counted: Counted, job_id: str, most: int, state: SharedLimit, now: int, *, forced: bool = False
) -> Update:
    """Counts an admission (I4). One action, one write.

    Args:
        counted: What is counted.
        job_id: An offer to it is used up.
        most: By the admitting schedule's own version.
        state: The item as it was read.
        now: The present.
        forced: The rate does not hold for it; it counts all the same, and takes out what has gathered: where all are forced,
            nobody else would, until no write could name it all.
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
    """Takes admissions back of runs that came to nothing; refused when one of them is not there as it was seen."""
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

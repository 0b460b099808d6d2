"""Writes on permits and queue of a limit that several shards share.

The permits alone keep the limit (I4): `in_use < max` is a condition of the write that takes one, with or without an
offer. The queue gives the order. Its writes add members to a set and remove them, so they are idempotent and commute.
A late or repeated one leaves at worst an offer for no job, which lapses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from tidegate_core.language.values.derived_ids import shard_of
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Action, Delete, Key, Put, Update, Value
from tidegate_core.writes import conditions

HOLDERS_INLINE_MAX = 16
"""Runs named in a limit's item: about 500 bytes, so that its write costs one unit.

A wider limit has one item per run.
"""

NOTHING_EXPIRED: Final[Mapping[int, int]] = MappingProxyType({})


class Permit(NamedTuple):
    """A run's permit.

    Attributes:
        inline: True when the limit's own item names the run; otherwise the permit has its own item.
    """

    limit: Key
    run_id: str
    inline: bool = True

    @classmethod
    def of(cls, limit: Key, run_id: str, most: int) -> Permit:
        """Returns the permit of a limit for `most` runs.

        Schedules, and versions of one, may differ in `most`; so each permit is returned in the form in which it was
        taken.
        """
        return cls(limit, run_id, most <= HOLDERS_INLINE_MAX)

    @classmethod
    def named(cls, text: str, run_id: str) -> Permit:
        """Returns the permit that a run names by `text`."""
        pk, sk = text.split("|")
        return cls(keys.limit_of(pk), run_id, sk == keys.LIMIT_SK)

    def text(self) -> str:
        """Returns the text by which the run names it."""
        return key_text(self.limit if self.inline else keys.permit(self.limit, self.run_id))

    def removal(self) -> Delete:
        """Returns the removal of the permit's own item, which succeeds once."""
        return Delete(keys.permit(self.limit, self.run_id), conditions.present())


def key_text(key: Key) -> str:
    """Returns the text by which a record names a key; neither part contains `|`."""
    return f"{key.pk}|{key.sk}"


def key_of(text: str) -> Key:
    pk, sk = text.split("|")
    return Key(pk, sk)


def owner_shard_of(limit: Key, shards: int) -> int:
    """Returns the owner shard of the limit, whose owner coordinates its queue."""
    return shard_of(limit.pk, shard_count=shards)


def homes_of(limits: Iterable[str], shards: int) -> list[tuple[int, Key]]:
    """Returns owner shard and limit of each shared limit that a run names."""
    pks = sorted({key_of(text).pk for text in limits if text.startswith(keys.SHARED_LIMIT)})
    return [(owner_shard_of(keys.limit_of(pk), shards), keys.limit_of(pk)) for pk in pks]


def take_permit(permit: Permit, most: int, *, offered: bool = False) -> tuple[Action, ...]:
    """Takes a permit: `in_use + 1`, and the run becomes a holder (I4). This uses up an offer.

    It is one action and one write; two when the limit is too wide to name its holders in its item.
    """
    runs = frozenset({permit.run_id})
    names = {"#in_use": "in_use"}
    adds, deletes = "#in_use :one", ""
    if permit.inline:
        adds, names = f"{adds}, #holders :runs", {**names, "#holders": "holders"}
    if offered:
        deletes, names = " DELETE #offered :runs", {**names, "#offered": "offered"}
    demand = conditions.permit_offered if offered else conditions.permit_free
    values = {":one": 1} | ({":runs": runs} if permit.inline or offered else {})
    taken = Update(permit.limit, f"ADD {adds}{deletes}", names, values, demand(permit.run_id, most))
    if permit.inline:
        return (taken,)
    key = keys.permit(permit.limit, permit.run_id)
    return (taken, Put(key, {"pk": key.pk, "sk": key.sk, "run_id": permit.run_id}, conditions.absent()))


def return_permits(limit: Key, permits: Sequence[Permit]) -> Update:
    """Returns permits; refused when one of the runs does not hold its permit, so none is returned twice (I4).

    Permits with own items are counted here; `Permit.removal` removes the items in the same transaction.
    """
    inline = [permit.run_id for permit in permits if permit.inline]
    minus = {":minus": -len(permits)}
    if not inline:
        return Update(limit, "ADD #in_use :minus", {"#in_use": "in_use"}, minus)
    return Update(
        limit,
        "ADD #in_use :minus DELETE #holders :runs",
        {"#in_use": "in_use", "#holders": "holders"},
        {**minus, ":runs": frozenset(inline)},
        conditions.permits_held(inline),
    )


def mark_queue(limit: Key, mark: str) -> Update:
    """Marks the queue as non-empty, in the transaction that writes a queue entry.

    From then on only offers lead to permits.
    """
    return Update(limit, "SET #queued = :mark", {"#queued": "queued"}, {":mark": mark})


def close_queue(limit: Key, mark_seen: str) -> Update:
    """Marks the queue as empty, unless a job has joined since the queue was read as empty."""
    return Update(limit, "REMOVE #queued", {"#queued": "queued"}, {}, conditions.queue_marked(mark_seen))


def offer_slots(limit: Key, job_ids: Sequence[str], expired: Mapping[int, int] = NOTHING_EXPIRED) -> Update:
    """Offers free permits to jobs. For a rate it also removes the passed admissions that free them."""
    jobs: dict[str, Value] = {":jobs": frozenset(job_ids)}
    if not expired:
        return Update(limit, "ADD #offered :jobs", {"#offered": "offered"}, jobs)
    gone = conditions.counted_as_seen(expired)
    names = {"#in_use": "in_use", "#offered": "offered", **gone.names}
    minus: dict[str, Value] = {":minus": -sum(expired.values())}
    expression = f"ADD #in_use :minus, #offered :jobs REMOVE {', '.join(gone.names)}"
    return Update(limit, expression, names, {**jobs, **minus}, gone)


def take_out(limit: Key, expired: Mapping[int, int]) -> Update:
    """Removes passed admissions from a rate."""
    gone = conditions.counted_as_seen(expired)
    expression = f"ADD #in_use :minus REMOVE {', '.join(gone.names)}"
    return Update(limit, expression, {"#in_use": "in_use", **gone.names}, {":minus": -sum(expired.values())}, gone)


def lapse_offers(limit: Key, job_ids: Sequence[str]) -> Update:
    """Withdraws offers. A job that was admitted since has used its offer up; any other is refused from now on."""
    return Update(limit, "DELETE #offered :jobs", {"#offered": "offered"}, {":jobs": frozenset(job_ids)})


def remove_idle(limit: Key) -> Delete:
    """Removes an unused limit without a queue. The next user finds a limit that was never used."""
    return Delete(limit, conditions.idle())

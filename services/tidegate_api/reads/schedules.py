"""Reads schedules: state, definition and next nominal times; and computes dry runs of an apply."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from pydantic import ValidationError

from tidegate_api.cluster_map import MapReader
from tidegate_api.http.page_tokens import Place
from tidegate_api.http.problem_responses import ApiProblem, not_found
from tidegate_api.reads.definitions import spec_or_none
from tidegate_api.reads.range_scan import Keep, RangeReader, Span, place_after
from tidegate_api.reads.view_builders import moment, schedule_view
from tidegate_api.thread_pools import Pools
from tidegate_client.views import DryRun, Page, ScheduleView
from tidegate_core.commands.apply_checks import trigger_stays, update_problems
from tidegate_core.commands.schedule_commands import (
    StateChange,
    applied_spec,
    is_unchanged,
    status_after,
    version_conflict,
)
from tidegate_core.firing.misfires import made_up_by_apply
from tidegate_core.language.definitions.catch_up_policy import CatchUp
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import ScheduleApply
from tidegate_core.language.triggers.preview import reading_of
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.log_position import FIRST_POSITION
from tidegate_core.language.values.problems import InvalidInput, Problem
from tidegate_core.language.values.states import OnUpdate
from tidegate_core.messages.recurring.fire_series import FireSeries
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.recurring_message import Recurring
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Item, Key, Value
from tidegate_core.shard.outages.outage_recorder import MINIMUM_PERIOD
from tidegate_core.writes.message_delivery import progress_of
from tidegate_ports.store import Store

Check: TypeAlias = Callable[[bool, CatchUp], Awaitable[tuple[Problem, ...]]]
"""Returns the problems of a definition. Arguments: whether its trigger is unchanged, and the catch-up of its past instants."""

DEFINITIONS_AT_ONCE = 32
"""Definitions that are read together: 2 MB if each has the largest size of 64 KiB."""
PAGE_CHARACTERS_MAX = 2 * 1_048_576
"""A page ends when its definitions have this many characters; the last batch of `DEFINITIONS_AT_ONCE` may exceed it.

Writing the answer takes ten times as much memory.
"""

SHOWN_SEPARATELY = frozenset({"kind", "namespace", "name"})


def prefix_of(namespace: str | None, name: str | None = None) -> str:
    """Returns the part of a sort key after its kind, for the items of a namespace or of one schedule."""
    if namespace is None:
        return ""
    return f"{namespace}/" if name is None else f"{namespace}/{name}"


class ScheduleReads:
    """Reads schedules."""

    def __init__(self, store: Store, pools: Pools, cluster: MapReader, ranges: RangeReader) -> None:
        self._store = store
        self._pools = pools
        self._cluster = cluster
        self._ranges = ranges

    async def page(
        self, namespace: str | None, place: Place, size: int, now: int, keep: Keep | None = None
    ) -> Page[ScheduleView]:
        """Returns the kept schedules, by default all that are not deleted. A page with large definitions has fewer than `size`."""
        cluster = await self._cluster.current()
        span = Span.of_prefix(f"{keys.STATE_PREFIX}{prefix_of(namespace)}")
        found, after = await self._ranges.listed(range(cluster.shards), [span], place, size, keep or is_alive)
        views: list[ScheduleView] = []
        taken = 0
        for first in range(0, len(found), DEFINITIONS_AT_ONCE):
            some = found[first : first + DEFINITIONS_AT_ONCE]
            more, size_of_more = await self._views(some, now)
            views += more
            taken += size_of_more
            if taken >= PAGE_CHARACTERS_MAX and len(views) < len(found):
                after = place_after([span], some[-1])
                break
        return Page(items=views, next_page_token="" if after is None else after.text())

    async def _views(self, found: Sequence[tuple[int, Item]], now: int) -> tuple[list[ScheduleView], int]:
        """Returns the views with definitions, and the number of characters of the definitions."""
        states = [(shard, from_item(ScheduleState, item)) for shard, item in found]
        definitions = await self.definitions((shard, s.namespace, s.name, s.version) for shard, s in states)

        def views() -> list[ScheduleView]:
            return [
                schedule_view(state, definitions.get(_definition_key(shard, state)), now) for shard, state in states
            ]

        # On a thread: parsing definitions and searching instants would delay starts of programs.
        return await self._pools.read(views), sum(len(each.spec) for each in definitions.values())

    async def one(self, namespace: str, name: str, now: int) -> ScheduleView:
        """Returns a schedule. Raises ApiProblem (404)."""
        shard = await self.shard_of(namespace, name)
        state = await self._state(shard, namespace, name)
        if state is None or state.status == "deleted":
            raise not_found(f"schedule {namespace}/{name}: does not exist; tidegate schedule list shows the schedules")
        key = _definition_key(shard, state)
        found = await self.definitions([(shard, namespace, name, state.version)])
        return await self._pools.read(lambda: schedule_view(state, found.get(key), now))

    async def try_apply(self, request: ScheduleApply, now: int, check: Check, conflict: int = 409) -> DryRun:
        """Returns the effect that the request would have now, computed by the functions that decide a real apply.

        Args:
            request: The request.
            now: Present time.
            check: Returns the problems of a changed definition; an unchanged one may be past its end. Instants are only searched
                if there are no problems.
            conflict: HTTP status for a version conflict.

        Raises:
            ApiProblem: The schedule has another version than expected.
            InvalidInput: This update is impossible, or the check found problems.
        """
        spec = request.spec
        shard = await self.shard_of(spec.namespace, spec.name)
        before = await self._state(shard, spec.namespace, spec.name)
        stale = version_conflict(request, before)
        if stale is not None:
            detail = f"{spec.namespace}/{spec.name}: {stale}"
            raise ApiProblem(conflict, detail, errors=[stale], reason=ReceiptStatus.CONFLICT.value)
        how = request.on_update or spec.on_update
        unchanged = await self._pools.read(lambda: is_unchanged(before, spec))
        exists = before is not None and before.status != "deleted"
        changed: list[str] = []
        if exists and before is not None and not unchanged:
            found = await self.definitions([(shard, spec.namespace, spec.name, before.version)])
            definition = found.get(_definition_key(shard, before))
            changed = await self._pools.read(partial(_changed, spec, how, before, definition))
        if not unchanged and (
            problems := await check(trigger_stays(how, exists=exists), made_up_by_apply(spec, before))
        ):
            raise InvalidInput(problems)

        def would_be() -> StateChange:
            made = before if before is None or unchanged else self._with_sent(shard, before)
            return applied_spec(made, spec, FIRST_POSITION, None, None, now, how)

        # On a thread: searching instants would delay starts of programs.
        applied = await self._pools.read(would_be)
        would = "unchanged" if unchanged else "replace" if exists else "create"
        return DryRun.model_validate(
            {
                "namespace": spec.namespace,
                "name": spec.name,
                "would": would,
                "version": before.version if exists and before is not None else None,
                "changed": changed,
                "next": [moment(instant) for instant in applied.next],
                "reading": reading_of(spec.trigger) or None,
            }
        )

    def _with_sent(self, shard: int, before: ScheduleState) -> ScheduleState:
        """Returns the state of a schedule with a message target, including its delivered messages, which an update does not create again.

        The owner knows more: it may have delivered messages since the last checkpoint.
        """
        where, progress = keys.recurring_of(shard, before.namespace, before.name), keys.progress(shard)
        found = self._store.get([*where, progress])
        records = [from_item(Recurring, found[key]) for key in where if key in found]
        if progress not in found:
            return before
        position = progress_of(found[progress]).place
        spans = [(record, span) for record in records for span in record.spans() if span.is_open]
        try:
            sent = [
                FireSeries(record.namespace, record.name, span).made_through(position) or 0 for record, span in spans
            ]
        except ValidationError:
            return before  # A newer release wrote it; only its owner can read it.
        return replace(before, fired_through=max([before.fired_through, *sent]))

    async def definitions(self, wanted: Iterable[tuple[int, str, str, int]]) -> dict[Key, Definition]:
        """Returns the definitions of (shard, namespace, name, version), by key; missing ones are left out."""
        keys_wanted = [keys.definition(*each) for each in wanted]
        if not keys_wanted:
            return {}
        found = await self._pools.read(lambda: self._store.get(keys_wanted))
        return {key: from_item(Definition, item) for key, item in found.items()}

    async def specs(self, refs: Sequence[str]) -> dict[str, ScheduleSpec]:
        """Returns the present definitions by `<ns>/<name>`, in two reads. Missing and unreadable ones are left out."""
        if not refs:
            return {}
        names = {ref: tuple(ref.split("/", 1)) for ref in refs}
        shards = {ref: await self.shard_of(*name) for ref, name in names.items()}
        wanted = {ref: keys.schedule_state(shards[ref], *name) for ref, name in names.items()}
        found = await self._pools.read(lambda: self._store.get(list(wanted.values())))
        states = {ref: from_item(ScheduleState, found[key]) for ref, key in wanted.items() if key in found}
        alive = {ref: state for ref, state in states.items() if state.status != "deleted"}
        definitions = await self.definitions((shards[ref], s.namespace, s.name, s.version) for ref, s in alive.items())
        found_of = {ref: definitions.get(_definition_key(shards[ref], state)) for ref, state in alive.items()}
        present = {ref: definition.spec for ref, definition in found_of.items() if definition is not None}
        read = await self._pools.read(lambda: {ref: spec_or_none(spec) for ref, spec in present.items()})
        return {ref: spec for ref, spec in read.items() if spec is not None}

    async def minimum_period_of(self, namespace: str, name: str) -> int | None:
        """Returns the shortest allowed period in ms, as reported by the present owner of the schedule's shard; None if unknown."""
        lease = keys.lease(await self.shard_of(namespace, name))

        def read() -> Value:
            owner = self._store.get([lease]).get(lease, {}).get("owner")
            node = keys.node(str(owner))
            return None if owner is None else self._store.get([node]).get(node, {}).get(MINIMUM_PERIOD)

        reported = await self._pools.read(read)
        return reported if isinstance(reported, int) else None

    async def versions(self, names: Sequence[tuple[str, str]]) -> list[int]:
        """Returns the version of each (namespace, name); 0 if the schedule does not exist."""
        wanted = [keys.schedule_state(await self.shard_of(*each), *each) for each in names]
        found = await self._pools.read(lambda: self._store.get(wanted))
        items = [found.get(key) for key in wanted]
        states = [None if item is None or not is_alive(item) else from_item(ScheduleState, item) for item in items]
        return [0 if state is None else state.version for state in states]

    async def shard_of(self, namespace: str, name: str) -> int:
        return schedule_shard(namespace, name, (await self._cluster.current()).shards)

    async def _state(self, shard: int, namespace: str, name: str) -> ScheduleState | None:
        key = keys.schedule_state(shard, namespace, name)
        item = (await self._pools.read(lambda: self._store.get([key]))).get(key)
        return None if item is None else from_item(ScheduleState, item)


def _definition_key(shard: int, state: ScheduleState) -> Key:
    return keys.definition(shard, state.namespace, state.name, state.version)


def is_alive(item: Item) -> bool:
    return item.get("status") != "deleted"


def suspended_within(begin: int | None, end: int | None) -> Keep:
    """Keeps schedules that a request suspended at `begin` <= instant < `end`; not schedules that were created suspended."""

    def keep(item: Item) -> bool:
        if item.get("status") != "suspended":
            return False
        state = from_item(ScheduleState, item)
        since = state.suspended_at
        return state.stopped_by is not None and (begin is None or since >= begin) and (end is None or since < end)

    return keep


def _changed(spec: ScheduleSpec, how: OnUpdate, before: ScheduleState, former: Definition | None) -> list[str]:
    """Returns the names of the fields that differ from the present definition. Raises InvalidInput if this update is impossible."""
    known = None if former is None else spec_or_none(former.spec)
    # If the present definition is unreadable here, only the owner can check the update.
    if known is not None or former is None:
        problems = update_problems(how, spec, known, status_after(before, spec))
        if problems:
            raise InvalidInput(problems)
    if former is None:
        return []
    old, new = json.loads(former.spec), json.loads(spec.canonical_json())
    return [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]

"""Watches every write on a shared limit that the store accepts: permits are the open runs', and nobody is passed who waits.

It trusts no condition and no decision: what it knows of a queue it knows from the waiter rows themselves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.monitors.rate_monitor import of_nothing
from tests.simulation.runner.swarm import Swarm
from tests.simulation.users.schedule_updates import Wanted
from tests.simulation.world.observations import Record
from tests.simulation.world.store import SimStore
from tidegate_core.rows import keys
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Action, Check, Delete, Item, Key, Put, RangeRead, Transaction
from tidegate_memory.store import BeforeImages

FAILURES_MAX: Final = 5
"""Told of one world: what is wrong once is wrong at every further write."""

CLASSES: Final = ("highest", "high", "medium", "low", "lowest")
CLASS_MS: Final = 30 * 60_000

OTHERS_WAIT: Final = "others wait for "
"""What an entry says first of a job for which there was a permit."""

LOSSY_MS: Final = 10_000
"""Further reads of what got no answer."""
CALLS_BETWEEN: Final = 32
"""Of the store, between a look and what comes of it: pages of a queue, and what other decisions of the same transaction read."""
SCATTERED: Final = 10
"""Of those: how many take as long as items of one read may be apart."""

Place: TypeAlias = tuple[int, str]
"""A job's place in a queue: (since when it waits, less the head start of its class; job id)."""


class Load(NamedTuple):
    """How much of a limit was somebody's.

    Attributes:
        at: Since then; true time.
        slots: Permits out, and those in its queue that a slot is for: of those who stand aside the first.
        narrowest: The least that one of these allows; who comes behind it waits as long as it does. None: nobody is in the queue.
    """

    at: int
    slots: int
    narrowest: int | None


@dataclass(slots=True)
class Watched:
    """One limit.

    Attributes:
        runs: Open runs that name it.
        counted: Of a rate: how many runs say that they count until each instant, those left out that came to nothing.
        waits: Instant at which the present row of a job was first there, or came back, by its place.
        mosts: What the waiting jobs' versions allow, by job.
        aside: Jobs that wait for another limit of theirs: others may pass them here.
        left_at: When the last of the queue left it; None: nobody has ever been in it, or somebody is.
        idle_since: A slot has been free since then, and the first of the queue has not been offered it.
        idle_longest: The longest such time.
        loads: What of it was somebody's, in the order of time.
    """

    runs: set[str] = field(default_factory=set)
    counted: Counter[int] = field(default_factory=Counter)
    waits: dict[Place, int] = field(default_factory=dict)
    mosts: dict[str, int] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)
    left_at: int | None = None
    idle_since: int | None = None
    idle_longest: int = 0
    loads: list[Load] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Begun:
    """A run from its admission on.

    Attributes:
        version: Of the schedule.
        correlation: The value that it stands for, if any.
        in_use: Permits of each shared limit of which the admission gave it one, by partition key, itself among them.
        offers: How many of those it had the word for.
        at: True time.
    """

    schedule: str
    version: int
    correlation: str | None
    in_use: Mapping[str, int]
    offers: int
    at: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A job that ended because others wait, as it says.

    Attributes:
        schedule, version, correlation, at: As of `Begun`.
        since: When it was judged at the earliest; true time.
        waited: When somebody was in the queue of each limit for the last time, by partition key.
        loads: What of each limit was somebody's as it was judged, at any moment at which that may have been, by partition key.
    """

    schedule: str
    version: int
    correlation: str | None
    at: int
    since: int
    waited: Mapping[str, int]
    loads: Mapping[str, Sequence[Load]]


class LimitMonitor:
    """Attributes:
    limits: By partition key.
    begun: All admissions, in their order.
    refused: All jobs that ended because others wait.
    offer_age: The longest time between somebody's look at a queue and the first send of what comes of it.
    wanted: Tells what the runs' schedules want.
    """

    def __init__(self, store: SimStore, record: Record, swarm: Swarm) -> None:
        self.limits: defaultdict[str, Watched] = defaultdict(Watched)
        self.begun: list[Begun] = []
        self.refused: list[Refused] = []
        self.wanted: Wanted | None = None
        self._store = store
        self._record = record
        self.offer_age = _oldest_look(swarm)
        self._seen: set[str] = set()
        self._failures = 0
        before = store.memory.on_applied

        def applied(written: Transaction | Sequence[Put | Delete], images: BeforeImages) -> None:
            if before is not None:
                before(written, images)
            if isinstance(written, Transaction):
                self._applied(written, images)

        store.memory.on_applied = applied

    def _applied(self, written: Transaction, before: BeforeImages) -> None:
        touched = {action.key for action in written.actions if action.key.sk == "LIMIT"}
        ended_or_begun = [
            action for action in written.actions if _is(action, "R#", "IW#") and action.key.table == "main"
        ]
        ended = [
            action.item for action in written.actions if isinstance(action, Put) and action.key.sk.startswith("L#")
        ]
        if not touched and not ended_or_begun and not ended:
            return
        begun = [run for action in ended_or_begun if (run := self._follow(action, before.get(action.key))) is not None]
        self._follow_counts(written, before, begun)
        in_use: dict[str, dict[str, int]] = {str(run["id"]): {} for run in begun}
        for key in sorted(touched):
            state, holders = self._judge(written, key, SharedLimit.of(before.get(key)), begun)
            for run_id in holders & in_use.keys():
                in_use[run_id][key.pk] = state.in_use
        self._seen.add(written.token)  # Behind all limits of one transaction.
        for run in begun:
            self._note(run, in_use[str(run["id"])], before)
        self._note_refused(written, ended)
        for pk in sorted({key.pk for key in touched} | {str(_limit_of(each, before)) for each in ended_or_begun}):
            if pk in self.limits:
                self._watch_idling(pk)
                self._watch_load(pk)

    def _note(self, run: Item, in_use: Mapping[str, int], before: BeforeImages) -> None:
        value = run.get("correlation")
        offers = sum(run["id"] in SharedLimit.of(before.get(Key(pk, "LIMIT"))).offered for pk in in_use)
        correlation = None if value is None else str(value)
        version = int(str(run["version"]))
        self.begun.append(Begun(str(run["name"]), version, correlation, in_use, offers, self._store.now))

    def _looked_at(self, written: Transaction) -> int:
        """Returns when its author had looked at the earliest: before the first send, however long the store gave no answer after that."""
        return self._store.first_sent.get(written.token, self._store.now) - self.offer_age

    def _note_refused(self, written: Transaction, ended: Sequence[Item]) -> None:
        judged_at = self._looked_at(written)
        for row in ended:
            if row["disposition"] == "skipped" and str(row.get("detail")).startswith(OTHERS_WAIT):
                value, now = row.get("correlation"), self._store.now
                correlation = None if value is None else str(value)
                waited = {pk: now if each.waits else each.left_at for pk, each in self.limits.items()}
                told = {pk: at for pk, at in waited.items() if at is not None}
                loads = {pk: tuple(since(each.loads, judged_at)) for pk, each in self.limits.items()}
                version = int(str(row["version"]))
                self.refused.append(Refused(str(row["name"]), version, correlation, now, judged_at, told, loads))

    # -- what is known ------------------------------------------------------------------------------------------------

    def _follow(self, action: Action, before: Item | None) -> Item | None:
        """Takes in a row; returns the item of a run that has begun."""
        item = action.item if isinstance(action, Put) else None
        if action.key.sk.startswith("IW#"):
            self._follow_waiter(before, item)
        elif item is not None and before is None:
            for pk in _shared(item):
                self.limits[pk].runs.add(str(item["id"]))
            return item
        elif isinstance(action, Delete) and before is not None:
            for pk in _shared(before):
                self.limits[pk].runs.discard(str(before["id"]))
        return None

    def _follow_counts(self, written: Transaction, before: BeforeImages, begun: Sequence[Item]) -> None:
        for change, runs in ((1, begun), (-1, of_nothing(written, before))):
            for pk, until in (count for run in runs for count in _counts_of(run)):
                self.limits[pk].counted[until] += change

    def _follow_waiter(self, before: Item | None, item: Item | None) -> None:
        if item is not None:
            watched = self.limits[str(item["limit"])]
            job_id, place = str(item["job_id"]), _place(item)
            watched.mosts[job_id] = int(str(item["most"]))
            if item.get("aside"):
                watched.aside.add(job_id)
            elif job_id in watched.aside:
                watched.aside.remove(job_id)
                watched.waits[place] = self._store.now  # Whoever has looked before has seen it stand aside.
            watched.waits.setdefault(place, self._store.now)
        elif before is not None:
            watched = self.limits[str(before["limit"])]
            watched.waits.pop(_place(before), None)
            if not watched.waits:
                watched.left_at = self._store.now

    # -- what must hold -----------------------------------------------------------------------------------------------

    def _judge(
        self, written: Transaction, key: Key, before: SharedLimit, begun: Sequence[Item]
    ) -> tuple[SharedLimit, set[str]]:
        """Judges what was written on one limit; returns it as it is now, and who has a permit."""
        watched, state = self.limits[key.pk], SharedLimit.of(self._store.memory.look(key))
        holders = set[str]()
        if keys.is_rate(key):
            self._judge_counts(written, state, watched)
        else:
            holders = self._judge_permits(written, key, state, watched)
        for run in begun:
            # For what a pending time-out forces a rate is not there.
            if key.pk in _shared(run) and not (keys.is_rate(key) and run.get("forced")):
                self._judge_order(str(run["id"]), self._order(run), before, watched)
        if state.queued is None and before.queued is not None and watched.waits:
            self._fail(f"order: {written.name} closed a queue in which {sorted(watched.waits)} wait")
        if written.token not in self._seen:
            # One that comes a second time, when much has changed, is for nobody and lapses.
            self._judge_offers(state.offered - before.offered, state, watched, self._looked_at(written))
        return state, holders

    def _judge_counts(self, written: Transaction, state: SharedLimit, watched: Watched) -> None:
        """What counts no more, by whatever clock, may be there still or have gone; all else is what the runs say."""
        if state.in_use != sum(state.counts.values()):
            self._fail(f"I4: {written.name} left {state.counts} in a rate, counted as {state.in_use}")
        now = self._store.now
        due, said = (
            {until: count for until, count in each.items() if count and until > now + SKEW_MS}
            for each in (state.counts, watched.counted)
        )
        if due != said:
            self._fail(f"I4: {written.name} left {due} in a rate, and its runs count as {said}")

    def _judge_permits(self, written: Transaction, key: Key, state: SharedLimit, watched: Watched) -> set[str]:
        own_items = self._store.memory.query(RangeRead(key.pk, "PERMIT#", f"PERMIT#{keys.LAST}"))
        holders = {*state.holders, *(str(item["run_id"]) for item in own_items.items)}
        if state.in_use != len(watched.runs) or holders != watched.runs:
            self._fail(
                f"I4: {written.name} left {state.in_use} permits with {sorted(holders)}, open are {sorted(watched.runs)}"
            )
        return holders

    def _order(self, run: Item) -> int:
        """Returns where the run's job would have stood, by arithmetic of its own."""
        assert self.wanted is not None
        wanted = self.wanted.of(run).priority
        number = max(CLASSES.index(wanted), CLASSES.index("low")) if run.get("catch_up") else CLASSES.index(wanted)
        job = self._store.memory.look(Key(str(run["pk"]), f"J#{run['id']!s}"))
        assert job is not None
        since = int(str(job.get("queued_since") or job["satisfied_at"]))
        return since - 10**12 if number == 0 else since + (number - 2) * CLASS_MS

    def _judge_order(self, run_id: str, order: int, before: SharedLimit, watched: Watched) -> None:
        """Who comes without an offer passes nobody."""
        passed = [place for place in sorted(watched.waits) if place < (order, run_id)]
        if run_id not in before.offered and passed:
            self._fail(f"order: {run_id} was admitted without an offer, and {passed[0][1]} waits since longer")

    def _judge_offers(self, offered: frozenset[str], state: SharedLimit, watched: Watched, looked_at: int) -> None:
        """An offer passes nobody who was there when its author looked, and could take it up."""
        waits = sorted(watched.waits)
        offers = [place for place in waits if place[1] in offered]
        for place in waits:
            was_there = watched.waits[place] < looked_at
            if place[1] in state.offered or place[1] in watched.aside:
                continue
            if offers and place < offers[-1] and was_there:
                self._fail(f"order: {offers[-1][1]} was offered a slot, and {place[1]} waits since longer")
                return

    def _watch_idling(self, pk: str) -> None:
        """How long a free slot and the first of the queue do not find each other."""
        watched, now = self.limits[pk], self._store.now
        state = SharedLimit.of(self._store.memory.look(Key(pk, "LIMIT"))).at(now)
        passes = state.offered | watched.aside
        first = next((job for _, job in sorted(watched.waits) if job not in passes), None)
        is_idle = first is not None and state.in_use + len(state.offered) < watched.mosts[first]
        if watched.idle_since is not None:
            watched.idle_longest = max(watched.idle_longest, now - watched.idle_since)
        watched.idle_since = (watched.idle_since or now) if is_idle else None

    def _watch_load(self, pk: str) -> None:
        watched, now = self.limits[pk], self._store.now
        in_use = SharedLimit.of(self._store.memory.look(Key(pk, "LIMIT"))).in_use
        waits = [job for _, job in sorted(watched.waits)]
        first_aside = [job for job in waits if job in watched.aside][:1]
        line = [*(job for job in waits if job not in watched.aside), *first_aside]
        narrowest = min((watched.mosts[job] for job in line), default=None)
        watched.loads.append(Load(now, in_use + len(line), narrowest))

    def _fail(self, problem: str) -> None:
        self._failures += 1
        if self._failures <= FAILURES_MAX:
            self._record.failures.append(problem)


def _oldest_look(swarm: Swarm) -> int:
    """Returns the longest time between the look at a queue and the first send of what it offers: reads take long or are repeated, and
    whoever looked may have been frozen in between.
    """
    store = swarm.store
    calls = CALLS_BETWEEN * int(store.latency_ms) + SCATTERED * store.scattered_ms + store.timeout_ms
    outage = max((end - begin for begin, end in store.brown_outs), default=0)
    frozen = max((each.length for each in swarm.node.trouble if each.kind == "pause"), default=0)
    return 1_000 + calls + outage + frozen + (LOSSY_MS if store.unreadable else 0)


def since(loads: Sequence[Load], instant: int) -> Sequence[Load]:
    """Returns what held at some time from then on."""
    return loads[max(0, bisect_right(loads, instant, key=attrgetter("at")) - 1) :]


def _is(action: Action, *prefixes: str) -> bool:
    return not isinstance(action, Check) and action.key.sk.startswith(prefixes)


def _shared(run: Item) -> list[str]:
    limits = run.get("limits", [])
    assert isinstance(limits, list)
    return sorted({str(text).split("|")[0] for text in limits if str(text).startswith(keys.SHARED_LIMIT)})


def _counts_of(run: Item) -> list[tuple[str, int]]:
    """Returns partition key and instant of each rate in which the run counts."""
    limits = run.get("limits", [])
    assert isinstance(limits, list)
    texts = [str(text).split("|RATE#") for text in limits]
    return [(each[0], int(each[1])) for each in texts if len(each) == 2]


def _place(row: Item) -> Place:
    return int(str(row["order"])), str(row["job_id"])


def _limit_of(action: Action, before: BeforeImages) -> str | None:
    """Returns the limit that a waiter row is about."""
    row = action.item if isinstance(action, Put) else before.get(action.key)
    return None if row is None or "limit" not in row else str(row["limit"])

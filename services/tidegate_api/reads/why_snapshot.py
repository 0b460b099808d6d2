"""Reads the facts of an explanation on one thread: the rows of a schedule, and rows of its shard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from tidegate_api.cluster_map import ClusterMap
from tidegate_api.reads.history_keys import place_of_job
from tidegate_core.explain.why.admission_dry_run import Views
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.states import Disposition
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.outage import outages_of
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, StoredSuspensions
from tidegate_core.rows.store_operations import Item, Key, RangeRead, Table
from tidegate_core.shard.outages.outage_recorder import SERVED, sign_name
from tidegate_core.shard.outages.outage_time import last_sign
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT
from tidegate_core.writes.partition_map import FIRST_VERSION
from tidegate_core.writes.read_cache import View
from tidegate_core.writes.unit_of_work import NotAtHand
from tidegate_ports.store import Store

OPEN_ROWS_MAX: Final = 20_000
"""Most open jobs, or runs, of the shard that are read to find the ones of a schedule."""
LEDGER_ROWS: Final = 100
"""Ledger rows that are read from the instant on. If jobs were merged in a chain, more are read until its end."""
LATEST_ROWS: Final = 3
"""Newest ledger rows that an explanation of a schedule uses."""
VERSIONS_MAX: Final = 1_000
READS_MAX: Final = 50
"""Most times that a decision may request more rows: rows of the schedule, of its limits and of its evidence."""
PAGE = 1_000


class JobMovedOn(Exception):
    """A job changed its form between two reads; read it again by its id."""


Answer = TypeVar("Answer")
Record = TypeVar("Record", Job, Run)


def facts_of(store: Store, cluster: ClusterMap, namespace: str, name: str, now: Instant) -> Facts | None:
    """Returns the facts without the ledger; None if the schedule never existed."""
    shard = schedule_shard(namespace, name, cluster.shards)
    state, progress, lease = keys.schedule_state(shard, namespace, name), keys.progress(shard), keys.lease(shard)
    found = store.get([state, progress, lease, keys.SUSPENSIONS_KEY])
    if state not in found:
        return None
    ref = keys.schedule_ref(namespace, name)
    controls = found.get(keys.SUSPENSIONS_KEY)
    evidence = _range(store, shard, f"{keys.EVIDENCE_PREFIX}{ref}#", OPEN_ROWS_MAX)
    # Newest first, so that the present version is always among them.
    low = f"{keys.DEFINITION_PREFIX}{ref}#"
    versions = _between(store, shard, low, low + keys.LAST, VERSIONS_MAX, newest_first=True)
    return Facts(
        shard=shard,
        shards=cluster.shards,
        now=now,
        state=from_item(ScheduleState, found[state]),
        definitions=tuple(from_item(Definition, row) for row in reversed(versions)),
        controls=NO_SUSPENSIONS if controls is None else from_item(StoredSuspensions, controls).controls,
        outages=outages_of(found.get(progress)),
        last_sign=last_sign_of(store, found.get(lease), cluster, shard),
        jobs=_open(store, shard, keys.JOB_PREFIX, Job, ref),
        runs=_open(store, shard, keys.RUN_PREFIX, Run, ref),
        evidence=tuple(from_item(Evidence, row) for row in evidence),
    )


def with_latest(store: Store, facts: Facts) -> Facts:
    """Returns the facts with the newest ledger rows."""
    low = f"{keys.LEDGER_PREFIX}{facts.ref}#"
    wanted = RangeRead(
        keys.shard_pk(facts.shard), low, low + keys.LAST, limit=LATEST_ROWS, table="history", newest_first=True
    )
    return replace(facts, latest=tuple(from_item(LedgerRow, row) for row in store.query(wanted).items))


def with_ledger(store: Store, facts: Facts, around: Instant) -> Facts:
    """Returns the facts with the ledger row before an instant, and the rows from the instant on."""
    ref, pk = facts.ref, keys.shard_pk(facts.shard)
    low, at, high = (
        f"{keys.LEDGER_PREFIX}{ref}#",
        f"{keys.LEDGER_PREFIX}{ref}#{keys.instant_text(around)}",
        f"{keys.LEDGER_PREFIX}{ref}#{keys.LAST}",
    )
    before = store.query(RangeRead(pk, low, at, limit=1, table="history", newest_first=True))
    behind: list[LedgerRow] = []
    after: str | None = None
    while not behind or (after is not None and len(behind) < OPEN_ROWS_MAX and _is_merged_on(behind, around)):
        limit = PAGE if behind else LEDGER_ROWS
        page = store.query(RangeRead(pk, at, high, limit=limit, after=after, table="history"))
        behind += [from_item(LedgerRow, row) for row in page.items]
        after = page.next_after
        if after is None:
            break
    return replace(facts, ledger=(*(from_item(LedgerRow, row) for row in before.items), *behind))


def _is_merged_on(rows: Sequence[LedgerRow], instant: Instant) -> bool:
    """Whether the instant's job was merged into another job, and this chain of merges goes on to the last row."""
    merged = [row.disposition == Disposition.COALESCED for row in rows]
    return any(each for row, each in zip(rows, merged, strict=True) if row.nominal == instant) and not any(
        not each and row.covered_from is not None and row.covered_from <= instant
        for row, each in zip(rows, merged, strict=True)
    )


def with_job(store: Store, facts: Facts, job_id: str) -> tuple[Facts, Job]:
    """Returns the facts with the present rows of an open job and its run, and the job. Raises JobMovedOn if the job has ended."""
    at, its_run = keys.job(facts.shard, job_id), keys.run(facts.shard, job_id)
    found = store.get([at, its_run])
    if at not in found:
        raise JobMovedOn
    job = from_item(Job, found[at])
    # The facts may have an older row of the job; for a shard with very many jobs they may have none.
    jobs = (*(each for each in facts.jobs if each.id != job_id), job)
    if job.state == PENDING_CONSTRAINT:
        return replace(facts, jobs=jobs), job
    if its_run not in found:
        raise JobMovedOn
    runs = (*(each for each in facts.runs if each.id != job_id), from_item(Run, found[its_run]))
    return replace(facts, jobs=jobs, runs=runs), job


def with_evidence(store: Store, facts: Facts, evidence: Evidence) -> Facts:
    """Returns the facts with the present row of the evidence. Raises JobMovedOn if it has become a job or has ended."""
    key = evidence.key(facts.shard)
    row = store.get([key]).get(key)
    now = None if row is None else from_item(Evidence, row)
    if now is None or now.id != evidence.id or now.job:
        raise JobMovedOn
    return replace(facts, evidence=(*(each for each in facts.evidence if each.id != now.id), now))


def answered(store: Store, shard: int, ask: Callable[[Views], Answer]) -> Answer:
    """Runs a deciding function again and again, and reads the rows that it requests, until it has all."""
    wanted: list[Key] = []
    found: dict[Key, Item] = {}
    ranges: dict[tuple[str, str], list[Item]] = {}
    elsewhere: dict[RangeRead, tuple[Item, ...]] = {}

    def what_was_read() -> View:
        view = View(shard)
        view.learn(wanted, found)
        for (low, high), rows in ranges.items():
            view.learn_range(low, high, rows)
        for asked, rows_there in elsewhere.items():
            view.learn_elsewhere(asked, rows_there)
        return view

    for _ in range(READS_MAX):
        try:
            return ask(what_was_read)
        except NotAtHand as need:
            wanted += need.keys
            found |= store.get(list(need.keys))
            ranges |= {(low, high): _between(store, shard, low, high, OPEN_ROWS_MAX) for low, high in need.ranges}
            elsewhere |= {rows: store.query(rows).items for rows in need.elsewhere}
    raise AssertionError("a decision requests rows without end")


def evidence_in(store: Store, shard: int, job_id: str) -> Item | None:
    """Returns the evidence that will become the job, or None."""
    rows = _range(
        store, shard, keys.EVIDENCE_PREFIX, OPEN_ROWS_MAX, lambda row: row["id"] == job_id and not row.get("job", False)
    )
    return rows[0] if rows else None


def ended_in(store: Store, shard: int, job_id: str) -> LedgerRow | None:
    """Returns the ledger row of an ended job, or None."""
    place = place_of_job(store, shard, job_id)
    if place is None:
        return None
    entry = place.entry_key(shard)
    row = store.get([entry]).get(entry)
    return None if row is None else from_item(LedgerRow, row)


def last_sign_of(store: Store, lease: Item | None, cluster: ClusterMap, shard: int) -> Instant | None:
    """Returns the last time at which the shard was served; None if it was not recorded."""
    if lease is None:
        return None
    version = lease.get("map", FIRST_VERSION)
    assert isinstance(version, int)
    node = keys.node(str(lease["owner"]))
    signs = store.get([node]).get(node, {}).get(SERVED)
    name = sign_name(version, cluster.topic_partition_of(shard, version))
    own = signs.get(name) if isinstance(signs, dict) else None
    return last_sign(lease, None if own is None else int(str(own)))


def _open(store: Store, shard: int, prefix: str, kind: type[Record], ref: str) -> tuple[Record, ...]:
    namespace, name = ref.split("/", 1)
    rows = _range(
        store, shard, prefix, OPEN_ROWS_MAX, lambda row: row["namespace"] == namespace and row["name"] == name
    )
    return tuple(from_item(kind, row) for row in rows)


def _everything(_row: Item) -> bool:
    return True


def _range(store: Store, shard: int, prefix: str, most: int, keep: Callable[[Item], bool] = _everything) -> list[Item]:
    return _between(store, shard, prefix, prefix + keys.LAST, most, "main", keep)


def _between(
    store: Store,
    shard: int,
    low: str,
    high: str,
    most: int,
    table: Table = "main",
    keep: Callable[[Item], bool] = _everything,
    newest_first: bool = False,
) -> list[Item]:
    found: list[Item] = []
    after: str | None = None
    seen = 0
    while seen < most:  # Rows are counted, not pages: a page of at most 1 MB may have only a few rows.
        wanted = RangeRead(
            keys.shard_pk(shard),
            low,
            high,
            limit=min(PAGE, most - seen),
            after=after,
            table=table,
            newest_first=newest_first,
        )
        page = store.query(wanted)
        found += [row for row in page.items if keep(row)]
        seen += len(page.items)
        after = page.next_after
        if after is None:
            break
    return found

"""Partition and sort keys of every item. Only this module spells a key.

Names of namespaces and schedules contain neither `/` nor `#`, so joining them is unambiguous. Other user text (message keys, data
partitions, correlation values) enters a key only as a hash.

Table `main`, partition `SH#<shard, 4 digits>`, holds the items that a shard owns. The prefixes below start their sort keys; an
owner's singletons are `LEASE`, `PROGRESS` (delivery position, outages) and `HELD` (number of moves of held messages).
Other partitions of `main` hold one object each, for example `MAP`, `SCHEMA`, `CONTROLS`, `SOURCES`, `NODES` and `LIMIT#...`.
Table `history` holds ended runs, ledger, ended generations and closed tallies, in the same partitions by shard.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from tidegate_core.rows.store_operations import Key, RangeRead

INSTANT_DIGITS = 13
"""Digits of an instant in a key: milliseconds since the epoch until 2286. Sort keys compare as text, so the width is fixed."""
INDEX_SHARDS = 64
HASHES_KEPT = 10_000
"""Entries of the hash cache (2 MB): the same few keys, programs and data partitions are hashed repeatedly."""
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
LAST = "~"
"""Sorts after every character that keys use: upper end of a prefix range."""
NO_NAMESPACE = "-"
"""Placeholder for a request without a namespace. No namespace can have this name."""

# -- sort keys of a shard in `main` ---------------------------------------------------------------------------------------

RECURRING_PREFIX: Final = "C#"
"""`<ns>/<name>`: intervals of a recurring message whose next fire is near."""
RECURRING_FAR_PREFIX: Final = "CF#"
"""`<ns>/<name>`: the same record while its next fire is far."""
MESSAGE_TIMER_PREFIX: Final = "D#"
"""`<slot>#<id>#<version>`: timer row of a message. Version `+` marks the wake row of a recurring message."""
DEFINITION_PREFIX: Final = "DEF#"
"""`<ns>/<name>#<version>`: a schedule version, immutable."""
EVIDENCE_PREFIX: Final = "E#"
"""`<ns>/<name>#<correlation hash>`: evidence of the one unsealed job of that correlation."""
EVIDENCE_CHUNK_PREFIX: Final = "EC#"
"""`<evidence id>#<chunk>`: counted entries of the evidence log, write-once."""
MESSAGE_FENCE_PREFIX: Final = "G#"
"""`<id>`: message fence."""
HELD_MESSAGE_PREFIX: Final = "H#"
"""`<id>#<version>`: message held while its scope is suspended."""
INBOX_PREFIX: Final = "I#"
"""`<ns>/<name>#<kind>#<origin>`: inbox row, with an inbox kind from below."""
QUEUE_ENTRY_PREFIX: Final = "IW#"
"""`<limit hash>#<order>#<job id>`: queue entry of a job of any shard, in the shard that coordinates the limit.

It sorts next to the inbox, so that one read shows whether either has a row.
"""
JOB_PREFIX: Final = "J#"
"""`<job id>`: open job."""
MESSAGE_KEY_PREFIX: Final = "K#"
"""`<id>`: key row of a replaceable message."""
OWN_LIMIT_PREFIX: Final = "LIM#"
"""`<ns>/<name>`: the schedule's own limit."""
MESSAGE_PREFIX: Final = "M#"
"""`<id>#<version>`: message."""
PAST_RUNS_PREFIX: Final = "PR#"
"""`<ns>/<name>`: earlier runs, as the schedule's constraints remember them."""
RUN_PREFIX: Final = "R#"
"""`<run id>`: open run."""
RECEIPT_PREFIX: Final = "RQ#"
"""`<hash of namespace and request id>`: receipt, kept for 7 days."""
STATE_PREFIX: Final = "S#"
"""`<ns>/<name>`: schedule state."""
TIMER_PREFIX: Final = "T#"
"""`<instant>#<kind>#<ref>`: timer row, with a timer kind from below."""
OUTBOX_PREFIX: Final = "Z#"
"""`<run id>#<attempt>#<state>`: outbox row."""

# -- sort keys of a shard in `history` ------------------------------------------------------------------------------------

LEDGER_PREFIX: Final = "L#"
"""`<ns>/<name>#<instant>#<job id>`: ledger entry."""
LEDGER_PLACE_PREFIX: Final = "LJ#"
"""`<job id>`: sort keys of the job's ledger entry and of its ended run."""
ENDED_RUN_PREFIX: Final = "R#"
"""`<ns>/<name>#<0 or 1>#<end>#<run id>`: ended run; 1 = not succeeded."""
RUN_END_PREFIX: Final = "RE#"
"""`<0 or 1>#<end>#<run id>`: ended runs of all schedules of the shard, by end."""
PAST_GENERATION_PREFIX: Final = "V#"
"""`<ns>/<name>#<generation>`: ended generation of a schedule."""
TALLY_PREFIX: Final = "Y#"
"""`<instant>#<epoch>`: closed tally of deliveries."""

# -- kinds of timer rows --------------------------------------------------------------------------------------------------

NOMINAL_TIMER: Final = "S"
"""Next nominal time, or next reminder, of a schedule."""
RESUME_TIMER: Final = "U"
"""End of a schedule's suspension."""
EVIDENCE_TIMER: Final = "E"
"""Deadline of evidence; also a reminder that is due, and the next tick of a composite trigger."""
CHUNKS_TIMER: Final = "C"
"""Removal of the log chunks of ended evidence."""
LIMIT_TIMER: Final = "L"
"""Removal of an idle limit of a key."""

# -- kinds of inbox rows --------------------------------------------------------------------------------------------------

REQUEST_INBOX: Final = "Q"
"""Request about schedules, jobs or runs."""
MESSAGE_INBOX: Final = "M"
"""Request about a message."""
EVENTS_INBOX: Final = "X"
"""Events that match one schedule."""
UPSTREAM_DELETED_INBOX: Final = "G"
"""Deletion of a schedule that this schedule's trigger names."""

# -- other partitions of `main` -------------------------------------------------------------------------------------------

MAP_KEY = Key("MAP", "MAP")
SCHEMA_KEY = Key("SCHEMA", "SCHEMA")
NODES: Final = "NODES"
"""Partition key of the status rows of all processes: one partition, so that one query lists them."""
SHARED_LIMIT = "LIMIT#"
"""Start of the partition keys of shared limits. Neither run ids nor job ids start so."""
RATE = "rate-"
"""Start of the scope in the key of a shared rate."""
LIMIT_SK: Final = "LIMIT"
"""Sort key of a limit's own item; permits of wide limits are `PERMIT#<run id>` in the same partition."""
SUSPENSIONS_KEY = Key("CONTROLS", "CONTROLS")
SOURCES_KEY = Key("SOURCES", "SOURCES")


def prefix_range(prefix: str) -> tuple[str, str]:
    """Returns the range of all sort keys that start with `prefix`."""
    return prefix, f"{prefix}{LAST}"


def split_prefix(key: Key) -> tuple[str, str]:
    """Returns the prefix of a sort key, `#` included, and its rest. A key without `#` is all prefix."""
    kind, separator, rest = key.sk.partition("#")
    return f"{kind}{separator}", rest


def instant_text(instant: int) -> str:
    """Returns the fixed-width text of an instant (0 ≤ instant < 10^13)."""
    return f"{instant:0{INSTANT_DIGITS}d}"


def cluster_object(name: str) -> Key:
    """Returns the key of the one item of a cluster object, such as `CONTROLS` or `SOURCES`."""
    return Key(name.upper(), name.upper())


@lru_cache(maxsize=HASHES_KEPT)
def text_hash(*parts: str) -> str:
    """Returns 26 base-32 characters that stand for user text. The result is cached: pass names, not bodies.

    Two different tuples of parts never share an encoding.
    """
    return text_hash_once(*parts)


def text_hash_once(*parts: str) -> str:
    """Returns the same hash without caching: for long text, or text that is hashed only once."""
    encoded = [part.encode() for part in parts]
    return _base32(b"".join([len(each).to_bytes(4, "big") + each for each in encoded]))


def _base32(data: bytes) -> str:
    number = int.from_bytes(hashlib.blake2b(data, digest_size=17).digest(), "big") >> 6
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def schedule_ref(namespace: str, name: str) -> str:
    return f"{namespace}/{name}"


@lru_cache(maxsize=HASHES_KEPT)
def shard_pk(shard: int) -> str:
    return f"SH#{shard:04d}"


def lease(shard: int) -> Key:
    return Key(shard_pk(shard), "LEASE")


def progress(shard: int) -> Key:
    return Key(shard_pk(shard), "PROGRESS")


def topic_position(cluster_id: str, topic_id: str, topic_partition: int) -> Key:
    return Key(f"TP#{cluster_id}#{topic_id}#{topic_partition:06d}", "TP")


def schedule_state(shard: int, namespace: str, name: str) -> Key:
    return Key(shard_pk(shard), f"{STATE_PREFIX}{schedule_ref(namespace, name)}")


def schedule_states(namespace: str) -> tuple[str, str]:
    """Returns the range of the states of a namespace's schedules, in each shard."""
    prefix = f"{STATE_PREFIX}{schedule_ref(namespace, '')}"
    return prefix_range(prefix)


def schedule_count(namespace: str) -> Key:
    return Key(f"NS#{namespace}", "COUNT")


def definition(shard: int, namespace: str, name: str, version: int) -> Key:
    return Key(shard_pk(shard), f"{DEFINITION_PREFIX}{schedule_ref(namespace, name)}#{version:010d}")


def own_limit(shard: int, namespace: str, name: str) -> Key:
    return Key(shard_pk(shard), f"{OWN_LIMIT_PREFIX}{schedule_ref(namespace, name)}")


def past_runs(shard: int, namespace: str, name: str) -> Key:
    return Key(shard_pk(shard), f"{PAST_RUNS_PREFIX}{schedule_ref(namespace, name)}")


def shared_limit(namespace: str, scope: str, name: str) -> Key:
    """Returns the key of a limit that schedules share: of a program, a group or a key. The name is user text, so it is
    hashed.
    """
    return Key(f"{SHARED_LIMIT}{namespace}#{scope}#{text_hash(name)}", LIMIT_SK)


def shared_rate(namespace: str, scope: str, name: str, per: int, zone: str | None) -> Key:
    """Returns the key of a rate that schedules share. Each span of one scope and name has its own."""
    return Key(f"{SHARED_LIMIT}{namespace}#{RATE}{scope}#{text_hash(name, str(per), zone or '')}", LIMIT_SK)


def limit_of(pk: str) -> Key:
    """Returns the key of a shared limit's own item by its partition key."""
    return Key(pk, LIMIT_SK)


def is_rate(limit: Key) -> bool:
    """Returns whether a shared limit is a rate."""
    return limit.pk.startswith(SHARED_LIMIT) and limit.pk.split("#")[2].startswith(RATE)


def dead_letter_mark(origin: str) -> Key:
    """Returns the key of the mark on a dead letter, by the hash of the record that the letter copies."""
    return Key(f"DLQ#{origin}", "MARK")


def is_of_key(limit: Key) -> bool:
    """Returns whether a shared limit or rate belongs to one value of a key."""
    return limit.pk.startswith(SHARED_LIMIT) and limit.pk.split("#")[2].removeprefix(RATE) == "key"


def permit(limit: Key, run_id: str) -> Key:
    """Returns the key of one run's permit, for a limit with too many holders to name them all in one item."""
    return Key(limit.pk, f"PERMIT#{run_id}")


def queue_entry(home: int, limit: Key, order: int, job_id: str) -> Key:
    """Returns the key of a queue entry. It sorts by priority and waiting time; no part of it changes while the job
    lives.
    """
    return Key(shard_pk(home), f"{QUEUE_ENTRY_PREFIX}{text_hash(limit.pk)}#{instant_text(order)}#{job_id}")


def queue_entries_of(limit: Key) -> tuple[str, str]:
    """Returns the range of a limit's queue in the shard that coordinates the limit."""
    prefix = f"{QUEUE_ENTRY_PREFIX}{text_hash(limit.pk)}#"
    return prefix_range(prefix)


def job(shard: int, job_id: str) -> Key:
    return Key(shard_pk(shard), f"{JOB_PREFIX}{job_id}")


def run(shard: int, run_id: str) -> Key:
    return Key(shard_pk(shard), f"{RUN_PREFIX}{run_id}")


def shard_of_run(run_id: str) -> int:
    """Returns the shard in the first four digits of a run id. Raises ValueError when the text is no run id."""
    return int(run_id[:4])


def evidence(shard: int, namespace: str, name: str, correlation: str) -> Key:
    return Key(shard_pk(shard), f"{EVIDENCE_PREFIX}{schedule_ref(namespace, name)}#{text_hash(correlation)}")


def evidence_chunk(shard: int, evidence_id: str, chunk: int) -> Key:
    return Key(shard_pk(shard), f"{EVIDENCE_CHUNK_PREFIX}{evidence_id}#{chunk:06d}")


def inbox(shard: int, namespace: str, name: str, kind: str, origin: str) -> Key:
    return Key(shard_pk(shard), f"{INBOX_PREFIX}{schedule_ref(namespace, name)}#{kind}#{origin}")


def brought_by_others(shard: int) -> RangeRead:
    """Returns a read of the first row of the inbox or a limit queue: the rows that mainly owners of other shards write."""
    return RangeRead(shard_pk(shard), INBOX_PREFIX, f"{QUEUE_ENTRY_PREFIX}{LAST}", limit=1)


def outbox(shard: int, run_id: str, attempt: int, state: str) -> Key:
    return Key(shard_pk(shard), f"{OUTBOX_PREFIX}{run_id}#{attempt:04d}#{state}")


def timer(shard: int, at: int, kind: str, ref: str) -> Key:
    return Key(shard_pk(shard), f"{TIMER_PREFIX}{instant_text(at)}#{kind}#{ref}")


def receipt(shard: int, namespace: str | None, request_id: str) -> Key:
    """Returns the key of a receipt. Ids are unique within a namespace; requests about a run or job may have none."""
    return Key(shard_pk(shard), f"{RECEIPT_PREFIX}{text_hash_once(namespace or NO_NAMESPACE, request_id)}")


def ledger(shard: int, namespace: str, name: str, at: int, job_id: str) -> Key:
    """Returns the key of a ledger entry. Entries sort by nominal time or seal, so one range holds a schedule's newest."""
    return Key(
        shard_pk(shard), f"{LEDGER_PREFIX}{schedule_ref(namespace, name)}#{instant_text(at)}#{job_id}", "history"
    )


def ledger_place(shard: int, job_id: str) -> Key:
    return Key(shard_pk(shard), f"{LEDGER_PLACE_PREFIX}{job_id}", "history")


def ended_run(shard: int, namespace: str, name: str, succeeded: bool, ended_at: int, run_id: str) -> Key:
    """Returns the key of an ended run, sorted by its end within a schedule.

    Runs that did not succeed have their own range, so that a query finds a few of them without reading all others.
    """
    return Key(
        shard_pk(shard), f"{ended_runs_of(namespace, name, succeeded)}{moment_text(ended_at, run_id)}", "history"
    )


def run_end(shard: int, succeeded: bool, ended_at: int, run_id: str) -> Key:
    """Returns the key of an ended run in the same order over all schedules of a shard."""
    return Key(shard_pk(shard), f"{run_ends(succeeded)}{moment_text(ended_at, run_id)}", "history")


def ended_runs_of(namespace: str, name: str, succeeded: bool) -> str:
    """Returns the prefix of the sort keys of a schedule's ended runs; `moment_text` follows it."""
    return f"{ENDED_RUN_PREFIX}{schedule_ref(namespace, name)}#{_by_success(succeeded)}#"


def run_ends(succeeded: bool) -> str:
    """Returns the prefix of the sort keys of all ended runs of a shard; `moment_text` follows it."""
    return f"{RUN_END_PREFIX}{_by_success(succeeded)}#"


def moment_text(instant: int, run_id: str) -> str:
    """Returns the rest of a key after one of these prefixes: an instant, then the run id."""
    return f"{instant_text(instant)}#{run_id}"


def _by_success(succeeded: bool) -> str:
    return "0" if succeeded else "1"


def past_generation(shard: int, namespace: str, name: str, generation: int) -> Key:
    return Key(shard_pk(shard), f"{PAST_GENERATION_PREFIX}{schedule_ref(namespace, name)}#{generation:010d}", "history")


def closed_tally(shard: int, closed_at: int, epoch: int) -> Key:
    return Key(shard_pk(shard), f"{TALLY_PREFIX}{instant_text(closed_at)}#{epoch:010d}", "history")


def message_timer(shard: int, slot: int, message_id: str, version: str) -> Key:
    return Key(shard_pk(shard), f"{MESSAGE_TIMER_PREFIX}{instant_text(slot)}#{message_id}#{version}")


def message(shard: int, message_id: str, version: str) -> Key:
    return Key(shard_pk(shard), f"{MESSAGE_PREFIX}{message_id}#{version}")


def message_fence(shard: int, message_id: str) -> Key:
    return Key(shard_pk(shard), f"{MESSAGE_FENCE_PREFIX}{message_id}")


def message_key_row(shard: int, message_id: str) -> Key:
    return Key(shard_pk(shard), f"{MESSAGE_KEY_PREFIX}{message_id}")


def held_message(shard: int, message_id: str, version: str) -> Key:
    return Key(shard_pk(shard), f"{HELD_MESSAGE_PREFIX}{message_id}#{version}")


def held_moves(shard: int) -> Key:
    return Key(shard_pk(shard), "HELD")


def recurring(shard: int, namespace: str, name: str) -> Key:
    return Key(shard_pk(shard), f"{RECURRING_PREFIX}{schedule_ref(namespace, name)}")


def recurring_far(shard: int, namespace: str, name: str) -> Key:
    return Key(shard_pk(shard), f"{RECURRING_FAR_PREFIX}{schedule_ref(namespace, name)}")


def recurring_of(shard: int, namespace: str, name: str) -> tuple[Key, Key]:
    """Returns both keys of a recurring message's record: near, then far."""
    return recurring(shard, namespace, name), recurring_far(shard, namespace, name)


def index_shard_of(event_key: str) -> int:
    return int.from_bytes(hashlib.blake2b(event_key.encode(), digest_size=8).digest(), "big") % INDEX_SHARDS


def index_pk(index_shard: int) -> str:
    """Returns the partition key of a slice of the subscription index."""
    return f"IX#{index_shard:02d}"


def index_version(index_shard: int) -> Key:
    return Key(index_pk(index_shard), "!VERSION")


def index_row(
    event_key: str, namespace: str, name: str, incarnation: str, generation: int, leaf: int, vector: str | None
) -> Key:
    """Returns the key of a subscription. Event keys hold only names of datasets and schedules, hence no `#`.

    The key holds generation and incarnation, so a late write of an older activation replaces no newer one. A late
    write of a refused request, whose repeat was applied first, replaces nothing either. The key holds the vector as
    well: a former owner's late row of the same activation does not replace the present owner's.
    """
    pk = index_pk(index_shard_of(event_key))
    activation = f"{generation:010d}#{leaf:02d}#{incarnation}#{vector or ''}"
    return Key(pk, f"{event_key}#{schedule_ref(namespace, name)}#{activation}")


def index_rows_in(event_key: str, namespace: str) -> tuple[str, str, str]:
    """Returns partition key and range of the subscriptions of a namespace's schedules under one event key."""
    prefix = f"{event_key}#{schedule_ref(namespace, '')}"
    return index_pk(index_shard_of(event_key)), *prefix_range(prefix)


def index_rows_of(event_key: str, namespace: str, name: str) -> tuple[str, str, str]:
    """Returns partition key and range of a schedule's subscriptions under one event key, for all generations and leaves."""
    prefix = f"{event_key}#{schedule_ref(namespace, name)}#"
    return index_pk(index_shard_of(event_key)), *prefix_range(prefix)


def offsets_vector(vector_id: str) -> Key:
    return Key(f"VEC#{vector_id}", "VEC")


def node(owner: str) -> Key:
    return Key(f"NODE#{owner}", "NODE")


def node_status(owner: str) -> Key:
    """Returns the key of a process's status row, for people and for the watchdog."""
    return Key(NODES, owner)


def drain_order(owner: str) -> Key:
    """Returns the key of an operator's drain order for a process. The order ends with the process."""
    return Key(f"NODE#{owner}", "DRAIN")


def dedupe(namespace: str, dedupe_id: str) -> Key:
    return Key(f"DD#{namespace}#{text_hash(dedupe_id)}", "DD")

"""Where each item lies. One function per kind of item; nothing else in tidegate spells a key.

Names of namespaces and schedules hold neither `/` nor `#`, so joining them is unambiguous; any other user text (keys of
messages, data partitions, correlation values) enters a key only as a hash.

`main`, pk `SH#<shard, 4 digits>` (all that a shard owns), by sort key:

| sk | item |
|---|---|
| `C#<ns>/<name>` | intervals of a recurring message whose next fire is near |
| `CF#<ns>/<name>` | the same while its next fire is far |
| `D#<slot>#<id>#<version>` | timer row of a message (delivery plane); version `+`: of a far recurring message |
| `DEF#<ns>/<name>#<version>` | a schedule version, immutable |
| `E#<ns>/<name>#<correlation hash>` | evidence of the one unsealed job of that correlation |
| `EC#<evidence id>#<chunk>` | its entries, write-once |
| `G#<id>` | guard of a message |
| `H#<id>#<version>` | message that is held back while its namespace is suspended |
| `HELD` | counts the moves of held messages |
| `I#<ns>/<name>#<kind>#<origin>` | inbox: requests and events on their way to the owner |
| `IW#<limit hash>#<order>#<job id>` | waiter row: a job of any shard in the queue of a shared limit whose home is here; beside the inbox, so that one read sees whether either has anything |
| `J#<job id>` | open job |
| `K#<id>` | presence row of a replaceable message |
| `LEASE`, `PROGRESS` | ownership; delivery position |
| `LIM#<ns>/<name>` | the schedule's own limit |
| `M#<id>#<version>` | message |
| `PR#<ns>/<name>` | what the schedule's constraints have remembered of its earlier runs |
| `R#<run id>` | open run |
| `RQ#<hash of namespace and request id>` | receipt, 7 days |
| `S#<ns>/<name>` | schedule state |
| `T#<instant>#<kind>#<ref>` | timer row of the run plane |
| `Z#<run id>#<attempt>#<state>` | outbox |

Other partition keys of `main`: `MAP`, `SCHEMA`, `CONTROLS`, `SOURCES`, `NS#<namespace>` (`COUNT` of its schedules, under a quota), `TP#...`, `IX#<0-63>`, `VEC#<id>`, `LIMIT#...` (`LIMIT` and, above 16 holders,
`PERMIT#<run id>`), `NODE#<owner>` (`NODE`, its signs of life;
`DRAIN`, an order to give everything back), `NODES` (a card of each process, by owner), `DD#<namespace>#<hash>`, `DLQ#<origin>` (what became of a dead letter).
`history`: pk `SH#...` with `L#<ns>/<name>#...` (ledger), `LJ#<job id>` (where in it, and where the ended run is), `R#<ns>/<name>#<0 or 1>#<end>#<run id>`
(ended runs; 1: not succeeded), `RE#<0 or 1>#<end>#<run id>` (the same of all schedules of the shard, by their ends), `Y#<minute>` (closed tallies),
`V#<ns>/<name>#<generation>` (generations of a schedule that have ended).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from tidegate_core.rows.store_operations import Key, RangeRead

INSTANT_DIGITS = 13
"""Milliseconds since the epoch until the year 2286 fit; sort keys compare as text, so every instant has this width."""
INDEX_SHARDS = 64
HASHES_KEPT = 10_000
"""2 MB: the same few keys, programs and data partitions are hashed again and again."""
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
LAST = "~"
"""Sorts after every character that keys use: upper end of a prefix range."""
NO_NAMESPACE = "-"
"""Stands for the namespace of a request that has none; no namespace is called so."""
MAP_KEY = Key("MAP", "MAP")
SCHEMA_KEY = Key("SCHEMA", "SCHEMA")
SHARED_LIMIT = "LIMIT#"
"""Partition keys of limits that several shards share begin so; neither run ids nor job ids do."""
RATE = "rate-"
"""Before the scope of those that are rates."""
SUSPENSIONS_KEY = Key("CONTROLS", "CONTROLS")
SUSPENSIONS_NAME = "controls"
"""Under which requests on wide controls lie in the inbox of their home shard, beside `NO_NAMESPACE`."""
SOURCES_KEY = Key("SOURCES", "SOURCES")
SOURCES_NAME = "sources"
"""The same for requests on sources."""


def instant_text(instant: int) -> str:
    """Fixed-width text of an instant (0 ≤ instant < 10^13)."""
    return f"{instant:0{INSTANT_DIGITS}d}"


@lru_cache(maxsize=HASHES_KEPT)
def text_hash(*parts: str) -> str:
    """26 base-32 characters that stand for user text, unambiguous in its parts. The parts are kept in mind: they are names, not bodies."""
    return text_hash_once(*parts)


def text_hash_once(*parts: str) -> str:
    """The same, and nothing is kept in mind: of text of any length, or that nobody asks for again."""
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
    return Key(shard_pk(shard), f"S#{schedule_ref(namespace, name)}")


def schedule_states(namespace: str) -> tuple[str, str]:
    """Returns the range of the states of a namespace's schedules, in each shard."""
    prefix = f"S#{schedule_ref(namespace, '')}"
    return prefix, f"{prefix}{LAST}"


def schedule_count(namespace: str) -> Key:
    return Key(f"NS#{namespace}", "COUNT")


def definition(shard: int, namespace: str, name: str, version: int) -> Key:
    return Key(shard_pk(shard), f"DEF#{schedule_ref(namespace, name)}#{version:010d}")


def own_limit(shard: int, namespace: str, name: str) -> Key:
    return Key(shard_pk(shard), f"LIM#{schedule_ref(namespace, name)}")


def past_runs(shard: int, namespace: str, name: str) -> Key:
    return Key(shard_pk(shard), f"PR#{schedule_ref(namespace, name)}")


def shared_limit(namespace: str, scope: str, name: str) -> Key:
    """A limit that several schedules share: of a program, a group or a key, by its name (which is user text: hashed)."""
    return Key(f"{SHARED_LIMIT}{namespace}#{scope}#{text_hash(name)}", "LIMIT")


def shared_rate(namespace: str, scope: str, name: str, per: int, zone: str | None) -> Key:
    """A rate that several schedules share: of those of one scope and name each span has its own."""
    return Key(f"{SHARED_LIMIT}{namespace}#{RATE}{scope}#{text_hash(name, str(per), zone or '')}", "LIMIT")


def is_rate(limit: Key) -> bool:
    """Whether a shared limit is a rate."""
    return limit.pk.startswith(SHARED_LIMIT) and limit.pk.split("#")[2].startswith(RATE)


def dead_letter_mark(origin: str) -> Key:
    """What somebody did about a dead letter, by the hash of what it is a copy of."""
    return Key(f"DLQ#{origin}", "MARK")


def is_of_key(limit: Key) -> bool:
    """Whether a shared limit, or rate, is that of one value of a key."""
    return limit.pk.startswith(SHARED_LIMIT) and limit.pk.split("#")[2].removeprefix(RATE) == "key"


def permit(limit: Key, run_id: str) -> Key:
    """The permit of one run, where a limit has too many holders to name them all in one item."""
    return Key(limit.pk, f"PERMIT#{run_id}")


def queue_entry(home: int, limit: Key, order: int, job_id: str) -> Key:
    """Sorted by priority and waiting within the limit's queue; all of its parts are fixed for the life of the job."""
    return Key(shard_pk(home), f"IW#{text_hash(limit.pk)}#{instant_text(order)}#{job_id}")


def queue_entries_of(limit: Key) -> tuple[str, str]:
    """Range of a limit's queue in its home shard."""
    prefix = f"IW#{text_hash(limit.pk)}#"
    return prefix, f"{prefix}{LAST}"


def job(shard: int, job_id: str) -> Key:
    return Key(shard_pk(shard), f"J#{job_id}")


def run(shard: int, run_id: str) -> Key:
    return Key(shard_pk(shard), f"R#{run_id}")


def shard_of_run(run_id: str) -> int:
    """The shard that a run id names in its first four digits. Raises ValueError for what is no run id."""
    return int(run_id[:4])


def evidence(shard: int, namespace: str, name: str, correlation: str) -> Key:
    return Key(shard_pk(shard), f"E#{schedule_ref(namespace, name)}#{text_hash(correlation)}")


def evidence_chunk(shard: int, evidence_id: str, chunk: int) -> Key:
    return Key(shard_pk(shard), f"EC#{evidence_id}#{chunk:06d}")


def inbox(shard: int, namespace: str, name: str, kind: str, origin: str) -> Key:
    return Key(shard_pk(shard), f"I#{schedule_ref(namespace, name)}#{kind}#{origin}")


def brought_by_others(shard: int) -> RangeRead:
    """The first row of inbox and queues of shared limits together: what owners of other shards, above all, write here."""
    return RangeRead(shard_pk(shard), "I#", f"IW#{LAST}", limit=1)


def outbox(shard: int, run_id: str, attempt: int, state: str) -> Key:
    return Key(shard_pk(shard), f"Z#{run_id}#{attempt:04d}#{state}")


def timer(shard: int, at: int, kind: str, ref: str) -> Key:
    return Key(shard_pk(shard), f"T#{instant_text(at)}#{kind}#{ref}")


def receipt(shard: int, namespace: str | None, request_id: str) -> Key:
    """Ids are unique within a namespace; requests about a run or job may have none."""
    return Key(shard_pk(shard), f"RQ#{text_hash_once(namespace or NO_NAMESPACE, request_id)}")


def ledger(shard: int, namespace: str, name: str, at: int, job_id: str) -> Key:
    """Sorted by nominal (or seal instant), so that the newest occurrences of a schedule are one range away."""
    return Key(shard_pk(shard), f"L#{schedule_ref(namespace, name)}#{instant_text(at)}#{job_id}", "history")


def ledger_place(shard: int, job_id: str) -> Key:
    return Key(shard_pk(shard), f"LJ#{job_id}", "history")


def ended_run(shard: int, namespace: str, name: str, succeeded: bool, ended_at: int, run_id: str) -> Key:
    """Sorted by the end within a schedule; runs that did not succeed lie apart, so that few of them among many others are one range."""
    return Key(
        shard_pk(shard), f"{ended_runs_of(namespace, name, succeeded)}{moment_text(ended_at, run_id)}", "history"
    )


def run_end(shard: int, succeeded: bool, ended_at: int, run_id: str) -> Key:
    """The same order over all schedules of a shard."""
    return Key(shard_pk(shard), f"{run_ends(succeeded)}{moment_text(ended_at, run_id)}", "history")


def ended_runs_of(namespace: str, name: str, succeeded: bool) -> str:
    """Returns what the sort keys of a schedule's ended runs begin with; `moment_text` follows."""
    return f"R#{schedule_ref(namespace, name)}#{_by_success(succeeded)}#"


def run_ends(succeeded: bool) -> str:
    """Returns what the sort keys of the ends of a shard's runs begin with; `moment_text` follows."""
    return f"RE#{_by_success(succeeded)}#"


def moment_text(instant: int, run_id: str) -> str:
    """Returns a run's place among others by an instant of each."""
    return f"{instant_text(instant)}#{run_id}"


def _by_success(succeeded: bool) -> str:
    return "0" if succeeded else "1"


def past_generation(shard: int, namespace: str, name: str, generation: int) -> Key:
    return Key(shard_pk(shard), f"V#{schedule_ref(namespace, name)}#{generation:010d}", "history")


def closed_tally(shard: int, closed_at: int, epoch: int) -> Key:
    return Key(shard_pk(shard), f"Y#{instant_text(closed_at)}#{epoch:010d}", "history")


def message_timer(shard: int, slot: int, message_id: str, version: str) -> Key:
    return Key(shard_pk(shard), f"D#{instant_text(slot)}#{message_id}#{version}")


def message(shard: int, message_id: str, version: str) -> Key:
    return Key(shard_pk(shard), f"M#{message_id}#{version}")


def message_fence(shard: int, message_id: str) -> Key:
    return Key(shard_pk(shard), f"G#{message_id}")


def message_key_row(shard: int, message_id: str) -> Key:
    return Key(shard_pk(shard), f"K#{message_id}")


def held_message(shard: int, message_id: str, version: str) -> Key:
    return Key(shard_pk(shard), f"H#{message_id}#{version}")


def held_moves(shard: int) -> Key:
    return Key(shard_pk(shard), "HELD")


def recurring(shard: int, namespace: str, name: str) -> Key:
    return Key(shard_pk(shard), f"C#{schedule_ref(namespace, name)}")


def recurring_far(shard: int, namespace: str, name: str) -> Key:
    return Key(shard_pk(shard), f"CF#{schedule_ref(namespace, name)}")


def recurring_of(shard: int, namespace: str, name: str) -> tuple[Key, Key]:
    """Returns both places of a recurring message's record: near, and far."""
    return recurring(shard, namespace, name), recurring_far(shard, namespace, name)


def index_shard_of(event_key: str) -> int:
    return int.from_bytes(hashlib.blake2b(event_key.encode(), digest_size=8).digest(), "big") % INDEX_SHARDS


def index_version(index_shard: int) -> Key:
    return Key(f"IX#{index_shard:02d}", "!VERSION")


def index_row(
    event_key: str, namespace: str, name: str, incarnation: str, generation: int, leaf: int, vector: str | None
) -> Key:
    """Event keys hold dataset and schedule names only, hence no `#`. Generation and incarnation are in the key, so a late write
    of an older activation cannot replace a newer one, nor one of a request that came to nothing, because a repeat of it was
    applied first; the vector is, so that a former owner's late row of the same activation lies beside the present one's.
    """
    pk = f"IX#{index_shard_of(event_key):02d}"
    activation = f"{generation:010d}#{leaf:02d}#{incarnation}#{vector or ''}"
    return Key(pk, f"{event_key}#{schedule_ref(namespace, name)}#{activation}")


def index_rows_in(event_key: str, namespace: str) -> tuple[str, str, str]:
    """Returns partition key and range of the rows of all schedules of a namespace under one event key."""
    prefix = f"{event_key}#{schedule_ref(namespace, '')}"
    return f"IX#{index_shard_of(event_key):02d}", prefix, f"{prefix}{LAST}"


def index_rows_of(event_key: str, namespace: str, name: str) -> tuple[str, str, str]:
    """Returns partition key and range of a schedule's rows under one event key: those of all generations and leaves."""
    prefix = f"{event_key}#{schedule_ref(namespace, name)}#"
    return f"IX#{index_shard_of(event_key):02d}", prefix, f"{prefix}{LAST}"


def offsets_vector(vector_id: str) -> Key:
    return Key(f"VEC#{vector_id}", "VEC")


def node(owner: str) -> Key:
    return Key(f"NODE#{owner}", "NODE")


NODES = "NODES"
"""Partition key of the nodes' cards: together, so that they can be listed."""


def node_status(owner: str) -> Key:
    """What a process says of itself, for people and for who watches it."""
    return Key(NODES, owner)


def drain_order(owner: str) -> Key:
    """An operator's word to a process; it ends with it."""
    return Key(f"NODE#{owner}", "DRAIN")


def dedupe(namespace: str, dedupe_id: str) -> Key:
    return Key(f"DD#{namespace}#{text_hash(dedupe_id)}", "DD")

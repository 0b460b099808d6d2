"""Ids that the core makes: hashes of what they name, because the core has no randomness and a repeat must give the same."""

from __future__ import annotations

from base64 import b32encode
from typing import TypeAlias

from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.shard_hash import PRINTED_ID, hash_of

OccurrenceMark: TypeAlias = tuple[str, ...]
"""What tells a trigger's occurrences apart. Parts stay apart until they are hashed: user text is never joined."""

MAX_SHARDS = 10_000
"""Four digits of a run id."""

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def nominal_mark(nominal: Instant) -> OccurrenceMark:
    return ("nominal", str(nominal))


def seal_mark(number: int, correlation: str | None = None) -> OccurrenceMark:
    """Returns the mark of an event trigger's occurrence: the number of its seal, per correlation key where it has one."""
    return ("seal", str(number)) if correlation is None else ("seal", str(number), correlation)


def manual_mark(position: Position) -> OccurrenceMark:
    """Returns the mark of a "run now": its request's position, so that a replay of the request is the same occurrence."""
    return ("manual", position.text())


def run_id(shard: int, incarnation: str, trigger: str, mark: OccurrenceMark) -> str:
    """Returns the id of an occurrence's run, which is also its job's: one occurrence, one job, one run.

    Args:
        shard: The schedule's shard, 0 to 9,999; readable from the id, so that any API process finds the run's item.
        incarnation: The schedule's life: a name that is deleted and made again never reuses an id.
        trigger: The trigger's type, or `manual`.
        mark: From `nominal_mark`, `seal_mark` or `manual_mark`.

    Raises:
        ValueError: The shard does not fit four digits.
    """
    if not 0 <= shard < MAX_SHARDS:
        raise ValueError(f"shard {shard} is not in 0..{MAX_SHARDS - 1}")
    # 16 bytes are 26 characters of base32: 128 bits, so that two occurrences never meet by chance.
    return f"{shard:04d}-{base32(hash_of(incarnation, trigger, *mark)[:16])}"


def shard_of_run(run: str) -> int:
    """Returns the shard that a run's or job's id names.

    Raises:
        ValueError: The text is not such an id.
    """
    match = PRINTED_ID.fullmatch(run)
    if match is None:
        raise ValueError(f"{run!r} is not a run id such as 0042-mfrggzdfmztwq2lkn5wg63tqoe")
    return int(match[1])


def external_name(run: str, attempt: int) -> str:
    """Returns the name that an attempt has on a cluster: at most 63 characters, valid for Kubernetes, YARN and Livy."""
    return f"tg-{run}-a{attempt}"


def incarnation_of(position: Position) -> str:
    """Returns the ULID of a schedule's life: its creating request's append time, then 80 bits of the position's hash."""
    number = position.append_time << 80 | int.from_bytes(hash_of("incarnation", position.text())[:10], "big")
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def base32(raw: bytes) -> str:
    """Returns lower-case base32 without padding: safe in names, file paths and sort keys."""
    return b32encode(raw).decode().rstrip("=").lower()

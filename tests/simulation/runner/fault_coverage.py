"""Which injected fault has met which call: every kind of fault, in every place where it can bite, has to be seen to bite.

A kind that ended either way (`late_applied`, `late_refused`) is one kind here. What cannot meet is listed with its reason, so
that an empty cell is either explained or a hole in the proof.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.simulation.users.message_senders import SINKS
from tests.simulation.world import cluster
from tests.simulation.world.transaction_names import HARDLY_SENT, OWNERLESS, TRANSACTIONS

Pair: TypeAlias = tuple[str, str]
"""A kind of fault and where it bit."""

TOPICS: Final = (
    *(
        cluster.REQUESTS,
        cluster.EVENTS,
        cluster.RECEIPTS,
        cluster.RUNS,
        cluster.REQUESTS_DLQ,
        cluster.EVENTS_DLQ,
        cluster.RUNS_DLQ,
    ),
    *SINKS,
    cluster.SOURCE_TOPIC,
)
REFUSING_TOPIC: Final = "sink-b"


@dataclass(frozen=True, slots=True)
class Family:
    """Kinds of fault that bite in the same places; each kind may meet each place unless `CANNOT_MEET` says why not."""

    name: str
    kinds: tuple[str, ...]
    places: tuple[str, ...]


def moment_of(transaction: str) -> str:
    """Returns the place of what befalls a node at the moment at which its transaction takes effect."""
    return f"on {transaction}"


FAMILIES: Final = (
    Family(
        "transaction",
        (
            *("brown_out", "brown_out_late", "lost_request", "lost_answer", "late", "duplicate"),
            *("throttled", "conflict"),
        ),
        TRANSACTIONS,
    ),
    Family("moment", ("crash", "pause"), tuple(map(moment_of, TRANSACTIONS))),
    Family("batch", ("brown_out", "lost_request", "lost_answer", "late", "duplicate", "unprocessed"), ("batch",)),
    Family("read", ("brown_out", "unreadable", "torn"), ("get", "query")),
    Family("produce", ("broker_down", "not_appended", "lost_ack", "refused"), TOPICS),
    Family("poke", ("lost_poke",), ("poke",)),
    Family("reading", ("behind_end",), (cluster.REQUESTS, cluster.EVENTS, cluster.SOURCE_TOPIC)),
    Family("node", ("crash", "pause", "drain", "clock_step"), ("node",)),
    Family("nodes", ("black_out",), ("nodes",)),
    Family("absence", ("crash",), ("black-out",)),
    Family("launcher", ("launcher_refused", "launch_answer_lost", "rejected", "kept_in_line"), ("submit",)),
    Family("lookup", ("lookup_unknown",), ("lookup",)),
    Family("name", ("name_expired",), ("lookup", "submit")),
    Family("program", ("early_death", "silent_death", "platform_restart"), ("program",)),
    Family("stubborn", ("hung", "given_up", "endless", "deaf", "classed"), ("program",)),
    Family("api", ("api_call_lost", "gate_unreachable"), ("gate", "report")),
    Family("load", ("stalled_load",), ("query",)),
    Family("batches", ("stalled_batch",), ("batch",)),
    Family("checkpoints", ("stalled_checkpoint",), ("checkpoint",)),
    Family("marks", ("marked",), (cluster.REQUESTS, cluster.EVENTS, cluster.SOURCE_TOPIC)),
    Family("transactions", ("open_transaction",), (cluster.REQUESTS, cluster.EVENTS, cluster.SOURCE_TOPIC)),
    Family("growth", ("grown",), (cluster.EVENTS, cluster.REQUESTS, "map")),
    Family("topic", ("recreated",), (cluster.REQUESTS, cluster.EVENTS, cluster.SOURCE_TOPIC)),
)

_API = "an API process sends it, not a node"
_REFUSING = f"only {REFUSING_TOPIC} refuses: tidegate's own topics are its own, and one refusing sink is as good as two"

CANNOT_MEET: Final[Mapping[Pair, str]] = {
    **{(kind, moment_of(name)): _API for kind in ("crash", "pause") for name in OWNERLESS},
    **{("refused", topic): _REFUSING for topic in TOPICS if topic != REFUSING_TOPIC},
}


def kind_of(kind: str) -> str:
    """Returns the kind without how it ended."""
    return kind.removesuffix("_applied").removesuffix("_refused") if kind != "launcher_refused" else kind


def cells() -> Iterator[Pair]:
    """Yields each pair that can meet."""
    for family in FAMILIES:
        for kind in family.kinds:
            for place in family.places:
                if (kind, place) not in CANNOT_MEET:
                    yield kind, place


def merged(faults: Iterable[tuple[Pair, int]]) -> Counter[Pair]:
    """Returns how often each pair met."""
    met: Counter[Pair] = Counter()
    for (kind, place), number in faults:
        met[(kind_of(kind), place)] += number
    return met


def below(met: Mapping[Pair, int], least: int) -> list[Pair]:
    """Returns the pairs that can meet and did so less often than that."""
    return [pair for pair in cells() if met.get(pair, 0) < least]


def unlisted(met: Mapping[Pair, int]) -> list[Pair]:
    """Returns the pairs that met and that no family has: new kinds, or new transactions, that this list does not know yet."""
    listed = set(cells())
    return sorted(pair for pair in met if pair not in listed and pair[1].removeprefix("on ") not in HARDLY_SENT)


def table(met: Mapping[Pair, int]) -> Iterator[str]:
    """Yields the lines of the coverage table: places down, kinds across; `-` where they cannot meet."""
    for family in FAMILIES:
        widths = [max(len(kind), 7) for kind in family.kinds]
        heads = (kind.rjust(width) for kind, width in zip(family.kinds, widths, strict=True))
        yield "  ".join([f"  {family.name:<22}", *heads])
        for place in family.places:
            figures = (
                ("-" if (kind, place) in CANNOT_MEET else str(met.get((kind, place), 0))).rjust(width)
                for kind, width in zip(family.kinds, widths, strict=True)
            )
            yield "  ".join([f"    {place:<20}", *figures])

"""What lives cost in DynamoDB's write units, counted on a bench: the tables of docs/internals/scale.md, which a test compares.

Counted as DynamoDB charges: a write by the greater of the item before and after, rounded up to 1 KB; twice that in a transaction,
whose checks cost as much as writes. So a figure here is what a node is charged with, except where several decisions share a
transaction (its lease check is then shared), and where rows are longer than those of the examples.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.support.builders import (
    EVENTS,
    MINUTE,
    REQUESTS,
    SECOND,
    Doc,
    a_recurring,
    a_send,
    a_spec,
    an_apply,
    an_event,
    every,
    on_data,
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.rows.effects import Committed, Invalid, Refused, Unavailable, Written
from tidegate_core.rows.store_operations import Batch, Item, Key, Transaction
from tidegate_dynamo.attribute_values import encoded_item
from tidegate_dynamo.capacity_units import BYTES_PER_WRITE_UNIT, TRANSACTED, item_bytes

MESSAGES: Final = 1_000
RUNS: Final = 10
EVENTS_SENT: Final = 10
SETTLES_MS: Final = 20 * SECOND
ROWS: Final = "rows in batches"


class CountingBench(ActorHarness):
    """A bench that keeps account.

    Attributes:
        units: Write units by the name of the transaction; batches under `ROWS`.
    """

    def __init__(self) -> None:
        self.units: Counter[str] = Counter()
        super().__init__()
        self.run(30 * SECOND)
        self.units.clear()

    def transact(self, transaction: Transaction) -> Committed | Refused | Unavailable | Invalid:
        keys = [action.key for action in transaction.actions]
        before = self._present(keys)
        outcome = super().transact(transaction)
        times = TRANSACTED if len(keys) > 1 else 1
        self.units[transaction.name] += times * self._cost(keys, before)
        return outcome

    def _written(self, batch: Batch) -> Written | Invalid:
        keys = [action.key for action in batch.actions]
        before = self._present(keys)
        outcome = super()._written(batch)
        self.units[ROWS] += self._cost(keys, before)
        return outcome

    def _present(self, keys: list[Key]) -> Mapping[Key, Item]:
        return dict(self.store.get(keys))

    def _cost(self, keys: list[Key], before: Mapping[Key, Item]) -> int:
        after = self._present(keys)
        return sum(max(_units(before.get(key)), _units(after.get(key))) for key in keys)


def _units(item: Item | None) -> int:
    size = 0 if item is None else item_bytes(encoded_item(item))
    return max(1, -(-size // BYTES_PER_WRITE_UNIT))


@dataclass(frozen=True, slots=True)
class Life:
    """What something costs.

    Attributes:
        title: What.
        units: Write units of one, by the name of the transaction.
    """

    title: str
    units: Mapping[str, float]

    @property
    def row(self) -> str:
        parts = ", ".join(f"{name} {_text(units)}" for name, units in self.units.items() if units)
        return f"| {self.title} | {_text(sum(self.units.values()))} | {parts or 'nothing'} |"


def _text(units: float) -> str:
    return f"{units:.3f}".rstrip("0").rstrip(".")


Act: TypeAlias = Callable[[CountingBench], None]


def life(title: str, count: int, live: Act, prepare: Act) -> Life:
    """Counts what `live` costs, divided by how many live in it; what `prepare` costs is not counted."""
    bench = CountingBench()
    prepare(bench)
    bench.units.clear()
    live(bench)
    return Life(title, {name: units / count for name, units in bench.units.items()})


def _nothing(bench: CountingBench) -> None:
    pass


def _sends(of: Callable[[int], Doc]) -> Act:
    """1,000 messages that arrive together and are due together, until the checkpoint behind them is written."""

    def live(bench: CountingBench) -> None:
        bench.append(REQUESTS, 0, *(of(number) for number in range(MESSAGES)))
        bench.run(90 * SECOND)

    return live


def _applies(*specs: Doc) -> Act:
    def act(bench: CountingBench) -> None:
        for spec in specs:
            bench.request(an_apply(spec))
            bench.run(SECOND)

    return act


def runs_for(milliseconds: int) -> Act:
    return lambda bench: bench.run(milliseconds)


def _events(count: int) -> Act:
    def live(bench: CountingBench) -> None:
        for number in range(count):
            bench.event(an_event(f"d{number}"))
            bench.run(SETTLES_MS)

    return live


def _unmatched(bench: CountingBench) -> None:
    bench.append(EVENTS, 0, *(an_event(f"d{number}", "other") for number in range(MESSAGES)))
    bench.run(SETTLES_MS)


def _keyed(number: int) -> Doc:
    return a_send(f"m-{number}", after="40s", key=f"k{number}")


MINUTELY: Final = a_spec(trigger=every("1m"))
ON_RAW: Final = a_spec(trigger=on_data())
PING: Final = a_recurring(trigger=every("10s"))
PAIR: Final = _applies(a_spec("down", on_run_of("nightly")), MINUTELY)
A_MONTH_AWAY: Final = _applies(a_spec(trigger=every("30d")))

LIVES: Final[Mapping[str, tuple[int, Act, Act]]] = {
    "message, without id and key": (MESSAGES, _sends(lambda _: a_send(None, after="40s")), _nothing),
    "message, under a request id": (MESSAGES, _sends(lambda n: a_send(f"m-{n}", after="40s")), _nothing),
    "message, under a key of its user's": (MESSAGES, _sends(_keyed), _nothing),
    "fire of a recurring message, alone in its shard": (60, runs_for(10 * MINUTE), _applies(PING)),
    "schedule of a program, from create to active": (1, _applies(MINUTELY), _nothing),
    "recurring message, from create to active": (1, _applies(PING), _nothing),
    "run by the clock": (RUNS, runs_for(RUNS * MINUTE), _applies(MINUTELY)),
    "event that nobody waits for, a thousand at once": (MESSAGES, _unmatched, _applies(ON_RAW)),
    "event that starts a run, and that run": (EVENTS_SENT, _events(EVENTS_SENT), _applies(ON_RAW)),
    "run by the clock and one that follows it": (RUNS, runs_for(RUNS * MINUTE), PAIR),
    "a day of a schedule that is due later": (1, runs_for(24 * 60 * MINUTE), A_MONTH_AWAY),
}
"""Rows of the table, in its order: how many live, what they do, and what is done before."""


def row(title: str) -> str:
    """Returns one row of the table."""
    return life(title, *LIVES[title]).row


def table() -> str:
    """Returns the table of docs/internals/scale.md."""
    head = ("| what | write units | of them by transaction |", "|---|---|---|")
    return "\n".join([*head, *map(row, LIVES)])


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")

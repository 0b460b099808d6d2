"""Counts admissions under a shared rate from outside: by the runs that the store takes in and gives up, and by nothing else.

It knows neither the rate's item nor what a run says that it counts in: only which schedules share the rate, and their words for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.users.schedule_updates import Wanted
from tests.simulation.world.observations import Record
from tests.simulation.world.store import SimStore
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.rows.store_operations import Delete, Item, Key, Put, Transaction
from tidegate_memory.store import BeforeImages


@dataclass(frozen=True, slots=True)
class Counted:
    """A run that was admitted.

    Attributes:
        at: By its owner's clock.
    """

    run_id: str
    at: int


class RateMonitor:
    """Attributes:
    wanted: Tells how many of all of them a run's schedule lets be admitted in a span, and the span.
    """

    def __init__(self, store: SimStore, record: Record) -> None:
        self.wanted: Wanted | None = None
        self._record = record
        self._counted: dict[str, Counted] = {}
        before = store.memory.on_applied

        def applied(written: Transaction | Sequence[Put | Delete], images: BeforeImages) -> None:
            if before is not None:
                before(written, images)
            if isinstance(written, Transaction):
                self._applied(written, images)

        store.memory.on_applied = applied

    def _applied(self, written: Transaction, before: BeforeImages) -> None:
        for run in of_nothing(written, before):
            self._counted.pop(str(run["id"]), None)
        for action in written.actions:
            if isinstance(action, Put) and is_open_run(action.key) and before.get(action.key) is None:
                self._begun(action.item)

    def _begun(self, run: Item) -> None:
        assert self.wanted is not None
        rate = self.wanted.of(run).rate
        if rate is None:
            return
        most, per = rate
        counted = Counted(str(run["id"]), int(str(run["admitted_at"])))
        # By two clocks, of which each may be half of it off.
        span = parse_duration(per) - SKEW_MS
        near = (each for each in self._counted.values() if abs(each.at - counted.at) < span)
        together = _fullest(sorted((*near, counted), key=lambda each: each.at), counted, span)
        if len(together) > most and not run.get("forced"):
            self._record.failures.append(
                f"I4: {counted.run_id} was admitted at {counted.at} as number {len(together)} of {most} in {per}: "
                f"{[(each.at, each.run_id) for each in together]}"
            )
        self._counted[counted.run_id] = counted


def _fullest(near: Sequence[Counted], new: Counted, span: int) -> list[Counted]:
    """Returns those of the fullest span with the new one in it: what was decided before others may be written after them."""
    spans = ([each for each in near if 0 <= each.at - first.at < span] for first in near if first.at <= new.at)
    return max(spans, key=len)


def is_open_run(key: Key) -> bool:
    return key.table == "main" and key.sk.startswith("R#")


def of_nothing(written: Transaction, before: BeforeImages) -> list[Item]:
    """Returns the runs that were stopped here, or made jobs again, before their programs had started."""
    runs = [each for each in written.actions if each.key.sk.startswith("R#")]
    ended = {str(each.item["id"]): each.item for each in runs if isinstance(each, Put) and each.key.table != "main"}
    gone = [item for each in runs if isinstance(each, Delete) and (item := before.get(each.key)) is not None]
    last = [ended.get(str(item["id"]), item) for item in gone]
    return [run for run in last if run.get("started_at") is None and run.get("outcome") in {None, "closed", "killed"}]

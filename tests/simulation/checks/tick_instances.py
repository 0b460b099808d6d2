"""I1 and I3 for `driver: time`: each tick opens one instance, which takes what is its own, and nothing once it is complete.

An event is the oldest instance's that was open when it was appended and lacked it. What was read late may be counted behind
what came after it, so who lacked what is asked of the moment at which the store took each entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.simulation.checks.evidence import OPEN_INSTANCES, is_satisfied
from tests.simulation.checks.fires import at_text
from tests.simulation.checks.request_history import NEVER, SKEW_MS, kept_evidence
from tests.simulation.users.schedule_definitions import NAMESPACE, needed_of
from tests.simulation.users.tick_schedules import OPEN_MAX, leaves_of_time, opens_instances, ticks_between
from tidegate_core.evidence import tick_instances
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.shard.events.evidence_log import FORGET, TICK

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case, Entry
    from tests.simulation.users.schedule_users import Life


@dataclass(frozen=True, slots=True)
class Instance:
    """Evidence of such a schedule.

    Attributes:
        log: Its entries in the order in which they were counted, each with the true time at which the store took it.
        tick: None: what waits for one.
        opened: When the store took the tick.
        gone: When it became a job, or ended; `NEVER` while it is open.
    """

    id: str
    log: list[tuple[int, Entry]]
    tick: int | None
    opened: int
    gone: int

    @property
    def entries(self) -> list[Entry]:
        return [entry for _, entry in self.log]

    def is_there(self, taken: int, entry: Entry) -> bool | None:
        """Whether it was open as an entry was counted that the store took then; None: what one transaction has done may have come in
        either order.

        A tick opens before what came behind it is counted. What makes an instance complete is counted behind what came before that.
        """
        if taken < self.opened or self.gone < taken:
            return False
        if taken == self.gone:
            last_taken, last = self.log[-1]
            return None if last_taken < taken or entry["at"] <= last["at"] else False
        return self.opened < taken or self._ticked(entry["at"]) or None

    def _ticked(self, at: int) -> bool:
        return self.tick is not None and self.tick <= at

    def has_by(self, taken: int, leaf: int) -> int:
        """Returns how much a leaf had at a true time."""
        had: set[str] = set()
        for at, entry in self.log:
            if at <= taken and entry["leaf"] == leaf:
                had = set() if entry["kind"] == FORGET else {*had, entry["key"]}
        return len(had)

    def was_forgotten(self, number: int) -> bool:
        """Whether what the log's n-th entry has counted had ceased to hold before the instance was what it is."""
        leaf = self.entries[number]["leaf"]
        return any(entry["leaf"] == leaf and entry["kind"] == FORGET for entry in self.entries[number + 1 :])


def check_instances(case: Case) -> Iterator[str]:
    for life in case.lives:
        if not opens_instances(life.definition):
            continue
        found = [_instance(case, evidence) for evidence in case.entries_of.get(life.name, {})]
        for instance in found:
            yield from _check_alone(case, life, instance)
        yield from _check_whose(case, life, found)
        yield from _check_skipped(case, life, found)
        if case.world.at_rest:
            yield from _check_opened(case, life, found)


def _instance(case: Case, evidence: str) -> Instance:
    seen = case.record.evidence[evidence]
    chunks = zip(seen.taken, seen.chunks, strict=True)
    log = [(taken, entry) for taken, chunk in chunks for entry in json.loads(chunk)]
    ticks = [(taken, entry["at"]) for taken, entry in log if entry["kind"] == TICK]
    opened, tick = ticks[0] if ticks else (NEVER, None)
    return Instance(evidence, log, tick, opened, NEVER if seen.gone is None else seen.gone)


# -- by itself ------------------------------------------------------------------------------------------------------------


def _check_alone(case: Case, life: Life, instance: Instance) -> Iterator[str]:
    trigger, name = life.definition.trigger, f"{instance.id} of {life.name}"
    ticks = [entry["at"] for entry in instance.entries if entry["kind"] == TICK]
    if len(ticks) > 1:
        yield f"I1: {name} stands for {len(ticks)} instants"
    if is_satisfied(trigger, instance.entries[:-1]):
        yield f"I3: {name} was complete, and took {instance.entries[-1]}"
    for row in case.rows_by_id.get(instance.id, []):
        if instance.tick is not None and row.nominal != instance.tick:
            yield f"I1: {name} is told as {at_text(row.nominal)}, its tick is {at_text(instance.tick)}"
        with_less = row.disposition == "launched" and not is_satisfied(trigger, instance.entries)
        if with_less and (instance.tick is None or row.at < instance.tick + _timeout(life) - SKEW_MS):
            yield f"I3: {name} fired before its time with {instance.entries}"


def _timeout(life: Life) -> int:
    return parse_duration(life.definition.trigger["timeout"])


def _end(life: Life, tick: int) -> int:
    """Returns when an instance takes no more."""
    return NEVER if life.definition.trigger["on_timeout"] == "wait" else tick + _timeout(life)


def _ttl(life: Life) -> int:
    """Returns how long what no instance lacks waits for the next tick."""
    return NEVER if life.definition.trigger["on_timeout"] == "wait" else _timeout(life)


# -- which of them --------------------------------------------------------------------------------------------------------


def _check_whose(case: Case, life: Life, found: list[Instance]) -> Iterator[str]:
    for instance in found:
        for number, (taken, entry) in enumerate(instance.log):
            if entry["kind"] in {TICK, FORGET} or _stood_still(case, life, instance, entry, taken):
                continue
            # What waited for the tick waited on the schedule's clock (seed 38020290).
            waited_still = _stood_still(case, life, instance, entry, max(taken, instance.opened))
            if not instance.was_forgotten(number) and not waited_still:
                yield from _check_time(life, instance, entry)
            if _is_quiet(case, life, taken):
                yield from _check_oldest(case, life, found, instance, taken, entry)
        if instance.tick is None:
            yield from _check_left(case, life, found, instance)


def _stood_still(case: Case, life: Life, instance: Instance, entry: Entry, until: int) -> bool:
    """Whether clocks may have stood still, or events been ignored, since a tick came that may have to do with it: that is judged elsewhere."""
    first = entry["at"] if instance.tick is None else min(entry["at"], instance.tick)
    return kept_evidence(case.steps(life), first - _ttl(life) - SKEW_MS, until + SKEW_MS)


def _check_time(life: Life, instance: Instance, entry: Entry) -> Iterator[str]:
    tick = instance.tick
    if tick is None:
        return
    # What is read late, behind what came after it, holds as long as that does.
    was_late = any(
        each["leaf"] == entry["leaf"] and each["at"] > entry["at"]
        for each in instance.entries[: instance.entries.index(entry)]
    )
    if entry["at"] >= _end(life, tick) or (entry["at"] + _ttl(life) <= tick and not was_late):
        yield f"I3: the {at_text(tick)} of {life.name} took {entry}, which came at {at_text(entry['at'])}"


def _is_quiet(case: Case, life: Life, taken: int) -> bool:
    """Whether no request was just ending what is there."""
    return not case.wide.maybe(NAMESPACE, taken) and not any(
        step.moves and step.sent - SKEW_MS <= taken <= step.done + SKEW_MS for step in case.steps(life)
    )


def _check_oldest(
    case: Case, life: Life, found: list[Instance], instance: Instance, taken: int, entry: Entry
) -> Iterator[str]:
    leaf = entry["leaf"]
    leaves, _ = needed_of(life.definition.trigger)
    needed = leaves[leaf].get("count", 1)
    were_open = sorted(
        (other.tick, is_there is not None and other.has_by(taken, leaf) < needed)
        for other in found
        if other.tick is not None
        and (is_there := other.is_there(taken, entry)) is not False
        and other.tick - _ttl(life) < entry["at"] < _end(life, other.tick)
    )
    # It is not looked for in more than may be open, and the next one: the tick that it would have waited for.
    for tick, lacked in were_open[: _open_max(case) + 1]:
        if lacked and (instance.tick is None or tick < instance.tick):
            whose = "nobody" if instance.tick is None else at_text(instance.tick)
            yield f"I3: {life.name} counted {entry} for {whose}, and the {at_text(tick)} lacked it"


def _open_max(case: Case) -> int:
    return dict(case.swarm.knobs).get(OPEN_MAX, tick_instances.OPEN_MAX)


def _check_left(case: Case, life: Life, found: list[Instance], early: Instance) -> Iterator[str]:
    """The next tick takes all that waits."""
    first_taken, first = early.log[0]
    for other in found:
        came = other.tick is not None and first_taken < other.opened < early.gone
        if not came or kept_evidence(case.steps(life), first["at"] - SKEW_MS, other.opened + SKEW_MS):
            continue
        if _is_quiet(case, life, other.opened) and first["at"] + _ttl(life) > (other.tick or 0):
            yield f"I3: {life.name} left {first} behind at its tick of {at_text(other.tick or 0)}"


# -- how many -------------------------------------------------------------------------------------------------------------


def _check_skipped(case: Case, life: Life, found: list[Instance]) -> Iterator[str]:
    most = _open_max(case)
    for row in case.rows_of.get(life.name, []):
        if row.reason == OPEN_INSTANCES:
            waiting = [
                each
                for each in found
                if each.tick is not None and each.tick < row.nominal and each.gone > row.at - SKEW_MS
            ]
            if len(waiting) < most:
                yield f"I1: {life.name} left out its {at_text(row.nominal)}, and {len(waiting)} of {most} were open"


def _check_opened(case: Case, life: Life, found: list[Instance]) -> Iterator[str]:
    """Each tick while the schedule was active, and stayed active, has an instance, or an entry that says why not."""
    last = [segment for segment in case.segments(life) if segment.end is None]
    if not last:
        return
    rows: list[Any] = case.rows_of.get(life.name, [])
    told = {each.tick for each in found} | {row.nominal for row in rows if row.reason == OPEN_INSTANCES}
    for leaf in leaves_of_time(life.definition).values():
        for at in ticks_between(leaf, last[0].begin.done + SKEW_MS + 1, case.world.ended_at):
            if at not in told and case.wide.over_before(NAMESPACE, at):
                yield f"I1: {life.name} {at_text(at)} was due, and has opened nothing"

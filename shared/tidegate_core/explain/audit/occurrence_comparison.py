"""Compares the occurrences that schedules with a time trigger should have with the entries, runs and jobs that are stored."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tidegate_core.explain.audit.accounted_occurrences import GAPS, PENDING, Entry, accounted, all_entries
from tidegate_core.explain.audit.expected_occurrences import (
    Expected,
    expected_of,
    generations_of,
    instants_between,
    known_since,
    ref_of,
)
from tidegate_core.explain.audit.findings import Behind, Findings, Kind, Unjudged
from tidegate_core.explain.audit.shard_snapshot import ShardFacts, Window
from tidegate_core.language.triggers.trigger import EventTrigger, TimeTrigger
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import PastGeneration, ScheduleState
from tidegate_core.shard.schedule_state import parsed

MISSING: Final = "missing"
OF_EVENTS: Final = (
    "their trigger is events, which the broker alone keeps: their entries and runs are compared, not their number"
)
FORGOTTEN: Final = "instants before all that is remembered of wide suspends"
OF_OLDER_NODES: Final = "their generations before that are not written down: an older version of tidegate ended them"


def judge_schedules(facts: ShardFacts, window: Window) -> Findings:
    """Returns the findings about the schedules of a shard."""
    entries: dict[str, list[Entry]] = {}
    for entry in all_entries(facts.jobs, facts.runs, facts.ledger):
        entries.setdefault(entry.ref, []).append(entry)
    past: dict[str, list[PastGeneration]] = {}
    for each in facts.past:
        past.setdefault(keys.schedule_ref(each.namespace, each.name), []).append(each)
    findings = Findings()
    for state in facts.states:
        ref = ref_of(state)
        schedule = _Schedule(facts, window, state, past.get(ref, []), entries.get(ref, []))
        findings.add(schedule.judged())
    return findings


class _Schedule:
    """Comparison for one schedule, with all incarnations of its name."""

    def __init__(
        self,
        facts: ShardFacts,
        window: Window,
        state: ScheduleState,
        past: Sequence[PastGeneration],
        entries: Sequence[Entry],
    ) -> None:
        self._facts = facts
        self._window = window
        self._state = state
        self._ref = ref_of(state)
        self._generations = generations_of(state, past)
        self._since = known_since(self._generations)
        self._others = [each for each in entries if each.trigger != "time"]
        self._timed = [each for each in entries if each.trigger == "time" and each.reason not in GAPS]
        self._findings = Findings()

    def judged(self) -> Findings:
        self._check_generations()
        self._name_events()
        # The span of an entry may reach beyond the window, and is judged as a whole.
        begin = min([self._window.begin, *(each.begins for each in self._timed)])
        end = max([self._window.end, *(each.nominal for each in self._timed)])
        walked = Window(begin, end)
        expected = expected_of(self._ref, self._generations, self._spec_of, self._facts.controls, walked)
        self._findings.unjudged += [Unjudged(why, self._ref, is_grave=True) for why in expected.unjudged]
        if not expected.unjudged:
            self._compare(expected)
        self._count_others()
        return self._findings

    def _spec_of(self, version: int) -> str | None:
        return self._facts.specs.get((self._ref, version))

    # -- gaps in the rows -----------------------------------------------------------------------------------------------

    def _check_generations(self) -> None:
        known = [each.number for each in self._generations]
        for number in sorted(set(range(known[0], known[-1])) - set(known)):
            self._findings.differs("generation_gone", self._ref, f"generation {number}", "its row V#", "nothing")
        if self._since > self._window.begin:
            self._findings.unjudged.append(
                Unjudged(OF_OLDER_NODES, f"{self._ref} {format_instant(self._since)}", is_grave=True)
            )

    def _name_events(self) -> None:
        text = self._spec_of(self._state.version)
        if text is not None and isinstance(parsed(text).trigger, EventTrigger):
            self._findings.unjudged.append(Unjudged(OF_EVENTS, self._ref))

    def _count_others(self) -> None:
        """Counts occurrences of events and of manual fires: no row says how many there should be."""
        self._findings.counts.update(each.fate for each in self._others if self._window.has(each.nominal))

    # -- expected and found ---------------------------------------------------------------------------------------------

    def _compare(self, expected: Expected) -> None:
        incarnations = [each.incarnation for each in self._generations] + [each.incarnation for each in self._timed]
        for incarnation in dict.fromkeys(incarnations):
            entries = [each for each in self._timed if each.incarnation == incarnation]
            self._compare_incarnation(incarnation, entries, expected)
        self._check_numbers(expected)

    def _compare_incarnation(self, incarnation: str, entries: Sequence[Entry], expected: Expected) -> None:
        may = expected.may.get(incarnation, set())
        must = {each for each in expected.must.get(incarnation, ()) if self._is_judged(each)}
        found: dict[int, list[Entry]] = {}
        for entry, instant in accounted(
            entries, self._spanned, (may - expected.suspended - expected.unsure).__contains__
        ):
            if self._is_judged(instant):
                found.setdefault(instant, []).append(entry)
        pending = self._still_to_come(incarnation, must)
        counts = self._findings.counts
        for instant in sorted(must - found.keys()):
            counts[PENDING if instant in pending else MISSING] += 1
            if instant not in pending:
                self._differs("missing", instant, "one entry, job or run", "none")
        unsure = sum(1 for each in (may & expected.unsure) - found.keys() if self._is_judged(each))
        if unsure:
            self._findings.unjudged.append(Unjudged(FORGOTTEN, self._ref, unsure))
        for instant, each in sorted(found.items()):
            counts[each[0].fate] += 1
            if len(each) > 1:
                self._differs("doubled", instant, "one entry", "; ".join(entry.text for entry in each))
            elif instant not in may:
                self._differs("unexpected", instant, "none", each[0].text)

    def _is_judged(self, instant: int) -> bool:
        return self._window.has(instant) and instant >= self._since

    def _still_to_come(self, incarnation: str, must: set[int]) -> set[int]:
        """Returns instants that the present generation has not reached, or has walked without a job so far."""
        state, present = self._state, self._generations[-1]
        if not present.fired or incarnation != present.incarnation:
            return set()
        nominal = state.next_nominal
        pending = {each for each in must if nominal is not None and each >= nominal}
        if state.gathered:
            pending |= {each for each in must if state.gathered_from <= each <= state.gathered_through}
        if pending:
            self._findings.behind.append(Behind(self._facts.shard, self._ref, min(pending)))
        return pending

    def _check_numbers(self, expected: Expected) -> None:
        """Checks the number of instants that an entry of an outage claims; suspended instants do not count."""
        merged = {each.into for each in self._timed}
        for entry in self._timed:
            if entry.covered is None or entry.job_id in merged or not self._is_judged(entry.nominal):
                continue
            spanned = self._spanned(entry)
            least = sum(1 for each in spanned if each not in expected.suspended | expected.unsure)
            if not least <= entry.covered <= len(spanned):
                self._differs(
                    "miscounted", entry.nominal, f"{len(spanned)} instants", f"{entry.covered} in {entry.text}"
                )

    def _spanned(self, entry: Entry) -> Sequence[int]:
        if entry.covered_from is None:
            return (entry.nominal,)
        text = self._spec_of(self._version_that_made(entry))
        trigger = None if text is None else parsed(text).trigger
        if not isinstance(trigger, TimeTrigger):
            return (entry.nominal,)
        return list(instants_between(trigger, self._ref, entry.covered_from, entry.nominal))

    def _version_that_made(self, entry: Entry) -> int:
        """An update that keeps due jobs moves them to its own version. They still stand for instants of the version that made them."""
        return next(
            (
                each.version
                for each, successor in pairwise(self._generations)
                if each.incarnation == successor.incarnation == entry.incarnation
                and each.activated_at <= entry.nominal <= (successor.fired_before or 0)
            ),
            entry.version,
        )

    def _differs(self, kind: Kind, instant: int, expected: str, found: str) -> None:
        self._findings.differs(kind, self._ref, instant, expected, found)

"""What a campaign came to: a line for each phase, a table, figures as JSON, and whether all of it held."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.nemeses.strike import Strike, felt_by
from tests.chaos.rig.load import Collected
from tests.support.checkers.faults import Fault, report
from tests.support.checkers.lateness import first_on_time, gap_of, histogram, percentile
from tests.support.checkers.messages import repeats_of

MEASURED = ("took_over_ms", "noticed_ms")
"""Figures of one strike each: a sum of them says nothing."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Strikes of one nemesis.

    Attributes:
        void: Why it shows nothing; empty where its fault was felt.
        stuck: Why its last strike did not end; empty where the cluster recovered from all of them.
    """

    nemesis: str
    strikes: Sequence[Strike]
    void: str = ""
    stuck: str = ""

    def felt(self) -> Mapping[str, int]:
        return felt_by(self.strikes)

    def line(self) -> str:
        """Returns it for a person."""
        felt = ", ".join(f"{name} {count}" for name, count in sorted(self.felt().items()) if name not in MEASURED)
        recovered = [strike.recovered_at - strike.healed_at for strike in self.strikes]
        most = f"{max(recovered) / 1_000:.1f} s" if recovered else "-"
        bit = sum(strike.bit for strike in self.strikes)
        verdict = (
            "STUCK" if self.stuck else "VOID" if self.void else "bit" if bit == len(self.strikes) else f"{bit} bit"
        )
        return f"{self.nemesis:34} {len(self.strikes):3} strikes  {verdict:5}  recovered within {most:>7}  {felt}"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a whole campaign came to.

    Attributes:
        seconds: From its begin to its judgement.
        faults: Everything that must not have happened.
        counted: By nodes and proxies, over all.
        repeats_amid_moves: Of messages that no blow itself explains, only that shares moved while the cluster came back from it.
    """

    seed: int
    seconds: float
    phases: Sequence[Phase]
    collected: Collected
    faults: Sequence[Fault]
    counted: Mapping[str, int]
    repeats_amid_moves: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing was found and every phase bit."""
        return not self.faults and not any(phase.void for phase in self.phases)

    def lines(self) -> list[str]:
        """Returns the figures for a person, behind the phases' lines, which were told as they ended."""
        figures = self.document()
        told = [name for name in figures if name not in ("phases", "faults", "faults_by_kind", "counted", "lateness")]
        return [
            *(f"{name.replace('_', ' ')}: {figures[name]}" for name in told),
            f"lateness of messages: {figures['lateness']}",
            *(f"VOID: {phase.void}" for phase in self.phases if phase.void),
            report(self.faults) if self.faults else "0 faults",
        ]

    def document(self) -> dict[str, Any]:
        """Returns the figures as JSON."""
        got = self.collected
        strikes = [strike for phase in self.phases for strike in phase.strikes]
        firsts = [
            first
            for strike in strikes
            if strike.nemesis == "kill"
            for crash in strike.crashes
            if (first := first_on_time(crash, got.deliveries)) is not None
        ]
        gaps = [
            gap
            for strike in strikes
            for hand_over in strike.hand_overs
            if (gap := gap_of(hand_over, got.deliveries)) is not None
        ]
        near = [(stop, asked_at) for stop, asked_at in got.stops if stop.is_near]
        near_cancels = [each for each in got.sent if each.is_cancel_near]
        recovered = [strike.recovered_at - strike.healed_at for strike in strikes]
        messages = len({delivery.number for delivery in got.deliveries})
        return {
            "seed": self.seed,
            "minutes": round(self.seconds / 60, 1),
            "strikes": len(strikes),
            "strikes_that_bit": sum(strike.bit for strike in strikes),
            "fires": got.programs + messages,
            "programs": got.programs,
            "messages": messages,
            "repeats": repeats_of(got.deliveries),
            "repeats_amid_moves": self.repeats_amid_moves,
            "events": got.events,
            "messages_and_events_of_unknown_fate": got.of_unknown_fate,
            "stops": len(got.stops),
            "stops_within_500_ms": len(near),
            "stops_within_500_ms_amid_a_take_over": sum(_is_amid(strikes, asked_at) for _, asked_at in near),
            "cancels_within_500_ms": len(near_cancels),
            "cancels_within_500_ms_amid_a_take_over": sum(
                _is_amid(strikes, got.aimed_cancels.get(each.number)) for each in near_cancels
            ),
            "first_on_time_after_kill_ms": _spread(firsts),
            "gap_of_hand_overs_ms": _spread(gaps),
            "recovered_after_healing_ms": _spread(recovered),
            "lateness": histogram(each.appended_at - each.nominal for each in got.deliveries),
            "void_phases": sum(bool(phase.void) for phase in self.phases),
            "counted": dict(self.counted),
            "faults_by_kind": dict(Counter(fault.kind for fault in self.faults)),
            "faults": [f"{fault.kind}: {fault.what}" for fault in self.faults],
            "phases": [
                {
                    "nemesis": phase.nemesis,
                    "void": phase.void,
                    "felt": dict(phase.felt()),
                    "strikes": [
                        {
                            "at": each.at,
                            "healed_at": each.healed_at,
                            "recovered_at": each.recovered_at,
                            "of": each.nodes,
                            "bit": each.bit,
                        }
                        for each in phase.strikes
                    ],
                }
                for phase in self.phases
            ],
        }

    def write(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(self.document(), indent=2) + "\n", encoding="utf-8")


def _spread(values: Sequence[int]) -> str:
    if not values:
        return "none"
    return f"n {len(values)}, p50 {percentile(values, 0.5)}, p99 {percentile(values, 0.99)}, most {max(values)}"


def _is_amid(strikes: Sequence[Strike], asked_at: int | None) -> bool:
    """Whether the broker got a stop between a blow and the moment at which all shards were served again; None: not aimed at one that it met."""
    return asked_at is not None and any(strike.at <= asked_at <= strike.recovered_at for strike in strikes)

"""Adds seeds up: what `make simulate` prints in the end, and what the documentation quotes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tests.simulation.runner.fault_coverage import Pair, below, merged, table, unlisted
from tests.simulation.runner.outcome import Outcome

MET_MIN = 1_000
"""How often each pair of fault and call has to meet in a run that is published."""
SHOWN = 12
PER_SEED = ("fires", "events", "messages", "faults", "kinds")


@dataclass(slots=True)
class Figures:
    """Of all seeds that were added; a world itself is not kept.

    Attributes:
        first: The first seed.
        per_seed: Fires, events, faults that bit, kinds of them, and transactions, a number for each seed.
        failed: Seeds with violations.
        met: How often each kind of fault bit where.
        sent: How often each transaction, and each other kind of call, reached the store.
        worlds: In how many seeds each kind of fault bit.
    """

    first: int
    per_seed: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in PER_SEED})
    violations: int = 0
    failed: list[int] = field(default_factory=list)
    met: Counter[Pair] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    worlds: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        faults = merged(outcome.faults.items())
        of_seed = {
            "fires": outcome.fires,
            "events": outcome.events,
            "messages": outcome.messages,
            "faults": sum(faults.values()),
            "kinds": len({kind for kind, _ in faults}),
        }
        for name, number in of_seed.items():
            self.per_seed[name].append(number)
        self.violations += len(outcome.violations)
        if outcome.violations:
            self.failed.append(outcome.seed)
        self.met.update(faults)
        self.sent.update(outcome.calls)
        self.worlds.update({kind for kind, _ in faults})

    @property
    def seeds(self) -> int:
        return len(self.per_seed["fires"])

    @classmethod
    def of_parts(cls, files: Sequence[Path]) -> Figures:
        """Returns the figures of a run that was made in parts, from what `write` wrote of each.

        Raises:
            ValueError: A seed is in two of them, or in none though it lies between two: their sum could not be a part itself.
        """
        parts = sorted(
            (json.loads(file.read_text(encoding="utf-8")) for file in files), key=lambda part: part["first_seed"]
        )
        whole = cls(parts[0]["first_seed"] if parts else 0)
        end = whole.first
        for part in parts:
            if part["first_seed"] != end:
                seed, files_of_it = min(part["first_seed"], end), "two" if part["first_seed"] < end else "none"
                raise ValueError(f"seed {seed} is in {files_of_it} of the files")
            end = part["first_seed"] + part["seeds"]
            whole._add_part(part)
        return whole

    def _add_part(self, part: dict[str, Any]) -> None:
        for name, numbers in part["per_seed"].items():
            self.per_seed[name] += [int(number) for number, seeds in numbers.items() for _ in range(seeds)]
        self.violations += part["violations"]
        self.failed += part["seeds_with_violations"]
        self.met.update({(kind, place): n for kind, places in part["coverage"].items() for place, n in places.items()})
        self.sent.update(part["calls"])
        self.worlds.update(part["seeds_with_kind"])

    def line(self) -> str:
        fires, events = sum(self.per_seed["fires"]), sum(self.per_seed["events"])
        return f"{self.seeds} seeds, {fires} fires, {events} events, {self.violations} violations"

    def medians(self) -> dict[str, float]:
        return {name: median(numbers) if numbers else 0 for name, numbers in self.per_seed.items()}

    def lines(self) -> Iterator[str]:
        """Yields the coverage table, what is missing in it, and the medians."""
        yield from table(self.met)
        rare = below(self.met, MET_MIN)
        never = [pair for pair in rare if not self.met.get(pair)]
        yield f"  pairs that met less than {MET_MIN} times: {len(rare)}, never: {len(never)} {_named(never)}".rstrip()
        if new := unlisted(self.met):
            yield f"  pairs that fault_coverage.py does not list: {_named(new)}"
        medians = ", ".join(f"{number:g} {name}" for name, number in self.medians().items())
        yield f"  median of a seed: {medians}"
        if self.failed:
            yield f"  seeds with violations: {' '.join(map(str, self.failed))}"

    def write(self, file: Path) -> None:
        """Writes them as JSON, and makes the folder if it is not there."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(self._as_json(), indent=2, sort_keys=True) + "\n", encoding="utf-8")

    def _as_json(self) -> dict[str, Any]:
        coverage: dict[str, dict[str, int]] = {}
        for (kind, place), number in self.met.items():
            coverage.setdefault(kind, {})[place] = number
        return {
            "first_seed": self.first,
            "seeds": self.seeds,
            "violations": self.violations,
            "seeds_with_violations": self.failed,
            "totals": {name: sum(numbers) for name, numbers in self.per_seed.items()},
            "medians_per_seed": self.medians(),
            "per_seed": {name: dict(Counter(numbers)) for name, numbers in self.per_seed.items()},
            "calls": dict(self.sent),
            "coverage": coverage,
            "seeds_with_kind": dict(self.worlds),
            "pairs_below_1000": [" x ".join(pair) for pair in below(self.met, MET_MIN)],
        }


def _named(pairs: list[Pair]) -> str:
    shown = ", ".join(f"{kind} x {place}" for kind, place in pairs[:SHOWN])
    return f"({shown}{', ...' if len(pairs) > SHOWN else ''})" if pairs else ""

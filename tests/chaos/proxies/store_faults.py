"""Which fault a request to the store meets: rates by kind, and dice of their own seed. Pure but for the dice's own state."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

FaultKind: TypeAlias = Literal[
    "latency", "throttle", "server_error", "drop_request", "drop_answer", "duplicate", "reset", "black_hole", "hold"
]
"""`latency`: it reaches the store later, also when its sender has given up by then. `throttle`: a 400 of DynamoDB's, not carried
out. `server_error`: a 500 or 503; half of them were carried out. `drop_request`: not carried out, the connection ends without an
answer. `drop_answer`: carried out, then the same. `duplicate`: carried out, answered, and sent once more a while later. `reset`:
carried out, and the connection is reset in the middle of the answer. `black_hole`: not carried out, and nothing is ever said.
`hold`: it reaches the store once the faults are set anew, however late that is, and whoever has left by then."""
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
UNKNOWN_FATE: frozenset[FaultKind] = frozenset({"drop_answer", "reset", "server_error"})
"""After these a sender cannot know whether its write was carried out, and it may have been."""


class FaultsRefused(ValueError):
    """Such rates cannot be."""


@dataclass(frozen=True, slots=True)
class StoreFaults:
    """How often which fault is met; a request meets one at most.

    Attributes:
        rates: Share of the requests by kind, 0 to 1 each and 1 at most together.
        latency_ms: Of `latency`, the least and the most.
        echo_ms: Of `duplicate`, how much later the second one is sent, the least and the most.
        operations: Only these, such as `TransactWriteItems`; empty means all.
    """

    rates: Mapping[FaultKind, float] = field(default_factory=dict)
    latency_ms: tuple[int, int] = (200, 2_500)
    echo_ms: tuple[int, int] = (0, 8_000)
    operations: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        unknown = set(self.rates) - set(KINDS)
        if unknown:
            raise FaultsRefused(f"no such fault: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
        if any(not 0 <= rate <= 1 for rate in self.rates.values()) or sum(self.rates.values()) > 1 + 1e-9:
            raise FaultsRefused(f"rates {dict(self.rates)}: each is 0 to 1, and 1 at most together")
        for name, (least, most) in (("latency_ms", self.latency_ms), ("echo_ms", self.echo_ms)):
            if not 0 <= least <= most:
                raise FaultsRefused(f"{name} {least} to {most}: the least comes first, and neither is negative")

    def document(self) -> dict[str, Any]:
        """Returns it as JSON."""
        return {
            "rates": dict(self.rates),
            "latency_ms": list(self.latency_ms),
            "echo_ms": list(self.echo_ms),
            "operations": sorted(self.operations),
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> StoreFaults:
        """Returns what `document` wrote. Raises FaultsRefused."""
        try:
            return cls(
                rates=dict(document["rates"]),
                latency_ms=(int(document["latency_ms"][0]), int(document["latency_ms"][1])),
                echo_ms=(int(document["echo_ms"][0]), int(document["echo_ms"][1])),
                operations=frozenset(document["operations"]),
            )
        except (KeyError, IndexError, TypeError) as wrong:
            raise FaultsRefused(f"store faults: {wrong!r}") from wrong


@dataclass(frozen=True, slots=True)
class Fate:
    """What a request meets.

    Attributes:
        kind: None for nothing.
        wait_ms: Of `latency` and `duplicate`.
        carried_out: Of `server_error`: whether it was, all the same.
        second_form: Of `throttle` and `server_error`, which have two answers each.
    """

    kind: FaultKind | None = None
    wait_ms: int = 0
    carried_out: bool = False
    second_form: bool = False


class Dice:
    """Draws fates. Equal seeds draw equal fates for an equal order of requests; many senders' order is their own."""

    def __init__(self, seed: int | str) -> None:
        self._chance = random.Random(seed)

    def fate(self, faults: StoreFaults, operation: str) -> Fate:
        """Returns the fate of the next request. Always draws as often, so that a setting moves no later draw."""
        draw, span, done, form = (self._chance.random() for _ in range(4))
        if faults.operations and operation not in faults.operations:
            return Fate()
        kind = _kind(faults.rates, draw)
        least, most = faults.echo_ms if kind == "duplicate" else faults.latency_ms
        waits = kind in ("latency", "duplicate")
        return Fate(kind, round(least + (most - least) * span) if waits else 0, done < 0.5, form < 0.5)


def _kind(rates: Mapping[FaultKind, float], draw: float) -> FaultKind | None:
    reached = 0.0
    for kind in KINDS:
        reached += rates.get(kind, 0.0)
        if draw < reached:
            return kind
    return None

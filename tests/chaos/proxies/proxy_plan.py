"""Which proxies a process of them holds, as text on its command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Way:
    """One proxy: where it listens, and the port of what lies behind it."""

    name: str
    port: int
    upstream: int


@dataclass(frozen=True, slots=True)
class Plan:
    """All proxies of a rig.

    Attributes:
        seed: Of their dice, each with its name.
        control: Port of their control.
        stores: Ways to the store that spoil requests.
        links: Ways that can be cut.
    """

    seed: int
    control: int
    stores: Sequence[Way]
    links: Sequence[Way]

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Plan:
        """Returns what `text` wrote."""
        document = json.loads(text)
        ways = {name: tuple(Way(**way) for way in document[name]) for name in ("stores", "links")}
        return cls(document["seed"], document["control"], **ways)

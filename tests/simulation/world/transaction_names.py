"""The names of the transactions that the simulation sends. A leaf: faults are drawn by them, and coverage is counted by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OWNERS: Final = (
    *("raise", "acquire", "cursor", "checkpoint", "guard", "inboxed", "raise_index", "void"),
    *("fire", "count", "expire", "admit", "submitted", "look", "gone", "mixed"),
    *("control", "end_pending", "park", "release", "trigger", "cancel_job", "cancel_run", "distribute"),
    *("offer", "recurring", "outage", "hold", "let_go", "at_least_every"),
    *("controls", "controls_done", "end_covered", "move_controls", "settle_control"),
)
"""Transactions that nodes send. `mixed` is a group of decisions of several kinds."""
OF_SOURCES: Final = ("move_sources",)
"""Those that only worlds with a source have: faults aim at them there."""
OF_TICKS: Final = ("latch",)
"""Likewise, with a composite that has a leaf of time."""
OF_REFUSALS: Final = ("retry",)
"""Likewise, where a topic refuses what is sent: faults aim at them in worlds that are made for it."""
OF_REJECTIONS: Final = ("reject",)
"""Likewise, where the platform will never take what it is handed: faults aim at them in worlds that are made for it."""
OWNERLESS: Final = ("start", "finished")
"""Those that API processes send for programs."""
TRANSACTIONS: Final = (*OWNERS, *OF_SOURCES, *OF_TICKS, *OF_REFUSALS, *OF_REJECTIONS, *OWNERLESS)

RARE: Final = (
    "void",
    "expire",
    "cancel_job",
    "cancel_run",
    "trigger",
    "raise_index",
    "guard",
    "gone",
    "count",
    "outage",
    "offer",
    "recurring",
    "move_controls",
    "settle_control",
    "end_covered",
    "let_go",
    "park",
    "release",
    "at_least_every",
)
"""Of those of nodes: what a world sends hardly once. Faults aim at them, or they would never meet."""
RAREST: Final = ("void", "expire", "cancel_job", "cancel_run")
HARDLY_OF_SUSPENDS: Final = ("controls", "hold", "move_controls", "settle_control")
HARDLY_OF_RESUMES: Final = ("end_covered", "let_go")
"""Steps of wide controls that even a world that aims at rare transactions hardly meets: most worlds have no such controls."""
HARDLY: Final = ("void", "expire", "offer", "recurring", "park", "release", *OF_SOURCES)
"""What else such a world hardly meets. There are worlds that hunt just these (`faults/rare_scenarios.py`)."""

NOT_SENT_HERE: Final[Mapping[str, str]] = {
    "map": "commands and nodes' shells write it, no actor; that it follows a growth is a fault of the topic (`grown`)",
    "schema": "`tidegate init` and `tidegate migrate` write it, no node; the latter's steps are taken without faults (`rolling_upgrade.py`)",
    "count_schedules": "no simulated namespace has a quota",
    "outputs": "simulated programs report their outputs with their end",
    "refuse": "no request of a simulated user fails",
    "rearm": "no world takes rows out of the store by hand",
    "mend_recurring": "likewise",
    "mark_letter": "operators mark a dead letter through the API, which no world has",
    "unmark_letter": "likewise",
}
"""Transactions of production that the simulation does not send, each with the reason."""

HARDLY_SENT: Final[Mapping[str, str]] = {
    "idle": "a simulated world hardly ever lasts for an hour after its last run: one of 20,000 did",
    "lost": "a host has to be silent: only where each node has one of its own (traps `copies` and `lost_hosts`)",
    "release_run": "only what is lost is released: in the worlds of `lost_hosts`",
}
"""Likewise, but for a world here and there: no fault is aimed at them, and what they meet is not counted."""

"""What schedules share beside the program: groups, and keys, so that a job may need several shared permits at once."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.simulation.users.schedule_definitions import Definition

GROUP_SHARE: Final = 0.25
KEY_SHARE: Final = 0.25
MANY_SHARE: Final = 0.25
"""Worlds in which whoever shares a program shares some of `GROUPS` as well: three permits, or more, or none (SEMANTICS 7.2)."""
GROUP: Final = "desk"
GROUPS: Final = ("hall", "gate", "yard")
KEY: Final = "day ${correlation}"
ANOTHER_KEY: Final = "${correlation}, whoever asks"
"""The same value under another key is another limit."""
CORRELATED: Final = ("pair", "after-any")
"""Schedules whose jobs have the value that keys name, unless they were asked for by hand."""


def with_shared_limits(chance: Random, drawn: list[Definition]) -> list[Definition]:
    """Returns the schedules, some of them in a group, some limited by a key: beside the program that they may share."""
    of_programs = [each.name for each in drawn if not each.sends_messages and each.name != "tick"]
    members = set(chance.sample(of_programs, min(len(of_programs), chance.randint(2, 4))))
    in_group, most = chance.random() < GROUP_SHARE, chance.randint(1, 3)
    by_key = chance.random() < KEY_SHARE
    shared = [
        replace(
            each,
            groups=((GROUP, most),) if in_group and each.name in members else (),
            keys=((KEY, 1),) if by_key and each.name in CORRELATED else (),
        )
        for each in drawn
    ]
    return [_in_many(chance, each, members) for each in shared] if chance.random() < MANY_SHARE else shared


def _in_many(chance: Random, definition: Definition, members: set[str]) -> Definition:
    """Returns the schedule with further limits, each by a number of its own: of those, too, the narrowest goes first."""
    groups = chance.sample(GROUPS, chance.randint(2, len(GROUPS)))
    further = tuple((name, chance.choice((1, 2, 2, 3))) for name in groups)
    keys = ((ANOTHER_KEY, chance.choice((1, 2))),) if definition.name in CORRELATED else ()
    if definition.program is None and definition.name not in members:
        return definition
    return replace(definition, groups=(*definition.groups, *further), keys=(*definition.keys, *keys))


if TYPE_CHECKING:
    from tests.simulation.runner.swarm import Swarm
    from tests.simulation.users.schedule_definitions import Definition

RATES: Final = "rates"
"""The trap."""
OFTEN: Final = ("tock", "bell", "crowd")
"""Begins of the names of schedules that fire every few seconds."""
SELDOM: Final = ("count", "pair")
TIME_OUT: Final = "15s"
"""For what fires more often than it may run."""


def paced(chance: Random, definitions: list[Definition], swarm: Swarm) -> list[Definition]:
    """Returns the schedules; in a world with the trap, some of them share a rate."""
    if RATES not in swarm.traps:
        return definitions
    often = [each.name for each in definitions if each.name.startswith(OFTEN) and not each.sends_messages]
    members = {*chance.sample(often, min(len(often), chance.randint(2, 5))), chance.choice(SELDOM)}
    per, most = f"{chance.randint(4, 9)}s", chance.randint(1, 3)
    differ, late = chance.random() < 0.3, chance.choice(("abort", "force"))
    found: list[Definition] = []
    for each in definitions:
        if each.name not in members:
            found.append(each)
            continue
        own = most + 1 if differ and chance.random() < 0.5 else most
        member = replace(each, rate=(own, per))
        if each.name in often:
            member = replace(member, pending_timeout=each.pending_timeout or TIME_OUT, late=late)
        found.append(member)
    return found

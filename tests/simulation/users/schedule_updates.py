"""Updates that change what a schedule is, and requests with all their words: in the worlds of the trap.

Elsewhere an update changes a program's arguments alone, and a request says what it has to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.users.schedule_definitions import OVERLAPS, PRIORITIES, Definition
from tests.simulation.users.shared_limits import ANOTHER_KEY, CORRELATED, GROUPS, KEY
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Item

if TYPE_CHECKING:
    from tests.simulation.users.schedule_users import Life
    from tests.simulation.world.store import SimStore

TRAP: Final = "redefined"
CHANGED: Final = 0.4
"""Share of an update's fields that differ from the first definition's."""
UPDATED_INSTEAD: Final = 0.4
"""Share of the suspends and of the runs asked for by hand that are updates instead."""
EXPECTING: Final = 0.3
"""Share of the requests that name the version that they are meant for."""
MISTAKEN: Final = 0.25
"""Of those: as many name another one."""
FORCED: Final = 0.4
"""Share of the runs that are asked for by hand, whatever runs already."""
CANCELLING: Final = 0.5
"""Share of the deletes that end what runs."""
BY_ITS_OWN_WORD: Final = 0.4
"""Share of the suspends that leave it to the definition what becomes of what waits."""
BEGINS_SUSPENDED: Final = 0.15
"""Share of the definitions that say so: of one that is active already that is refused."""
OWN_MODES: Final = ("drop", "drain", "hold", "freeze")


class Shapes:
    """What a schedule is, by the variant of its document; the first one is what its world has drawn.

    A function of seed, name and variant: users, monitors and checks ask for the same.
    """

    def __init__(self, seed: int, first: Definition, shared: Sequence[tuple[str, int]]) -> None:
        self._seed = seed
        self._first = first
        self._shared = shared
        self._known = {0: first}

    def of(self, variant: int) -> Definition:
        if variant not in self._known:
            self._known[variant] = self._drawn(Random(f"{self._seed}/{TRAP}/{self._first.name}/{variant}"))
        return self._known[variant]

    def _drawn(self, chance: Random) -> Definition:
        first = self._first
        most = chance.choice((1, 1, 2, None))
        overlaps = [each for each in OVERLAPS if first.is_timed or each != "coalesce"]
        keys = ((KEY, chance.choice((1, 2))), (ANOTHER_KEY, 1))
        groups = chance.sample(GROUPS, chance.randint(0, 2))
        others: list[dict[str, Any]] = [
            {"most": most, "overlap": None if most is None else chance.choice((None, None, *overlaps))},
            {"program": chance.choice((None, *((name, chance.randint(1, most)) for name, most in self._shared)))},
            {"groups": tuple((name, chance.choice((1, 2, 3))) for name in groups)},
            {"keys": tuple(chance.sample(keys, chance.randint(0, 2))) if first.name in CORRELATED else first.keys},
            {"priority": chance.choice(PRIORITIES)},
            {"max_pending": chance.choice((1, 3, 100)), "on_overflow": chance.choice(("coalesce", "reject"))},
            {"tries": chance.choice((0, 1, 2))},
            {"aborts": not first.aborts},
            {"pending_timeout": chance.choice((None, "6s", "15s")), "late": chance.choice(("abort", "force", "alert"))},
            {"rate": None if first.rate is None else chance.choice((None, (first.rate[0] + 1, first.rate[1])))},
            {"suspend_mode": chance.choice(OWN_MODES)},
            {"trigger": _another(chance, first.trigger)},
        ]
        changes = [each for each in others if chance.random() < CHANGED]
        begins = {"suspended": chance.random() < BEGINS_SUSPENDED}
        return replace(first, **{name: value for each in (*changes, begins) for name, value in each.items()})


def _another(chance: Random, trigger: dict[str, Any]) -> dict[str, Any]:
    """Returns a trigger of the same kind that names other instants, or waits for other data; some kinds stay what they are."""
    match trigger:
        case {"type": "every", "period": _, **others} if not others:
            return {**trigger, "period": f"{chance.randint(2, 7)}s"}
        case {"type": "cron", "expression": str(expression)} if "exclude" not in trigger and expression.startswith(
            "*/"
        ):
            return {**trigger, "expression": f"*/{chance.randint(2, 6)} * * * * *"}
        case {"type": "data_partitions", "dataset": _, "count": _, **others} if not others:
            return {**trigger, "dataset": chance.choice(("a", "b", "c")), "count": chance.randint(1, 4)}
        case _:
            return trigger


class Words:
    """Has users say more than they have to, from a source of its own."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def changed(self, life: Life, document: dict[str, Any]) -> dict[str, Any]:
        """Returns what the user asks for, instead of what a world without the trap would have asked for."""
        chance, kind = self._chance, document["type"]
        sends_messages = life.definition.sends_messages
        goes_on = kind in {"schedule.suspend", "schedule.trigger"} and not sends_messages and not life.suspended
        if goes_on and chance.random() < UPDATED_INSTEAD:
            life.variant += 1
            how = chance.choice((None, "carry", "carry", "finish_old"))
            kind, document = "schedule.apply", {"type": "schedule.apply", **({} if how is None else {"on_update": how})}
        if kind == "schedule.apply":
            document = {**document, "spec": life.document()}
        elif kind == "schedule.trigger" and chance.random() < FORCED:
            document = {**document, "force_overlap": True}
        elif kind == "schedule.delete" and chance.random() < CANCELLING:
            document = {**document, "cancel_running": True}
        elif kind == "schedule.suspend" and not sends_messages and chance.random() < BY_ITS_OWN_WORD:
            document = {name: value for name, value in document.items() if name != "mode"}
        if chance.random() < EXPECTING:
            mistake = chance.choice((-1, 1, 1_000)) if chance.random() < MISTAKEN else 0
            document = {**document, "expected_version": max(0, life.version + mistake)}
        return document


def shapes_of(seed: int, definitions: Sequence[Definition]) -> dict[str, Shapes]:
    """Returns the shapes of schedules that start programs, but for the one that is left alone, by name."""
    shared = sorted({each.program for each in definitions if each.program is not None})
    return {
        each.name: Shapes(seed, each, shared) for each in definitions if not each.sends_messages and each.name != "tick"
    }


class Wanted:
    """Tells what the user of a run wants of it, by the version of its schedule that it is bound to."""

    def __init__(self, store: SimStore, lives: Mapping[str, Life]) -> None:
        self._store = store
        self._lives = lives

    def of(self, run: Item) -> Definition:
        life = self._lives[str(run["name"])]
        if life.shapes is None:
            return life.definition
        shard = keys.shard_of_run(str(run["id"]))
        key = keys.definition(shard, str(run["namespace"]), life.name, int(str(run["version"])))
        item = self._store.memory.look(key)
        assert item is not None
        return life.shape(variant_of({"spec": json.loads(str(item["spec"]))}))


def variant_of(document: Mapping[str, Any]) -> int:
    """Returns which variant an apply brings, as its target says."""
    target = document["spec"]["target"]
    if target["type"] == "message":
        return int(target["payload_text"].split("/")[1])
    return int(target["program"]["args"][0].removeprefix("variant="))

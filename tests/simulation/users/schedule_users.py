"""One user per schedule: creates it, troubles it with requests at awkward moments, one request after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.users.reminders import LINGER_MS
from tests.simulation.users.requests import Asked, Requests
from tests.simulation.users.schedule_definitions import NAMESPACE, Definition
from tests.simulation.users.schedule_updates import Shapes, Words, variant_of
from tests.simulation.users.timed_suspensions import Ends
from tests.simulation.world.cluster import Cluster
from tidegate_core.language.values.instants import parse_instant

MODES = ("drop", "drop", "drain", "hold", "hold", "freeze")
UPDATES = (None, "restart", "carry", "finish_old")
"""None: as by default, and of each third variant `finish_admitted`."""
NEAR_MS = 500
"""Half of the requests come this close to a full second, when schedules are due."""


@dataclass(slots=True, eq=False)
class Life:
    """A schedule's requests, in their order, each sent after the answer to the one before.

    Attributes:
        steps: The requests that were sent.
        suspended, deleted: As the last answer says.
        mode: Of the last suspend.
        until: When it ends by itself, as the last suspend says that was carried out; None where it says nothing, or was resumed.
        version: As the last answer says; 0 = it is not there.
        applied: Variant of the last document that was taken.
        shapes: What each variant is; None: all are as the definition says.
    """

    definition: Definition
    steps: list[Asked] = field(default_factory=list)
    suspended: bool = False
    deleted: bool = True
    mode: str = "drop"
    until: int | None = None
    variant: int = 0
    waiting: bool = False
    version: int = 0
    applied: int = 0
    shapes: Shapes | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    def shape(self, variant: int) -> Definition:
        return self.definition if self.shapes is None else self.shapes.of(variant)

    def document(self) -> dict[str, Any]:
        """Returns the spec of the present variant."""
        return self.shape(self.variant).document(self.variant)


class ScheduleUser:
    """Drives the life of one schedule."""

    def __init__(
        self,
        cluster: Cluster,
        requests: Requests,
        life: Life,
        troubles: int,
        ends: Ends | None = None,
        words: Words | None = None,
    ) -> None:
        self.life = life
        self._cluster = cluster
        self._requests = requests
        self._troubles = troubles
        self._ends = ends
        self._words = words
        self._closing = False
        self._lingers = False

    def begin(self) -> None:
        self._ask(self._apply())

    def close(self) -> None:
        """The world comes to rest: a schedule that would fire for ever is deleted or suspended, soon or after a while."""
        self._closing = True
        if "at_least_every" in self.life.definition.trigger:
            self._lingers = True
            self._cluster.timeline.after(LINGER_MS, self._close_at_last)
        elif not self.life.waiting:
            self._close()

    def _close_at_last(self) -> None:
        self._lingers = False
        if not self.life.waiting:
            self._close()

    @property
    def is_done(self) -> bool:
        return not self.life.waiting and not self._lingers

    # -- one request after the other ----------------------------------------------------------------------------------

    def _ask(self, document: dict[str, Any]) -> None:
        self.life.waiting = True
        stubborn = self._cluster.stubborn
        if document["type"] == "schedule.delete" and stubborn is not None and stubborn.ends_what_runs():
            document = {**document, "cancel_running": True}
        body = {"namespace": NAMESPACE, "name": self.life.name, **document}
        self.life.steps.append(self._requests.ask(body, self._answered))

    def _answered(self, asked: Asked) -> None:
        life = self.life
        life.waiting = False
        kind, accepted = asked.document["type"], asked.status in {"accepted", "unchanged"}
        if kind == "schedule.apply" and accepted:
            if life.deleted and asked.status == "accepted" and asked.document["spec"].get("suspended"):
                life.suspended, life.mode = True, "drop"
            life.deleted, life.applied = False, variant_of(asked.document)
        elif kind == "schedule.delete" and asked.status != "conflict":
            life.deleted, life.suspended, life.until = True, False, None
        elif kind == "schedule.suspend" and accepted:
            own = life.mode if life.suspended else life.shape(life.applied).suspend_mode
            life.suspended, life.mode = True, str(asked.document.get("mode") or own or "drop")
            if asked.status == "accepted":
                life.until = None if "until" not in asked.document else parse_instant(asked.document["until"])
        elif kind == "schedule.resume" and accepted:
            life.suspended, life.until = False, None
        if asked.status == "not_found":
            life.deleted, life.suspended, life.until = True, False, None  # It ended with one that it waited for.
        told = None if asked.receipt is None else asked.receipt.body.get("version")
        life.version = 0 if life.deleted else life.version if told is None else int(told)
        if kind == "schedule.trigger" and accepted and self._cluster.timeline.happens(0.5):
            made = str(asked.receipt.body["id"]) if asked.receipt else ""
            self._cluster.timeline.after(self._cluster.timeline.between(0, 3_000), lambda: self._cancel(made))
        if self._closing:
            if not self._lingers:
                self._close()
        elif self._troubles > 0:
            self._troubles -= 1
            pause = self._pause()
            self._cluster.timeline.after(pause if self._ends is None else self._ends.pause(life, pause), self._trouble)

    def _cancel(self, made: str) -> None:
        """Takes back what was asked for, whatever has become of it."""
        kind = "run" if self._cluster.timeline.happens(0.6) else "job"
        self._requests.ask({"type": f"{kind}.cancel", f"{kind}_id": made}, lambda asked: None)

    def _trouble(self) -> None:
        if not self._closing and not self.life.waiting:
            life = self.life
            if life.until is not None and life.until <= self._cluster.timeline.now:
                life.suspended = False  # As far as its user knows.
            wanted = self._next()
            wanted = wanted if self._ends is None else self._ends.changed(life, wanted, MODES)
            self._ask(wanted if self._words is None else self._words.changed(life, wanted))

    def _pause(self) -> float:
        """Until a random moment, or one close to a full second."""
        timeline = self._cluster.timeline
        pause = timeline.between(500, 12_000)
        if timeline.happens(0.5):
            at = (timeline.now + int(pause)) // 1_000 * 1_000 + int(timeline.between(-NEAR_MS, NEAR_MS))
            pause = max(1, at - timeline.now)
        return pause

    def _next(self) -> dict[str, Any]:
        chance, life = self._cluster.timeline.chance, self.life
        if life.deleted:
            return self._apply()
        kinds: tuple[str, ...]
        if life.suspended:
            kinds = ("resume", "resume", "resume", "update", "delete", "trigger")
        else:
            kinds = ("suspend", "suspend", "update", "update", "same", "delete", "trigger", "trigger")
        kind = chance.choice(kinds)
        if kind == "update":
            life.variant += 1
            how = None if life.definition.sends_messages else chance.choice(UPDATES)
            if how is None and not life.definition.sends_messages and life.variant % 3 == 0:
                how = "finish_admitted"
            return self._apply() if how is None else {**self._apply(), "on_update": how}
        if kind == "same":
            return self._apply()
        if kind == "suspend" and not life.definition.sends_messages:
            return {"type": "schedule.suspend", "mode": chance.choice(MODES)}
        if kind == "resume":
            return self._resume()
        return {"type": f"schedule.{kind}"}

    def _resume(self) -> dict[str, Any]:
        """What was held is let go on in any way; of other spans nothing is made up for."""
        life = self.life
        choices = ("all", "last", "coalesce", "none") if life.definition.is_timed else ("all", "none")
        backlog = {"backlog": self._cluster.timeline.chance.choice(choices)} if life.mode == "hold" else {}
        return {"type": "schedule.resume", **backlog}

    def _apply(self) -> dict[str, Any]:
        return {"type": "schedule.apply", "spec": self.life.document()}

    def _close(self) -> None:
        life = self.life
        if life.until is not None:
            if not life.definition.ends_by_itself:
                self._ask(self._resume())  # It may have been resumed by itself, or be so later.
            return
        if life.suspended and not life.deleted and life.mode != "drop":
            self._ask(self._resume())  # What is parked waits for ever otherwise.
            return
        if not life.definition.ends_by_itself and not life.deleted and not life.suspended:
            kind = "delete" if self._cluster.timeline.happens(0.5) else "suspend"
            self._ask({"type": f"schedule.{kind}"})


def draw_users(
    cluster: Cluster,
    requests: Requests,
    definitions: list[Definition],
    ends: Ends | None = None,
    words: Words | None = None,
    shapes: Mapping[str, Shapes] | None = None,
) -> list[ScheduleUser]:
    """Returns the users, with their first requests planned for the first seconds; with `ends` their suspends may name one, with `words` they
    say more, with `shapes` updates change what a schedule is.
    """
    users: list[ScheduleUser] = []
    chance = cluster.timeline.chance
    for definition in definitions:
        # The first is left alone, the second often, so that each world has a steady stream of fires.
        calm = definition.name == "tick" or (definition.name == "tock" and chance.random() < 0.5)
        life = Life(definition, shapes=(shapes or {}).get(definition.name))
        user = ScheduleUser(cluster, requests, life, 0 if calm else chance.randint(0, 6), ends, words)
        cluster.timeline.after(chance.randint(100, 3_000 if calm else 6_000), user.begin)
        users.append(user)
    return users

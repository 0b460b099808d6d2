"""Stops about due instants: one-shot schedules that are suspended or deleted, messages that are cancelled, as they come due."""

from __future__ import annotations

import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

from tests.support.checkers.stops import Stop, StopAnswer
from tests.support.cluster.agenda import Agenda
from tests.support.cluster.background import Background
from tests.support.cluster.cluster import SHARDS
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.message_load import NAMESPACE as MESSAGES
from tests.support.cluster.message_load import Booked, MessageBook, cancel_id, instant
from tests.support.cluster.topic_reader import Arrived
from tests.support.cluster.until import now_ms
from tests.support.cluster.user_client import Acknowledged, Client
from tidegate_core.language.values.derived_ids import message_shard, schedule_shard

NAMESPACE = "stops"
ALL_SHARDS = frozenset(range(SHARDS))
AHEAD_MS = 4_000
"""From the apply to the instant: an apply takes a tenth of a second, several on a busy machine."""
ANSWER_MS = 120
"""About what an answer takes, while none is known: so much before the wanted moment a stop is sent."""
ANSWERS_KEPT = 30
SPREAD_MS = 450
"""Answers are wanted within that of the instant, before it and after."""
VOLLEY = 12
"""Of schedules; each costs its owner what a run does."""
VOLLEY_CANCELS = 60
"""Of messages, which cost little: as many as lie near enough together that some ten of them are near. More of them only keep the nodes
from coming back."""
VOLLEY_FROM_MS, VOLLEY_TO_MS = 7_000, 13_000
"""Instants of the first volley, after its begin: about the moment at which what it is aimed at has been taken over, 8 s on an idle
machine. Its stops are answered together then."""
VOLLEY_LAST_MS = 60_000
"""What was answered later than this stood in an outage: nobody waits so long for an instant."""
VOLLEYS_KEPT = 5
VOLLEY_STOP_MS = 2_000
"""After its begin its stops are sent: just after the strike, so that only a successor can answer them."""
LOOK_S = 0.02


@dataclass(slots=True)
class Trial:
    """A schedule with the stop that is sent for it.

    Attributes:
        appended_at: When the broker got the stop, ms since the epoch; None while it did not say.
    """

    schedule: str
    due: int
    what: Literal["suspend", "delete"]
    stop_id: str
    in_volley: bool
    appended_at: int | None = None
    apply_acknowledged: bool = False

    def taken(self, where: Acknowledged) -> None:
        """The broker has the stop."""
        self.appended_at = where.appended_at

    def apply_taken(self, _: Acknowledged) -> None:
        """The broker has the schedule's apply."""
        self.apply_acknowledged = True


class Latency:
    """What answers to stops of one kind took of late: a busy machine needs many times what an idle one does."""

    def __init__(self) -> None:
        self._sent: deque[tuple[str, int]] = deque(maxlen=ANSWERS_KEPT)

    def sent(self, request_id: str) -> None:
        """It is sent now."""
        self._sent.append((request_id, now_ms()))

    def usual_ms(self, answered_at: Mapping[str, int]) -> int:
        took = [answered_at[request_id] - sent_at for request_id, sent_at in self._sent if request_id in answered_at]
        return int(median(took)) if took else ANSWER_MS


class StopLoad(Background):
    """Begins one trial every `every_s` seconds, in turn a suspend, a delete and a message's cancel.

    Attributes:
        trials: Of schedules, so far; cancels stand in the message book.
    """

    def __init__(
        self, client: Client, evidence: Evidence, book: MessageBook, chance: random.Random, every_s: float
    ) -> None:
        super().__init__("stop load")
        self.trials: list[Trial] = []
        self._aimed: list[Booked] = []
        self._client = client
        self._evidence = evidence
        self._book = book
        self._chance = chance
        self._every_s = every_s
        self._agenda = Agenda()
        self._numbers = itertools.count(1)
        self._volleys: deque[tuple[int, list[Trial]]] = deque(maxlen=VOLLEYS_KEPT)
        self._cancel_volleys: deque[tuple[int, list[str]]] = deque(maxlen=VOLLEYS_KEPT)
        self._latencies = {"schedule": Latency(), "cancel": Latency()}

    def run(self) -> None:
        due = time.monotonic()
        turns = itertools.cycle(("suspend", "delete", "cancel"))
        while not self.stopping.wait(LOOK_S):
            self._agenda.do_due()
            if time.monotonic() >= due:
                due += self._every_s
                wanted = now_ms() + AHEAD_MS
                answered_at = wanted + self._chance.randint(-SPREAD_MS, SPREAD_MS)
                match next(turns):
                    case "cancel":
                        self._cancel(wanted, answered_at - self._usual_ms("cancel"))
                    case "suspend":
                        self._begin(self._name(), "suspend", wanted, answered_at - self._usual_ms("schedule"))
                    case _:
                        self._begin(self._name(), "delete", wanted, answered_at - self._usual_ms("schedule"))
        self._agenda.do_all()

    def volley(self, shards: frozenset[int]) -> None:
        """Begins many at once in those shards, whose instants lie about the end of a take-over that begins in a second."""
        now, before = now_ms(), len(self.trials)
        for number, after_ms in enumerate(self._wanted_ms()):
            what: Literal["suspend", "delete"] = "suspend" if number % 2 else "delete"
            self._begin(self._name(shards), what, now + after_ms, now + VOLLEY_STOP_MS, in_volley=True)
        volley = [trial for trial in self.trials[before:] if trial.in_volley]
        self._volleys.append((now, volley))
        ids = [self._aimed_cancel(now + after_ms, now + VOLLEY_STOP_MS, shards) for after_ms in self._cancels_ms()]
        self._cancel_volleys.append((now, ids))

    def _cancels_ms(self) -> list[int]:
        """Returns the instants of a volley's messages, after its begin: about those at which cancels of earlier ones were answered.

        They are answered together, at a moment that no volley can know; each of those of before is as likely.
        """
        answered_at = self._client.answered_at()
        known = [
            answered_at[each] - begun for begun, ids in self._cancel_volleys for each in ids if each in answered_at
        ]
        fit = [each for each in known if VOLLEY_STOP_MS < each <= VOLLEY_LAST_MS]
        if not fit:
            step_ms = (VOLLEY_TO_MS - VOLLEY_FROM_MS) // VOLLEY_CANCELS
            return [VOLLEY_FROM_MS + step_ms * number for number in range(VOLLEY_CANCELS)]
        return [self._chance.choice(fit) + self._chance.randint(-SPREAD_MS, SPREAD_MS) for _ in range(VOLLEY_CANCELS)]

    def _aimed_cancel(self, due: int, stop_at: int, shards: frozenset[int]) -> str:
        """Begins one; returns the id of its cancel."""
        names = (f"stopped-{number}" for number in self._numbers)
        request_id = next(each for each in names if message_shard(MESSAGES, None, each, SHARDS) in shards)
        message = self._book.send(due, request_id=request_id, receipt=True)
        self._aimed.append(message)
        self._at(stop_at, lambda: self._book.cancel(message))
        return cancel_id(message.number)

    def _usual_ms(self, kind: str) -> int:
        return self._latencies[kind].usual_ms(self._client.answered_at())

    def _wanted_ms(self) -> list[int]:
        """Returns the instants of a volley, after its begin, in the order of its stops: when those of an earlier one were answered.

        A busy machine answers them over many seconds, in about their order: of instants that lie evenly about the end of an idle
        machine's take-over it meets one or two.
        """
        answered_at = self._client.answered_at()
        known = []
        for begun, trials in self._volleys:
            after = sorted(answered_at[each.stop_id] - begun for each in trials if each.stop_id in answered_at)
            fit = [each for each in after if VOLLEY_STOP_MS < each <= VOLLEY_LAST_MS]
            if 2 * len(fit) >= VOLLEY:
                known.append(fit)
        if not known:
            return [VOLLEY_FROM_MS + (VOLLEY_TO_MS - VOLLEY_FROM_MS) * number // VOLLEY for number in range(VOLLEY)]
        fit = self._chance.choice(known)
        return [fit[len(fit) * number // VOLLEY] for number in range(VOLLEY)]

    def _name(self, shards: frozenset[int] = ALL_SHARDS) -> str:
        """Returns a name that was never used, of a schedule in one of those shards."""
        names = (f"stop-{number}" for number in self._numbers)
        return next(name for name in names if schedule_shard(NAMESPACE, name, SHARDS) in shards)

    @property
    def aimed_cancels(self) -> Mapping[int, int]:
        """When the broker got the cancels that were aimed at a take-over, ms since the epoch, by their messages' numbers."""
        return {
            each.number: each.thought_appended_at for each in list(self._aimed) if each.thought_appended_at is not None
        }

    def stops(self, receipts: Iterable[Arrived]) -> list[tuple[Stop, int | None]]:
        """Returns each trial with its answer, and when the broker got its stop, ms since the epoch, where it was of a volley."""
        answers = _answers(receipts)
        # A schedule whose apply was refused, or is not answered, has no instant to be stopped at.
        return [
            (
                Stop(each.schedule, each.due, each.what, each.appended_at is not None, answers.get(each.stop_id)),
                each.appended_at if each.in_volley else None,
            )
            for each in list(self.trials)
            if each.schedule in answers and answers[each.schedule].status == "accepted"
        ]

    def unanswered(self, receipts: Iterable[Arrived]) -> list[str]:
        """Returns the schedules whose apply the broker has, and nobody answered: nothing of them can be judged but that."""
        answers = _answers(receipts)
        return [each.schedule for each in list(self.trials) if each.apply_acknowledged and each.schedule not in answers]

    def _begin(
        self, name: str, what: Literal["suspend", "delete"], due: int, stop_at: int, in_volley: bool = False
    ) -> None:
        trial = Trial(name, due, what, f"{what}-{name}", in_volley)
        spec = {
            "kind": "schedule",
            "namespace": NAMESPACE,
            "name": name,
            "target": self._evidence.target(),
            "trigger": {"type": "at", "instant": instant(due)},
        }
        about = {"namespace": NAMESPACE, "name": name}
        self.trials.append(trial)
        apply = {"id": name, "type": "schedule.apply", **about, "spec": spec}
        self._client.send("requests", apply, key=name, on_acknowledged=trial.apply_taken)
        stop = {"id": trial.stop_id, "type": f"schedule.{what}", **about}

        def send() -> None:
            if not in_volley:
                self._latencies["schedule"].sent(trial.stop_id)
            self._client.send("requests", stop, key=name, on_acknowledged=trial.taken)

        self._at(stop_at, send)

    def _cancel(self, due: int, stop_at: int) -> None:
        message = self._book.send(due, request_id=f"stopped-{next(self._numbers)}", receipt=True)

        def send() -> None:
            self._latencies["cancel"].sent(cancel_id(message.number))
            self._book.cancel(message)

        self._at(stop_at, send)

    def _at(self, milliseconds: int, act: Callable[[], None]) -> None:
        self._agenda.after((milliseconds - now_ms()) / 1_000, act)


def _answers(receipts: Iterable[Arrived]) -> dict[str, StopAnswer]:
    """Returns the first answer of each request."""
    answers: dict[str, StopAnswer] = {}
    for receipt in receipts:
        document = receipt.document
        running = frozenset(document.get("running") or ())
        answers.setdefault(document["request_id"], StopAnswer(document["status"], receipt.appended_at, running))
    return answers

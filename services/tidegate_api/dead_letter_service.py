"""Replays and drops dead letters, each at most once even with concurrent requests.

The routes of dead letters call it. It writes a mark for each dead letter, and produces the replayed record.
"""

from __future__ import annotations

import uuid
from typing import Final, Literal

from tidegate_api.http.problem_responses import ApiProblem, invalid, unavailable
from tidegate_api.reads.dead_letters import DeadLetterReads, view_of
from tidegate_api.start_gate import CarryOut
from tidegate_api.thread_pools import Pools
from tidegate_client.views import DeadLetterAnswer
from tidegate_core.language.values.problems import Problem
from tidegate_core.rows.dead_letter import DeadLetter, LetterId
from tidegate_core.rows.effects import NotProduced, Produce, Unavailable
from tidegate_core.rows.effects import Refused as StoreRefused
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.store_operations import Item, Transaction
from tidegate_core.writes.dead_letter_marks import Mark, MarkState, key_of, next_mark, replayed, set_mark, unset_mark
from tidegate_ports.bus import Notices, Publisher
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store

Wanted = Literal["replaying", "dropped"]
DONE: Final[dict[Wanted, MarkState]] = {"replaying": "replayed", "dropped": "dropped"}
TEXT_CHARACTERS_MAX: Final = 1_024
"""Characters of actor and reason in a mark; longer texts are cut."""


class DeadLetterService:
    """Replays and drops dead letters; one instance per process."""

    def __init__(
        self,
        reads: DeadLetterReads,
        store: Store,
        carry_out: CarryOut,
        pools: Pools,
        publisher: Publisher,
        clock: Clock,
        notices: Notices,
    ) -> None:
        self._reads = reads
        self._store = store
        self._carry_out = carry_out
        self._pools = pools
        self._publisher = publisher
        self._clock = clock
        self._notices = notices

    async def replay(
        self, letter_id: LetterId, actor: str | None, reason: str | None, *, again: bool
    ) -> DeadLetterAnswer:
        """Produces the record of a dead letter to its original topic, with the same bytes, key and headers.

        Args:
            letter_id: Id of the dead letter, or of any copy of it.
            actor: Who asks for it.
            reason: Why.
            again: Whether to act even if it was replayed or dropped before.

        Raises:
            InvalidInput: It has no record that can be produced.
            ApiProblem: 404; 409 if another request is at work on it, or it was dropped; 503.
        """
        letter, _ = await self._reads.one(letter_id)
        order = replay_of(letter)
        seen, mark = await self._claim(letter, "replaying", actor, reason, again=again)
        if mark is None:
            return _answer(letter, seen, "unchanged")
        claimed: Item = {"rev": 1 if seen is None else _revision(seen) + 1}
        outcome = await self._publisher.produce(order)
        if isinstance(outcome, NotProduced):
            await self._not_replayed(letter, seen, claimed, outcome)
        self._notices("dead_letter_replayed", letter=str(letter.id), topic=order.topic, actor=actor)
        done = replayed(mark)
        await self._set(
            set_mark(letter.origin, claimed, done, uuid.uuid4().hex),
            letter,
            unless="its record was produced, but the store did not record that; drop it when it is listed again, in a minute",
        )
        return DeadLetterAnswer(**view_of(letter, done).model_dump(), status="accepted")

    async def drop(
        self, letter_id: LetterId, actor: str | None, reason: str | None, *, again: bool
    ) -> DeadLetterAnswer:
        """Marks a dead letter as dropped. It stays on its topic until retention removes it. Raises as `replay`."""
        letter, _ = await self._reads.one(letter_id)
        seen, mark = await self._claim(letter, "dropped", actor, reason, again=again)
        if mark is None:
            return _answer(letter, seen, "unchanged")
        self._notices("dead_letter_dropped", letter=str(letter.id), topic=letter.topic, actor=actor)
        return DeadLetterAnswer(**view_of(letter, mark).model_dump(), status="accepted")

    async def _claim(
        self, letter: DeadLetter, wanted: Wanted, actor: str | None, reason: str | None, *, again: bool
    ) -> tuple[Item | None, Mark | None]:
        """Sets a mark. Returns the item before that, and the new mark; None as mark if the action was done before."""
        key = key_of(letter.origin)
        seen = (await self._pools.read(lambda: self._store.get([key]))).get(key)
        known = None if seen is None else from_item(Mark, seen)
        now = self._clock.now_ms()
        asked = Mark(state=wanted, letter=str(letter.id), at=now, actor=_short(actor), reason=_short(reason))
        mark = next_mark(known, asked, again=again)
        if mark is None:
            assert known is not None
            if known.state != DONE[wanted]:
                raise ApiProblem(409, _why_refused(letter, known))
            return seen, None
        await self._set(set_mark(letter.origin, seen, mark, uuid.uuid4().hex), letter)
        return seen, mark

    async def _not_replayed(self, letter: DeadLetter, seen: Item | None, claimed: Item, outcome: NotProduced) -> None:
        """Raises ApiProblem. Restores the earlier mark only if the broker certainly did not store the record."""
        if outcome.kind != "refused":
            raise unavailable(
                f"dead letter {letter.id}: it is unknown whether the broker stored the record ({outcome.message}); "
                "it is listed again in a minute: replay it then"
            )
        await self._set(unset_mark(letter.origin, seen, claimed, uuid.uuid4().hex), letter)
        raise ApiProblem(409, f"dead letter {letter.id}: topic {letter.topic} refuses its record: {outcome.message}")

    async def _set(
        self,
        transaction: Transaction,
        letter: DeadLetter,
        unless: str = "the store does not answer; repeat the request",
    ) -> None:
        verdict = await self._pools.read(lambda: self._carry_out(transaction))
        if isinstance(verdict, StoreRefused):
            raise ApiProblem(409, f"dead letter {letter.id}: another request is at work on it; check it again")
        if isinstance(verdict, Unavailable):
            raise unavailable(f"dead letter {letter.id}: {unless}")


def replay_of(letter: DeadLetter) -> Produce:
    """Returns the record to produce.

    Raises:
        InvalidInput: There is no record: the dead letter is about an abandoned run, lacks the value, or does not name the original topic.
    """
    if letter.id.queue == "runs":
        hint = "run the schedule again: tidegate schedule trigger"
        raise invalid(Problem("letter", "is about an abandoned run and has no record to replay", hint))
    if letter.topic is None:
        raise invalid(Problem("letter", "names no original topic, so tidegate did not write it", "drop it"))
    if not letter.is_whole:
        hint = "produce the data again, in smaller records or as a pointer to them"
        raise invalid(Problem("letter", "has no value: the record was too large for the dead-letter topic", hint))
    # A message is routed by its key. A record goes to its original topic partition, so that its key keeps one order.
    topic_partition = None if letter.is_undeliverable else letter.topic_partition
    return Produce(letter.topic, letter.key, letter.value, letter.replay_headers(), topic_partition)


def _answer(letter: DeadLetter, seen: Item | None, status: Literal["accepted", "unchanged"]) -> DeadLetterAnswer:
    mark = None if seen is None else from_item(Mark, seen)
    return DeadLetterAnswer(**view_of(letter, mark).model_dump(), status=status)


def _why_refused(letter: DeadLetter, mark: Mark) -> str:
    if mark.state == "replaying":
        return f"dead letter {letter.id}: a replay of it is under way; check it again in a minute"
    return f"dead letter {letter.id}: it was {mark.state} by {mark.actor or 'an unknown actor'}; use --again (again=true) to act on it"


def _revision(item: Item) -> int:
    revision = item["rev"]
    assert isinstance(revision, int)
    return revision


def _short(text: str | None) -> str | None:
    return None if text is None else text[:TEXT_CHARACTERS_MAX]

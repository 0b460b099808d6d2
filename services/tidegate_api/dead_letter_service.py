"""Deals with dead letters: produces a record again, or says that nobody wants it; each once, whoever else is asking."""

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
"""Of actor and reason in a mark."""


class DeadLetterService:
    """One per process."""

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
        """Produces the record of a letter to where it stood, with its bytes, key and headers.

        Args:
            letter_id: Any copy of it.
            actor: Who wants it.
            reason: Why.
            again: Also when it was replayed or dropped before.

        Raises:
            InvalidInput: It cannot be replayed at all.
            ApiProblem: 404; 409 when somebody else deals with it, or has dropped it; 503.
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
            unless="its record was produced, and the store did not take note of it; it is listed again in a minute: drop it then",
        )
        return DeadLetterAnswer(**view_of(letter, done).model_dump(), status="accepted")

    async def drop(
        self, letter_id: LetterId, actor: str | None, reason: str | None, *, again: bool
    ) -> DeadLetterAnswer:
        """Says of a letter that nothing is to be done; it stays on its topic until its retention. The same errors."""
        letter, _ = await self._reads.one(letter_id)
        seen, mark = await self._claim(letter, "dropped", actor, reason, again=again)
        if mark is None:
            return _answer(letter, seen, "unchanged")
        self._notices("dead_letter_dropped", letter=str(letter.id), topic=letter.topic, actor=actor)
        return DeadLetterAnswer(**view_of(letter, mark).model_dump(), status="accepted")

    async def _claim(
        self, letter: DeadLetter, wanted: Wanted, actor: str | None, reason: str | None, *, again: bool
    ) -> tuple[Item | None, Mark | None]:
        """Returns the item as it was, and the mark that is set now; no mark where all is done already."""
        key = key_of(letter.origin)
        seen = (await self._pools.read(lambda: self._store.get([key]))).get(key)
        known = None if seen is None else from_item(Mark, seen)
        now = self._clock.now_ms()
        asked = Mark(state=wanted, letter=str(letter.id), at=now, actor=_short(actor), reason=_short(reason))
        mark = next_mark(known, asked, again=again)
        if mark is None:
            assert known is not None
            if known.state != DONE[wanted]:
                raise ApiProblem(409, _in_the_way(letter, known))
            return seen, None
        await self._set(set_mark(letter.origin, seen, mark, uuid.uuid4().hex), letter)
        return seen, mark

    async def _not_replayed(self, letter: DeadLetter, seen: Item | None, claimed: Item, outcome: NotProduced) -> None:
        """Raises ApiProblem; the mark goes back where it is certain that nothing was produced."""
        if outcome.kind != "refused":
            raise unavailable(
                f"dead letter {letter.id}: the broker did not say whether it took the record ({outcome.message}); "
                "it is listed again in a minute, and may then be replayed once more"
            )
        await self._set(unset_mark(letter.origin, seen, claimed, uuid.uuid4().hex), letter)
        raise ApiProblem(
            409, f"dead letter {letter.id}: topic {letter.topic} does not take its record: {outcome.message}"
        )

    async def _set(
        self, transaction: Transaction, letter: DeadLetter, unless: str = "the store does not answer; ask again"
    ) -> None:
        verdict = await self._pools.read(lambda: self._carry_out(transaction))
        if isinstance(verdict, StoreRefused):
            raise ApiProblem(409, f"dead letter {letter.id}: somebody else deals with it at this moment; look again")
        if isinstance(verdict, Unavailable):
            raise unavailable(f"dead letter {letter.id}: {unless}")


def replay_of(letter: DeadLetter) -> Produce:
    """Returns the record to produce.

    Raises:
        InvalidInput: There is none: it tells of a run that was given up, has no value of its record, or does not say where that stood.
    """
    if letter.id.queue == "runs":
        hint = "run its occurrence again: tidegate schedule trigger"
        raise invalid(Problem("letter", "tells of a run that was given up, which is no record to send again", hint))
    if letter.topic is None:
        raise invalid(Problem("letter", "does not say where it stood: tidegate has not written it", "drop it"))
    if not letter.is_whole:
        hint = "produce it again from where it stood, in smaller records or with a pointer to the data"
        raise invalid(Problem("letter", "is without its record's value, which no dead-letter topic takes", hint))
    # A message goes where its key leads; a record where it stood, so that it keeps its place behind others of its key.
    topic_partition = None if letter.is_undeliverable else letter.topic_partition
    return Produce(letter.topic, letter.key, letter.value, letter.replay_headers(), topic_partition)


def _answer(letter: DeadLetter, seen: Item | None, status: Literal["accepted", "unchanged"]) -> DeadLetterAnswer:
    mark = None if seen is None else from_item(Mark, seen)
    return DeadLetterAnswer(**view_of(letter, mark).model_dump(), status=status)


def _in_the_way(letter: DeadLetter, mark: Mark) -> str:
    if mark.state == "replaying":
        return f"dead letter {letter.id}: it is being replayed at this moment; look again in a minute"
    return f"dead letter {letter.id}: it was {mark.state} by {mark.actor or 'somebody'}; say --again (again=true) to act all the same"


def _revision(item: Item) -> int:
    revision = item["rev"]
    assert isinstance(revision, int)
    return revision


def _short(text: str | None) -> str | None:
    return None if text is None else text[:TEXT_CHARACTERS_MAX]

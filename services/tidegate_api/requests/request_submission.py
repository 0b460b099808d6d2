"""Puts requests on their topic and awaits the receipts of the shards' owners (DESIGN 7).

The order is the point: check, register the id, produce to the topic partition of the shard, wait. What this process
answers it has from the owner, never from a guess. A stop whose receipt does not come soon is handed to its shard (`overtaking.py`), if an
open transaction keeps nodes from reading it.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate_api.bus_clients import Bus, TopicNames, produced
from tidegate_api.cluster_map import ClusterMap, MapReader
from tidegate_api.http.problem_responses import ApiProblem, unless_taken
from tidegate_api.requests.idempotency import IdempotencyKeys
from tidegate_api.requests.overtaking import Overtaking, Sent, sent
from tidegate_api.requests.receipt_decoding import ReceiptNotUnderstood
from tidegate_api.requests.receipt_lookup import Sought, StoredAnswers
from tidegate_api.requests.receipt_poller import ReceiptPoller
from tidegate_api.requests.receipt_waiters import Expected, ReceiptWaiters, Waiter, answered
from tidegate_api.requests.shard_routing import shard_of_request, subject_of
from tidegate_api.thread_pools import Pools
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import JobCancel, MessageSend, Request, RunRequest, check_delivery
from tidegate_core.language.values.problems import InvalidInput, Problem
from tidegate_core.rows.effects import Outcome, Produce, Produced
from tidegate_ports.bus import Notices
from tidegate_ports.clock import Clock
from tidegate_telemetry.metrics import Metrics

FIRST_LOOK_S = 2.0
"""A receipt usually takes 50 ms; so long behind the last one of a submission the stored ones are looked for, in case the topic lost them
for us."""
LOOK_AGAIN_S = 2.0
PENDING_AFTER_S = 10.0
"""Then the client gets 202: a take-over takes about as long, and its own time-out is usually 30 s."""
BATCH_MAX = 1_000
"""Messages of one batch; all are under way at once, within the publisher's queue of 20,000."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long receipts are awaited; tests shorten it.

    Attributes:
        first_look_s: The topic has had no receipt of a submission for so long when its requests are looked for in the store.
        look_again_s: Between two looks.
        pending_after_s: Then its client is told what is known.
    """

    first_look_s: float = FIRST_LOOK_S
    look_again_s: float = LOOK_AGAIN_S
    pending_after_s: float = PENDING_AFTER_S


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request.

    Attributes:
        receipt: The owner's, or one that says `pending`.
        shard: Where its receipt lies.
        key: Of a message: its row is its receipt.
    """

    receipt: Receipt
    shard: int
    key: str | None

    @property
    def is_pending(self) -> bool:
        return self.receipt.status is ReceiptStatus.PENDING


@dataclass(frozen=True, slots=True)
class _Ready:
    """A request on its way out."""

    request: Request
    request_id: str
    shard: int
    value: bytes


class Submission:
    """Sends requests for all routes."""

    def __init__(
        self,
        bus: Bus,
        desk: ReceiptWaiters,
        answers: StoredAnswers,
        cluster: MapReader,
        pools: Pools,
        overtaking: Overtaking,
        clock: Clock,
        topics: TopicNames,
        metrics: Metrics,
        notices: Notices,
        timing: Timing,
    ) -> None:
        self._bus = bus
        self._desk = desk
        self._answers = answers
        self._cluster = cluster
        self._pools = pools
        self._overtaking = overtaking
        self._clock = clock
        self._topics = topics
        self._metrics = metrics
        self._notices = notices
        self._timing = timing
        self._reused = IdempotencyKeys()

    async def submit(self, request: Request) -> Answer:
        """Sends one request and waits.

        Raises:
            InvalidInput: It names an impossible time or shard.
            ApiProblem: 422 for an id that was used otherwise; 503 when the broker is down.
            StoreUnavailable: The map cannot be read.
        """
        cluster = await self._cluster.current()
        ready = self._prepared(request, cluster)
        self._reused.check(ready.request.namespace, ready.request_id, ready.value)
        (outcome,) = await self._send([ready], cluster)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def submit_all(self, requests: Sequence[Request]) -> list[Answer]:
        """Sends a batch, all at once; nothing is sent when one of them is unusable. The same errors, then.

        One that the broker did not take, while it took others, is pending, and its receipt says so: it may arrive all the same, and
        a batch that is sent again as a whole would make those anew that have no id of their own. So is one whose stored receipt
        makes this process fail, while the others have theirs.
        """
        cluster = await self._cluster.current()
        # On a thread: written out, they may have 16 MB.
        prepared = await self._pools.read(lambda: [self._prepared(request, cluster) for request in requests])
        for ready in prepared:
            self._reused.check(ready.request.namespace, ready.request_id, ready.value)
        outcomes = await self._send(prepared, cluster)
        failed = [each for each in outcomes if isinstance(each, Exception)]
        if len(failed) == len(outcomes):
            raise _none_taken(prepared, failed)
        return [self._answered(ready, outcome) for ready, outcome in zip(prepared, outcomes, strict=True)]

    def _prepared(self, request: Request, cluster: ClusterMap) -> _Ready:
        if isinstance(request, MessageSend):
            problems = check_delivery(request, appended_at=self._clock.now_ms())
            if problems:
                raise InvalidInput(problems)
        request_id = request.id or str(uuid.uuid4())
        # Acceptance of a message is told only to who asks for it.
        told = {"receipt": True} if isinstance(request, MessageSend) else {}
        known = request.model_copy(update={"id": request_id, **told})
        shard = shard_of_request(known, request_id, cluster.shards)
        return _Ready(known, request_id, shard, known.to_json())

    async def _send(self, prepared: Sequence[_Ready], cluster: ClusterMap) -> list[Answer | Exception]:
        """Sends requests together, and waits for the answers of all of them; of each returns what became of it.

        Together, because of a list of a thousand each of them would have a task, an acknowledgement that wakes the loop, and a timer.
        """
        started_s = time.monotonic()
        expected = [
            Expected(each.request_id, each.request.namespace, _named(each.request), _named_alone(each.request))
            for each in prepared
        ]
        with self._desk.expecting(expected) as waiters:
            fates = await self._produce(prepared, cluster)
            refusals = [
                unless_taken(fate, "request", ready.request_id) for ready, fate in zip(prepared, fates, strict=True)
            ]
            stops = {
                waiter: stop
                for waiter, ready, fate in zip(waiters, prepared, fates, strict=True)
                if isinstance(fate, Produced)
                and (stop := sent(ready.request, ready.request_id, ready.value, ready.shard, fate)) is not None
            }
            waiting = {
                waiter: Sought(ready.request, ready.request_id, ready.shard)
                for waiter, ready, refusal in zip(waiters, prepared, refusals, strict=True)
                if refusal is None
            }
            timing = self._timing
            looks = ReceiptPoller(
                waiting,
                self._answers,
                self._pools,
                heard_at_s=lambda: self._desk.heard_at_s,
                quiet_s=timing.first_look_s,
                pause_s=timing.look_again_s,
            )
            with looks:
                await self._until_answered(list(waiting), looks, stops, started_s)
        return [
            # Whose receipt came was taken, whatever became of its acknowledgement.
            refusal if refusal is not None and waiter.is_waiting else self._outcome(ready, waiter, started_s)
            for ready, waiter, refusal in zip(prepared, waiters, refusals, strict=True)
        ]

    def _outcome(self, ready: _Ready, waiter: Waiter, started_s: float) -> Answer | Exception:
        pending = self._pending(ready)
        try:
            receipt = waiter.receipt
        except ReceiptNotUnderstood as refusal:
            # The truth as far as it is known here: who asks again, at an API process of the nodes' release say, is told the rest.
            self._notices("receipt_not_understood", request_id=ready.request_id, problem=str(refusal))
            receipt, pending = None, pending.model_copy(update={"errors": (refusal.problem,)})
        except Exception as bug:  # noqa: BLE001 - whatever it is, who asked is told
            return bug
        status = ReceiptStatus.PENDING if receipt is None else receipt.status
        waited_s = (waiter.answered_at_s or time.monotonic()) - started_s
        self._metrics.observe("tidegate_api_receipt_seconds", waited_s, status=status.value)
        return _answer(ready, receipt or pending)

    async def _produce(self, prepared: Sequence[_Ready], cluster: ClusterMap) -> Sequence[Outcome]:
        """Returns the fate of each, once that of all is known."""
        orders = [
            Produce(
                self._topics.requests,
                subject_of(ready.request).encode(),
                ready.value,
                topic_partition=cluster.topic_partition_of(ready.shard),
            )
            for ready in prepared
        ]
        return await produced(self._bus.publisher, orders)

    async def _until_answered(
        self, waiters: Sequence[Waiter], looks: ReceiptPoller, stops: Mapping[Waiter, Sent], started_s: float
    ) -> None:
        """By receipts from the topic, else from the store, else until patience is at its end, whatever is under way by then.

        Patience counts from the beginning, because those of a list that the broker took at once have waited since; but what it took late
        has the time of a first look.
        """
        first_look_s = min(self._timing.first_look_s, self._timing.pending_after_s)
        taken_s = time.monotonic()
        deadline_s = max(started_s + self._timing.pending_after_s, taken_s + first_look_s)
        if not await answered(waiters, max(0.0, started_s + first_look_s - taken_s)):
            looks.begin()
            handing_over = asyncio.create_task(self._hand_over(stops))
            try:
                await answered(waiters, max(0.0, deadline_s - time.monotonic()))
            finally:
                handing_over.cancel()

    async def _hand_over(self, stops: Mapping[Waiter, Sent]) -> None:
        """An open transaction may keep nodes from reading them; tries until brokers and store have answered."""
        try:
            while left := [stop for waiter, stop in stops.items() if waiter.is_waiting]:
                if await self._overtaking.hand_over(left):
                    return
                await asyncio.sleep(self._timing.look_again_s)
        except Exception as bug:  # noqa: BLE001 - the requests are on their topic, and are answered when they are read
            self._notices("api_bug", problem=repr(bug), exc_info=bug)

    def _answered(self, ready: _Ready, outcome: Answer | Exception) -> Answer:
        if isinstance(outcome, Answer):
            return outcome
        problem = "its receipt could not be read, which is a mistake of this server"
        if isinstance(outcome, ApiProblem):
            problem = outcome.detail
        else:
            self._notices("api_bug", request_id=ready.request_id, problem=repr(outcome))
        error = Problem("", problem, f"send it again with the id {ready.request_id}")
        return _answer(ready, self._pending(ready).model_copy(update={"errors": (error,)}))

    def _pending(self, ready: _Ready) -> Receipt:
        # Constructed: the model itself reads texts, and these values are ours.
        return Receipt.model_construct(
            request_id=ready.request_id,
            status=ReceiptStatus.PENDING,
            namespace=ready.request.namespace,
            name=_named(ready.request),
            at=self._clock.now_ms(),
        )


def _answer(ready: _Ready, receipt: Receipt) -> Answer:
    return Answer(receipt, ready.shard, ready.request.key if isinstance(ready.request, MessageSend) else None)


def _named(request: Request) -> str | None:
    """Returns what a request names within its namespace, as its receipt says it."""
    return getattr(request, "name", None) or getattr(request, "key", None)


def _named_alone(request: Request) -> str | None:
    """Returns the run or job that a request names without saying of which namespace it is."""
    match request:
        case RunRequest(namespace=None, run_id=named) | JobCancel(namespace=None, job_id=named):
            return named
        case _:
            return None


def check_batch_size(count: int) -> None:
    """Raises InvalidInput for a batch that is empty or too long."""
    if not 1 <= count <= BATCH_MAX:
        raise InvalidInput([Problem("", f"the list has {count} items", f"send 1 to {BATCH_MAX} at once")])


def _none_taken(prepared: Sequence[_Ready], failed: Sequence[Exception]) -> Exception:
    """Returns what is to be said of requests of which none was acknowledged: of several all ids, under which they can be repeated safely."""
    first = failed[0]
    problems = [each for each in failed if isinstance(each, ApiProblem)]
    if not isinstance(first, ApiProblem) or len(problems) < len(failed) or len(failed) == 1:
        return first
    named = zip(prepared, problems, strict=True)
    return ApiProblem(
        first.status,
        f"the broker acknowledged none of {len(failed)} requests, and may have them all the same; repeat them with the ids that are named here",
        errors=[
            Problem(f"[{number}]", each.detail, f"id: {ready.request_id}") for number, (ready, each) in enumerate(named)
        ],
        headers=first.headers,
    )

"""Produces requests to their topic and awaits the receipts of the shards' owners. Routes call it.

The order matters: check the request, register its id, produce it to the shard's topic partition, wait. Every answer comes from the owner;
this process never guesses it. If the receipt of a stop does not arrive soon, and an open Kafka transaction keeps nodes from reading the stop,
it is handed to its shard (`overtaking.py`).
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

FIRST_POLL_S = 2.0
"""Seconds after a submission's last receipt until stored receipts are polled, because this process may have missed receipts on the topic.
A receipt usually takes 50 ms."""
POLL_AGAIN_S = 2.0
PENDING_AFTER_S = 10.0
"""Seconds until the client gets 202. A take-over takes about as long; the client's timeout is usually 30 s."""
BATCH_MAX = 1_000
"""Messages of one batch. All are produced at once, within the publisher's queue of 20,000."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of the wait for receipts; tests shorten them.

    Attributes:
        first_poll_s: Seconds without a receipt of the submission before its first poll of the store.
        poll_again_s: Seconds between two polls.
        pending_after_s: Seconds until open requests are answered as pending.
    """

    first_poll_s: float = FIRST_POLL_S
    poll_again_s: float = POLL_AGAIN_S
    pending_after_s: float = PENDING_AFTER_S


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a request.

    Attributes:
        receipt: Receipt of the owner, or a pending one.
        shard: Shard of the stored receipt.
        key: Key of a message; its row serves as receipt.
    """

    receipt: Receipt
    shard: int
    key: str | None

    @property
    def is_pending(self) -> bool:
        return self.receipt.status is ReceiptStatus.PENDING


@dataclass(frozen=True, slots=True)
class _Ready:
    """A request that is ready to be produced."""

    request: Request
    request_id: str
    shard: int
    value: bytes


class Submission:
    """Submits requests for all routes."""

    def __init__(
        self,
        bus: Bus,
        receipt_waiters: ReceiptWaiters,
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
        self._receipt_waiters = receipt_waiters
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
        """Sends one request and awaits its answer.

        Raises:
            InvalidInput: The request has an impossible time or shard.
            ApiProblem: 422 for an id that was used for another request; 503 if the broker is down.
            StoreUnavailable: The partition map cannot be read.
        """
        cluster = await self._cluster.current()
        ready = self._prepared(request, cluster)
        self._reused.check(ready.request.namespace, ready.request_id, ready.value)
        (outcome,) = await self._send([ready], cluster)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def submit_all(self, requests: Sequence[Request]) -> list[Answer]:
        """Sends a batch at once. If one request is unusable, nothing is sent; the errors are those of `submit`.

        If the broker acknowledges only some requests, the others are answered as pending, with an error in the receipt.
        They may still arrive, and a repeat of the whole batch would create requests without their own id a second time.
        A request is also answered as pending if its stored receipt makes this process fail.
        """
        cluster = await self._cluster.current()
        # On a thread, because their JSON may have 16 MB.
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
        # An owner sends the receipt of an accepted message only on request.
        extra = {"receipt": True} if isinstance(request, MessageSend) else {}
        known = request.model_copy(update={"id": request_id, **extra})
        shard = shard_of_request(known, request_id, cluster.shards)
        return _Ready(known, request_id, shard, known.to_json())

    async def _send(self, prepared: Sequence[_Ready], cluster: ClusterMap) -> list[Answer | Exception]:
        """Sends requests together and waits for all answers. Returns the answer or the exception of each.

        They are sent together because a thousand single ones would need a thousand tasks, timers, and wake-ups of the event loop.
        """
        started_s = time.monotonic()
        expected = [
            Expected(each.request_id, each.request.namespace, _named(each.request), _named_alone(each.request))
            for each in prepared
        ]
        with self._receipt_waiters.expecting(expected) as waiters:
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
            poller = ReceiptPoller(
                waiting,
                self._answers,
                self._pools,
                received_at_s=lambda: self._receipt_waiters.received_at_s,
                quiet_s=timing.first_poll_s,
                pause_s=timing.poll_again_s,
            )
            with poller:
                await self._until_answered(list(waiting), poller, stops, started_s)
        return [
            # A receipt proves that the broker stored the request, even without an acknowledgement.
            refusal if refusal is not None and waiter.is_waiting else self._outcome(ready, waiter, started_s)
            for ready, waiter, refusal in zip(prepared, waiters, refusals, strict=True)
        ]

    def _outcome(self, ready: _Ready, waiter: Waiter, started_s: float) -> Answer | Exception:
        pending = self._pending(ready)
        try:
            receipt = waiter.receipt
        except ReceiptNotUnderstood as refusal:
            # Answered as pending with the problem; an API process of the nodes' release can read the receipt.
            self._notices("receipt_not_understood", request_id=ready.request_id, problem=str(refusal))
            receipt, pending = None, pending.model_copy(update={"errors": (refusal.problem,)})
        except Exception as bug:  # noqa: BLE001 - any error goes to the client
            return bug
        status = ReceiptStatus.PENDING if receipt is None else receipt.status
        waited_s = (waiter.answered_at_s or time.monotonic()) - started_s
        self._metrics.observe("tidegate_api_receipt_seconds", waited_s, status=status.value)
        return _answer(ready, receipt or pending)

    async def _produce(self, prepared: Sequence[_Ready], cluster: ClusterMap) -> Sequence[Outcome]:
        """Produces the requests. Returns the outcome of each once all outcomes are known."""
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
        self, waiters: Sequence[Waiter], poller: ReceiptPoller, stops: Mapping[Waiter, Sent], started_s: float
    ) -> None:
        """Waits until all have a receipt from the topic or the store, or until the timeout.

        The timeout counts from the start of the submission, because the first requests of a batch have waited since
        then. But a request that the broker acknowledged late has at least the time until the first poll.
        """
        first_poll_s = min(self._timing.first_poll_s, self._timing.pending_after_s)
        taken_s = time.monotonic()
        deadline_s = max(started_s + self._timing.pending_after_s, taken_s + first_poll_s)
        if not await answered(waiters, max(0.0, started_s + first_poll_s - taken_s)):
            poller.begin()
            handing_over = asyncio.create_task(self._hand_over(stops))
            try:
                await answered(waiters, max(0.0, deadline_s - time.monotonic()))
            finally:
                handing_over.cancel()

    async def _hand_over(self, stops: Mapping[Waiter, Sent]) -> None:
        """Hands over stops that nodes cannot read because of an open transaction. It retries until brokers and store have answered."""
        try:
            while left := [stop for waiter, stop in stops.items() if waiter.is_waiting]:
                if await self._overtaking.hand_over(left):
                    return
                await asyncio.sleep(self._timing.poll_again_s)
        except Exception as bug:  # noqa: BLE001 - the requests are on their topic and are answered when nodes read them
            self._notices("api_bug", problem=repr(bug), exc_info=bug)

    def _answered(self, ready: _Ready, outcome: Answer | Exception) -> Answer:
        if isinstance(outcome, Answer):
            return outcome
        problem = "its receipt could not be read because of an error of this server"
        if isinstance(outcome, ApiProblem):
            problem = outcome.detail
        else:
            self._notices("api_bug", request_id=ready.request_id, problem=repr(outcome))
        error = Problem("", problem, f"repeat it with the id {ready.request_id}")
        return _answer(ready, self._pending(ready).model_copy(update={"errors": (error,)}))

    def _pending(self, ready: _Ready) -> Receipt:
        # Without validation: these values do not come from a client.
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
    """Returns the name or key in a request, as in its receipt."""
    return getattr(request, "name", None) or getattr(request, "key", None)


def _named_alone(request: Request) -> str | None:
    """Returns the run or job id of a request without a namespace."""
    match request:
        case RunRequest(namespace=None, run_id=named) | JobCancel(namespace=None, job_id=named):
            return named
        case _:
            return None


def check_batch_size(count: int) -> None:
    """Raises InvalidInput for an empty or too long batch."""
    if not 1 <= count <= BATCH_MAX:
        raise InvalidInput([Problem("", f"the list has {count} items", f"send 1 to {BATCH_MAX} at once")])


def _none_taken(prepared: Sequence[_Ready], failed: Sequence[Exception]) -> Exception:
    """Returns the error for requests of which none was acknowledged. For a batch it names all ids, for a safe repeat."""
    first = failed[0]
    problems = [each for each in failed if isinstance(each, ApiProblem)]
    if not isinstance(first, ApiProblem) or len(problems) < len(failed) or len(failed) == 1:
        return first
    named = zip(prepared, problems, strict=True)
    return ApiProblem(
        first.status,
        f"the broker acknowledged none of {len(failed)} requests, but may have stored them; repeat them with the ids in `errors`",
        errors=[
            Problem(f"[{number}]", each.detail, f"id: {ready.request_id}") for number, (ready, each) in enumerate(named)
        ],
        headers=first.headers,
    )

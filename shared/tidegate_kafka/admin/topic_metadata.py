"""Facts about topics that a node needs while it works: ids, counts, begin and end offsets, the cluster's id.

Asynchronous and off the polling threads: the admin client answers on its own threads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # re-exported without saying so

from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_kafka.clients.client_config import admin_config
from tidegate_kafka.clients.connectivity import close_in_background
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_ports.bus import BeginOffsets, Topic

LOW_64_BITS = (1 << 64) - 1
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the client forgot to annotate it
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # the client forgot to annotate it
PASSING = frozenset(
    {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART}
)
OUT_OF_REACH = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED})
MISSING_S = 2.0
"""Time for which a topic must be reported as missing. An activation waits for it, so it is short. A broker that has
just started knows all topics by then."""
MISSING_AGAIN_S = 0.25
SILENT_S_MAX = 10.0
"""Silence of the client after which a new one replaces it. A client can lose the brokers for good (`connectivity.py`),
and this one holds nothing that would be lost."""
PASSING_S = 0.05
"""Gap between two queries during a leader change, which takes milliseconds."""


def hex_id(topic_id: Uuid) -> str:
    """Returns a topic's id as 32 hex digits. The client's own text is base64 with `/`, which separates the parts of our
    keys.
    """
    # The methods exist, but the client's type stub lacks them. Both halves are signed.
    most: int = topic_id.get_most_significant_bits()  # type: ignore[attr-defined]
    least: int = topic_id.get_least_significant_bits()  # type: ignore[attr-defined]
    return f"{most & LOW_64_BITS:016x}{least & LOW_64_BITS:016x}"


class TopicFacts:
    """Implements the port `Topics`."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._patience_s = settings.answer_ms_max / 1000
        self._admin = AdminClient(admin_config(settings))
        self._silent_since: float | None = None

    async def cluster_id(self) -> str | Unavailable:
        try:
            described = await self._answer(self._admin.describe_cluster(request_timeout=self._patience_s))
        except (KafkaException, TimeoutError) as failure:
            return Unavailable(f"broker, cluster id: {failure}")
        return str(described.cluster_id)

    async def describe(self, names: Sequence[str]) -> Mapping[str, Topic] | Unavailable:
        """Returns those of the named topics that exist."""
        asked = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=self._patience_s)
        found = {}
        for name, future in asked.items():
            try:
                described = await self._answer(future)
            except KafkaException as failure:
                if failure.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    return Unavailable(f"broker, topic {name}: {failure.args[0].str()}")
            except TimeoutError:
                return Unavailable(f"broker, topic {name}: no answer within {self._patience_s:g} s")
            else:
                found[name] = Topic(name, hex_id(described.topic_id), len(described.partitions))
        return found

    async def end_offsets(self, topic: str, *, may_be_missing: bool = False) -> EndOffsets | Unavailable:
        """Returns the next offset of each topic partition, open transactions included. The number of topic partitions
        is queried now.
        """
        found = await self._offsets(topic, "end", LATEST)
        if may_be_missing and isinstance(found, Unavailable) and await self._is_out_of_reach(topic):
            return EndOffsets({})
        return found if isinstance(found, Unavailable) else EndOffsets(found)

    async def stable_ends(self, topic: str) -> EndOffsets | Unavailable:
        """Returns the last stable offset of each topic partition: from there on, records belong to an open transaction
        or follow one.
        """
        found = await self._offsets(topic, "stable end", LATEST, IsolationLevel.READ_COMMITTED)
        return found if isinstance(found, Unavailable) else EndOffsets(found)

    async def begin_offsets(self, topic: str) -> BeginOffsets | Unavailable:
        """Returns the first offset that each topic partition still holds (its low watermark)."""
        found = await self._offsets(topic, "begin", EARLIEST)
        return found if isinstance(found, Unavailable) else BeginOffsets(found)

    async def offsets_since(self, topic: str, at_ms: int) -> BeginOffsets | Unavailable:
        """Returns for each topic partition the first record appended at or after the instant, or else its end
        offset.
        """
        ends = await self._offsets(topic, "end", LATEST)
        # The end is read first, so that the result is never after a record that was appended during the query.
        found = await self._offsets(topic, "begin", OffsetSpec.for_timestamp(at_ms))
        if isinstance(ends, Unavailable) or isinstance(found, Unavailable):
            return ends if isinstance(ends, Unavailable) else Unavailable(f"broker, begin offsets of {topic}")
        return BeginOffsets({where: offset if offset >= 0 else ends.get(where, 0) for where, offset in found.items()})

    async def _is_out_of_reach(self, topic: str) -> bool:
        """Whether the brokers report, for `MISSING_S`, that the topic is missing or not readable for this process."""
        until = time.monotonic() + MISSING_S
        while True:
            future = self._admin.describe_topics(TopicCollection([topic]), request_timeout=self._patience_s)[topic]
            try:
                await self._answer(future)
            except KafkaException as failure:
                if failure.args[0].code() not in OUT_OF_REACH:
                    return False
            except TimeoutError:
                return False
            else:
                return False
            if time.monotonic() > until:
                return True
            # A topic may be unknown for a moment after its creation or after a broker's start.
            await asyncio.sleep(MISSING_AGAIN_S)

    async def _offsets(
        self, topic: str, which: str, spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[str, int] | Unavailable:
        until = time.monotonic() + self._patience_s
        while True:
            try:
                return await self._offsets_once(topic, spec, isolation)
            except TimeoutError:
                return Unavailable(f"broker, {which} offsets of {topic}: no answer within {self._patience_s:g} s")
            except KafkaException as failure:
                error = failure.args[0]
                # A topic partition between two leaders, or a topic just created, answers a moment later.
                if error.code() not in PASSING or time.monotonic() > until:
                    return Unavailable(f"broker, {which} offsets of {topic}: {error.str()}")
            await asyncio.sleep(PASSING_S)

    async def _offsets_once(
        self, topic: str, spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[str, int] | Unavailable:
        described = await self.describe([topic])
        if isinstance(described, Unavailable):
            return described
        if topic not in described:
            return Unavailable(f"topic {topic} does not exist")
        wanted = {TopicPartition(topic, number): spec for number in range(described[topic].topic_partitions)}
        asked = self._admin.list_offsets(wanted, isolation_level=isolation, request_timeout=self._patience_s)
        answers = {where.partition: await self._answer(future) for where, future in asked.items()}
        return {f"{described[topic].id}/{number}": answer.offset for number, answer in answers.items()}

    async def _answer(self, future: Future[Any]) -> Any:
        # A second longer than the client's own time-out, so that the client's reason is reported and not only silence.
        # Not `wait_for`: until Python 3.12 it swallows a cancellation that arrives together with the answer.
        try:
            async with asyncio.timeout(self._patience_s + 1):
                answer = await asyncio.wrap_future(future)
        except KafkaException as failure:
            if failure.args[0].code() >= 0:
                self._silent_since = None  # Codes of brokers are 0 or more; those of the client itself are below 0.
            else:
                self._renew_if_silent()
            raise
        except TimeoutError:
            self._renew_if_silent()
            raise
        self._silent_since = None
        return answer

    def _renew_if_silent(self) -> None:
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        elif now > self._silent_since + SILENT_S_MAX:
            self._silent_since = now
            former, self._admin = [self._admin], AdminClient(admin_config(self._settings))
            close_in_background(former)

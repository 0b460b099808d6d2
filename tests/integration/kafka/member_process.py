"""A member in a process of its own, for tests that suspend it: says each event as a line of JSON, ends with its input."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence

from tidegate_core.rows.effects import Unavailable
from tidegate_kafka.admin.topic_metadata import TopicFacts
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.group.membership import KafkaMembership
from tidegate_ports.bus import Drain, MembershipListener, Record
from tidegate_ports.clock import SystemClock

GAP_MS = 2_000
"""A loop that stood still for so long was suspended."""


class Speaker(MembershipListener):
    member: KafkaMembership

    def assigned(self, topic_partitions: Sequence[int]) -> None:
        for number in topic_partitions:
            self.member.seek_and_resume(number, 0)
        self.say("assigned")

    def revoked(self, topic_partitions: Sequence[int], drain: Drain) -> None:
        drain.done()
        self.say("revoked")

    def lost(self, topic_partitions: Sequence[int]) -> None:
        self.say("lost")

    def records(self, topic_partition: int, records: Sequence[Record]) -> None:
        self.member.taken(topic_partition, len(records))

    def position_gone(self, topic_partition: int, offset: int) -> None:
        self.say("position_gone")

    def say(self, event: str) -> None:
        sys.stdout.write(json.dumps({"event": event, "guard_holds": self.member.guard_holds()}) + "\n")
        sys.stdout.flush()


async def watch(speaker: Speaker, clock: SystemClock) -> None:
    """Says when the guard first holds, and what it says right after a suspension."""
    said = False
    before = clock.monotonic_ms()
    while True:
        if not said and speaker.member.guard_holds():
            said = True
            speaker.say("guarded")
        await asyncio.sleep(0.005)
        now = clock.monotonic_ms()
        if now - before > GAP_MS:
            speaker.say("woken")
        before = now


async def main(settings: KafkaSettings) -> None:
    described = await TopicFacts(settings).describe([settings.topic("requests")])
    assert not isinstance(described, Unavailable)
    speaker, clock = Speaker(), SystemClock()
    speaker.member = KafkaMembership(
        settings,
        described[settings.topic("requests")],
        speaker,
        loop=asyncio.get_running_loop(),
        clock=clock,
        notices=lambda event, **fields: None,
    )
    speaker.member.start()
    watching = asyncio.create_task(watch(speaker, clock))
    await asyncio.to_thread(sys.stdin.read)
    watching.cancel()
    await speaker.member.stop()


if __name__ == "__main__":
    asyncio.run(main(KafkaSettings.model_validate_json(sys.argv[1])))

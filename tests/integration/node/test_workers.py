"""`tidegate node --workers`: real node processes of one command share the work, and end with it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.integration.node.conftest import Cluster


def test_given_two_workers_then_they_share_the_shards_one_that_dies_is_back_and_a_signal_ends_both(
    cluster: Cluster,
) -> None:
    workers = cluster.start_workers(2)

    def lives() -> dict[str, int]:
        """Names of those that have started and ever served, with their last process's id."""
        serving = {event["node"] for event in workers.events("serving")}
        return {
            str(each["node"]): int(each["pid"]) for each in workers.events("node_starting") if each["node"] in serving
        }

    cluster.until(lambda: len(lives()) == 2, "both serve")
    first = lives()
    name = min(first)

    def serves_in_second_life() -> bool:
        """A share of the life before may still be told of between any look and the kill."""
        told = [event["event"] for event in workers.events("node_starting", "serving") if event["node"] == name]
        return told.count("node_starting") == 2 and told[-1] == "serving"

    os.kill(first[name], signal.SIGKILL)
    cluster.until(lambda: workers.events("worker_ended"), "it is told")
    cluster.until(serves_in_second_life, "it has started again and is given a share")
    assert workers.end(signal.SIGTERM) == 0
    assert [event["status"] for event in workers.events("worker_ended")] == [128 + signal.SIGKILL]
    assert {event["node"] for event in workers.events("node_stopped")} == set(first)

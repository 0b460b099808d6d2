"""An operator who looks after runs that are lost: those whose programs are gone are released, in the worlds of the trap."""

from __future__ import annotations

from typing import Final

from tests.simulation.users.requests import Asked, Requests
from tests.simulation.world.cluster import Cluster

TRAP: Final = "lost_hosts"
LOOKS_MS: Final = 3_000
"""Between two looks at what is lost."""


class Operator:
    """Knows what has become of each host, and says it of each lost run until that is accepted."""

    def __init__(self, cluster: Cluster, requests: Requests) -> None:
        self._cluster = cluster
        self._requests = requests
        self._said: set[tuple[str, int]] = set()

    def begin(self) -> None:
        self._cluster.timeline.after(LOOKS_MS, self._look)

    def _look(self) -> None:
        for item in self._cluster.store.memory.stored():
            if str(item["sk"]).startswith("R#") and item["state"] == "lost" and item.get("ended_at") is None:
                self._release(str(item["id"]), int(str(item["attempt"])))
        self.begin()

    def _release(self, run_id: str, attempt: int) -> None:
        if (run_id, attempt) in self._said or not self._cluster.launcher.is_gone(run_id, attempt):
            return
        self._said.add((run_id, attempt))
        document = {"type": "run.release", "run_id": run_id, "actor": "operator", "reason": "its host is gone"}

        def answered(asked: Asked) -> None:
            if asked.status == "rejected":  # It was not lost then, by the word of a host that came back.
                self._said.discard((run_id, attempt))

        self._requests.ask(document, answered)

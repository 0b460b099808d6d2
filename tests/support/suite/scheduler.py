"""Deals tests out to workers so that computation fills the time in which clusters are waited for.

A stack test starts servers and nodes, and mostly waits. A computing test needs a core for as long as it runs. So most workers
take stack tests, a file at a time, at the usual priority; the others take computing tests, one at a time, at a low priority.
Each kind collects its own folders only: to collect ten thousand tests takes half a minute of CPU, and stack tests need not wait
for that.

`tests/conftest.py` hands this to xdist for `--dist loadgroup`. xdist's own schedulers know one kind of worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

import pytest
from xdist.workermanage import (  # type: ignore[import-untyped]  # has no types
    WorkerController,
    parse_tx_spec_config,
)

STACK_FOLDERS: Final = ("conformance", "integration", "cluster", "chaos", "benchmarks")
COMPUTING_NICENESS: Final = 15
"""The scheduler of Linux gives such a process about a thirtieth of what one at the usual priority gets."""
COMPUTING_WORKERS_MAX: Final = 2
_ENOUGH: Final = 2
"""Tests at a worker. It begins one only when it knows the next one, because that decides which fixtures end."""


def is_stack_folder(name: str) -> bool:
    """Whether tests in this folder of `tests/` start servers."""
    return name in STACK_FOLDERS


def takes(worker: str, workers: int) -> frozenset[bool]:
    """Returns what a worker takes: stack tests (True), computing tests (False), or both where it is the only one.

    Args:
        worker: Its name, `gw0` and so on. The last ones compute, at most half of all.
        workers: How many there are.
    """
    if workers == 1:
        return frozenset({True, False})
    number = int(worker.removeprefix("gw"))
    return frozenset({number < workers - min(COMPUTING_WORKERS_MAX, workers // 2)})


class SuiteScheduling:
    """Deals out stack tests by file, and computing tests one by one or by the mark `xdist_group`.

    Attributes:
        collected: Tests of all workers together; complete once each worker has told what it collected.
    """

    def __init__(self, config: pytest.Config, alone: tuple[str, ...]) -> None:
        """Makes a scheduler.

        Args:
            config: Tells how many workers there are.
            alone: Files whose clusters keep a core busy. One worker takes them one after the other.
        """
        self._workers = len(parse_tx_spec_config(config))
        self._alone = alone
        self._nodes: list[WorkerController] = []
        self._index: dict[WorkerController, dict[str, int]] = {}
        self._names: dict[WorkerController, Sequence[str]] = {}
        self._at_worker: dict[WorkerController, list[str]] = {}
        self._queues: dict[frozenset[bool], deque[list[str]]] = {}
        self.collected = 0

    @property
    def nodes(self) -> list[WorkerController]:
        return list(self._nodes)

    @property
    def collection_is_completed(self) -> bool:
        """Whether somebody can begin: xdist calls `schedule` then."""
        return bool(self._index)

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is left to deal out: xdist then tells all workers to end what they have."""
        all_collected = len(self._index) >= self._workers
        return all_collected and not any(self._queues.values()) and all(map(self._is_nearly_done, self._nodes))

    @property
    def has_pending(self) -> bool:
        return any(self._queues.values()) or any(self._at_worker.values())

    def add_node(self, node: WorkerController) -> None:
        self._nodes.append(node)
        self._at_worker[node] = []

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        self._names[node] = collection
        self._index[node] = {name: number for number, name in enumerate(collection)}
        kinds = self._kinds(node)
        if kinds not in self._queues:
            self._queues[kinds] = deque(self._units(collection))
            self.collected += len(collection)

    def schedule(self) -> None:
        for node in self._index:
            self._fill(node)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        self._at_worker[node].remove(self._names[node][item_index])
        self._fill(node)

    def mark_test_pending(self, item: str) -> None:
        raise NotImplementedError("xdist asks for this in other modes only")

    def remove_pending_tests_from_node(self, node: WorkerController, indices: Sequence[int]) -> None:
        raise NotImplementedError("xdist asks for this in other modes only")

    def remove_node(self, node: WorkerController) -> str | None:
        """Returns the test in which a worker died, if it did; what it had not begun goes to another worker of its kind."""
        self._nodes.remove(node)
        left = self._at_worker.pop(node)
        if not left:
            return None
        if left[1:]:
            self._queues[self._kinds(node)].appendleft(left[1:])
        self._index.pop(node)
        self.schedule()
        return left[0]

    def _kinds(self, node: WorkerController) -> frozenset[bool]:
        return takes(node.gateway.id, self._workers)

    def _is_nearly_done(self, node: WorkerController) -> bool:
        return len(self._at_worker[node]) < _ENOUGH

    def _fill(self, node: WorkerController) -> None:
        """Gives a worker its next tests, or lets it end after those that it has."""
        queue = self._queues[self._kinds(node)]
        while queue and self._is_nearly_done(node) and not node.shutting_down:
            unit = queue.popleft()
            self._at_worker[node] += unit
            node.send_runtest_some([self._index[node][name] for name in unit])
        if not queue and not node.shutting_down:
            node.shutdown()

    def _units(self, collection: Iterable[str]) -> Iterable[list[str]]:
        units: dict[str, list[str]] = {}
        for name in collection:
            units.setdefault(self._unit_of(name), []).append(name)
        return units.values()

    def _unit_of(self, name: str) -> str:
        file, _, test = name.partition("::")
        place = file.removeprefix("tests/")
        if place in self._alone:
            return "alone"
        if is_stack_folder(place.partition("/")[0]):
            return file
        # The mark `xdist_group` stands behind the last `@`; a parameter may hold one too.
        return test.rpartition("@")[2] if "@" in test.rpartition("]")[2] else name

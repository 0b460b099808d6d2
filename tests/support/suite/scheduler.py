"""Deals tests out to workers so that computation fills the time in which clusters are waited for.

A stack test starts servers and nodes, and mostly waits. A computing test needs a core for as long as it runs. So most workers
take stack tests, a file at a time, at the usual priority; the others take computing tests at a low priority. A worker for stack
tests helps with the computing once no stack test is left. The reverse does not hold: servers and nodes that start at a low
priority would miss their deadlines.

`tests/conftest.py` hands this to xdist for `--dist loadgroup`.
"""

from __future__ import annotations

from typing import Final

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]  # has no types
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # likewise
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]  # likewise

STACK_FOLDERS: Final = ("conformance", "integration", "cluster", "chaos", "benchmarks")
COMPUTING_NICENESS: Final = 15
"""The scheduler of Linux gives such a process about a thirtieth of what one at the usual priority gets."""
COMPUTING_WORKERS_MAX: Final = 2
_TOGETHER: Final = "together"


def is_stack_test(path: str) -> bool:
    """Whether a test file, named from the root of the repository, starts servers."""
    return path.startswith(tuple(f"tests/{folder}/" for folder in STACK_FOLDERS))


def is_for_computing(worker: str, workers: int) -> bool:
    """Whether a worker takes computing tests only: the last ones, at most half of them all.

    Args:
        worker: xdist's name of it, `gw0` and so on.
        workers: How many there are.
    """
    return int(worker.removeprefix("gw")) >= workers - min(COMPUTING_WORKERS_MAX, workers // 2)


class SuiteScheduling(LoadScopeScheduling):  # type: ignore[misc]  # its base has no types, so it is Any
    """Deals out stack tests by file and computing tests one by one.

    Attributes:
        alone: Files whose clusters keep a core busy. One worker takes them one after the other.
    """

    def __init__(self, config: pytest.Config, log: Producer, alone: tuple[str, ...]) -> None:
        super().__init__(config, log)
        self.alone = alone
        self._index: dict[str, int] = {}

    def _split_scope(self, nodeid: str) -> str:
        file, _, name = nodeid.partition("::")
        if file.removeprefix("tests/") in self.alone:
            return _TOGETHER
        if is_stack_test(file):
            return file
        # The mark `xdist_group` stands behind the last `@`; a parameter may hold one too.
        return nodeid.rpartition("@")[2] if "@" in name.rpartition("]")[2] else nodeid

    def _reschedule(self, node: WorkerController) -> None:
        if node.shutting_down or self._pending_of(self.assigned_work[node]) > 1:
            return
        if self._next_for(node) is None:
            node.shutdown()
        else:
            self._assign_work_unit(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not self._index:
            # Every worker has the same list. xdist searches it for each test, which takes seconds for ten thousand.
            self._index = {nodeid: number for number, nodeid in enumerate(self.registered_collections[node])}
            self._put_stacks_first()
        scope = self._next_for(node)
        if scope is None:
            return
        unit = self.workqueue.pop(scope)
        self.assigned_work.setdefault(node, {})[scope] = unit
        node.send_runtest_some([self._index[nodeid] for nodeid, is_done in unit.items() if not is_done])

    def _put_stacks_first(self) -> None:
        """Orders the queue so that each kind of worker finds its next unit at one end: computing units go in backwards."""
        stacks = [scope for scope in self.workqueue if _is_stack_unit(scope)]
        computing = [scope for scope in self.workqueue if not _is_stack_unit(scope)]
        for scope in (*stacks, *reversed(computing)):
            self.workqueue.move_to_end(scope)

    def _next_for(self, node: WorkerController) -> str | None:
        """Returns the unit that a worker takes next; a worker for computing gets no other."""
        if not self.workqueue:
            return None
        if self.numnodes > 1 and is_for_computing(node.gateway.id, self.numnodes):
            last = str(next(reversed(self.workqueue)))
            return None if _is_stack_unit(last) else last
        return str(next(iter(self.workqueue)))


def _is_stack_unit(scope: str) -> bool:
    return scope == _TOGETHER or (is_stack_test(scope) and "::" not in scope)

"""Runs an actor's operations: generators that yield effects and resume with their results.

An operation reads as a straight line (`verdict = yield from ask(Commit(...))`) but does no I/O: between two yields it
is a pure function of its results. It yields one effect, a tuple of effects (whose results come together, in order),
or a `Signal` to wait for. Everything runs in the order in which results arrive; there is no other source of order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from tidegate_core.rows.effects import Effect, EffectRequest, EffectResult, Result

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Signal:
    """A signal that operations can wait for. `raise_` wakes them all; each must check again what it waited for."""

    name: str
    raised: bool = False
    waiting: list[Operation[Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    """An operation that waits for results of effects."""

    operation: Operation[Any]
    results: list[Result | None]
    open: int
    single: bool


Yielded: TypeAlias = "Effect | tuple[Effect, ...] | Signal"
Operation: TypeAlias = Generator[Yielded, Any, T]


class Operations:
    """All operations of one actor.

    `asked` collects the effects for the driver; the owner of this object hands them out after each step.
    """

    def __init__(self) -> None:
        self._next_token = 1
        self._pending: dict[int, tuple[_Pending, int]] = {}
        self._ready: deque[tuple[Operation[Any], Any]] = deque()
        self._running = False
        self._live: dict[Operation[Any], None] = {}
        self._resumed: Operation[Any] | None = None
        self.asked: list[EffectRequest] = []

    def start(self, operation: Operation[Any]) -> None:
        """Starts an operation. It runs at once, or as soon as the operation that starts it yields."""
        self._live[operation] = None
        self._ready.append((operation, None))
        self._run()

    def tell(self, effect: Effect) -> None:
        """Emits an effect without a result."""
        self.asked.append(EffectRequest(0, effect))

    def answer(self, answer: EffectResult) -> None:
        """Takes a result; one that no operation awaits is dropped."""
        awaited = self._pending.pop(answer.token, None)
        if awaited is None:
            return
        pending, index = awaited
        pending.results[index] = answer.result
        pending.open -= 1
        if pending.open == 0:
            value = pending.results[0] if pending.single else tuple(pending.results)
            self._ready.append((pending.operation, value))
            self._run()

    def awaits(self, token: int) -> bool:
        """Returns whether an operation still awaits this result."""
        return token in self._pending

    def raise_(self, signal: Signal) -> None:
        """Wakes the operations that wait for the signal. If none does, the next one to wait continues at once."""
        if not signal.waiting:
            signal.raised = True
            return
        for operation in signal.waiting:
            self._ready.append((operation, None))
        signal.waiting = []
        self._run()

    def end_all(self) -> None:
        """Ends every operation except the calling one; outstanding results are dropped."""
        self._pending.clear()
        self._ready.clear()
        live, self._live = self._live, {}
        for operation in live:
            if operation is self._resumed:
                self._live[operation] = None
            else:
                # Closed explicitly: the garbage collector would close it at another moment, in another order.
                operation.close()

    def _run(self) -> None:
        if self._running:
            return  # Called from within an operation: the loop below continues with the new work.
        self._running = True
        try:
            while self._ready:
                operation, value = self._ready.popleft()
                self._resume(operation, value)
        finally:
            self._running = False

    def _resume(self, operation: Operation[Any], value: Any) -> None:
        self._resumed = operation
        try:
            wanted = operation.send(value)
        except StopIteration:
            self._live.pop(operation, None)
            return
        finally:
            self._resumed = None
        if operation not in self._live:
            return
        if isinstance(wanted, Signal):
            if wanted.raised:
                wanted.raised = False
                self._ready.append((operation, None))
            else:
                wanted.waiting.append(operation)
            return
        single = not isinstance(wanted, tuple)
        effects: tuple[Effect, ...] = (wanted,) if not isinstance(wanted, tuple) else wanted
        if not effects:
            self._ready.append((operation, ()))
            return
        pending = _Pending(operation, [None] * len(effects), len(effects), single)
        for index, effect in enumerate(effects):
            token = self._next_token
            self._next_token += 1
            self._pending[token] = (pending, index)
            self.asked.append(EffectRequest(token, effect))


class Mutex:
    """Runs one of its operations at a time; the others wait, in no particular order."""

    def __init__(self, operations: Operations, name: str) -> None:
        self._operations = operations
        self._is_taken = False
        self._given_back = Signal(name)

    def of(self, operation: Operation[T]) -> Operation[T]:
        """Runs an operation once no other runs. Raises what the operation raises."""
        while self._is_taken:
            yield self._given_back
        self._is_taken = True
        try:
            result = yield from operation
        except Exception:  # Not on close: then all other operations are closed too.
            self._give_back()
            raise
        self._give_back()
        return result

    def _give_back(self) -> None:
        self._is_taken = False
        self._operations.raise_(self._given_back)

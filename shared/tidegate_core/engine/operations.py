"""Runs an actor's operations: generators that yield effects and are resumed with the answers.

An operation reads as a straight line (`verdict = yield from ask(Commit(...))`) and yet does no I/O: between two yields it is a
pure function of its answers. `yield` takes one effect, a tuple of effects (the answers come together, in order), or a
`Signal` to wait for. Everything happens in the order in which answers arrive; there is no other source of order.
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
    """Something an operation can wait for; `raise_` wakes all who wait. Waiters decide anew what they woke up for."""

    name: str
    raised: bool = False
    waiting: list[Operation[Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    """An operation that waits for the answers to what it asked."""

    operation: Operation[Any]
    results: list[Result | None]
    open: int
    single: bool


Yielded: TypeAlias = "Effect | tuple[Effect, ...] | Signal"
Operation: TypeAlias = Generator[Yielded, Any, T]


class Operations:
    """All operations of one actor.

    `asked` fills with what the driver must carry out; the owner of this object hands it out after each step.
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
        """Starts an operation; it runs at once, or as soon as the operation that starts it yields."""
        self._live[operation] = None
        self._ready.append((operation, None))
        self._run()

    def tell(self, effect: Effect) -> None:
        """Hands out an effect whose answer nobody awaits."""
        self.asked.append(EffectRequest(0, effect))

    def answer(self, answer: EffectResult) -> None:
        """Takes an answer; one that nobody awaits any more is dropped."""
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
        """Whether somebody waits for this answer still."""
        return token in self._pending

    def raise_(self, signal: Signal) -> None:
        """Wakes the operations that wait for the signal; when none does, the next to wait goes on at once."""
        if not signal.waiting:
            signal.raised = True
            return
        for operation in signal.waiting:
            self._ready.append((operation, None))
        signal.waiting = []
        self._run()

    def end_all(self) -> None:
        """Ends every operation but the one that calls this; answers still to come find nobody."""
        self._pending.clear()
        self._ready.clear()
        live, self._live = self._live, {}
        for operation in live:
            if operation is self._resumed:
                self._live[operation] = None
            else:
                # Closed and not just forgotten: the collector would do it at some other moment, in some other order.
                operation.close()

    def _run(self) -> None:
        if self._running:
            return  # Called from within an operation: the loop below goes on with what was added.
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
    """Of the operations that are handed to it one is under way; the others wait, in no particular order."""

    def __init__(self, operations: Operations, name: str) -> None:
        self._operations = operations
        self._is_taken = False
        self._given_back = Signal(name)

    def of(self, operation: Operation[T]) -> Operation[T]:
        """Goes through an operation in its turn, which begins with it. Raises what it raises."""
        while self._is_taken:
            yield self._given_back
        self._is_taken = True
        try:
            result = yield from operation
        except Exception:  # And not when it is closed: then all others are, too.
            self._give_back()
            raise
        self._give_back()
        return result

    def _give_back(self) -> None:
        self._is_taken = False
        self._operations.raise_(self._given_back)

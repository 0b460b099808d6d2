"""Scripted answers on a bench: what a test has lost, delayed, held back, or answered otherwise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate_core.rows.effects import Effect, EffectRequest, Result, Unavailable

Match: TypeAlias = Callable[[Effect], bool]
NOBODY_KNOWS: Final = Unavailable("scripted")


@dataclass(slots=True)
class Rule:
    """A scripted answer: `before` and `after` say what happens around carrying the effect out."""

    match: Match
    times: int
    act: Callable[[EffectRequest], None]


class Scripts(ABC):
    """The store's, the broker's and the launcher's answers, as far as a test says them."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._held: list[Callable[[], None]] = []

    @abstractmethod
    def crash(self) -> None:
        """Kills the actor."""

    @abstractmethod
    def settle(self) -> None:
        """Lets everything happen that follows at this instant."""

    @abstractmethod
    def _answer(self, ask: EffectRequest, result: Result | None) -> None: ...

    @abstractmethod
    def _result(self, ask: EffectRequest) -> Result | None: ...

    def answer_with(self, match: Match, result: Result | None, times: int = 1) -> None:
        """Answers so, and does nothing."""
        self._rules.append(Rule(match, times, lambda ask: self._answer(ask, result)))

    def lose_answer_of(self, match: Match, times: int = 1, told: Result = NOBODY_KNOWS) -> None:
        """Carries it out, and says that nobody knows; as launchers say that with `told`."""

        def act(ask: EffectRequest) -> None:
            self._result(ask)
            self._answer(ask, told)

        self._rules.append(Rule(match, times, act))

    def lose(self, match: Match, times: int = 1) -> None:
        """Does nothing, and says that nobody knows."""
        self.answer_with(match, Unavailable("scripted"), times)

    def hold_back(self, match: Match, times: int = 1, *, answer_only: bool = False, told: Result | None = None) -> None:
        """Carries it out at `release`; `answer_only`: carries it out now, and answers at `release`; `told`: answers so then, and does nothing."""

        def act(ask: EffectRequest) -> None:
            if told is not None:
                self._held.append(lambda: self._answer(ask, told))
            elif answer_only:
                result = self._result(ask)
                self._held.append(lambda: self._answer(ask, result))
            else:
                self._held.append(lambda: self._answer(ask, self._result(ask)))

        self._rules.append(Rule(match, times, act))

    def delay(self, match: Match, times: int = 1) -> None:
        """Says that nobody knows, and carries it out at `release`: whoever asked has asked again meanwhile."""

        def act(ask: EffectRequest) -> None:
            self._held.append(lambda: self._carry_out_unheard(ask))
            self._answer(ask, Unavailable("scripted"))

        self._rules.append(Rule(match, times, act))

    def crash_at(self, match: Match) -> None:
        """Carries it out, and kills the actor, which never hears of it."""

        def act(ask: EffectRequest) -> None:
            self._result(ask)
            self.crash()

        self._rules.append(Rule(match, 1, act))

    def _carry_out_unheard(self, ask: EffectRequest) -> None:
        self._result(ask)

    def release(self) -> None:
        held, self._held = self._held, []
        for each in held:
            each()
        self.settle()

    def release_last(self) -> None:
        """Only what was held back last."""
        self._held.pop()()
        self.settle()

    def end_scripts(self) -> None:
        """Ends all scripts; what they held back stays so."""
        self._rules.clear()

    def as_usual(self) -> None:
        """Ends all scripts, and carries out what they held back."""
        self.end_scripts()
        self.release()

    @property
    def holds_something(self) -> bool:
        return bool(self._held)

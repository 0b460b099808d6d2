"""Records that an actor hands over together, on a bench: each is carried out, lost or held back by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from tidegate_core.rows.effects import (
    EffectRequest,
    EffectResult,
    ManyProduced,
    NotProduced,
    Outcome,
    Produced,
    ProduceMany,
)


class Groups:
    """Takes groups of one actor apart, and puts their outcomes together again."""

    def __init__(self) -> None:
        # Below zero: no actor uses these.
        self._tokens = count(-1, -1)
        self._parts: dict[int, tuple[int, int]] = {}
        self._outcomes: dict[int, dict[int, Outcome]] = {}

    def apart(self, asks: Iterable[EffectRequest]) -> Iterator[EffectRequest]:
        """Yields what was asked, with each record of a group by itself and in its place."""
        for ask in asks:
            if not isinstance(ask.effect, ProduceMany):
                yield ask
                continue
            self._outcomes[ask.token] = {}
            for record in ask.effect.records:
                token = next(self._tokens)
                self._parts[token] = (ask.token, len(ask.effect.records))
                yield EffectRequest(token, record)

    def together(self, answer: EffectResult) -> EffectResult | None:
        """Returns what the actor is told: nothing while a record of the group has no outcome."""
        if answer.token >= 0:
            return answer
        if answer.token not in self._parts:
            return None  # Of an actor before this one.
        assert isinstance(answer.result, Produced | NotProduced)
        group, size = self._parts.pop(answer.token)
        outcomes = self._outcomes[group]
        outcomes[answer.token] = answer.result
        if len(outcomes) < size:
            return None
        del self._outcomes[group]
        # Tokens count down.
        return EffectResult(group, ManyProduced([outcomes[token] for token in sorted(outcomes, reverse=True)]))

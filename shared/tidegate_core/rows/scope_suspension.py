"""Wide controls as they are stored, and what follows from them: the same answer for whoever asks, wherever (DESIGN 6).

One item holds them all, with a version that each change raises. What a shard's owner decides carries the version from which
it was decided: `ScopeSuspensions` is the version together with what it says, so that the two can never differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

SPANS_KEPT = 8
"""Of one scope; earlier ones matter only to a shard that had no owner through all of them, and to an update that makes up for so much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What was said of one scope.

    Attributes:
        namespace: None for the whole system.
        position: Text of the position of the last request on it; older ones are superseded.
        spans: When it was suspended, as (from, to): append times of the requests; the last `to` is None while it is.
        dropped: Version of the last suspend: what was pending then has to end.
        vector: End offsets at its last resume: events below them never count.
        actor, reason: Of the last request.
    """

    namespace: str | None
    position: str
    spans: tuple[tuple[int, int | None], ...] = ()
    dropped: int = 0
    vector: str | None = None
    actor: str | None = None
    reason: str | None = None

    @property
    def is_suspended(self) -> bool:
        return bool(self.spans) and self.spans[-1][1] is None

    @property
    def resumed_at(self) -> int:
        """The end of its last span; 0 when there is none."""
        return (self.spans[-1][1] or 0) if self.spans else 0

    def suspended(self, at: int, version: int) -> Scope:
        """Returns it as it is from a suspend on."""
        return replace(self, spans=(*self.spans, (at, None))[-SPANS_KEPT:], dropped=version)

    def resumed(self, at: int, vector: str) -> Scope:
        """Returns it as it is from a resume on."""
        begun = self.spans[-1][0]
        return replace(self, spans=(*self.spans[:-1], (begun, max(begun, at))), vector=vector)


@dataclass(frozen=True, kw_only=True)
class ScopeSuspensions:
    """All that is said of all scopes, under one version; a field dictionary keeps what is asked often."""

    version: int = 0
    scopes: tuple[Scope, ...] = ()

    @property
    def suspend_anything(self) -> bool:
        return bool(self._suspended)

    @property
    def last_resumed_at(self) -> int:
        """When something was let go on last, whatever it was; 0 when nothing ever was stopped."""
        return max((scope.resumed_at for scope in self.scopes), default=0)

    def covers(self, namespace: str) -> bool:
        """Whether nothing of the namespace may fire, be admitted, or be delivered."""
        return None in self._suspended or namespace in self._suspended

    def suspended_since(self, namespace: str) -> int | None:
        """Returns since when the namespace is suspended, as far as is known here; None when it is not.

        It may have been resumed already: a resume counts from its append time and is heard of later. So what came due since is left
        where it is, and whoever hears of the end knows what of it lies behind that.
        """
        if not self.covers(namespace):
            return None
        return min(scope.spans[-1][0] for scope in self._about(namespace) if scope.is_suspended)

    def suspended_until(self, namespace: str, instant: int, now: int) -> int | None:
        """Returns the end of the suspended span in which the instant lies, `now` if it goes on; None when it lies in none.

        Such an instant is never a miss (SEMANTICS 10): nothing is made of it.
        """
        for scope in self._about(namespace):
            for begun, ended in scope.spans:
                if begun <= instant and (ended is None or instant < ended):
                    return now if ended is None else ended - 1
        return None

    def has_dropped(self, namespace: str, due: int) -> bool:
        """Whether what was due then, and has not passed the start gate, was ended by a suspend."""
        return self.covers(namespace) or due < self.resumed_at(namespace)

    def resumes(self, namespace: str) -> tuple[tuple[str, int], ...]:
        """Returns the last resume of each scope, below whose ends no event of the namespace counts: (vector, instant)."""
        return tuple((scope.vector, scope.resumed_at) for scope in self._about(namespace) if scope.vector is not None)

    def resumed_at(self, namespace: str) -> int:
        """Returns when the namespace was last let go on; 0 when it never was stopped."""
        return max((scope.resumed_at for scope in self._about(namespace)), default=0)

    def drops(self, namespace: str, pending_since: int, after: int) -> bool:
        """Whether something pending has to end, because of a suspend later than the version `after`.

        While such a suspend goes on all of it does, whatever it says: nothing is made meanwhile, and a former owner's clock may have been
        ahead. Once all are over, what came before the last resume.
        """
        later = [scope for scope in self._about(namespace) if scope.dropped > after]
        if any(scope.is_suspended for scope in later):
            return True
        return bool(later) and pending_since <= max(scope.resumed_at for scope in later)

    def under(self, version: int) -> ScopeSuspensions:
        """Returns what these say, under the version that a lease carries still."""
        return replace(self, version=version)

    def names_dropped(self, since: int) -> bool:
        """Whether anything was suspended later than this version."""
        return any(scope.dropped > since for scope in self.scopes)

    def scope(self, namespace: str | None) -> Scope | None:
        """Returns what was said of exactly this scope."""
        return next((scope for scope in self.scopes if scope.namespace == namespace), None)

    def _about(self, namespace: str) -> Iterable[Scope]:
        return (scope for scope in self.scopes if scope.namespace in (None, namespace))

    @cached_property
    def _suspended(self) -> frozenset[str | None]:
        return frozenset(scope.namespace for scope in self.scopes if scope.is_suspended)


NO_SUSPENSIONS = ScopeSuspensions()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSuspensions:
    """`CONTROLS`: one item, moved by compare-and-set by the owner of the controls' home shard.

    Attributes:
        scopes: JSON: what it nests is nothing that a store's item holds natively.
    """

    version: int
    scopes: str

    @classmethod
    def of(cls, controls: ScopeSuspensions) -> StoredSuspensions:
        return cls(version=controls.version, scopes=_json([_stored(each) for each in controls.scopes]))

    @property
    def controls(self) -> ScopeSuspensions:
        return ScopeSuspensions(version=self.version, scopes=tuple(_scope(each) for each in json.loads(self.scopes)))


def stored_bytes(scope: Scope) -> int:
    """Returns the bytes that a scope takes in the item, with what parts it from the next one."""
    return len(_json(_stored(scope)).encode()) + 1


def _json(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _stored(scope: Scope) -> dict[str, Any]:
    return {name: value for name, value in asdict(scope).items() if value}


def _scope(stored: dict[str, Any]) -> Scope:
    spans = tuple((begun, ended) for begun, ended in stored.get("spans", ()))
    return Scope(**{"namespace": None, **stored, "spans": spans})

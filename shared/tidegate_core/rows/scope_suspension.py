"""Scope suspensions as they are stored, and pure answers that follow from them.

One item holds all of them, under a version that each change raises. Every decision of a shard's owner carries the
version it was made from. `ScopeSuspensions` joins version and content, so the two can never differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

SPANS_KEPT = 8
"""Spans kept per scope.

Earlier ones matter only to a shard without an owner through all of them, or an update that catches up so far.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The suspensions of one scope.

    Attributes:
        namespace: Namespace; None for the whole system.
        position: Text of the position of the last request about it; older requests are superseded.
        spans: Suspended spans as (from, to), by append times of the requests. The last `to` is None during a
            suspension.
        dropped: Version of the last suspend; work that was pending at that time must end.
        vector: End offsets at the last resume; events below them never count.
        actor, reason: As stated in the last request.
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
        """End of the last span; 0 when there is none."""
        return (self.spans[-1][1] or 0) if self.spans else 0

    def suspended(self, at: int, version: int) -> Scope:
        """Returns the scope after a suspend."""
        return replace(self, spans=(*self.spans, (at, None))[-SPANS_KEPT:], dropped=version)

    def resumed(self, at: int, vector: str) -> Scope:
        """Returns the scope after a resume."""
        begun = self.spans[-1][0]
        return replace(self, spans=(*self.spans[:-1], (begun, max(begun, at))), vector=vector)


@dataclass(frozen=True, kw_only=True)
class ScopeSuspensions:
    """The suspensions of all scopes, under one version.

    It has a field dictionary, so that computed properties are cached.
    """

    version: int = 0
    scopes: tuple[Scope, ...] = ()

    @property
    def suspend_anything(self) -> bool:
        return bool(self._suspended)

    @property
    def last_resumed_at(self) -> int:
        """Time of the latest resume of any scope; 0 when none was ever suspended."""
        return max((scope.resumed_at for scope in self.scopes), default=0)

    def covers(self, namespace: str) -> bool:
        """Returns whether nothing of the namespace may fire, be admitted or be delivered."""
        return None in self._suspended or namespace in self._suspended

    def suspended_since(self, namespace: str) -> int | None:
        """Returns the begin of the namespace's suspension, as far as this node knows; None when it is not suspended.

        The namespace may already be resumed: a resume counts from its append time, and nodes learn of it later. So
        rows that came due since are left in place. The node that learns of the end decides which of them lie after
        it.
        """
        if not self.covers(namespace):
            return None
        return min(scope.spans[-1][0] for scope in self._about(namespace) if scope.is_suspended)

    def suspended_until(self, namespace: str, instant: int, now: int) -> int | None:
        """Returns the end of the suspended span that contains the instant, `now` if it is open; None when no span
        contains it.

        Such an instant is never a misfire and gets no job.
        """
        for scope in self._about(namespace):
            for begun, ended in scope.spans:
                if begun <= instant and (ended is None or instant < ended):
                    return now if ended is None else ended - 1
        return None

    def has_dropped(self, namespace: str, due: int) -> bool:
        """Returns whether a suspend ended work that was due at that time and has not passed the start gate."""
        return self.covers(namespace) or due < self.resumed_at(namespace)

    def resumes(self, namespace: str) -> tuple[tuple[str, int], ...]:
        """Returns vector and time of each scope's last resume.

        No event of the namespace below those end offsets counts.
        """
        return tuple((scope.vector, scope.resumed_at) for scope in self._about(namespace) if scope.vector is not None)

    def resumed_at(self, namespace: str) -> int:
        """Returns the time of the namespace's last resume; 0 when it was never suspended."""
        return max((scope.resumed_at for scope in self._about(namespace)), default=0)

    def drops(self, namespace: str, pending_since: int, after: int) -> bool:
        """Returns whether pending work must end because of a suspend later than the version `after`.

        During that suspension all pending work ends, of any time: none is created, and a former owner's clock
        may have been ahead. Once all are over, work from before the last resume ends.
        """
        later = [scope for scope in self._about(namespace) if scope.dropped > after]
        if any(scope.is_suspended for scope in later):
            return True
        return bool(later) and pending_since <= max(scope.resumed_at for scope in later)

    def under(self, version: int) -> ScopeSuspensions:
        """Returns the same content under the older version that a lease still carries."""
        return replace(self, version=version)

    def names_dropped(self, since: int) -> bool:
        """Returns whether any scope was suspended after this version."""
        return any(scope.dropped > since for scope in self.scopes)

    def scope(self, namespace: str | None) -> Scope | None:
        """Returns the suspensions of exactly this scope."""
        return next((scope for scope in self.scopes if scope.namespace == namespace), None)

    def _about(self, namespace: str) -> Iterable[Scope]:
        return (scope for scope in self.scopes if scope.namespace in (None, namespace))

    @cached_property
    def _suspended(self) -> frozenset[str | None]:
        return frozenset(scope.namespace for scope in self.scopes if scope.is_suspended)


NO_SUSPENSIONS = ScopeSuspensions()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSuspensions:
    """The stored form of all scope suspensions (`CONTROLS`).

    Only the owner of one shard moves it, by compare-and-set.

    Attributes:
        scopes: JSON, because an item cannot hold this nesting natively.
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
    """Returns the bytes of a scope in the item, its separator included."""
    return len(_json(_stored(scope)).encode()) + 1


def _json(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _stored(scope: Scope) -> dict[str, Any]:
    return {name: value for name, value in asdict(scope).items() if value}


def _scope(stored: dict[str, Any]) -> Scope:
    spans = tuple((begun, ended) for begun, ended in stored.get("spans", ()))
    return Scope(**{"namespace": None, **stored, "spans": spans})

"""Credentials that sign requests, and their renewal without blocking a loop or all threads.

Keys of a role (of a service account, a container, an instance) expire. The SDK fetches new ones from 15 minutes before,
over a network, in the thread that asks. While that fails it tries again at each request.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from botocore.credentials import RefreshableCredentials
from botocore.exceptions import CredentialRetrievalError, NoCredentialsError

from tidegate_ports.common.daemon_threads import apart

if TYPE_CHECKING:
    from botocore.credentials import Credentials, ReadOnlyCredentials

T = TypeVar("T")

CHAIN: Final = "the SDK's chain"
ASK_AGAIN_S: Final = 10.0
"""Gap between two attempts to renew keys that are still valid."""
WAIT_S_MAX: Final = 2.0
"""Longest wait for new keys after the old ones expired, as long as for an answer of the store: the caller needs a
result. The SDK itself waits minutes for a service that does not answer, and for ever for a credentials program that
hangs."""

FIRST_WAIT_S_MAX: Final = 60.0
"""Longest wait of a thread for the first keys: a user may have to type a code for them."""
THREAD: Final = "tidegate-keys"


class Later:
    """Credentials that the SDK's chain did not find when the process started. The chain is asked again.

    The credentials service of an instance may miss the SDK's time-out of one second. Thread-safe.

    Args:
        ask: The chain; blocks.
        monotonic: Monotonic clock in seconds.

    Attributes:
        found: Credentials found since; None before that.
    """

    def __init__(self, ask: Callable[[], Credentials | None], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._next_at = monotonic() + ASK_AGAIN_S
        self.found: Credentials | None = None

    def look(self) -> Credentials | None:
        """Returns the credentials found. If there are none, asks the chain again, at most every `ASK_AGAIN_S`. Blocks.

        Raises:
            CredentialRetrievalError: The chain failed.
        """
        with self._lock:
            now = self._monotonic()
            if self.found is None and now >= self._next_at:
                self._next_at = now + ASK_AGAIN_S
                try:
                    self.found = self._ask()
                except Exception as error:
                    raise CredentialRetrievalError(provider=CHAIN, error_msg=str(error)) from error
            return self.found


Provided: TypeAlias = "Credentials | Later"
"""Credentials that the SDK's chain found, or a `Later` that finds them."""


def keys_of(provided: Provided) -> ReadOnlyCredentials:
    """Returns the present keys. Blocks if new ones must be fetched.

    Raises:
        NoCredentialsError: The SDK's chain found none.
        CredentialRetrievalError: The keys expired, or soon will, and could not be renewed.
    """
    credentials = provided.look() if isinstance(provided, Later) else provided
    if credentials is None:
        raise NoCredentialsError
    try:
        return credentials.get_frozen_credentials()
    # The chain raises any exception it meets: missing token file, refusing or absent service, expired answer.
    except Exception as error:
        raise CredentialRetrievalError(
            provider=credentials.method, error_msg=f"{type(error).__name__}: {error}"
        ) from error


class KeysOnThreads:
    """Present keys for calls on threads. Each waits no longer than for an answer of the store. Thread-safe.

    With the SDK's own renewal all threads would wait. They would also fail if a renewal fails, although the old keys
    are valid for ten more minutes.

    Args:
        provided: Credentials, found already or to be found later.
    """

    def __init__(self, provided: Provided) -> None:
        self._provided = provided
        self._lock = threading.Lock()
        self._fetch: Future[ReadOnlyCredentials] | None = None
        self._asks_again_at = 0.0

    def of_now(self) -> ReadOnlyCredentials:
        """Returns the present keys. Blocks only if there are no valid ones.

        Raises:
            NoCredentialsError: See `keys_of`.
            CredentialRetrievalError: See `keys_of`.
        """
        credentials = self._provided.found if isinstance(self._provided, Later) else self._provided
        if credentials is None:
            return self._fetched_within(WAIT_S_MAX)
        if not isinstance(credentials, RefreshableCredentials):
            return keys_of(credentials)
        if credentials.refresh_needed(0):
            return self._fetched_within(FIRST_WAIT_S_MAX if _at_hand(credentials) is None else WAIT_S_MAX)
        if credentials.refresh_needed() and time.monotonic() >= self._asks_again_at:
            with suppress(CredentialRetrievalError):  # No thread for the renewal; the present keys are valid.
                self._fetching()
        return cast("ReadOnlyCredentials", _at_hand(credentials))

    def _fetched_within(self, seconds: float) -> ReadOnlyCredentials:
        try:
            return self._fetching().result(seconds)
        except TimeoutError as silence:
            raise CredentialRetrievalError(provider=CHAIN, error_msg=_none_came(seconds)) from silence

    def _fetching(self) -> Future[ReadOnlyCredentials]:
        with self._lock:
            if self._fetch is None:
                fetch: Future[ReadOnlyCredentials] = Future()
                try:
                    threading.Thread(target=self._go, args=(fetch,), name=THREAD, daemon=True).start()
                except RuntimeError as none_left:
                    raise CredentialRetrievalError(provider=CHAIN, error_msg=str(none_left)) from none_left
                self._fetch = fetch
            return self._fetch

    def _go(self, fetch: Future[ReadOnlyCredentials]) -> None:
        try:
            tell = partial(fetch.set_result, keys_of(self._provided))
        except Exception as error:  # noqa: BLE001 - passed on to all waiting callers
            tell = partial(fetch.set_exception, error)
        with self._lock:
            self._fetch = None
            self._asks_again_at = time.monotonic() + ASK_AGAIN_S
        tell()


class KeysOnLoop:
    """Present keys for calls on one loop, without blocking it.

    Args:
        provided: Credentials, found already or to be found later.
    """

    def __init__(self, provided: Provided) -> None:
        self._provided = provided
        self._fetch: asyncio.Task[ReadOnlyCredentials] | None = None
        self._asks_again_at = 0.0

    async def of_now(self) -> ReadOnlyCredentials:
        """Returns the present keys. Waits only if there are no valid ones.

        When the keys expire soon, one thread at a time fetches new ones, at most every `ASK_AGAIN_S`. Calls use the
        present keys until they expire.

        Raises:
            NoCredentialsError: See `keys_of`.
            CredentialRetrievalError: See `keys_of`.
        """
        credentials = self._provided
        if isinstance(credentials, Later):
            found = credentials.found or await _on_thread(credentials.look, CHAIN)
            if found is None:
                raise NoCredentialsError
            credentials = self._provided = found
        if not isinstance(credentials, RefreshableCredentials):
            return keys_of(credentials)
        if credentials.refresh_needed():
            if credentials.refresh_needed(0):
                await self._fetched_in_time(credentials)
            elif self._fetch is None and asyncio.get_running_loop().time() >= self._asks_again_at:
                self._fetching(credentials)
        return cast("ReadOnlyCredentials", _at_hand(credentials))

    async def _fetched_in_time(self, credentials: RefreshableCredentials) -> None:
        try:
            async with asyncio.timeout(WAIT_S_MAX):
                # All callers wait for the same fetch. A caller that gives up does not cancel it.
                await asyncio.shield(self._fetching(credentials))
        except TimeoutError as silence:
            raise CredentialRetrievalError(provider=credentials.method, error_msg=_none_came(WAIT_S_MAX)) from silence

    def _fetching(self, credentials: RefreshableCredentials) -> asyncio.Task[ReadOnlyCredentials]:
        if self._fetch is None:
            self._fetch = asyncio.create_task(_on_thread(partial(keys_of, credentials), credentials.method))
            self._fetch.add_done_callback(self._has_ended)
        return self._fetch

    def _has_ended(self, fetch: asyncio.Task[ReadOnlyCredentials]) -> None:
        self._fetch = None
        self._asks_again_at = fetch.get_loop().time() + ASK_AGAIN_S
        with suppress(asyncio.CancelledError):
            # Marks the exception as retrieved. Waiting callers receive it, the SDK logs it, and callers with valid keys
            # ignore it.
            fetch.exception()


def _at_hand(credentials: RefreshableCredentials) -> ReadOnlyCredentials | None:
    """Returns the stored keys. `get_frozen_credentials` would decide itself to renew them, and block this thread."""
    return cast("ReadOnlyCredentials | None", credentials._frozen_credentials)  # type: ignore[attr-defined]  # noqa: SLF001


def _none_came(seconds: float) -> str:
    return f"the keys have expired, or there were none yet, and none came within {seconds:g} s"


async def _on_thread(look: Callable[[], T], provider: str) -> T:
    try:
        return await apart(look, THREAD)
    except RuntimeError as none_left:  # The host has no thread left at the moment.
        raise CredentialRetrievalError(provider=provider, error_msg=str(none_left)) from none_left

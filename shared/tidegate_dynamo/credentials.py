"""The keys that requests are signed with: those of the moment, and how new ones are fetched without stopping a loop, or all threads.

Keys of a role (of a service account, a container, an instance) run out. The SDK fetches new ones from 15 minutes before, over a
network, in whatever thread asks; as long as that fails it asks again for each request.
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
"""Between a try to have new keys and the next one, while the old ones are still good."""
WAIT_S_MAX: Final = 2.0
"""For new keys where the old ones have run out, as for an answer of the store: whoever asks has to know where it stands. The SDK itself waits
for minutes for a service that does not answer, and for ever for a program that gives keys and hangs."""

FIRST_WAIT_S_MAX: Final = 60.0
"""The same for the first ones, which a thread may have: a person may have to type a code for them."""
THREAD: Final = "tidegate-keys"


class Later:
    """Keys that the SDK's chain did not find as the process started: it is asked again. An instance's own service may not answer within the
    second that it has. Thread-safe.

    Args:
        ask: The chain. Blocking.
        monotonic: Seconds.

    Attributes:
        found: What it has found since; None: nothing yet.
    """

    def __init__(self, ask: Callable[[], Credentials | None], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._next_at = monotonic() + ASK_AGAIN_S
        self.found: Credentials | None = None

    def look(self) -> Credentials | None:
        """Returns what was found; asks again where nothing was, at most every `ASK_AGAIN_S`. Blocking.

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
"""What the SDK's chain found, or will."""


def keys_of(provided: Provided) -> ReadOnlyCredentials:
    """Returns the keys of the moment. Blocking where new ones have to be fetched.

    Raises:
        NoCredentialsError: The SDK's chain found none.
        CredentialRetrievalError: They ran out, or soon will, and could not be had anew.
    """
    credentials = provided.look() if isinstance(provided, Later) else provided
    if credentials is None:
        raise NoCredentialsError
    try:
        return credentials.get_frozen_credentials()
    # The token's file is gone, the service refuses or is away, what it gave had run out: the chain lets through what it meets.
    except Exception as error:
        raise CredentialRetrievalError(
            provider=credentials.method, error_msg=f"{type(error).__name__}: {error}"
        ) from error


class KeysOnThreads:
    """The same for calls on threads, none of which waits for longer than for the store. Thread-safe.

    The SDK's own would wait all together, and fail where new keys cannot be had, while the old ones are good for ten minutes more.

    Args:
        provided: What the SDK's chain found, or will.
    """

    def __init__(self, provided: Provided) -> None:
        self._provided = provided
        self._lock = threading.Lock()
        self._fetch: Future[ReadOnlyCredentials] | None = None
        self._asks_again_at = 0.0

    def of_now(self) -> ReadOnlyCredentials:
        """Returns the keys of the moment; blocks only where there are none that are good, as `KeysOnLoop.of_now` waits.

        Raises:
            See `keys_of`.
        """
        credentials = self._provided.found if isinstance(self._provided, Later) else self._provided
        if credentials is None:
            return self._fetched_within(WAIT_S_MAX)
        if not isinstance(credentials, RefreshableCredentials):
            return keys_of(credentials)
        if credentials.refresh_needed(0):
            return self._fetched_within(FIRST_WAIT_S_MAX if _at_hand(credentials) is None else WAIT_S_MAX)
        if credentials.refresh_needed() and time.monotonic() >= self._asks_again_at:
            with suppress(CredentialRetrievalError):  # No thread for it: these are good.
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
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits is told
            tell = partial(fetch.set_exception, error)
        with self._lock:
            self._fetch = None
            self._asks_again_at = time.monotonic() + ASK_AGAIN_S
        tell()


class KeysOnLoop:
    """The same for calls on a loop, which nobody stops. Of one loop.

    Args:
        provided: What the SDK's chain found, or will.
    """

    def __init__(self, provided: Provided) -> None:
        self._provided = provided
        self._fetch: asyncio.Task[ReadOnlyCredentials] | None = None
        self._asks_again_at = 0.0

    async def of_now(self) -> ReadOnlyCredentials:
        """Returns the keys of the moment; waits only where there are none that are good.

        While those at hand run out soon, one thread at a time fetches others, at most every `ASK_AGAIN_S`, and calls go on with
        these to their last second.

        Raises:
            See `keys_of`.
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
                # All wait for the same one; a caller that gives up does not end it.
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
            # Looked at: whoever waits is told, and whoever had keys that are good needs to know nothing. The SDK logs it.
            fetch.exception()


def _at_hand(credentials: RefreshableCredentials) -> ReadOnlyCredentials | None:
    """Not `get_frozen_credentials`, which would look for itself whether it is time to fetch, and do it here."""
    return cast("ReadOnlyCredentials | None", credentials._frozen_credentials)  # type: ignore[attr-defined]  # noqa: SLF001


def _none_came(seconds: float) -> str:
    return f"the keys have run out, or there were none yet, and none came within {seconds:g} s"


async def _on_thread(look: Callable[[], T], provider: str) -> T:
    try:
        return await apart(look, THREAD)
    except RuntimeError as none_left:  # No thread: the host has no more of them at the moment.
        raise CredentialRetrievalError(provider=provider, error_msg=str(none_left)) from none_left

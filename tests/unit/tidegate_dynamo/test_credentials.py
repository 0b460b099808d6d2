"""Keys of the moment: those of a role run out, and are fetched anew without stopping the loop that needs them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.credentials import Credentials, DeferredRefreshableCredentials, RefreshableCredentials
from botocore.exceptions import CredentialRetrievalError, NoCredentialsError

from tidegate_core.rows.store_operations import Throttled
from tidegate_dynamo import credentials as keys
from tidegate_dynamo.credentials import ASK_AGAIN_S, KeysOnLoop, KeysOnThreads, Later, keys_of
from tidegate_dynamo.write_outcomes import outcome_of

OLD = {"access_key": "AKIA1", "secret_key": "first", "token": "t1"}
NEW = {"access_key": "AKIA2", "secret_key": "second", "token": "t2"}
PATIENCE_S = 60.0


class Service:
    """What gives keys to a role: it may be away, and slow.

    Attributes:
        asked: By which threads.
        may_answer: Set = it answers at once.
    """

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.was_asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.answer: Callable[[], dict[str, str]] = lambda: {**NEW, "expiry_time": in_minutes(60)}

    def __call__(self) -> dict[str, str]:
        self.asked.append(threading.get_ident())
        self.was_asked.set()
        assert self.may_answer.wait(2 * PATIENCE_S)
        return self.answer()


def in_minutes(minutes: float) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()


def credentials_for(minutes: float, service: Service) -> RefreshableCredentials:
    return RefreshableCredentials.create_from_metadata({**OLD, "expiry_time": in_minutes(minutes)}, service, "role")


def away() -> dict[str, str]:
    raise FileNotFoundError("the token's file is gone")


def test_given_keys_for_good_or_none_then_they_are_at_hand_or_that_is_said() -> None:
    async def look(provided: Credentials | Later) -> str | None:
        return (await KeysOnLoop(provided).of_now()).access_key

    assert asyncio.run(look(Credentials("AKIA0", "hidden"))) == "AKIA0"
    with pytest.raises(NoCredentialsError):
        asyncio.run(look(Later(lambda: None)))


def test_given_a_chain_that_found_nothing_at_first_then_it_is_asked_again_off_the_loop_and_not_by_each_call() -> None:
    """Found in review: an API process whose instance's own service was slow as it started answered 503 until somebody restarted it."""
    now = 100.0
    answers = iter([None, OSError("no route"), Credentials("AKIA9", "hidden")])
    asked_by: list[int] = []

    def ask() -> Credentials | None:
        asked_by.append(threading.get_ident())
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    later = Later(ask, lambda: now)

    async def scenario() -> str | None:
        nonlocal now
        on_loop = KeysOnLoop(later)
        for failure in (NoCredentialsError, CredentialRetrievalError):
            now += ASK_AGAIN_S
            with pytest.raises(failure) as found:
                await on_loop.of_now()
            assert outcome_of(found.value, 1) == Throttled()
            for look in (on_loop.of_now, lambda: asyncio.to_thread(keys_of, later)):
                with pytest.raises(NoCredentialsError):
                    await look()
        now += ASK_AGAIN_S
        return (await on_loop.of_now()).access_key

    assert asyncio.run(scenario()) == "AKIA9"
    assert keys_of(later).access_key == "AKIA9"
    assert len(asked_by) == 3
    assert threading.get_ident() not in asked_by


@pytest.mark.parametrize("minutes", [14, 5], ids=["advisory", "mandatory"])
def test_given_keys_that_run_out_soon_and_a_service_that_hangs_then_calls_go_on_with_them_and_one_thread_waits(
    minutes: float,
) -> None:
    """Found by a review: each call asked for new keys on the loop itself, for seconds each while the service was away."""
    service = Service()
    service.may_answer.clear()

    async def scenario() -> None:
        at_hand = KeysOnLoop(credentials_for(minutes, service))
        assert {(await at_hand.of_now()).access_key for _ in range(50)} == {"AKIA1"}
        service.may_answer.set()
        assert at_hand._fetch is not None
        await asyncio.wait([at_hand._fetch])
        assert (await at_hand.of_now()).access_key == "AKIA2"

    asyncio.run(scenario())
    assert len(service.asked) == 1
    assert service.asked[0] != threading.get_ident()


@pytest.mark.parametrize("minutes", [14, 5], ids=["advisory", "mandatory"])
def test_given_a_service_that_fails_then_it_is_asked_again_now_and_then_and_calls_go_on(
    minutes: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service()
    service.answer = away

    async def calls(at_hand: KeysOnLoop) -> None:
        for _ in range(20):
            assert (await at_hand.of_now()).access_key == "AKIA1"
            if at_hand._fetch is not None:
                await asyncio.wait([at_hand._fetch])

    async def scenario() -> list[int]:
        at_hand = KeysOnLoop(credentials_for(minutes, service))
        monkeypatch.setattr(keys, "ASK_AGAIN_S", 3_600)
        await calls(at_hand)
        seldom = len(service.asked)
        monkeypatch.setattr(keys, "ASK_AGAIN_S", 0)
        at_hand._asks_again_at = 0
        await calls(at_hand)
        return [seldom, len(service.asked) - seldom]

    assert asyncio.run(scenario()) == [1, 20]


def test_given_keys_that_have_run_out_then_all_callers_wait_for_one_fetch() -> None:
    service = Service()

    async def scenario() -> set[Any]:
        at_hand = KeysOnLoop(credentials_for(-1, service))
        return {each.access_key for each in await asyncio.gather(*(at_hand.of_now() for _ in range(20)))}

    assert asyncio.run(scenario()) == {"AKIA2"}
    assert len(service.asked) == 1


def test_given_keys_that_have_run_out_and_none_to_be_had_then_nothing_was_sent_and_that_is_told() -> None:
    service = Service()
    service.answer = away
    credentials = credentials_for(-1, service)

    async def scenario() -> None:
        await KeysOnLoop(credentials).of_now()

    with pytest.raises(CredentialRetrievalError, match="the token's file is gone") as found:
        asyncio.run(scenario())
    assert outcome_of(found.value, 1) == Throttled()
    with pytest.raises(CredentialRetrievalError, match="the token's file is gone"):
        keys_of(credentials)


def test_given_keys_that_have_run_out_and_a_service_that_hangs_then_calls_are_told_in_time_and_go_on_once_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each call waited for as long as the SDK did: for minutes, or for ever for a program that gives keys, and with it its shard's actor."""
    monkeypatch.setattr(keys, "WAIT_S_MAX", 0.01)
    service = Service()
    service.may_answer.clear()

    async def scenario() -> None:
        at_hand = KeysOnLoop(credentials_for(-1, service))
        for _ in range(3):
            with pytest.raises(CredentialRetrievalError, match="expired") as found:
                await asyncio.wait_for(at_hand.of_now(), PATIENCE_S)
            assert outcome_of(found.value, 1) == Throttled()
        service.may_answer.set()
        assert at_hand._fetch is not None
        await asyncio.wait([at_hand._fetch])
        assert (await at_hand.of_now()).access_key == "AKIA2"

    asyncio.run(scenario())
    assert len(service.asked) == 1


def test_given_a_program_that_gives_keys_and_hangs_then_the_process_ends_without_it() -> None:
    """A node that was told to end handed everything over, and then stayed until it was killed: up to ten minutes for a pod."""
    service = Service()
    service.may_answer.clear()

    async def scenario() -> None:
        await KeysOnLoop(credentials_for(5, service)).of_now()
        await asyncio.to_thread(service.was_asked.wait, PATIENCE_S)

    # Else both would wait for each other: the loop's end for the thread, and the thread for this.
    give_up = threading.Timer(PATIENCE_S, service.may_answer.set)
    give_up.start()
    try:
        asyncio.run(scenario())
        assert not service.may_answer.is_set(), "the loop's end has waited for the program"
        assert all(thread.daemon for thread in threading.enumerate() if thread.ident in service.asked)
    finally:
        service.may_answer.set()
        give_up.cancel()


def test_given_a_caller_that_gives_up_then_the_others_still_have_their_keys() -> None:
    service = Service()
    service.may_answer.clear()

    async def scenario() -> None:
        at_hand = KeysOnLoop(credentials_for(-1, service))
        first, second = (asyncio.ensure_future(at_hand.of_now()) for _ in range(2))
        await asyncio.to_thread(service.was_asked.wait, PATIENCE_S)
        first.cancel()
        service.may_answer.set()
        assert (await second).access_key == "AKIA2"

    asyncio.run(scenario())


@pytest.mark.parametrize("found", [True, False], ids=["expired", "not found yet"])
def test_given_no_keys_that_are_good_and_a_host_without_threads_then_nothing_was_sent_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    """Found in review: where the SDK's chain was still to find any it was a bug, and took the node's actors."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def scenario() -> None:
        at_hand = KeysOnLoop(credentials_for(-1, Service()) if found else Later(lambda: None))
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", start)
            with pytest.raises(CredentialRetrievalError, match="new thread") as refused:
                await at_hand.of_now()
        assert outcome_of(refused.value, 1) == Throttled()

    asyncio.run(scenario())


# -- on threads ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def hanging() -> Iterator[Service]:
    """One that hangs, to the test's end at most."""
    service = Service()
    service.may_answer.clear()
    yield service
    service.may_answer.set()


@pytest.mark.parametrize("minutes", [14, 5], ids=["advisory", "mandatory"])
def test_given_keys_that_run_out_soon_and_a_service_that_hangs_then_threads_go_on_with_them_and_one_waits(
    hanging: Service, minutes: float
) -> None:
    """An API process whose service for keys hung answered nobody, while its keys were good for ten minutes more."""
    at_hand = KeysOnThreads(credentials_for(minutes, hanging))
    assert {at_hand.of_now().access_key for _ in range(50)} == {"AKIA1"}
    fetch = at_hand._fetch
    assert fetch is not None
    hanging.may_answer.set()
    assert fetch.result(PATIENCE_S).access_key == "AKIA2"
    assert at_hand.of_now().access_key == "AKIA2"
    assert len(hanging.asked) == 1
    assert hanging.asked[0] != threading.get_ident()


@pytest.mark.parametrize("minutes", [14, 5], ids=["advisory", "mandatory"])
def test_given_a_service_that_fails_then_threads_go_on_with_good_keys_and_it_is_asked_now_and_then(
    minutes: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their last ten minutes the SDK gives keys to nobody where it cannot have new ones: 503 for each of them."""
    service = Service()
    service.answer = away
    at_hand = KeysOnThreads(credentials_for(minutes, service))

    def calls() -> None:
        for _ in range(20):
            assert at_hand.of_now().access_key == "AKIA1"
            if (fetch := at_hand._fetch) is not None:
                fetch.exception(PATIENCE_S)

    monkeypatch.setattr(keys, "ASK_AGAIN_S", 3_600)
    calls()
    assert len(service.asked) == 1
    at_hand._asks_again_at = 0
    calls()
    assert len(service.asked) == 2


def test_given_keys_that_have_run_out_and_a_service_that_hangs_then_threads_are_told_in_time_and_go_on_once_it_answers(
    hanging: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All threads of an API process waited for it, and the process's end for them."""
    monkeypatch.setattr(keys, "WAIT_S_MAX", 0.01)
    at_hand = KeysOnThreads(credentials_for(-1, hanging))
    for _ in range(3):
        with pytest.raises(CredentialRetrievalError, match="expired") as found:
            at_hand.of_now()
        assert outcome_of(found.value, 1) == Throttled()
    assert hanging.was_asked.wait(PATIENCE_S)
    assert all(thread.daemon for thread in threading.enumerate() if thread.ident in hanging.asked)
    fetch = at_hand._fetch
    assert fetch is not None
    hanging.may_answer.set()
    assert fetch.result(PATIENCE_S).access_key == "AKIA2"
    assert at_hand.of_now().access_key == "AKIA2"
    assert len(hanging.asked) == 1


def test_given_the_first_keys_then_threads_wait_for_them_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may type a code for them."""
    monkeypatch.setattr(keys, "WAIT_S_MAX", 0.0)
    assert KeysOnThreads(DeferredRefreshableCredentials(Service(), "role")).of_now().access_key == "AKIA2"


def test_given_keys_for_good_found_later_or_not_to_be_had_then_threads_have_them_or_are_told() -> None:
    service = Service()
    service.answer = away
    assert KeysOnThreads(Credentials("AKIA0", "hidden")).of_now().access_key == "AKIA0"
    found_later = Later(lambda: Credentials("AKIA9", "hidden"), lambda: 0.0)
    found_later._next_at = 0.0
    assert KeysOnThreads(found_later).of_now().access_key == "AKIA9"
    with pytest.raises(NoCredentialsError):
        KeysOnThreads(Later(lambda: None)).of_now()
    with pytest.raises(CredentialRetrievalError, match="the token's file is gone"):
        KeysOnThreads(credentials_for(-1, service)).of_now()


@pytest.mark.parametrize("minutes", [5, -1], ids=["good", "expired"])
def test_given_a_host_without_threads_then_good_keys_are_used_and_others_are_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch, minutes: float
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    service = Service()
    at_hand = KeysOnThreads(credentials_for(minutes, service))
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        if minutes > 0:
            assert at_hand.of_now().access_key == "AKIA1"
        else:
            with pytest.raises(CredentialRetrievalError, match="new thread"):
                at_hand.of_now()
    at_hand.of_now()
    assert service.was_asked.wait(PATIENCE_S), "it is tried again once there are threads"

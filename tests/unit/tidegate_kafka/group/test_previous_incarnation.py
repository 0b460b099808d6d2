"""A process that fell and came back at once does not make all others wait for its former session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tidegate_kafka.clients.client_config import membership_config
from tidegate_kafka.clients.settings import KafkaSettings
from tidegate_kafka.group.previous_incarnation import PreviousIncarnation, client_id, process_age_ms

SETTINGS = KafkaSettings(allow_plaintext=True)
FORMER, OTHER = "0a1b2c3d-0000", "99999999-0000"


class Group:
    """Has those members, or answers with an error, or not at all."""

    def __init__(self, *members: str, error: int | None = None, silent: bool = False) -> None:
        self._members = members
        self._error = error
        self._silent = silent

    def describe_consumer_groups(
        self, group_ids: Sequence[str], *, request_timeout: float
    ) -> Mapping[str, Future[Any]]:
        future = Future[Any]()
        if self._error is not None:
            future.set_exception(KafkaException(KafkaError(self._error)))
        elif self._silent:
            future.set_exception(TimeoutError())
        else:
            members = [SimpleNamespace(client_id=each) for each in self._members]
            future.set_result(SimpleNamespace(members=members))
        return {group_ids[0]: future}

    def says(self, _: KafkaSettings, ask: Callable[[Any], bool]) -> bool:
        return ask(self)


def member(node: str, owner: str) -> str:
    """The id that the group knows a node's member by."""
    own = SETTINGS.model_copy(update={"client_id": client_id(SETTINGS, node, owner)})
    return str(membership_config(own)["client.id"])


@pytest.mark.parametrize(
    ("group", "in_the_way"),
    [
        pytest.param(Group(member("n-1", FORMER), member("n-2", OTHER)), True, id="it and another"),
        pytest.param(Group(member("n-1", FORMER)), False, id="it alone, so that nobody waits for it"),
        pytest.param(Group(member("n-1", FORMER), member("n-1", OTHER)), False, id="two of its own, and nobody else"),
        pytest.param(Group(member("n-2", OTHER), member("n-3", OTHER)), False, id="others"),
        pytest.param(
            Group(member("n-11", OTHER), member("n-1-1", OTHER)), False, id="names that begin as its own does"
        ),
        pytest.param(Group(member("n.1", OTHER), member("n-2", OTHER)), False, id="a name that a pattern would take"),
        pytest.param(Group("rdkafka", member("n-2", OTHER)), False, id="somebody else's tool"),
        pytest.param(Group(), False, id="an empty group"),
        pytest.param(Group(error=KafkaError.GROUP_AUTHORIZATION_FAILED), False, id="nobody may say"),
        pytest.param(Group(silent=True), False, id="nobody says"),
    ],
)
def test_given_a_group_then_only_a_former_life_beside_others_is_in_the_way(group: Group, in_the_way: bool) -> None:
    assert PreviousIncarnation(SETTINGS, "n-1", 0, group.says).is_in_the_way(0) is in_the_way


def test_given_a_name_with_signs_then_they_mean_themselves() -> None:
    group = Group(member("n.1", FORMER), member("n-2", OTHER))
    assert PreviousIncarnation(SETTINGS, "n.1", 0, group.says).is_in_the_way(0)
    assert not PreviousIncarnation(SETTINGS, "n-1", 0, group.says).is_in_the_way(0)


@pytest.mark.parametrize(("age_ms", "in_the_way"), [(0, True), (4_499, True), (4_500, False), (60_000, False)])
def test_given_an_age_then_what_is_left_of_the_former_session_is_waited_for_up_to_a_guard(
    age_ms: int, in_the_way: bool
) -> None:
    """Session 6 s; a guard of 3 s, renewed each second, and others hear of a rebalance within 0.5 s: 1.5 s may be left."""
    group = Group(member("n-1", FORMER), member("n-2", OTHER))
    assert PreviousIncarnation(SETTINGS, "n-1", 1_000, group.says).is_in_the_way(1_000 + age_ms) is in_the_way


def test_given_no_client_can_be_made_then_nobody_waits() -> None:
    """Certificates are being replaced, or no descriptor is left."""
    assert not PreviousIncarnation(SETTINGS, "n-1", 0, lambda *_: False).is_in_the_way(0)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says when a process began")
def test_given_a_process_then_its_age_is_counted_from_its_begin_and_not_from_the_import() -> None:
    script = (
        "import time; before = time.monotonic(); time.sleep(0.5); from tidegate_kafka.group.previous_incarnation import process_age_ms;"
        "print(process_age_ms() - (time.monotonic() - before) * 1000)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    said = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True)
    # What the interpreter took before the script's first line, by a clock of ticks of 10 ms.
    assert float(said.stdout) >= -10
    assert process_age_ms() > 0

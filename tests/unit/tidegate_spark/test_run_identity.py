from __future__ import annotations

import pytest

from tidegate_spark.run_identity import GATE_WAIT_S_DEFAULT, REPORT_WAIT_S_DEFAULT, IdentityIncomplete, RunIdentity


@pytest.fixture
def environment() -> dict[str, str]:
    return {
        "TIDEGATE_RUN_ID": "r",
        "TIDEGATE_ATTEMPT": "3",
        "TIDEGATE_GATE_URL": "http://h",
        "TIDEGATE_RUN_TOKEN": "secret",
        "TIDEGATE_NOMINAL": "2026-03-03T05:00:00Z",
    }


def test_given_a_launchers_environment_then_the_token_is_taken_and_the_rest_stays(environment: dict[str, str]) -> None:
    identity = RunIdentity.take(environment)
    assert (identity.run_id, identity.attempt, identity.gate_url, identity.token) == ("r", 3, "http://h", "secret")
    assert set(environment) == {"TIDEGATE_RUN_ID", "TIDEGATE_ATTEMPT", "TIDEGATE_GATE_URL", "TIDEGATE_NOMINAL"}


def test_given_no_waits_then_the_defaults_hold(environment: dict[str, str]) -> None:
    identity = RunIdentity.take(environment)
    assert (identity.gate_wait_s, identity.report_wait_s) == (GATE_WAIT_S_DEFAULT, REPORT_WAIT_S_DEFAULT)


def test_given_an_identity_then_its_text_hides_the_token(environment: dict[str, str]) -> None:
    assert "secret" not in repr(RunIdentity.take(environment))


@pytest.mark.parametrize("attempt", ["0", "-1", "one", "1.5"])
def test_given_an_attempt_that_is_no_number_from_1_then_it_is_refused(
    environment: dict[str, str], attempt: str
) -> None:
    with pytest.raises(IdentityIncomplete, match="TIDEGATE_ATTEMPT"):
        RunIdentity.take(environment | {"TIDEGATE_ATTEMPT": attempt})


@pytest.mark.parametrize("wait", ["soon", "-1", "inf", "nan"])
def test_given_a_wait_that_is_no_number_of_seconds_then_it_is_refused(environment: dict[str, str], wait: str) -> None:
    with pytest.raises(IdentityIncomplete, match="TIDEGATE_GATE_WAIT_S"):
        RunIdentity.take(environment | {"TIDEGATE_GATE_WAIT_S": wait})

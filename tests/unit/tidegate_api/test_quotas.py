"""A dry run judges by the namespace's quota, as the owner does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.tidegate_api.conftest import SPEC, Process
from tidegate_core.language.definitions.quotas import Quota


def test_given_a_quota_then_a_dry_run_is_refused_by_it_for_its_namespace_only(process: Process) -> None:
    state: Any = process.http.app  # The application as it was made; the client's type knows any.
    state.state.services = replace(state.state.services, quotas={"flights": Quota(minimum_period_ms=7_200_000)})
    dry = {"dry_run": "true"}
    refused = process.http.put("/api/v1/schedules/flights/land-day", json=SPEC, params=dry)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "trigger.period")
    assert "TIDEGATE_QUOTAS (flights)" in refused.json()["errors"][0]["hint"]
    other = process.http.put("/api/v1/schedules/orders/land-day", json={**SPEC, "namespace": "orders"}, params=dry)
    assert "trigger.period" not in [each["field"] for each in other.json().get("errors", [])]

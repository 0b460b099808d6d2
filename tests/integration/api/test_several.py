"""Several schedules at once with real bricks: built in Python, applied together, suspended for a repair, and let go on."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.integration.api.conftest import until
from tidegate_client import AnswerPending, Client, Conflict, NotFound, ScheduleBuilder, every, python
from tidegate_client.views import ReceiptView

if TYPE_CHECKING:
    from tests.integration.api.conftest import Stack


def test_given_three_schedules_then_they_are_made_together_stopped_one_by_one_and_resumed_by_their_span(
    stack: Stack, client: Client
) -> None:
    """A sample of CD-016, CD-019 and CD-088 on a real node."""
    stack.start_node()
    until(lambda: _is_served(client), "a node that answers")
    program = stack.folder / "it.py"
    program.write_text("pass\n")
    names = ["a", "b", "c"]
    builder = [
        ScheduleBuilder("flights", name).starts(python(str(program))).triggered_by(every("30d")) for name in names
    ]
    specs = [each.with_max_concurrent_runs(1).wait_until_met().build() for each in builder]

    made = client.apply_schedules(specs, create_only=True)
    assert [(receipt.name, receipt.status, receipt.version) for receipt in made] == [
        (name, "accepted", 1) for name in names
    ]
    others = ScheduleBuilder("flights", "d").starts(python(str(program))).triggered_by(every("30d"))
    began = others.with_policies(suspended=True).build()
    with pytest.raises(Conflict, match="flights/a"):
        client.apply_schedules([began, specs[0]], create_only=True)
    assert {view.name for view in client.schedules("flights")} == set(names)
    assert client.apply_schedules([began])[0].status == "accepted"

    for name in names:
        client.suspend_schedule("flights", name, actor="ana", reason="repair")
    since = {view.name: view.suspension.since for view in client.schedules("flights") if view.suspension}
    begin, end = since["b"], since["c"] + timedelta(milliseconds=1)
    resumed = {view.name: outcome for view, outcome in client.resume_suspended(begin, end, "flights")}
    assert set(resumed) == {"b", "c"}
    assert all(isinstance(outcome, ReceiptView) and outcome.status == "accepted" for outcome in resumed.values())
    assert {view.name for view in client.schedules("flights") if view.status == "active"} == {"b", "c"}

    with pytest.raises(NotFound, match="flights/none"):
        client.delete_schedules([("flights", "a"), ("flights", "none")])
    assert len(list(client.schedules("flights"))) == 4
    deleted = client.delete_schedules([("flights", name) for name in (*names, "d")])
    assert {receipt.status for receipt in deleted} == {"accepted"}
    assert list(client.schedules("flights")) == []


def _is_served(client: Client) -> bool:
    """Whether the requests of this namespace are answered within the API's patience."""
    try:
        client.delete_schedule("flights", "none")
    except NotFound:
        return True
    except AnswerPending:
        return False
    raise AssertionError("there was none to delete")

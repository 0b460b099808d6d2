"""`tidegate why`: what is asked, and how the reasons are shown."""

from __future__ import annotations

import json

import pytest

from tests.unit.tidegate_cli.conftest import RUN, FakeApi
from tidegate_cli import main

VIEW = {
    "about": "schedule flights/land",
    "at": "2026-03-29T01:00:00Z",
    "local": "Sun 2026-03-29 02:30:00 Europe/Rome, which does not exist",
    "next_change": None,
    "reasons": [{"code": "dst_gap", "text": "the local time does not exist", "until": None, "values": {"zone": "x"}}],
}


def test_given_schedule_and_local_time_then_the_api_is_asked_and_its_reasons_are_a_table(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["GET /schedules/flights/land/why"] = (200, VIEW)
    assert main.run(["why", "flights/land", "--at", "2026-03-29T02:30"]) == 0
    captured = capsys.readouterr()
    assert api.asked[0].url.params["at"] == "2026-03-29T02:30"
    assert captured.out.splitlines()[0].split() == ["CODE", "UNTIL", "WHY"]
    assert captured.out.splitlines()[1].split()[:3] == ["dst_gap", "-", "the"]
    assert "which does not exist" in captured.err


def test_given_job_then_all_of_the_answer_is_shown_as_json_or_its_codes_alone(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers[f"GET /jobs/{RUN}/why"] = (200, VIEW)
    assert main.run(["why", RUN, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["reasons"][0]["values"] == {"zone": "x"}
    assert main.run(["why", RUN, "-o", "name"]) == 0
    assert capsys.readouterr().out == "dst_gap\n"


@pytest.mark.parametrize(
    ("arguments", "code"), [([RUN, "--at", "2026-03-29T02:30"], 2), (["a/b/c"], 2), (["flights/none"], 3), ([RUN], 3)]
)
def test_given_what_cannot_be_asked_then_its_exit_code(api: FakeApi, arguments: list[str], code: int) -> None:
    assert main.run(["why", *arguments]) == code


def test_given_job_that_waits_then_each_verdict_of_the_last_look_is_shown_with_its_next_check(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = {"code": "window_closed", "reason": "the window opens at 22:00", "until": "2026-11-20T22:00:00Z"}
    full = {"code": "concurrency", "reason": "1 of 1 runs are open", "until": None}
    unmet = {"code": "window_closed", "reason": "both", "until": closed["until"], "verdicts": [closed, full]}
    job = {"id": RUN, "namespace": "flights", "schedule": "land", "version": 1, "state": "pending_constraint"}
    job |= {"trigger": "time", "unmet": unmet}
    api.answers[f"GET /jobs/{RUN}"] = (200, job)
    api.answers["GET /jobs"] = (200, {"items": [job]})
    assert main.run(["job", "get", RUN]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("")
    assert lines[at + 1].split() == ["HELD", "BACK", "BY", "NEXT", "CHECK", "WHY"]
    assert lines[at + 2].split() == ["window_closed", "2026-11-20", "22:00:00Z", *"the window opens at 22:00".split()]
    assert lines[at + 3].split()[:2] == ["concurrency", "-"]
    assert main.run(["job", "list"]) == 0
    assert "22:00:00Z" in capsys.readouterr().out.splitlines()[1]


def test_given_a_schedule_without_its_namespace_then_usage_says_how_to_write_it(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["why", "nope"]) == 2
    assert "nope: is neither NAMESPACE/NAME nor the id" in capsys.readouterr().err
    assert api.asked == []

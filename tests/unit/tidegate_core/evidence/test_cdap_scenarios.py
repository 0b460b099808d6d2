"""CDAP's test scenarios TS-01 to TS-03 as their rows state them; TS-04 to TS-08 are in `test_cdap_updates.py`."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, Doc, a_request, on_data
from tests.support.harness.story_bench import Story, brought, schedule_of

FIVE_MINUTES: Doc = {"type": "since_last_run", "at_least": "5m"}
PARTS = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("on_unmet", "runs"),
    [
        pytest.param("abort", [["a"]], id="each later one is dropped"),
        pytest.param("wait", [["a"], ["b", "c", "d", "e"]], id="they become one run that follows"),
    ],
)
def test_ts_01_given_any_new_data_and_a_minimum_interval_then_one_run_and_the_others_as_it_says(
    on_unmet: str, runs: list[list[str]]
) -> None:
    """TS-01: any new data partition, at least 5 min since the last run, 5 of them spread over 5 min."""
    story = Story()
    story.apply("any", on_data(), {**FIVE_MINUTES, "on_unmet": on_unmet})
    story.data(*PARTS, apart=MINUTE)
    story.run(30 * MINUTE)
    assert [brought(story, number) for number in range(len(story.started))] == runs
    assert story.words("any").count("skipped/ran_recently") == (4 if on_unmet == "abort" else 0)


def test_ts_02_given_other_arguments_then_the_run_after_the_update_has_them() -> None:
    """TS-02: properties as arguments; redeployed with new ones: run 1 has the old ones, run 2 the new ones."""
    story = Story()
    each_minute: Doc = {"type": "cron", "expression": "* * * * *"}
    story.apply("timed", each_minute, args=["old"])
    story.run(MINUTE)
    story.apply("timed", each_minute, args=["new"])
    story.run(MINUTE)
    assert [order.args for order in story.started] == [("old",), ("new",)]


def test_ts_03_given_several_schedules_of_an_application_then_only_what_was_applied_changes() -> None:
    """TS-03: what is not applied is not touched; added, changed and removed ones are what is listed and triggered, and the
    unchanged one keeps its status and its pending job. (An application is a set of files here: each is applied or deleted.)
    """
    story = Story()
    for name in ("kept", "changed", "removed"):
        story.apply(name, on_data(name, count=2))
        story.data("d1", dataset=name)
    story.data("d1", dataset="added", apart=SECOND)
    assert story.started == [], "false: the new one is not there, and never fires"

    story.apply("kept", on_data("kept", count=2))
    story.apply("changed", on_data("changed", count=1))
    story.apply("added", on_data("added", count=1))
    story.request(a_request("delete", "removed"))
    assert [receipt["status"] for receipt in story.receipts().values()].count("unchanged") == 1
    for name in ("kept", "changed", "removed", "added"):
        story.data("d2", dataset=name, apart=SECOND)
    begun = {schedule_of(order): brought(story, number) for number, order in enumerate(story.started)}
    assert begun == {"kept": ["d1", "d2"], "changed": ["d2"], "added": ["d2"]}

"""A turn of those that make up for the past: one deadline for all that wait when it begins."""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.decisions.run_plane.pacing import Pacing
from tidegate_testkit.builders import MINUTE, NOW, a_job


def test_given_a_turn_whose_time_is_up_then_it_ends_who_has_waited_as_long_and_not_who_came_since() -> None:
    """Found by worlds with a rate: a job of an outage that another one had followed expired as soon as it was made."""
    pacing = Pacing(None, turn=NOW)
    before = replace(a_job(1), catch_up=True, deadline=NOW - MINUTE)
    since = replace(a_job(2), catch_up=True, deadline=NOW + MINUTE)
    assert [pacing.in_turn(job, MINUTE, NOW).deadline for job in (before, since)] == [NOW, NOW + MINUTE]


def test_given_no_turn_then_its_time_begins_with_it() -> None:
    job = replace(a_job(1), catch_up=True, deadline=NOW - MINUTE)
    assert Pacing(None).in_turn(job, MINUTE, NOW) == replace(job, in_turn=True, deadline=NOW + MINUTE)

"""One story for each reason code: production decisions bring it about, and `why` says it word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.tidegate_core.explain.why import (
    stories_of_ends,
    stories_of_instants,
    stories_of_jobs,
    stories_of_schedules,
    stories_of_upstreams,
)
from tests.unit.tidegate_core.explain.why.stories import STORIES, Story
from tests.unit.tidegate_core.explain.why.telling import told
from tidegate_core.explain.why.reason import CODES, FAMILIES, reasons_page

MODULES = (stories_of_ends, stories_of_instants, stories_of_jobs, stories_of_schedules, stories_of_upstreams)
PAGE = Path(__file__).parents[5] / "docs" / "reasons.md"


@pytest.mark.parametrize("story", [pytest.param(each, id=each.code) for each in STORIES])
def test_given_each_code_then_its_story_is_told_word_for_word(story: Story) -> None:
    explanation = story.tell()
    assert tuple(told(explanation)) == story.expected
    assert story.code in {each.code for each in explanation.reasons}


def test_given_the_closed_list_then_each_code_has_its_story() -> None:
    assert all(each.tell.__module__ in {module.__name__ for module in MODULES} for each in STORIES)
    assert sorted(each.code for each in STORIES) == sorted(CODES)


def test_given_the_documentations_page_then_it_is_made_of_the_list() -> None:
    assert PAGE.read_text(encoding="utf-8") == reasons_page()


def test_given_the_families_then_no_code_stands_in_two_of_them() -> None:
    assert len(CODES) == sum(len(family) for family in FAMILIES.values())

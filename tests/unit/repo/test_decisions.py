"""Decision pages are numbered without gaps or twins, and each has context, decision and consequences."""

import re
from pathlib import Path

import pytest

NAME = re.compile(r"^(\d{4})-[a-z0-9-]+\.md$")
SECTIONS = ("## Context", "## Decision", "## Consequences")


@pytest.fixture(scope="module")
def pages(root: Path) -> list[Path]:
    return sorted((root / "docs" / "internals" / "decisions").glob("*.md"))


def test_given_decision_pages_then_their_numbers_count_up_from_one(pages: list[Path]) -> None:
    numbers = [NAME.match(page.name) for page in pages]
    assert all(numbers), f"a page is called 0001-<words>.md: {[page.name for page in pages]}"
    assert [int(match[1]) for match in numbers if match] == list(range(1, len(pages) + 1))


def test_given_a_decision_page_then_it_has_the_three_sections(pages: list[Path]) -> None:
    missing = [(page.name, section) for page in pages for section in SECTIONS if section not in page.read_text()]
    assert missing == []

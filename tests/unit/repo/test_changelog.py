"""The changelog can be read by people and by tools: newest first, dated, in known sections, in step with the version."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
RELEASE = re.compile(r"^\[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2}|unreleased)$")
SECTIONS = frozenset({"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"})


@pytest.fixture(scope="module")
def changelog(root: Path) -> str:
    return (root / "CHANGELOG.md").read_text()


def _releases(changelog: str) -> list[tuple[str, str]]:
    found = [RELEASE.match(heading) for heading in HEADING.findall(changelog)]
    assert all(found), "each second-level heading reads '[1.2.3] - 2026-01-31' or '[1.2.3] - unreleased'"
    return [(match[1], match[2]) for match in found if match]


def test_given_releases_then_they_are_ordered_newest_first(changelog: str) -> None:
    versions = [Version(version) for version, _ in _releases(changelog)]
    assert versions == sorted(set(versions), reverse=True)


def test_given_releases_then_only_the_newest_may_lack_a_real_date(changelog: str) -> None:
    dates = [day for _, day in _releases(changelog)]
    assert "unreleased" not in dates[1:]
    assert [day for day in dates if day != "unreleased" and date.fromisoformat(day).year < 2025] == []


def test_given_the_project_version_then_it_is_the_newest_in_the_changelog(
    changelog: str, pyproject: dict[str, Any]
) -> None:
    assert _releases(changelog)[0][0] == pyproject["project"]["version"]


def test_given_sections_then_each_has_a_known_name_and_an_entry(changelog: str) -> None:
    parts = re.split(r"^### (.+)$", changelog, flags=re.MULTILINE)[1:]
    assert parts
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        assert name in SECTIONS
        assert body.strip().startswith("- ")

"""The page of settings is generated from the classes: each setting has a meaning, and each number a unit or a reason for none."""

from __future__ import annotations

from pathlib import Path

from tidegate_cli.setting_views import setting_views
from tidegate_cli.settings_page import settings_page

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"
PLAIN = {"TIDEGATE_KAFKA__ALLOW_PLAINTEXT": "true"}
WITHOUT_UNIT = frozenset({"port", "replication_factor"})


def test_given_the_settings_classes_then_the_page_is_as_generated() -> None:
    assert settings_page() == PAGE.read_text(encoding="utf-8"), "run `make schemas`"


def test_given_a_setting_then_it_has_a_meaning() -> None:
    for process in ("node", "api", "cli"):
        for view in setting_views(process, PLAIN):
            assert view.description, view.id


def test_given_a_number_then_it_has_a_unit() -> None:
    for process in ("node", "api"):
        for view in setting_views(process, PLAIN):
            is_number = isinstance(view.value, int | float) and not isinstance(view.value, bool)
            assert bool(view.unit) == is_number or view.name.rpartition(".")[2] in WITHOUT_UNIT, view.id

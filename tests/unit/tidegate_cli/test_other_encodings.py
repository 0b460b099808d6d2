"""Output where the locale is not UTF-8: a log or a reason may have characters that it lacks."""

from __future__ import annotations

import io
import json
import sys

import pytest
import yaml

from tests.unit.tidegate_cli.conftest import RUN, FakeApi, a_run
from tests.unit.tidegate_cli.test_following import a_piece
from tidegate_cli import main

REASON = "grüße → 🎉"
ESCAPED = "grüße \\u2192 \\U0001f389"


def in_latin(*arguments: str) -> str:
    """Returns what comes out, under a locale such as de_DE.ISO-8859-1."""
    written = io.BytesIO()
    with io.TextIOWrapper(written, encoding="latin-1") as stdout, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        assert main.run(arguments) == 0
        stdout.flush()
        return written.getvalue().decode("latin-1")


def test_given_a_log_or_a_table_then_what_the_encoding_lacks_is_escaped(api: FakeApi) -> None:
    """It ended in a traceback."""
    api.answers[f"GET /runs/{RUN}/logs"] = a_piece(f"{REASON}\n", 0, 10, ended=True)
    api.answers["GET /runs"] = (200, {"items": [a_run(reason=REASON)]})
    assert in_latin("run", "logs", RUN) == f"{ESCAPED}\n"
    assert ESCAPED in in_latin("run", "list").splitlines()[-1]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_given_a_document_then_it_is_escaped_by_its_own_rules(api: FakeApi, output: str) -> None:
    api.answers["GET /runs"] = (200, {"items": [a_run(reason=REASON)]})
    text = in_latin("run", "list", "-o", output)
    (run,) = json.loads(text) if output == "json" else yaml.safe_load(text)
    assert run["reason"] == REASON


def test_given_the_help_then_it_is_shown() -> None:
    assert "TIDEGATE_KAFKA__" in in_latin("api", "--help")

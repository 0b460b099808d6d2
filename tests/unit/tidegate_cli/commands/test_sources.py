"""`tidegate source`: files of sources, and what is asked of the API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.tidegate_cli.conftest import RECEIPT, FakeApi
from tidegate_cli import main

SOURCE = """\
kind: source
namespace: flights
name: landed
topic: lake.commits
event:
  dataset: raw
  partition: {pointer: /day}
"""
VIEW = {
    "namespace": "flights",
    "name": "landed",
    "status": "open",
    "version": 2,
    "topic": "lake.commits",
    "spec": {"a": 1},
}


def test_given_a_file_of_sources_then_each_is_applied(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["PUT /sources/flights/landed"] = (200, RECEIPT)
    api.answers["PUT /sources/flights/other"] = (200, RECEIPT)
    file = tmp_path / "sources.yaml"
    file.write_text(SOURCE + "---\n" + SOURCE.replace("landed", "other"))
    assert main.run(["source", "apply", "-f", str(file), "--reason", "first"]) == 0
    assert [json.loads(each.content)["name"] for each in api.asked] == ["landed", "other"]
    assert api.asked[0].url.params["reason"] == "first"
    assert "accepted" in capsys.readouterr().out


def test_given_a_problem_then_its_line_is_named(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = {"field": "event.partition.pointer", "problem": "is no JSON pointer", "hint": "begin it with a slash"}
    api.answers["PUT /sources/flights/landed"] = (400, {"title": "Bad Request", "status": 400, "errors": [problem]})
    file = tmp_path / "landed.yaml"
    file.write_text(SOURCE)
    assert main.run(["source", "apply", "-f", str(file)]) == 2
    said = capsys.readouterr().err
    assert f"{file}:7: source flights/landed: event.partition.pointer: is no JSON pointer" in said
    assert "1 of 1 sources were not applied" in said


def test_given_a_file_without_any_then_usage(api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.yaml").write_text("---\n")
    assert main.run(["source", "apply", "-f", str(tmp_path)]) == 2
    assert "has no source" in capsys.readouterr().err


def test_given_sources_then_they_are_listed_and_shown(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.answers["GET /sources"] = (200, {"items": [VIEW], "next_page_token": ""})
    api.answers["GET /sources/flights/landed"] = (200, VIEW)
    assert main.run(["source", "list", "-n", "flights"]) == 0
    assert "lake.commits" in capsys.readouterr().out
    assert api.asked[0].url.params["namespace"] == "flights"
    assert main.run(["source", "get", "flights/landed", "--spec"]) == 0
    assert capsys.readouterr().out == "a: 1\n"
    assert main.run(["source", "get", "landed"]) == 2
    assert "write the source as NAMESPACE/NAME" in capsys.readouterr().err


def test_given_a_delete_then_the_version_is_asked_for(api: FakeApi) -> None:
    api.answers["DELETE /sources/flights/landed"] = (200, RECEIPT)
    assert main.run(["source", "delete", "flights/landed", "--expected-version", "2"]) == 0
    assert api.asked[0].url.params["expected_version"] == "2"

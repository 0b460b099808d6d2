"""Files that no schedule can be read from: one line that says where and why, and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.tidegate_cli.conftest import SCHEDULE, FakeApi
from tidegate_cli import main
from tidegate_cli.documents import DEPTH_MAX, read_documents
from tidegate_cli.exits import CommandFailed

HEAD = "namespace: flights\nname: land\n"
DEEP = {
    "lists": "[" * 3_000 + "]" * 3_000,
    "mappings": "{a: " * 3_000 + "1" + "}" * 3_000,
    "blocks": "\n" + "\n".join(" " * (level + 1) + "a:" for level in range(800)) + " 1",
    "dashes": "\n  " + "- " * 3_000 + "1",
}


@pytest.mark.parametrize("deep", DEEP.values(), ids=DEEP)
def test_given_a_value_that_is_nested_too_deeply_then_its_line_is_told_and_no_traceback(
    tmp_path: Path, deep: str
) -> None:
    """A newcomer's file ended in 3,000 lines of RecursionError."""
    (tmp_path / "a.yaml").write_text(f"{HEAD}x: {deep}\n")
    with pytest.raises(CommandFailed, match=rf"a\.yaml:\d+: is nested more than {DEPTH_MAX} levels deep"):
        read_documents(tmp_path / "a.yaml")


def test_given_as_many_levels_as_are_allowed_then_the_document_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{HEAD}x: {'[' * DEPTH_MAX}{']' * DEPTH_MAX}\n")
    (document,) = read_documents(tmp_path / "a.yaml")
    assert document.title == "flights/land"
    (tmp_path / "a.yaml").write_text(f"{HEAD}x: {'[' * (DEPTH_MAX + 1)}{']' * (DEPTH_MAX + 1)}\n")
    with pytest.raises(CommandFailed, match="nested"):
        read_documents(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    "command", [["schedule", "apply", "-f"], ["schedule", "next", "-f"], ["source", "apply", "-f"]]
)
def test_given_a_deep_file_then_each_command_ends_with_usage(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    (tmp_path / "a.yaml").write_text(f"{HEAD}x: {DEEP['lists']}\n")
    assert main.run([*command, str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert api.asked == []


def test_given_a_payload_that_is_no_json_then_its_line_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`schedule next` and `simulate` ended in a traceback."""
    file = tmp_path / "a.yaml"
    trigger = "trigger: {type: every, period: 1h}\n"
    file.write_text(f"{HEAD}{trigger}target:\n  type: message\n  topic: t\n  payload: !!binary aGk=\n")
    span = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z"]
    for command in (["schedule", "next", "-f", str(file)], ["simulate", str(file), *span]):
        assert main.run(command) == 2
        assert "target.payload: contains what JSON cannot hold" in capsys.readouterr().err


def test_given_json_that_is_nested_too_deeply_in_an_option_then_one_line_says_so(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = "[" * 50_000
    assert main.run(["event", "send", "-n", "a", "--type", "custom.x", "--data", deep]) == 2
    assert capsys.readouterr().err == "tidegate: --data: is nested too deeply\n"
    assert api.asked == []


@pytest.mark.parametrize("kind", ["schedule", "source"])
def test_given_two_documents_of_one_name_then_both_places_are_told_and_nothing_is_sent(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """The last one won silently, and each further apply restarted what was pending, twice."""
    land = SCHEDULE.replace("kind: schedule", f"kind: {kind}")
    (tmp_path / "a.yaml").write_text(land + "---\n" + land.replace("name: land", "name: other"))
    (tmp_path / "b.yaml").write_text(land)
    assert main.run([kind, "apply", "-f", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error == (
        f"tidegate: {tmp_path}/b.yaml:1: {kind} flights/land stands at {tmp_path}/a.yaml:1 already; "
        f"give each {kind} a name of its own\n"
    )
    assert api.asked == []


def test_given_a_folder_as_kubernetes_mounts_it_then_each_definition_stands_there_once(tmp_path: Path) -> None:
    """Each file of a ConfigMap is a link into a hidden folder beside it: both were read, and refused as two of one name."""
    kept = tmp_path / "..2026_11_20_22_00_00.17"
    kept.mkdir()
    (kept / "land.yaml").write_text(HEAD)
    (tmp_path / "..data").symlink_to(kept.name)
    (tmp_path / "land.yaml").symlink_to("..data/land.yaml")
    (tmp_path / ".land.yaml").write_text(HEAD)  # An editor's.
    (document,) = read_documents(tmp_path)
    assert document.path == tmp_path / "land.yaml"


def test_given_a_hidden_folder_by_its_name_then_it_is_read(tmp_path: Path) -> None:
    folder = tmp_path / ".tidegate" / "flights"
    folder.mkdir(parents=True)
    (folder / "land.yaml").write_text(HEAD)
    assert [document.title for document in read_documents(tmp_path / ".tidegate")] == ["flights/land"]

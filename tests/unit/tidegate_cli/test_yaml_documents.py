"""Files that no schedule can be read from: one line that says where and why, and never a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from tests.unit.tidegate_cli.conftest import SCHEDULE, FakeApi
from tidegate_cli import main
from tidegate_cli.exit_codes import CommandFailed
from tidegate_cli.yaml_documents import DEPTH_MAX, TEXT_PLACES, read_documents
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.values.document import Text

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
        f"tidegate: {tmp_path}/b.yaml:1: {kind} flights/land is already defined at {tmp_path}/a.yaml:1; "
        f"give each {kind} its own name\n"
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


def read(folder: Path, text: str) -> dict[str, Any]:
    (folder / "a.yaml").write_text(f"{HEAD}{text}\n")
    (document,) = read_documents(folder / "a.yaml")
    return {name: value for name, value in document.spec.items() if name not in {"namespace", "name"}}


def test_given_norway_in_a_filter_then_it_stays_a_country(tmp_path: Path) -> None:
    """`NO` was false, and no event from Norway ever counted."""
    assert read(tmp_path, "where: {field: /data/country, in: [SE, NO, DK]}") == {
        "where": {"field": "/data/country", "in": ["SE", "NO", "DK"]}
    }


@pytest.mark.parametrize("place", ["args", "conf", "env", "properties", "labels"])
def test_given_texts_of_a_program_without_quotes_then_they_are_what_stands_there(tmp_path: Path, place: str) -> None:
    """`[NO, 1.10, 0x1F, 1_000]` came to the program as `false 1.1 31 1000`."""
    words = [
        "NO",
        "1.10",
        "0x1F",
        "1_000",
        "on",
        "True",
        "1e3",
        "010",
        "22:00",
        "2026-01-01",
        "1.0",
        "0",
        "-0",
        ".5",
        ".nan",
    ]
    given = f"[{', '.join(words)}]" if place == "args" else json.dumps(dict.fromkeys(words, "@")).replace('"@"', "%s")
    line = f"{place}: {given if place == 'args' else given % tuple(words)}"
    spec = read(tmp_path, line if place == "labels" else f"target: {{program: {{{line}}}}}")
    found = spec["labels"] if place == "labels" else spec["target"]["program"][place]
    assert found == (words if place == "args" else {each: each for each in words})


def test_given_a_merged_mapping_then_its_texts_are_what_stands_there_and_an_own_one_wins(tmp_path: Path) -> None:
    spec = read(tmp_path, "target: {program: {env: &base {A: NO, B: 1.10}, conf: {<<: *base, B: 1.20}}}")
    assert spec["target"]["program"] == {"env": {"A": "NO", "B": "1.10"}, "conf": {"A": "NO", "B": "1.20"}}


def test_given_all_fields_of_texts_then_their_places_are_known() -> None:
    """A field that takes numbers as texts, and is not in the list, would change `1.10` to `1.1`."""
    found = {path for path in text_fields(ScheduleSpec, ()) if path}
    assert found == set(TEXT_PLACES)


def text_fields(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yields the paths of fields that hold `Text`, in lists or mappings as well."""
    reads_texts = get_args(Text)[1]
    for name, field in model.model_fields.items():
        here = (*path, field.alias or name)
        for part in parts_of([field.annotation, *field.metadata]):
            if part == reads_texts:
                yield here
            elif isinstance(part, type) and issubclass(part, BaseModel) and len(path) < 4:
                yield from text_fields(part, here)


def parts_of(annotations: list[Any]) -> Iterator[Any]:
    for each in annotations:
        yield each
        yield from parts_of([*get_args(each), *getattr(each, "__metadata__", ())])


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("expression: */5 * * * *", "*/5 * * * *"),
        ("expression: * * * * *  # each minute", "* * * * *"),
        ("expression: *5", "*5"),
        ("expression: @daily", "@daily"),
        ("trigger: {type: cron, expression: */5 * * * *, zone: UTC}", "*/5 * * * *"),
        ("args: [%d]", "%d"),
    ],
)
def test_given_a_text_that_begins_with_a_sign_of_yaml_then_its_line_says_quote_it(
    tmp_path: Path, line: str, quoted: str
) -> None:
    """It said "expected alphabetic or numeric character, but found '/'"."""
    with pytest.raises(CommandFailed, match=r"a\.yaml:3: .*; quote it: ") as failure:
        read(tmp_path, line)
    assert str(failure.value).endswith(f'; quote it: "{quoted}"')


@pytest.mark.parametrize("line", ["expression: 0 6: x", "args: [{{ ds }}]"])
def test_given_a_colon_or_braces_within_a_text_then_the_line_says_to_quote_it(tmp_path: Path, line: str) -> None:
    with pytest.raises(CommandFailed, match="quote a text with a colon or braces in it"):
        read(tmp_path, line)


def test_given_a_number_as_name_then_the_line_says_to_quote_it(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("namespace: flights\nname: 2026\n")
    with pytest.raises(CommandFailed, match="name is missing or no text; quote a number"):
        read_documents(tmp_path / "a.yaml")


def test_given_decimals_in_the_payload_of_a_file_then_their_digits_are_sent(api: FakeApi, tmp_path: Path) -> None:
    trigger = "trigger: {type: every, period: 1h}"
    target = "target: {type: message, topic: t, payload: {price: 19.90, count: 3, share: 0.5}}"
    (tmp_path / "a.yaml").write_text(f"{HEAD}{trigger}\n{target}\n")
    main.run(["schedule", "apply", "-f", str(tmp_path / "a.yaml")])
    assert b'"payload":{"price":19.90,"count":3,"share":0.5}' in api.asked[0].content

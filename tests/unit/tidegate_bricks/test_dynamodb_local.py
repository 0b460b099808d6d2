"""What is particular to DynamoDB Local, without running it."""

from pathlib import Path

import pytest

from tidegate_bricks.dynamodb_local import DynamoDbBrick, answers_list_tables
from tidegate_bricks.errors import BrickFailed, BrickUnavailable, PortTaken
from tidegate_bricks.free_ports import LOOPBACK, free_port
from tidegate_bricks.java_runtime import Java

JAVA = Java(Path("/opt/java/bin/java"), 17, "amd64", "Linux")
JARS = Path("/jars")


def arguments(brick: DynamoDbBrick, java: Java = JAVA) -> list[str]:
    brick.choose_ports()
    return brick.arguments(java, JARS)


def test_given_folder_then_tables_are_kept_there(tmp_path: Path) -> None:
    options = arguments(DynamoDbBrick(tmp_path))
    assert options[options.index("-dbPath") + 1] == str(tmp_path)
    assert "-inMemory" not in options


def test_given_no_folder_then_tables_are_in_memory() -> None:
    options = arguments(DynamoDbBrick(None))
    assert "-inMemory" in options
    assert "-dbPath" not in options


def test_given_any_brick_then_nothing_is_reported_to_amazon_and_native_library_is_found(tmp_path: Path) -> None:
    options = arguments(DynamoDbBrick(tmp_path))
    assert {"-disableTelemetry", "-sharedDb", "-Djava.library.path=/jars"} <= set(options)


@pytest.mark.parametrize(
    ("system", "architecture"),
    [("Linux", "aarch64"), ("Mac OS X", "aarch64"), ("Windows 11", "amd64")],
)
def test_given_machine_without_native_library_then_error_names_it(system: str, architecture: str) -> None:
    java = Java(JAVA.executable, 17, architecture, system)
    with pytest.raises(
        BrickUnavailable, match=f"no native library for {system} on {architecture}; use a Java for x86-64"
    ):
        arguments(DynamoDbBrick(None), java)


def test_given_port_then_endpoint_is_a_url() -> None:
    port = free_port()
    brick = DynamoDbBrick(None, port=port)
    brick.choose_ports()
    assert brick.endpoint == f"http://127.0.0.1:{port}"


def test_given_new_brick_then_its_endpoint_is_not_known_yet() -> None:
    with pytest.raises(BrickFailed, match="never started"):
        _ = DynamoDbBrick(None).endpoint


def test_given_port_that_was_asked_for_is_taken_then_error_names_it(taken_port: int) -> None:
    with pytest.raises(PortTaken, match=f"port {taken_port} is taken"):
        DynamoDbBrick(None, port=taken_port).choose_ports()


def test_given_preferred_port_taken_then_another_is_chosen(taken_port: int) -> None:
    brick = DynamoDbBrick(None, preferred_port=taken_port)
    brick.choose_ports()
    assert brick.port != taken_port


def test_given_nobody_listens_then_nothing_answers() -> None:
    assert not answers_list_tables(LOOPBACK, free_port())


def test_given_it_listens_everywhere_then_the_note_says_so() -> None:
    note = DynamoDbBrick(None).note
    assert note is not None
    assert "all network interfaces" in note

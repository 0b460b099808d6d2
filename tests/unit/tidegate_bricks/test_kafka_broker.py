"""What is particular to the broker, without running one."""

from pathlib import Path

import pytest

from tidegate_bricks.broker_config import ExtraListener
from tidegate_bricks.errors import BrickFailed, BrickUnavailable, PortTaken
from tidegate_bricks.free_ports import free_port
from tidegate_bricks.java_runtime import Java
from tidegate_bricks.kafka_broker import KafkaBrick

JAVA = Java(Path("/opt/java/bin/java"), 17, "amd64", "Linux")


def test_given_new_brick_then_its_endpoint_is_not_known_yet(tmp_path: Path) -> None:
    with pytest.raises(BrickFailed, match=r"Kafka 4\.1\.1 was never started"):
        _ = KafkaBrick(tmp_path).endpoint


def test_given_preferred_port_taken_then_another_is_chosen(tmp_path: Path, taken_port: int) -> None:
    brick = KafkaBrick(tmp_path, preferred_port=taken_port)
    brick.choose_ports()
    assert brick.ports.clients not in {taken_port, brick.ports.controller}
    assert brick.bootstrap_servers == f"127.0.0.1:{brick.ports.clients}"


@pytest.mark.parametrize("asked", ["port", "controller_port", "extra_listeners"])
def test_given_port_that_was_asked_for_is_taken_then_error_names_it(
    tmp_path: Path, taken_port: int, asked: str
) -> None:
    brick = {
        "port": lambda: KafkaBrick(tmp_path, port=taken_port),
        "controller_port": lambda: KafkaBrick(tmp_path, controller_port=taken_port),
        "extra_listeners": lambda: KafkaBrick(tmp_path, extra_listeners=[ExtraListener("PROXY", taken_port, 1)]),
    }[asked]()
    with pytest.raises(PortTaken, match=f"port {taken_port} is taken"):
        brick.choose_ports()


def test_given_new_folder_then_it_is_formatted_and_the_broker_starts_with_the_written_settings(tmp_path: Path) -> None:
    port = free_port()
    brick = KafkaBrick(tmp_path, port=port, extra_config={"num.io.threads": "7"})
    brick.choose_ports()
    arguments = brick.arguments(JAVA, Path("/jars"))
    settings = Path(arguments[-1])
    assert arguments[-4:-1] == ["-cp", "/jars/*", "kafka.Kafka"]
    assert f"listeners=CLIENTS://127.0.0.1:{port}," in settings.read_text()
    assert "num.io.threads=7" in settings.read_text()
    assert sorted(file.name for file in (tmp_path / "log").iterdir()) == ["bootstrap.checkpoint", "meta.properties"]


def test_given_folder_with_comma_then_it_is_refused(tmp_path: Path) -> None:
    brick = KafkaBrick(tmp_path / "a,b")
    brick.choose_ports()
    with pytest.raises(BrickUnavailable, match="comma"):
        brick.arguments(JAVA, Path("/jars"))

"""Errors say what happened and what to do."""

from pathlib import Path

from tidegate_bricks.errors import BrickFailed, BrickUnavailable


def test_given_something_missing_then_message_has_the_remedy() -> None:
    error = BrickUnavailable("no Java was found", "install Java 17")
    assert str(error) == "no Java was found; install Java 17"


def test_given_failure_with_log_then_message_shows_where_and_how_it_ends() -> None:
    error = BrickFailed("Kafka ended with status 1", Path("/data/kafka.log"), "first\nlast")
    assert str(error) == "Kafka ended with status 1; its log is /data/kafka.log, which ends with:\nfirst\nlast"


def test_given_failure_without_log_then_message_is_plain() -> None:
    assert str(BrickFailed("Kafka is not running")) == "Kafka is not running"

"""Local Kafka and DynamoDB servers ("bricks") of a stack: starts the needed ones and adapts them for the supervisor."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from tidegate_bricks import (
    Brick,
    BrickFailed,
    BrickUnavailable,
    DynamoDbBrick,
    KafkaBrick,
    Progress,
    start_together,
)
from tidegate_cli.dev.child_environment import Endpoints
from tidegate_cli.dev.console import StackConsole
from tidegate_cli.dev.errors import StackFailed
from tidegate_cli.dev.options import DYNAMODB_PORT, KAFKA_PORT
from tidegate_cli.dev.stack_events import ComponentReady, Fetching, Notice
from tidegate_cli.dev.stack_folder import StackFolder


def require_local_extra() -> None:
    """Raises StackFailed if PySpark is missing. It runs the programs, and its Ivy fetches the jars of the local servers."""
    if importlib.util.find_spec("pyspark") is None:
        raise StackFailed("`tidegate dev` needs PySpark", "pip install 'tidegate[local]'")


class SupervisedBrick:
    """Adapter of a brick for the supervisor; `start` blocks until the brick answers."""

    def __init__(self, brick: Brick) -> None:
        self._brick = brick

    @property
    def name(self) -> str:
        return self._brick.name

    @property
    def log(self) -> Path:
        return self._brick.log_path

    @property
    def running(self) -> bool:
        return self._brick.running

    @property
    def ready(self) -> bool:
        return self._brick.running

    @property
    def ending(self) -> str:
        return "ended"

    def start(self) -> None:
        self._brick.start()


class LocalBricks:
    """Local servers for the endpoints that the user's settings do not name.

    Attributes:
        kafka: Local broker; None if the settings name one.
        dynamodb: Local store; None if the settings name one.
    """

    def __init__(self, endpoints: Endpoints, folder: StackFolder, console: StackConsole) -> None:
        self._console = console
        self.kafka: KafkaBrick | None = None
        self.dynamodb: DynamoDbBrick | None = None
        if endpoints.kafka is None:
            self.kafka = KafkaBrick(folder.kafka, preferred_port=KAFKA_PORT, listener=self._fetching)
        if endpoints.dynamodb is None:
            self.dynamodb = DynamoDbBrick(folder.dynamodb, preferred_port=DYNAMODB_PORT, listener=self._fetching)

    @property
    def started(self) -> Sequence[Brick]:
        return [brick for brick in (self.kafka, self.dynamodb) if brick is not None]

    def start(self) -> None:
        """Starts the servers concurrently.

        Raises:
            StackFailed: A server could not be started; the others are stopped.
        """
        if not self.started:
            return
        try:
            seconds = start_together(self.started)
        except BrickUnavailable as error:
            raise StackFailed(error.what, error.remedy) from error
        except BrickFailed as error:
            raise StackFailed(str(error)) from error
        for brick, took in zip(self.started, seconds, strict=True):
            self._console.show(
                ComponentReady(
                    component=brick.name, seconds=took, where=brick.endpoint, log=str(brick.log_path), note=brick.note
                )
            )
        self._tell_of_other_ports()

    def _tell_of_other_ports(self) -> None:
        for brick, usual in ((self.kafka, KAFKA_PORT), (self.dynamodb, DYNAMODB_PORT)):
            if brick is not None and brick.port != usual:
                self._console.show(
                    Notice(component=brick.name, text=f"port {usual} is taken; {brick.name} uses {brick.port}")
                )

    def _fetching(self, progress: Progress) -> None:
        self._console.show(
            Fetching(
                component=progress.brick,
                stage=progress.stage.value,
                files_done=progress.files_done,
                files_total=progress.files_total,
                kilobytes_done=progress.kilobytes_done,
            )
        )

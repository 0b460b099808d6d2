"""Local bricks: a real Kafka broker and DynamoDB Local without Docker, for `tidegate dev`, the demo and the tests."""

from tidegate_bricks.broker_config import ExtraListener
from tidegate_bricks.download_progress import Progress, ProgressListener, Stage
from tidegate_bricks.dynamodb_local import DynamoDbBrick
from tidegate_bricks.errors import BrickFailed, BrickUnavailable, PortTaken
from tidegate_bricks.jar_cache import ensure_jars
from tidegate_bricks.kafka_broker import KafkaBrick
from tidegate_bricks.local_server import Brick
from tidegate_bricks.releases import DYNAMODB_LOCAL, KAFKA
from tidegate_bricks.start_group import start_together, stop_together

__all__ = [
    "DYNAMODB_LOCAL",
    "KAFKA",
    "Brick",
    "BrickFailed",
    "BrickUnavailable",
    "DynamoDbBrick",
    "ExtraListener",
    "KafkaBrick",
    "PortTaken",
    "Progress",
    "ProgressListener",
    "Stage",
    "ensure_jars",
    "start_together",
    "stop_together",
]

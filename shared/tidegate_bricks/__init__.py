"""Local bricks: a real Kafka broker and DynamoDB Local without Docker, for `tidegate dev`, the demo and the tests."""

from tidegate_bricks.brick import Brick
from tidegate_bricks.dynamodb import DynamoDbBrick
from tidegate_bricks.errors import BrickFailed, BrickUnavailable, PortTaken
from tidegate_bricks.jars import ensure_jars
from tidegate_bricks.kafka import KafkaBrick
from tidegate_bricks.kafka_config import ExtraListener
from tidegate_bricks.progress import Progress, ProgressListener, Stage
from tidegate_bricks.releases import DYNAMODB_LOCAL, KAFKA
from tidegate_bricks.together import start_together, stop_together

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

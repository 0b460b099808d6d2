"""Releases of the bricks: the modules to fetch from the package repository."""

from dataclasses import dataclass

from tidegate_bricks.jar_checksums import Manifest, load


@dataclass(frozen=True, slots=True)
class Module:
    """Coordinates of one published module; its dependencies are fetched with it."""

    organisation: str
    name: str
    revision: str


@dataclass(frozen=True, slots=True)
class Release:
    """A brick in one version.

    Attributes:
        name: Name and version; names the manifest and the folder in the cache.
        title: Name in messages.
        modules: Modules to fetch, with all dependencies.
    """

    name: str
    title: str
    modules: tuple[Module, ...]

    def manifest(self) -> Manifest:
        return load(self.name)


KAFKA = Release(
    name="kafka-4.1.1",
    title="Kafka 4.1.1",
    modules=(
        Module("org.apache.kafka", "kafka_2.13", "4.1.1"),
        # Without this binding for its logging interface the broker logs nothing, not even why it does not start.
        Module("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
    ),
)

DYNAMODB_LOCAL = Release(
    name="dynamodb-local-2.6.1",
    title="DynamoDB Local 2.6.1",
    modules=(Module("com.amazonaws", "DynamoDBLocal", "2.6.1"),),
)

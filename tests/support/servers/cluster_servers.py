"""A cluster's broker and store, and the names by which it keeps apart from other clusters there."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from tests.support.servers.servers import DynamoDbForTests, KafkaForTests


@dataclass(frozen=True, slots=True)
class ClusterServers:
    """The servers of one cluster.

    Attributes:
        prefix: Of its topics and its group; of its tables with a hyphen behind it.
    """

    kafka: KafkaForTests
    dynamodb: DynamoDbForTests
    prefix: str

    @property
    def table_prefix(self) -> str:
        return f"{self.prefix}-"

    def variables(self) -> dict[str, str]:
        """Returns the settings by which a process finds this cluster."""
        return {
            "TIDEGATE_KAFKA__BOOTSTRAP_SERVERS": self.kafka.bootstrap_servers,
            "TIDEGATE_KAFKA__ALLOW_PLAINTEXT": "true",
            "TIDEGATE_KAFKA__TOPIC_PREFIX": self.prefix,
            "TIDEGATE_KAFKA__GROUP": self.prefix,
            "TIDEGATE_DYNAMODB__ENDPOINT_URL": self.dynamodb.endpoint_url,
            "TIDEGATE_DYNAMODB__REGION": self.dynamodb.region,
            "TIDEGATE_DYNAMODB__TABLE_PREFIX": self.table_prefix,
            **self.credentials(),
        }

    def credentials(self) -> dict[str, str]:
        """Returns what a client of the store takes from its environment."""
        return {
            "AWS_ACCESS_KEY_ID": self.dynamodb.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.dynamodb.secret_access_key,
        }


def as_guest(kafka: KafkaForTests, dynamodb: DynamoDbForTests) -> ClusterServers:
    """Returns shared servers with names that no other cluster has there."""
    return ClusterServers(kafka, dynamodb, f"t{uuid.uuid4().hex[:10]}")

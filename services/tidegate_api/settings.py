"""Settings of an API process, read once, at start, and checked together.

They come from the environment (`TIDEGATE_API__PORT` is `api.port`), which wins over an optional YAML file (named by
`TIDEGATE_CONFIG`), which wins over the defaults. Settings of Kafka are the adapter's own; `bootstrap.py` adds them. Those of
the store are passed on to its adapter, which refuses unknown ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from tidegate_api.http.request_bodies import BATCH_BYTES_MAX, LARGE_TOGETHER_BYTES
from tidegate_core.language.definitions.quotas import Quota, QuotaName
from tidegate_ports.common import run_tokens
from tidegate_telemetry.log_settings import LogSection

MIB = 1_048_576
OTHERS = ("HEALTH", "LAUNCHER", "LOAD", "NAMESPACES", "NODE", "OVERLOAD", "SHARDS", "STARTUP")
"""First words of the settings that only nodes read."""


class HttpSettings(BaseModel):
    """Where the API listens.

    Attributes:
        host: Loopback by default: there is no authentication of users yet (planned for 0.4), so whoever reaches the port
            may do everything. Put an authenticating proxy in front before you open it. On loopback every request has to name
            it, or loopback, or the host of `gate.url`, in its Host header; elsewhere, unless it is 0.0.0.0 or ::, a browser's
            writes have to.
        port: 8080, where the client and the command line look.
        gate_threads: Threads for start gate and reports alone, so that lists never stand before a program's start.
        read_threads: Threads for lists and look-ups; with the gate's they stay within the store's 32 connections.
        connections_max: With more everything but `/livez` is answered 503 at once. One costs about 50 KB, and up to 128 KiB of a body that takes no room.
        large_bodies_mib_max: Of all bodies above 128 KiB under way together; one for which there is no room is answered 503
            at once. A batch takes six times its bytes until its answer: 48 MiB are some 270 MB of the 512 MiB that the
            chart gives a pod. Not below 16, the largest batch.
        drain_s: How long requests may finish after SIGTERM; above the 10 s for which a write awaits its receipt.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65_535)
    gate_threads: int = Field(default=16, ge=1, le=256)
    read_threads: int = Field(default=16, ge=1, le=256)
    connections_max: int = Field(default=1_000, ge=1)
    large_bodies_mib_max: int = Field(default=LARGE_TOGETHER_BYTES // MIB, ge=BATCH_BYTES_MAX // MIB, le=65_536)
    drain_s: int = Field(default=15, ge=0, le=600)


class DynamoConnection(BaseModel):
    """Where the store is; further fields are those of the DynamoDB adapter's settings."""

    model_config = ConfigDict(frozen=True, extra="allow")

    endpoint_url: str | None = None
    region: str | None = None
    table_prefix: str = ""


class GateSettings(BaseModel):
    """The start gate.

    Attributes:
        secret_file: Holds the secret that nodes sign run tokens with, at least 32 characters; on further lines those of before,
            while programs run that they were signed for. Without it nothing starts.
        url: Where programs find the gate. Nodes tell it to them; here its host is a name that the API answers to.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    secret_file: Path | None = None
    url: str | None = None


class ApiSettings(BaseSettings):
    """Everything that an API process is told from outside, but for Kafka's section.

    Attributes:
        data_dir: The local launcher's folder, the same as the nodes': run logs are read there.
        minimum_period_ms: The nodes' setting of this name, for all namespaces; a dry run of `apply` judges by it while no node
            serves the schedule's shard, so keep both the same.
        quotas: The nodes' setting of this name; a dry run judges by it, so keep both the same.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix="TIDEGATE_", env_nested_delimiter="__")

    api: HttpSettings = HttpSettings()
    dynamodb: DynamoConnection = DynamoConnection()
    gate: GateSettings = GateSettings()
    data_dir: Path = Path("/var/lib/tidegate")
    minimum_period_ms: int = Field(default=10_000, ge=1_000)
    quotas: dict[QuotaName, Quota] = Field(default_factory=dict, max_length=1_000)
    log: LogSection = LogSection()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what it is made with: `load_settings` has read environment and file by then, and names what is unknown."""
        return (init_settings,)

    def store_fields(self) -> dict[str, Any]:
        """Returns the store's fields that were set, for its adapter to check."""
        return self.dynamodb.model_dump(exclude_unset=True)


class SettingsInvalid(Exception):
    """The process cannot start as it is configured; the message names the setting and what to do."""


def read_secrets(settings: GateSettings) -> tuple[bytes, ...]:
    """Returns the gate's secrets (`run_tokens.read_secrets`).

    Raises:
        SettingsInvalid: No file is named, it cannot be read, or one of them is too short.
    """
    try:
        return run_tokens.read_secrets(settings.secret_file)
    except run_tokens.SecretUnusable as refusal:
        raise SettingsInvalid(str(refusal)) from refusal

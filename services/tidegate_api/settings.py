"""Settings of an API process, read once at start and checked together.

The environment (`TIDEGATE_API__PORT` is `api.port`) overrides an optional YAML file (named by `TIDEGATE_CONFIG`), which overrides
the defaults. `bootstrap.py` adds the Kafka adapter's settings. Settings of the store are passed to its adapter, which refuses
unknown ones.
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
"""Sections of settings that only nodes read."""


class HttpSettings(BaseModel):
    """Address, threads and bounds of the HTTP server.

    Attributes:
        host: Address to listen on, by default loopback. Users are not authenticated (planned for 0.4), so every client that reaches the
            port may do everything. Put an authenticating proxy in front before you open it. On loopback the Host header of every
            request must be this name, a loopback name, or the host of `gate.url`. On another address only a browser's writes
            must have such a header; on 0.0.0.0 or :: none.
        port: Port to listen on. Client and command line use 8080 by default.
        gate_threads: Threads only for start gate and reports, so that lists never delay the start of a program.
        read_threads: Threads for lists and other reads. Together with the gate's threads they must stay within the store's 32 connections.
        connections_max: Most connections. Beyond it every request except `/livez` is answered 503 at once. A connection costs about
            50 KB, and up to 128 KiB for a small body.
        large_bodies_mib_max: MiB for all bodies above 128 KiB at the same time. A body beyond it is answered 503 at once. A batch
            needs six times its bytes until its answer: 48 MiB need about 270 MB of the 512 MiB that the chart gives a pod. At least
            16, the largest batch.
        drain_s: Seconds for open requests after SIGTERM. It must be more than the 10 s for which a request awaits its receipt.
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
    """Address of the store; further fields are settings of the DynamoDB adapter."""

    model_config = ConfigDict(frozen=True, extra="allow")

    endpoint_url: str | None = None
    region: str | None = None
    table_prefix: str = ""


class GateSettings(BaseModel):
    """Secret and address of the start gate.

    Attributes:
        secret_file: File with the secret of run tokens, at least 32 characters, the same as the nodes'. Further lines hold earlier
            secrets, for programs that still run with older tokens. Without it no program starts.
        url: Base URL under which programs reach the start gate. Nodes pass it to the programs. The API accepts its host as a name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    secret_file: Path | None = None
    url: str | None = None


class ApiSettings(BaseSettings):
    """Settings of an API process without the section of Kafka.

    Attributes:
        data_dir: Folder of the local launcher, the same as the nodes'. Run logs are read from it.
        minimum_period_ms: Shortest period of a time trigger, the same as the nodes' setting. Dry runs use it while no node serves the
            schedule's shard.
        quotas: Quotas of namespaces, the same as the nodes' setting. Dry runs use it.
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
        """Takes only the given values: `load_settings` has read environment and file before, and reports unknown names."""
        return (init_settings,)

    def store_fields(self) -> dict[str, Any]:
        """Returns the given settings of the store; its adapter checks them."""
        return self.dynamodb.model_dump(exclude_unset=True)


class SettingsInvalid(Exception):
    """The process cannot start with these settings; the message names the setting and what to do."""


def read_secrets(settings: GateSettings) -> tuple[bytes, ...]:
    """Returns the gate's secrets (`run_tokens.read_secrets`).

    Raises:
        SettingsInvalid: No file is configured, it cannot be read, or a secret is too short.
    """
    try:
        return run_tokens.read_secrets(settings.secret_file)
    except run_tokens.SecretUnusable as refusal:
        raise SettingsInvalid(str(refusal)) from refusal

"""Settings of a node: each field with its unit, its default and the reason for it. Read once at the start, and checked
together.

The environment (`TIDEGATE_GATE__URL` is `gate.url`) overrides an optional YAML file (named by `TIDEGATE_CONFIG`), which
overrides the defaults. The Kafka adapter has its own settings; `bootstrap.py` adds them.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from tidegate_core.language.definitions.quotas import Quota, QuotaName
from tidegate_core.language.values.names import EVERY
from tidegate_telemetry.log_settings import LogSection

OTHERS = ("API",)
"""First words of the settings that only other services read."""


class Section(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DynamoDbSection(Section):
    """Where the store is."""

    endpoint_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="Endpoint of DynamoDB Local or of a VPC; unset is AWS's endpoint of the region.",
    )
    region: str | None = Field(default=None, description="AWS region; unset takes the region that the SDK finds.")
    table_prefix: str = Field(
        default="",
        max_length=200,
        description="Prefix of the tables `tidegate` and `tidegate-history`, so that clusters can share an account.",
    )
    connect_timeout_s: float = Field(
        default=1.0,
        gt=0,
        le=30,
        description="Time-out of a connection. Within a region it takes milliseconds, and a repeat is cheap.",
    )
    read_timeout_s: float = Field(
        default=2.0,
        gt=0,
        le=30,
        description="Time-out of an answer: above DynamoDB's slow answers, below half a Kafka session (3 s).",
    )
    connections_max: int = Field(
        default=32,
        ge=1,
        le=256,
        description="Concurrent store calls, each with a thread and a connection: 16 shards are acquired together.",
    )


class GateSection(Section):
    """The start gate: the address that programs call, and the secret that signs their requests."""

    url: str = Field(
        default="http://127.0.0.1:8080",
        pattern=r"^https?://",
        description="Base URL at which programs reach the API; the default is `tidegate api` on the same host.",
    )
    secret_file: Path | None = Field(
        default=None,
        description="File with the shared secret, at least 32 characters; nodes and API read the same one. Further lines are earlier secrets.",
    )


GATE_WAIT_S_MAX: Final = 840.0
"""One minute less than the time from a run's submission to the gate. An attempt that gives up earlier is submitted
again. A run whose time has passed fails for good.
"""


class LauncherSection(Section):
    """How the local launcher runs programs."""

    host: str = Field(
        default_factory=socket.gethostname,
        min_length=1,
        description="Name of the host in the run's row, stable over restarts. It is the host's own name, or a pod's. Programs of an earlier pod of that name count as gone.",
    )
    python: str = Field(
        default=sys.executable,
        description="Interpreter of programs. The default is the node's, which has the wrapper and PySpark.",
    )
    spark_home: Path | None = Field(
        default=None, description="Spark's home; unset takes the installed PySpark, then SPARK_HOME."
    )
    spark_master: str = Field(
        default="local[2]",
        description="Spark master of programs whose conf names none; two threads leave a laptop usable.",
    )
    gate_wait_s: float = Field(
        default=600,
        ge=0,
        le=GATE_WAIT_S_MAX,
        description="Time that a program waits for the gate; 10 min outlast a restart of the API. A program that gives up is submitted again. A run "
        "whose program has not passed within 15 min of its submission fails.",
    )
    report_wait_s: float = Field(
        default=300,
        ge=0,
        description="Time that a program retries a report; 5 min outlast a restart of store or broker.",
    )
    submit_timeout_s: float = Field(
        default=10,
        gt=0,
        description="Time-out of the start of a program's supervisor, which takes 0.1 s on an idle machine.",
    )
    cancel_grace_s: float = Field(default=60, ge=0, description="Time between SIGTERM and SIGKILL.")
    end_wait_s: float = Field(
        default=0,
        ge=0,
        description="Time that a process waits for its host's programs after an order to end; then it ends them. 0 leaves them alone. "
        "Set it for a container, which ends with its node. A process that ends without an order ends them at once.",
    )
    keep_runs_for_s: float = Field(
        default=7 * 86_400, ge=3_600, description="Time that logs and records of an attempt stay after its end."
    )
    keep_runs_bytes: int = Field(
        default=1024**3,
        ge=16 * 1024**2,
        description="Disk space for run folders. Above it the folders of the oldest ends are removed, once the store has answered for an hour after those ends.",
    )


class LoadSource(Section):
    """A page with numbers that show a load."""

    url: str = Field(
        pattern=r"^https?://", description="URL at which the node reaches a JSON document or a Prometheus text."
    )
    resources: dict[str, str] = Field(
        min_length=1,
        max_length=64,
        description="Place of each number, by the name that schedules use: a JSON pointer (`/a/b`), or the name of a Prometheus sample with its labels.",
    )

    @field_validator("url")
    @classmethod
    def _without_a_login(cls, url: str) -> str:
        if "@" in urlsplit(url).netloc:
            raise ValueError(
                "holds a user name or a password, which is not sent; make the page readable without a login"
            )
        return url


class LoadSection(Section):
    """Sources of `load` constraints, in addition to `local`, the node's own host."""

    sources: dict[str, LoadSource] = Field(
        default_factory=dict,
        max_length=64,
        description="Sources by the name that schedules use; the same on all nodes, because any of them may decide.",
    )


NamespacePattern = Annotated[str, StringConstraints(pattern=r"^(\*|[a-z0-9][a-z0-9._-]{0,127}\*?)$")]


class NamespacesSection(Section):
    """Namespaces that records of the shared topics may name: names, or prefixes that end with `*`."""

    requests: tuple[NamespacePattern, ...] = Field(
        default=EVERY,
        max_length=1_000,
        description="Namespaces of the requests topic. A record with another namespace, or none, is a dead letter of class `forbidden`.",
    )
    events: tuple[NamespacePattern, ...] = Field(
        default=EVERY,
        max_length=1_000,
        description="Namespaces of the events topic. Give other producers a separate topic and an event source: its records cannot name a namespace.",
    )


class HealthSection(Section):
    """Address of /livez, /readyz, /rolloutz and /metrics."""

    host: str = Field(
        default="127.0.0.1",
        description="Address to listen on. The default serves this host only; a pod listens on 0.0.0.0.",
    )
    port: int = Field(default=8081, ge=0, le=65_535, description="Port; the API has 8080. 0 takes a free port.")


class OverloadSection(Section):
    """When a busy node hands its shards to nodes that are at ease."""

    lag_ms: int = Field(
        default=1_000,
        ge=0,
        le=60_000,
        description="Delay of the node's event loop from which it is too busy; 0: it never gives way. Other nodes are at ease at a tenth of it.",
    )
    after_ms: int = Field(
        default=30_000, ge=1_000, le=3_600_000, description="Time for which each heartbeat must report that delay."
    )
    back_ms: int = Field(
        default=60_000,
        ge=1_000,
        le=3_600_000,
        description="Time at ease before the node takes a share again; it doubles each time, up to an hour.",
    )


class NodeSettings(BaseSettings):
    """All settings of a node except Kafka's section."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix="TIDEGATE_", env_nested_delimiter="__")

    node: str = Field(
        default_factory=socket.gethostname,
        min_length=1,
        max_length=200,
        description="Name for people, in logs and run records; the default is the host's. Decisions use a UUID per process.",
    )
    shards: int = Field(
        default=256,
        ge=1,
        le=10_000,
        description="Number of shards of a new cluster. Only `tidegate init` reads it, and it is fixed from then on; 256 fit 256 topic partitions.",
    )
    minimum_period_ms: int = Field(
        default=10_000,
        ge=1_000,
        description="Shortest period of a time trigger (ms): a run costs about 40 write units.",
    )
    quotas: dict[QuotaName, Quota] = Field(
        default_factory=dict,
        max_length=1_000,
        description="Bounds on the schedules of each namespace, `*` for all others. The same for nodes and API.",
    )
    startup_wait_s: float = Field(
        default=60,
        ge=0,
        description="Time that a start waits for a store or broker that does not answer; then exit 75, and the platform retries.",
    )
    data_dir: Path = Field(
        default=Path("/var/lib/tidegate"),
        description="Absolute; holds the local launcher's `runs/`. All nodes of one host share it, or they cannot adopt each "
        "other's runs, and the API reads the logs there.",
    )
    dynamodb: DynamoDbSection = DynamoDbSection()
    gate: GateSection = GateSection()
    launcher: LauncherSection = LauncherSection()
    load: LoadSection = LoadSection()
    health: HealthSection = HealthSection()
    overload: OverloadSection = OverloadSection()
    namespaces: NamespacesSection = NamespacesSection()
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
        """Accepts only constructor values: `load_settings` has already read environment and file, and reports unknown
        names.
        """
        return (init_settings,)

"""DynamoDB Local on this machine, without Docker: real conditions, transactions and expressions.

It is Amazon's program under Amazon's licence, downloaded and never redistributed. It shows neither conflicts between
transactions nor throttling, and its figures for consumed capacity are unreliable.
"""

import http.client
import time
from collections.abc import Sequence
from pathlib import Path

from tidegate_bricks.download_progress import ProgressListener, silent
from tidegate_bricks.errors import BrickFailed, BrickUnavailable, PortTaken
from tidegate_bricks.free_ports import ALL_INTERFACES, LOOPBACK, free_port, is_free
from tidegate_bricks.java_runtime import Java
from tidegate_bricks.java_server import QUICK_START, JavaServer
from tidegate_bricks.local_server import STOP_TIMEOUT_S
from tidegate_bricks.releases import DYNAMODB_LOCAL

#: Heap limit, MiB. The process takes about 170 MB of memory after its start (measured).
HEAP_MB = 512
ASK_TIMEOUT_S = 1.0
#: Wait before a stop; far longer than the server takes from its answer to its commit.
COMMITTED_AFTER_S = 0.3
#: Any credentials work, because `-sharedDb` keeps one set of tables for all; the key id may hold letters and digits only.
ACCESS_KEY_ID = "tidegate"
SECRET_ACCESS_KEY = "tidegate"  # noqa: S105 - it opens nothing
REGION = "us-east-1"

#: Pairs of (`os.name`, `os.arch`) for which the release contains a native SQLite library.
SUPPORTED = {("Linux", "amd64"), ("Linux", "i386"), ("Mac OS X", "x86_64")}


class DynamoDbBrick(JavaServer):
    """DynamoDB Local with its tables in a folder, or in memory only."""

    def __init__(
        self,
        data_dir: Path | None,
        *,
        port: int | None = None,
        preferred_port: int | None = None,
        heap_mb: int = HEAP_MB,
        java_options: Sequence[str] = QUICK_START,
        listener: ProgressListener = silent,
    ) -> None:
        """Prepares the server; `start` runs it.

        Args:
            data_dir: Folder of its tables, which then survive restarts, also hard ones; None keeps them in memory,
                which is several times faster, and loses them at each stop.
            port: Required port; the start fails if it is taken.
            preferred_port: Port to take if it is free and `port` is not given.
            heap_mb: Largest Java heap, in MiB.
            java_options: Further Java options.
            listener: Receives the progress of download and start.
        """
        super().__init__(DYNAMODB_LOCAL, data_dir, heap_mb, java_options, listener)
        self._in_memory = data_dir is None
        self._wanted_port = port
        self._preferred_port = preferred_port
        self._port: int | None = None

    @property
    def port(self) -> int:
        if self._port is None:
            raise BrickFailed(f"{self.release.title} was never started, so its port is not chosen")
        return self._port

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def note(self) -> str | None:
        return "listens on all network interfaces, without authentication"

    def choose_ports(self) -> None:
        if self._wanted_port is None:
            self._port = free_port(self._preferred_port, ALL_INTERFACES)
        elif is_free(self._wanted_port, ALL_INTERFACES):
            self._port = self._wanted_port
        else:
            raise PortTaken(f"port {self._wanted_port} is taken, and {self.release.title} was to listen there")

    def arguments(self, java: Java, jars: Path) -> list[str]:
        if (java.system, java.architecture) not in SUPPORTED:
            raise BrickUnavailable(
                f"{self.release.title} has no native library for {java.system} on {java.architecture}",
                "use a Java for x86-64, or name the endpoint of a DynamoDB that runs elsewhere",
            )
        storage = ["-inMemory"] if self._in_memory else ["-dbPath", str(self.data_dir)]
        return [
            f"-Djava.library.path={jars}",
            "-Djava.awt.headless=true",
            "-cp",
            f"{jars}/*",
            "com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
            *storage,
            "-sharedDb",
            "-disableTelemetry",
            "-port",
            str(self.port),
        ]

    def answers(self) -> bool:
        return answers_list_tables(LOOPBACK, self.port)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ends the server after a moment in which it commits.

        The server answers transactions before it commits them, so the last writes before any end may be lost. (In each
        of 4 rounds one of 8 clients that wrote without a pause lost its last write.) To take a store away without loss,
        `pause` it.
        """
        if self.running:
            time.sleep(COMMITTED_AFTER_S)
        super().stop(timeout_s)


def answers_list_tables(host: str, port: int) -> bool:
    """Whether a DynamoDB Local answers at `host:port` within a second."""
    # Without the AWS client, which takes a second to import, as long as the server takes to start.
    connection = http.client.HTTPConnection(host, port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("POST", "/", body="{}", headers=_LIST_TABLES)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


#: The server requires a well-formed signature and does not check it.
_LIST_TABLES = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "DynamoDB_20120810.ListTables",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": (
        f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/20260101/{REGION}/dynamodb/aws4_request, "
        "SignedHeaders=host, Signature=00"
    ),
}

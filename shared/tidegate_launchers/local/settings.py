"""Settings of the local launcher. The service's bootstrap sets them."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

ENVIRONMENT_PATTERNS = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "SSL_CERT_*",
    "REQUESTS_CA_BUNDLE",
    "[Hh][Tt][Tt][Pp]_[Pp][Rr][Oo][Xx][Yy]",
    "[Hh][Tt][Tt][Pp][Ss]_[Pp][Rr][Oo][Xx][Yy]",
    "[Nn][Oo]_[Pp][Rr][Oo][Xx][Yy]",
    "SPARK_*",
    "HADOOP_*",
    "YARN_CONF_DIR",
)


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """Settings for programs on the node's own host.

    Attributes:
        data_dir: Folder that holds `runs/`. All nodes of one host must share it, or they cannot adopt each other's
            runs.
        host: Name in the run item; the host's own name, stable over restarts of the node.
        python: Interpreter of the programs; the node's, because the wrapper and PySpark are installed there.
        spark_home: Spark installation; None takes the installed `pyspark`, then the environment's SPARK_HOME.
        spark_master: Master of programs whose conf sets none; two threads, so that a laptop stays usable.
        spark_conf: Spark settings that the program's own override. No UI: it costs a second and a port per run.
        driver_java_options: JVM flags of a driver. C1 only and the serial collector halve the CPU time of a short job
            (measured: 13 s to 7.8 s); a long-running program sets others in its conf. Collectors that a host's
            spark-defaults.conf may select are turned off: a JVM with two does not start.
        environment_patterns: Shell patterns of the variables that a program inherits from the node. A list of permitted
            names, because the node's environment holds the store's credentials and the gate's secret.
        gate_wait_s: Seconds for which a program waits for the start gate; 10 min outlast a restart of the API.
        report_wait_s: Seconds for which a program retries a report; 5 min outlast a restart of store or broker.
        submit_timeout_s: Seconds within which a supervisor must answer; it takes 0.1 s on an idle machine.
        cancel_grace_s: Seconds between SIGTERM and SIGKILL.
        leftover_wait_s: Seconds after a program's end until its leftover processes get SIGTERM: its JVM may be closing
            down.
        kill_repeat_s: Seconds between SIGKILLs while processes of the group are left.
        poll_interval_s: Seconds between checks of a running program. Only ends without a report wait for a check, which
            costs 0.1 ms.
        keep_runs_for_s: Seconds for which an ended attempt's folder is kept, at least an hour; default: a week.
        keep_runs_bytes: Room for all run folders. Beyond it, folders of runs that use more than a tenth go first, then
            the oldest. A folder goes only once the store has answered for an hour after the attempt's end.
    """

    data_dir: Path
    host: str = field(default_factory=socket.gethostname)
    python: str = sys.executable
    spark_home: Path | None = None
    spark_master: str = "local[2]"
    spark_conf: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({"spark.ui.enabled": "false"}))
    driver_java_options: str = "-XX:TieredStopAtLevel=1 -XX:-UseParallelGC -XX:-UseG1GC -XX:+UseSerialGC"
    environment_patterns: tuple[str, ...] = ENVIRONMENT_PATTERNS
    gate_wait_s: float = 600.0
    report_wait_s: float = 300.0
    submit_timeout_s: float = 10.0
    cancel_grace_s: float = 60.0
    leftover_wait_s: float = 10.0
    kill_repeat_s: float = 0.5
    poll_interval_s: float = 0.2
    keep_runs_for_s: float = 7 * 86_400.0
    keep_runs_bytes: int = 1024**3

    def __post_init__(self) -> None:
        """Checks all fields together.

        Raises:
            ValueError: A value is out of range; the message names the field.
        """
        for name in ("submit_timeout_s", "kill_repeat_s", "poll_interval_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"local launcher: {name} must be above 0 seconds")
        for name in (
            "gate_wait_s",
            "report_wait_s",
            "cancel_grace_s",
            "leftover_wait_s",
            "keep_runs_for_s",
            "keep_runs_bytes",
        ):
            if not getattr(self, name) >= 0:
                raise ValueError(f"local launcher: {name} must be 0 or more")
        if not self.host:
            raise ValueError("local launcher: host must not be empty")
        if not self.data_dir.is_absolute():
            raise ValueError(
                f"local launcher: data_dir {self.data_dir} must be absolute, because programs run in other folders"
            )

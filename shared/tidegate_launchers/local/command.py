"""Command line and environment of a program under the wrapper. Pure, except that it checks installed packages and
programs.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import assert_never

from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.common.refused_conf import DEPLOY_MODE, refused_conf
from tidegate_ports.launcher import Launch, LaunchRejected, ProgramType

SMALL_VALUE_CHARACTERS_MAX = 1024
"""Longest value passed in environment and conf, which suit values typed in a shell. Longer values are in the context
file only."""

REMOTE_VARIABLE = "SPARK_REMOTE"
"""Variable that makes a program a client of a Spark Connect server."""

MARKER_VARIABLE = "TIDEGATE_RUN_FOLDER"
"""Environment variable that only the processes of one attempt carry; it serves to find and kill them. Its value is
the attempt's folder and not its name: two stacks on one host may have the same run id."""

SUPERVISOR_VARIABLE = "TIDEGATE_SUPERVISED_FOLDER"
"""The same for an attempt's supervisor, set before the program exists. The name differs, so that a kill of the program
spares the supervisor."""


def program_command(launch: Launch, settings: LocalSettings, folder: RunFolder) -> list[str]:
    """Returns the argument list that starts the wrapper around the user's file.

    Raises:
        LaunchRejected: Spark or Java is missing, or the conf demands a mode that this launcher cannot watch.
    """
    wrapper = str(package_folder("tidegate_spark") / "run_program.py")
    match launch.program_type:
        case "python":
            return [settings.python, wrapper, launch.file, *launch.args]
        case "pyspark":
            submit = str(_spark_home(settings) / "bin" / "spark-submit")
            conf = spark_conf(launch, settings, folder)
            flags = [part for key, value in sorted(conf.items()) for part in ("--conf", f"{key}={value}")]
            return [submit, "--name", launch.name, *flags, wrapper, launch.file, *launch.args]
    assert_never(launch.program_type)


def require_runnable(program_type: ProgramType, conf: Mapping[str, str], settings: LocalSettings) -> None:
    """Raises LaunchRejected if no program of this type with this conf can start here, whatever its file is."""
    if program_type == "pyspark":
        _require_client_mode(conf)
        _spark_home(settings)


def _require_client_mode(conf: Mapping[str, str]) -> None:
    refused = refused_conf(conf)
    if refused is not None:
        raise LaunchRejected("config", refused)


def spark_conf(launch: Launch, settings: LocalSettings, folder: RunFolder) -> dict[str, str]:
    """Merges three levels: the launcher's defaults, the user's conf, and the run's values, which win.

    Raises:
        LaunchRejected: The conf puts the driver on a cluster, where this launcher cannot watch it.
    """
    _require_client_mode(launch.conf)
    # Spark refuses master and deploy mode for a client of a Spark Connect server.
    is_remote = "spark.remote" in {**settings.spark_conf, **launch.conf} or REMOTE_VARIABLE in launch.env
    # User-chosen JVM flags may contradict ours, so ours are left out then.
    chooses_flags = "spark.driver.defaultJavaOptions" in launch.conf
    return {
        **({} if is_remote else {"spark.master": settings.spark_master}),
        **({} if chooses_flags else {"spark.driver.extraJavaOptions": settings.driver_java_options}),
        **settings.spark_conf,
        **launch.conf,
        # Set even without a request for another mode: a spark-defaults.conf of the host may contain one.
        **({} if is_remote else {DEPLOY_MODE: "client"}),
        # The JVM keeps its environment, unlike the wrapper. At least its Python workers do not receive the token.
        "spark.executorEnv.TIDEGATE_RUN_TOKEN": "",
        **{f"spark.tidegate.{name}": value for name, value in small_values(launch, folder).items()},
    }


def program_environment(
    launch: Launch, settings: LocalSettings, folder: RunFolder, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Returns the program's environment: permitted variables of the node, the user's, and the run's, which win."""
    environment = {
        name: value
        for name, value in inherited.items()
        if any(fnmatchcase(name, pattern) for pattern in settings.environment_patterns)
    }
    # Drop the node's own value: the launcher sets a master, and Spark refuses a program with both.
    environment.pop(REMOTE_VARIABLE, None)
    environment |= launch.env
    environment |= {f"TIDEGATE_{name.upper()}": value for name, value in small_values(launch, folder).items()}
    environment |= {
        MARKER_VARIABLE: str(folder.path),
        "TIDEGATE_LAUNCHER_HOST": settings.host,
        "TIDEGATE_GATE_URL": launch.gate_url,
        "TIDEGATE_RUN_TOKEN": launch.token,
        "TIDEGATE_GATE_WAIT_S": f"{settings.gate_wait_s:g}",
        "TIDEGATE_REPORT_WAIT_S": f"{settings.report_wait_s:g}",
        "PYTHONPATH": _python_path(environment.get("PYTHONPATH", "")),
    }
    environment.setdefault("PYTHONUNBUFFERED", "1")  # The log can be followed, and is complete after a kill.
    if launch.program_type == "pyspark":
        if launch.conf.get("spark.master", settings.spark_master).startswith("local"):
            # A laptop's own name often does not resolve, or resolves to an address that a VPN has removed.
            environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if "spark.local.dir" not in launch.conf:
            environment.setdefault("SPARK_LOCAL_DIRS", str(folder.scratch))
        environment.setdefault("PYSPARK_PYTHON", settings.python)
        # The same interpreter as the workers', as without tidegate.
        environment.setdefault("PYSPARK_DRIVER_PYTHON", environment["PYSPARK_PYTHON"])
        # For the small JVM that only builds the driver's command line.
        environment.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        environment["SPARK_HOME"] = str(_spark_home(settings))  # Matches the spark-submit in the command.
    return environment


def small_values(launch: Launch, folder: RunFolder) -> dict[str, str]:
    """Returns the context's short values by name: environment `TIDEGATE_<NAME>`, Spark conf `spark.tidegate.<name>`."""
    document = launch.context
    schedule, interval = document.get("schedule"), document.get("interval")
    schedule = schedule if isinstance(schedule, Mapping) else {}
    interval = interval if isinstance(interval, Mapping) else {}
    candidates = {
        "run_id": launch.run_id,
        "attempt": launch.attempt,
        "context": folder.context,
        "namespace": schedule.get("namespace"),
        "schedule": schedule.get("name"),
        "nominal": document.get("nominal"),
        "interval_start": interval.get("start"),
        "interval_end": interval.get("end"),
        "correlation": document.get("correlation"),
    }
    texts = {name: str(value) for name, value in candidates.items() if value is not None}
    return {name: text for name, text in texts.items() if len(text) <= SMALL_VALUE_CHARACTERS_MAX}


def package_folder(package: str) -> Path:
    """Returns the folder of an installed package without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise LaunchRejected("config", f"the Python package {package} is not installed on this node")
    return Path(spec.origin).parent


def _spark_home(settings: LocalSettings) -> Path:
    for home in (settings.spark_home, _installed_pyspark(), _path(os.environ.get("SPARK_HOME"))):
        if home is not None and (home / "bin" / "spark-submit").is_file():
            if _java() is None:
                raise LaunchRejected(
                    "config", "PySpark programs need Java 17 or newer: set JAVA_HOME or put java on PATH"
                )
            return home
    raise LaunchRejected("config", "PySpark programs need Spark: pip install 'tidegate[spark]', or set SPARK_HOME")


def _installed_pyspark() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _python_path(inherited: str) -> str:
    """Makes `tidegate_spark` importable for the program and for Spark's Python workers.

    Skips site-packages, which the interpreter searches anyway: on PYTHONPATH it would come before the standard library.
    """
    root = str(package_folder("tidegate_spark").parent)
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    return os.pathsep.join(part for part in (root if root not in installed else "", inherited) if part)

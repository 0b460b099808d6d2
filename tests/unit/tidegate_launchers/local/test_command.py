from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import tidegate_spark
from tidegate_launchers.local.command import (
    SMALL_VALUE_CHARACTERS_MAX,
    program_command,
    program_environment,
    small_values,
    spark_conf,
)
from tidegate_launchers.local.launcher import LocalLauncher
from tidegate_launchers.local.run_folder import RunFolder
from tidegate_launchers.local.settings import LocalSettings
from tidegate_ports.launcher import Launch, LaunchRejected

ALaunch = Callable[..., Launch]
WRAPPER = str(Path(tidegate_spark.__file__).parent / "run_program.py")


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Something that looks like a Spark installation, with a Java beside it."""
    home = tmp_path / "spark"
    for program in (home / "bin" / "spark-submit", tmp_path / "java" / "bin" / "java"):
        program.parent.mkdir(parents=True)
        program.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    return home


def test_given_a_python_program_then_the_wrapper_gets_file_and_arguments(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder
) -> None:
    launch = a_launch()
    assert program_command(launch, settings, folder) == [
        "/opt/python",
        WRAPPER,
        launch.file,
        "--day",
        "2013-01-01",
    ]


def test_given_a_pyspark_program_then_flags_come_before_and_arguments_after_the_file(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder, spark_home: Path
) -> None:
    launch = a_launch(program_type="pyspark", args=("--conf", "mine"), conf={"spark.sql.shuffle.partitions": "8"})
    command = program_command(launch, replace(settings, spark_home=spark_home), folder)
    assert command[:3] == [str(spark_home / "bin" / "spark-submit"), "--name", "tg-0007-abc-a2"]
    assert command[-4:] == [WRAPPER, launch.file, "--conf", "mine"]
    flags = command[3:-4]
    assert set(flags[::2]) == {"--conf"}
    assert {"spark.master=local[2]", "spark.ui.enabled=false", "spark.sql.shuffle.partitions=8"} <= set(flags[1::2])
    assert (
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:-UseParallelGC -XX:-UseG1GC -XX:+UseSerialGC"
        in flags
    )


def test_given_no_java_then_launch_is_rejected_and_says_what_to_set(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder, spark_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(LaunchRejected, match="need Java 17 or newer: set JAVA_HOME"):
        program_command(a_launch(program_type="pyspark"), replace(settings, spark_home=spark_home), folder)


def test_given_users_conf_then_it_beats_the_defaults_but_not_the_runs_values(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder
) -> None:
    conf = {
        "spark.master": "local[4]",
        "spark.ui.enabled": "true",
        "spark.tidegate.run_id": "forged",
        "spark.driver.extraJavaOptions": "-Xss4m",
    }
    merged = spark_conf(a_launch(conf=conf), settings, folder)
    assert (merged["spark.master"], merged["spark.ui.enabled"]) == ("local[4]", "true")
    assert merged["spark.driver.extraJavaOptions"] == "-Xss4m"
    assert merged["spark.tidegate.run_id"] == "0007-abc"
    assert merged["spark.tidegate.nominal"] == "2026-03-03T05:00:00Z"


@pytest.mark.parametrize("of_the_schedule", [None, "schedule"])
def test_given_a_node_s_preference_then_the_schedule_s_value_beats_it_and_the_trigger_s_beats_both(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder, of_the_schedule: str | None
) -> None:
    """CD-103: preference < schedule property < trigger value. A node's settings are the preferences that there are; what fired
    the run (its nominal instant, here) stands under names that nobody can take.
    """
    preferring = replace(settings, spark_conf={"spark.app.x": "preference", "spark.tidegate.nominal": "preference"})
    said = {} if of_the_schedule is None else {"spark.app.x": of_the_schedule}
    merged = spark_conf(a_launch(conf={**said, "spark.tidegate.nominal": "schedule"}), preferring, folder)
    assert merged["spark.app.x"] == (of_the_schedule or "preference")
    assert merged["spark.tidegate.nominal"] == "2026-03-03T05:00:00Z"
    own = {} if of_the_schedule is None else {"TZ": of_the_schedule}
    inherited = {"TZ": "preference", "TIDEGATE_NOMINAL": "preference"}
    environment = program_environment(
        a_launch(env={**own, "TIDEGATE_NOMINAL": "schedule"}), settings, folder, inherited
    )
    assert environment["TZ"] == (of_the_schedule or "preference")
    assert environment["TIDEGATE_NOMINAL"] == "2026-03-03T05:00:00Z"


def test_given_cluster_deploy_mode_then_launch_is_rejected(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder
) -> None:
    with pytest.raises(LaunchRejected, match=r"spark\.submit\.deployMode"):
        spark_conf(a_launch(conf={"spark.submit.deployMode": "cluster"}), settings, folder)


@pytest.mark.parametrize("conf", [{}, {"spark.submit.deployMode": "client"}])
def test_given_a_pyspark_program_then_client_mode_is_said_whatever_the_host_s_defaults_file_has(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder, conf: dict[str, str]
) -> None:
    """With `cluster` in its spark-defaults.conf, spark-submit refuses a local master, and hands to another one a driver that nobody watches."""
    assert spark_conf(a_launch(conf=conf), settings, folder)["spark.submit.deployMode"] == "client"


def test_given_flags_of_a_jvm_that_the_conf_names_as_defaults_then_ours_do_not_contradict_them(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder
) -> None:
    merged = spark_conf(a_launch(conf={"spark.driver.defaultJavaOptions": "-XX:+UseG1GC"}), settings, folder)
    assert "spark.driver.extraJavaOptions" not in merged


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"conf": {"spark.remote": "sc://server:15002"}}, id="by conf"),
        pytest.param({"env": {"SPARK_REMOTE": "sc://server:15002"}}, id="by environment"),
    ],
)
def test_given_a_client_of_a_spark_connect_server_then_neither_master_nor_mode_is_said(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder, changes: dict[str, dict[str, str]]
) -> None:
    """Found in review: spark-submit refuses one with the other, so that no such program ever came to the gate."""
    merged = spark_conf(a_launch(program_type="pyspark", **changes), settings, folder)
    assert not {"spark.master", "spark.submit.deployMode"} & set(merged)


def test_given_a_spark_connect_server_in_the_launchers_own_conf_then_neither_master_nor_mode_is_said(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder
) -> None:
    with_remote = replace(settings, spark_conf={"spark.remote": "sc://server:15002"})
    merged = spark_conf(a_launch(program_type="pyspark"), with_remote, folder)
    assert not {"spark.master", "spark.submit.deployMode"} & set(merged)


def test_given_a_node_whose_environment_names_a_spark_connect_server_then_only_a_programs_own_one_counts(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder, spark_home: Path
) -> None:
    """Found in review: the launcher names a master, spark-submit refuses one with the other, and no program came to the gate."""
    with_spark = replace(settings, spark_home=spark_home)
    inherited = {"SPARK_REMOTE": "sc://nodes:15002"}
    launch = a_launch(program_type="pyspark")
    assert "SPARK_REMOTE" not in program_environment(launch, with_spark, folder, inherited)
    assert spark_conf(launch, with_spark, folder)["spark.master"] == with_spark.spark_master
    own = a_launch(program_type="pyspark", env={"SPARK_REMOTE": "sc://own:15002"})
    assert program_environment(own, with_spark, folder, inherited)["SPARK_REMOTE"] == "sc://own:15002"


def test_given_the_nodes_environment_then_its_secrets_stay_behind(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder
) -> None:
    inherited = {
        "PATH": "/bin",
        "HOME": "/home/ana",
        "LC_TIME": "C",
        "https_proxy": "http://proxy",
        "AWS_SECRET_ACCESS_KEY": "s",
        "TIDEGATE_GATE_SECRET": "s",
        "PYTHONPATH": "/mine",
    }
    environment = program_environment(a_launch(), settings, folder, inherited)
    assert {"PATH", "HOME", "LC_TIME", "https_proxy"} <= set(environment)
    assert not {"AWS_SECRET_ACCESS_KEY", "TIDEGATE_GATE_SECRET"} & set(environment)
    assert environment["PYTHONPATH"].endswith("/mine")
    assert environment["TIDEGATE_RUN_TOKEN"] == "secret-of-the-test"
    assert environment["TIDEGATE_GATE_URL"] == "http://127.0.0.1:8080"
    assert environment["TIDEGATE_LAUNCHER_HOST"] == "node-1"
    assert environment["TIDEGATE_RUN_FOLDER"] == str(folder.path)
    assert environment["TIDEGATE_CONTEXT"] == str(folder.context)
    assert environment["TIDEGATE_INTERVAL_START"] == "2026-03-02T05:00:00Z"
    assert "SPARK_HOME" not in environment


@pytest.mark.parametrize("name", ["HADOOP_CONF_DIR", "YARN_CONF_DIR"])
def test_given_either_variable_by_which_spark_finds_a_yarn_cluster_then_programs_inherit_it(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder, spark_home: Path, name: str
) -> None:
    with_spark = replace(settings, spark_home=spark_home, spark_master="yarn")
    environment = program_environment(a_launch(program_type="pyspark"), with_spark, folder, {name: "/etc/hadoop"})
    assert environment[name] == "/etc/hadoop"


def test_given_users_variables_then_they_beat_the_inherited_ones_but_not_the_runs(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder
) -> None:
    env = {"TZ": "Europe/Rome", "PYTHONPATH": "/mine", "PYTHONUNBUFFERED": "", "TIDEGATE_RUN_ID": "forged"}
    environment = program_environment(a_launch(env=env), settings, folder, {"TZ": "UTC", "PYTHONPATH": "/node"})
    assert (environment["TZ"], environment["PYTHONUNBUFFERED"]) == ("Europe/Rome", "")
    assert environment["PYTHONPATH"].endswith("/mine")
    assert environment["TIDEGATE_RUN_ID"] == "0007-abc"


def test_given_a_local_master_then_spark_binds_to_loopback_and_spills_into_the_runs_folder(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder, spark_home: Path
) -> None:
    with_spark = replace(settings, spark_home=spark_home)
    local = program_environment(a_launch(program_type="pyspark"), with_spark, folder, {})
    assert (local["SPARK_LOCAL_IP"], local["SPARK_LOCAL_DIRS"]) == ("127.0.0.1", str(folder.scratch))
    assert local["PYSPARK_PYTHON"] == "/opt/python"
    remote = program_environment(
        a_launch(program_type="pyspark", conf={"spark.master": "spark://m:7077"}), with_spark, folder, {}
    )
    assert "SPARK_LOCAL_IP" not in remote


@pytest.mark.parametrize(
    ("env", "driver", "workers"),
    [
        pytest.param({}, "/opt/python", "/opt/python", id="the node's"),
        pytest.param({"PYSPARK_PYTHON": "/mine"}, "/mine", "/mine", id="one for both"),
        pytest.param({"PYSPARK_DRIVER_PYTHON": "/mine"}, "/mine", "/opt/python", id="the driver's"),
    ],
)
def test_given_a_python_of_the_user_s_then_spark_takes_that_one(
    a_launch: ALaunch,
    settings: LocalSettings,
    folder: RunFolder,
    spark_home: Path,
    env: dict[str, str],
    driver: str,
    workers: str,
) -> None:
    launch = a_launch(program_type="pyspark", env={"SPARK_HOME": "/another", **env})
    environment = program_environment(launch, replace(settings, spark_home=spark_home), folder, {})
    assert (environment["PYSPARK_DRIVER_PYTHON"], environment["PYSPARK_PYTHON"]) == (driver, workers)
    assert environment["SPARK_HOME"] == str(spark_home)


@given(correlation=st.text(max_size=2 * SMALL_VALUE_CHARACTERS_MAX))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_given_a_context_value_then_it_travels_by_environment_only_when_it_is_short(
    a_launch: ALaunch, folder: RunFolder, correlation: str
) -> None:
    values = small_values(a_launch(context={"correlation": correlation}), folder)
    assert ("correlation" in values) == (len(correlation) <= SMALL_VALUE_CHARACTERS_MAX)


def test_given_secrets_then_neither_argv_nor_texts_of_the_launch_hold_the_token(
    a_launch: ALaunch, settings: LocalSettings, folder: RunFolder, spark_home: Path
) -> None:
    launch = a_launch(program_type="pyspark")
    command = program_command(launch, replace(settings, spark_home=spark_home), folder)
    assert not any("secret-of-the-test" in part for part in command)
    assert "secret-of-the-test" not in repr(launch)


@pytest.mark.parametrize(
    ("conf", "refused"),
    [
        ({}, False),
        ({"spark.submit.deployMode": "client"}, False),
        ({"spark.submit.deployMode": "cluster"}, True),
        ({"spark.submit.deployMode": "${correlation}"}, False),
    ],
)
def test_given_a_conf_that_every_launch_would_be_rejected_for_then_an_apply_hears_of_it(
    settings: LocalSettings, spark_home: Path, conf: dict[str, str], refused: bool
) -> None:
    launcher = LocalLauncher(replace(settings, spark_home=spark_home))
    assert ("client mode only" in (launcher.refuses("pyspark", conf) or "")) is refused
    assert launcher.refuses("python", conf) is None


def test_given_a_node_without_spark_then_an_apply_of_a_pyspark_program_hears_of_it(
    settings: LocalSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_launchers.local.command._installed_pyspark", lambda: None)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    launcher = LocalLauncher(replace(settings, spark_home=None))
    assert "pip install 'tidegate[spark]'" in (launcher.refuses("pyspark", {}) or "")

"""Programs that a run executes, by type, and the target `program` that starts one."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints

from tidegate_core.language.values.document import PLATFORM, AtMost, Document, PlannedKinds, Text, planned
from tidegate_core.language.values.names import Name
from tidegate_core.language.values.problems import refused

MAX_ARGUMENTS = 256
MAX_PROPERTIES = 256
"""Entries of each of conf, env and properties: far more than programs use, far fewer than a command line can contain."""
MAX_TEXT_CHARACTERS = 8_192
"""Characters of one argument or value before its templates are resolved."""

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}", re.ASCII)


def _plain_file(file: str) -> str:
    if not file.strip() or "\x00" in file:
        raise refused("is not a path", hint="such as jobs/land.py")
    return file


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT_CHARACTERS:
        raise refused(f"has {len(text)} characters, at most {MAX_TEXT_CHARACTERS} are allowed")
    return text


def _conf_names(conf: dict[str, str]) -> dict[str, str]:
    for name in conf:
        if not name.startswith("spark.") or "=" in name:
            raise refused(f'"{name[:64]}" is not a Spark property', hint="their names begin with spark.")
        if name.startswith("spark.tidegate."):
            raise refused(f'"{name[:64]}" cannot be overridden', hint="tidegate writes spark.tidegate.* itself")
    return conf


def _environment_names(env: dict[str, str]) -> dict[str, str]:
    for name in env:
        if not _ENVIRONMENT_NAME.fullmatch(name):
            raise refused(
                f'"{name[:64]}" is not the name of an environment variable',
                hint="letters, digits and _, no digit first",
            )
        if name.startswith("TIDEGATE_"):
            raise refused(f'"{name}" cannot be overridden', hint="tidegate writes TIDEGATE_* itself")
    return env


def _property_names(properties: dict[str, str]) -> dict[str, str]:
    for name in properties:
        if name.startswith("tidegate."):
            raise refused(f'"{name[:64]}" cannot be overridden', hint="tidegate.* belongs to tidegate")
    return properties


Argument: TypeAlias = Annotated[Text, AfterValidator(_bounded)]
PropertyName = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class _ProgramSpec(Document):
    """Fields of all programs.

    Attributes:
        name: Name under which limits count the program's runs; by default its type and file.
        file: Path of the script. `schedule apply` resolves a relative path from the document's folder.
        args: Command-line arguments; templates.
        env: Environment variables; the values are templates.
        properties: Properties that the program gets in its context; no templates.
    """

    PLANNED_FIELDS: ClassVar = planned(
        PLATFORM, "ref", "master", "py_files", "jars", "packages", "profile", "launcher", "timeout"
    )

    name: Name | None = None
    file: Annotated[str, StringConstraints(strict=True, max_length=1024), AfterValidator(_plain_file)]
    args: Annotated[tuple[Argument, ...], AtMost(MAX_ARGUMENTS)] = ()
    env: Annotated[dict[str, Argument], AtMost(MAX_PROPERTIES), AfterValidator(_environment_names)] = Field(
        default_factory=dict
    )
    properties: Annotated[dict[PropertyName, Argument], AtMost(MAX_PROPERTIES), AfterValidator(_property_names)] = (
        Field(default_factory=dict)
    )


class PysparkProgram(_ProgramSpec):
    """A PySpark script that spark-submit starts.

    Attributes:
        conf: Spark properties; the values are templates.
    """

    EXAMPLE: ClassVar = {
        "type": "pyspark",
        "file": "jobs/join.py",
        "args": ["--day", "${correlation}"],
        "conf": {"spark.sql.shuffle.partitions": "8"},
    }

    type: Literal["pyspark"] = "pyspark"
    conf: Annotated[dict[PropertyName, Argument], AtMost(MAX_PROPERTIES), AfterValidator(_conf_names)] = Field(
        default_factory=dict
    )

    @property
    def identity(self) -> str:
        """Name under which limits count its runs: the name, or type and file without one."""
        return self.name or f"{self.type}#{self.file}"


class PythonProgram(_ProgramSpec):
    """A Python script that the node's Python interpreter starts."""

    EXAMPLE: ClassVar = {"type": "python", "file": "jobs/land.py", "args": ["--until", "${nominal}"]}
    FIELD_HINTS: ClassVar = {"conf": "only pyspark programs have it"}

    type: Literal["python"] = "python"

    @property
    def identity(self) -> str:
        """Name under which limits count its runs: the name, or type and file without one."""
        return self.name or f"{self.type}#{self.file}"


Program: TypeAlias = Annotated[
    PysparkProgram | PythonProgram,
    Field(discriminator="type"),
    PlannedKinds(planned(PLATFORM, "spark", "spark_jar", "spark_connect", "sql", "shell", "http", "jar", "container")),
]


class ProgramTarget(Document):
    """A target that starts a program.

    Attributes:
        program: Program with its arguments.
    """

    EXAMPLE: ClassVar = {"type": "program", "program": PythonProgram.EXAMPLE}

    type: Literal["program"] = "program"
    program: Program

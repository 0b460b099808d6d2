"""The image's recipe, read as text: it is not built here, but it cannot lose what keeps the image safe."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

Instruction = tuple[str, str]


@pytest.fixture(scope="module")
def root() -> Path:
    return Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recipe(root: Path) -> list[Instruction]:
    text = (root / "deploy/images/node/Containerfile").read_text()
    without_comments = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = without_comments.replace("\\\n", " ").splitlines()
    words = [line.split(maxsplit=1) for line in joined if line.strip()]
    return [(name, " ".join(value.split())) for name, value in words]


@pytest.fixture(scope="module")
def final_stage(recipe: list[Instruction]) -> list[Instruction]:
    last_from = max(index for index, (name, _) in enumerate(recipe) if name == "FROM")
    return recipe[last_from:]


def _values(stage: list[Instruction], name: str) -> list[str]:
    return [value for instruction, value in stage if instruction == name]


def test_given_the_recipe_then_each_instruction_is_known(recipe: list[Instruction]) -> None:
    known = {
        "ARG",
        "CMD",
        "COPY",
        "ENTRYPOINT",
        "ENV",
        "EXPOSE",
        "FROM",
        "LABEL",
        "RUN",
        "STOPSIGNAL",
        "USER",
        "WORKDIR",
    }
    assert {name for name, _ in recipe} <= known


def test_given_the_final_stage_then_it_ends_as_user_65532(final_stage: list[Instruction]) -> None:
    assert _values(final_stage, "USER") == ["65532:65532"]
    after_user = [name for name, _ in final_stage[[name for name, _ in final_stage].index("USER") :]]
    assert "RUN" not in after_user


def test_given_the_user_then_it_has_a_name_and_its_home_where_java_looks(final_stage: list[Instruction]) -> None:
    """Found in review: a number alone is a user without name and home to Java, and `spark-submit` ended before any program began."""
    (made,) = (value for value in _values(final_stage, "RUN") if "useradd" in value)
    (user,) = (command.split() for command in made.split(" && ") if command.startswith("useradd "))
    options = dict(pairwise(user))
    (runs_as,) = _values(final_stage, "USER")
    assert f"{options['--uid']}:{options['--gid']}" == runs_as
    assert f"groupadd --gid {options['--gid']} " in made
    assert f" HOME={options['--home-dir']} " in _values(final_stage, "ENV")[0]


def test_given_the_final_stage_then_tidegate_is_started_under_a_reaper(final_stage: list[Instruction]) -> None:
    assert json.loads(_values(final_stage, "ENTRYPOINT")[-1]) == ["/usr/bin/tini", "--", "tidegate"]
    assert json.loads(_values(final_stage, "CMD")[-1]) == ["node"]
    assert _values(final_stage, "STOPSIGNAL") == ["SIGTERM"]


def test_given_the_install_then_hashes_are_required_and_the_wheel_brings_no_dependency(
    recipe: list[Instruction],
) -> None:
    installs = [value for value in _values(recipe, "RUN") if "pip install" in value]
    assert "--require-hashes" in installs[0]
    assert "--no-deps --no-index" in installs[1]


def test_given_what_is_copied_then_it_exists_and_the_ignore_file_lets_it_through(
    root: Path, recipe: list[Instruction]
) -> None:
    copied = [value.split()[0] for value in _values(recipe, "COPY") if not value.startswith("--from")]
    allowed = [line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sorted(copied) == sorted(allowed)
    assert [path for path in copied if not path.startswith("dist/") and not (root / path).is_file()] == []


def test_given_the_image_then_all_of_tidegate_that_it_takes_is_the_wheel(recipe: list[Instruction]) -> None:
    """The wheel holds no test code (`tests/unit/repo/test_wheel.py`), so the image holds none."""
    taken = [value.split() for name, value in recipe if name in {"ADD", "COPY"}]
    from_the_checkout = [each[:-1] for each in taken if not each[0].startswith("--from")]
    assert from_the_checkout == [["deploy/images/node/requirements.lock"], ["dist/tidegate-*.whl"]]
    assert [each for each in taken if each[0].startswith("--from")] == [
        ["--from=install", "/opt/tidegate", "/opt/tidegate"]
    ]


def test_given_the_ignore_file_then_nothing_of_tests_is_sent_to_the_build(root: Path) -> None:
    first, *exceptions = [
        line for line in (root / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert first == "*"
    assert [line for line in exceptions if "test" in line or not line.startswith("!")] == []


def test_given_the_base_image_then_its_python_is_one_that_the_project_supports(
    root: Path, recipe: list[Instruction]
) -> None:
    tag = re.search(r"python:(\d+\.\d+)-slim", _values(recipe, "ARG")[0])
    wanted = re.search(r'^requires-python = "(.+)"$', (root / "pyproject.toml").read_text(), re.MULTILINE)
    assert tag is not None
    assert wanted is not None
    assert tag[1] in SpecifierSet(wanted[1])


def test_given_the_labels_then_version_and_licence_are_the_projects(root: Path, final_stage: list[Instruction]) -> None:
    project = (root / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert version is not None
    assert f"VERSION={version[1]}" in _values(final_stage, "ARG")
    assert 'org.opencontainers.image.licenses="Apache-2.0"' in _values(final_stage, "LABEL")[0]

"""A folder is right only if it holds exactly the manifest's files with exactly their content."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_bricks.jar_checksums import Manifest, parse, sha256, summary

NAMES = st.from_regex(r"[a-z][a-z0-9._-]{0,20}", fullmatch=True)
DIGESTS = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "broker-1.jar").write_bytes(b"broker")
    (tmp_path / "client-1.jar").write_bytes(b"client")
    return tmp_path


@pytest.fixture
def manifest(folder: Path) -> Manifest:
    return Manifest({file.name: sha256(file) for file in folder.iterdir()})


@given(digests=st.dictionaries(NAMES, DIGESTS, max_size=10))
def test_given_lines_of_sha256sum_then_every_file_is_known(digests: dict[str, str]) -> None:
    assert parse("".join(f"{digest}  {name}\n" for name, digest in digests.items())).digests == digests


@pytest.mark.parametrize(
    "line",
    ["", "abc  broker.jar", f"{'a' * 64} broker.jar", f"{'a' * 64}  ", f"{'a' * 64}  ../broker.jar"],
)
def test_given_another_line_then_it_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is no line of a SHA-256 manifest"):
        parse(f"{line}\n")


def test_given_the_very_files_then_nothing_is_wrong(folder: Path, manifest: Manifest) -> None:
    assert manifest.problems(folder) == []


def test_given_no_folder_then_that_is_the_problem(folder: Path, manifest: Manifest) -> None:
    assert manifest.problems(folder / "nowhere") == [f"{folder / 'nowhere'} is missing"]


def test_given_file_of_same_size_with_other_content_then_it_is_named(folder: Path, manifest: Manifest) -> None:
    (folder / "client-1.jar").write_bytes(b"clienT")
    assert manifest.problems(folder) == ["client-1.jar has other content than the manifest says"]


def test_given_missing_and_surplus_files_then_both_are_named(folder: Path, manifest: Manifest) -> None:
    (folder / "client-1.jar").rename(folder / "client-2.jar")
    assert manifest.problems(folder) == ["client-1.jar is missing", "client-2.jar does not belong there"]


def test_given_many_problems_then_summary_is_short() -> None:
    assert summary(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert summary(["a"]) == "a"

"""The cache: fetched once, checked always, mended once, and never seen half-filled."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidegate_bricks import releases
from tidegate_bricks.download_progress import Progress, ProgressListener, Stage, silent
from tidegate_bricks.errors import BrickUnavailable
from tidegate_bricks.jar_cache import FETCHES_MAX, cache_root, ensure_jars
from tidegate_bricks.jar_checksums import Manifest, sha256
from tidegate_bricks.releases import Module, Release

RELEASE = Release("broker-1", "Broker 1", (Module("org.example", "broker", "1"),))
RIGHT = {"broker-1.jar": b"broker", "client-1.jar": b"client"}
WRONG = RIGHT | {"client-1.jar": b"half of the cl"}


class Repository:
    """Stands in for the download: each fetch gives the next of the given contents, the last one again and again."""

    def __init__(self, *contents: dict[str, bytes]) -> None:
        self.contents = list(contents)
        self.fetches = 0

    def __call__(self, release: Release, workspace: Path, listener: ProgressListener) -> Path:
        listener(Progress(release.name, Stage.DOWNLOADING))
        content = self.contents[min(self.fetches, len(self.contents) - 1)]
        self.fetches += 1
        files = workspace / "files"
        files.mkdir()
        for name, data in content.items():
            (files / name).write_bytes(data)
        return files


@pytest.fixture(autouse=True)
def manifest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Manifest:
    """The manifest of RELEASE, made from RIGHT."""
    originals = tmp_path / "originals"
    originals.mkdir()
    for name, data in RIGHT.items():
        (originals / name).write_bytes(data)
    known = Manifest({file.name: sha256(file) for file in originals.iterdir()})
    monkeypatch.setattr(releases, "load", lambda _name: known)
    return known


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_given_empty_cache_then_files_are_fetched_and_nothing_else_is_left(cache: Path) -> None:
    folder = ensure_jars(RELEASE, cache=cache, fetch=Repository(RIGHT))
    assert content(folder) == RIGHT
    assert {entry.name for entry in folder.parent.iterdir()} == {"broker-1", "broker-1.lock"}


def test_given_full_cache_then_nothing_is_fetched(cache: Path) -> None:
    repository = Repository(RIGHT)
    ensure_jars(RELEASE, cache=cache, fetch=repository)
    ensure_jars(RELEASE, cache=cache, fetch=repository)
    assert repository.fetches == 1


def test_given_sources_came_along_then_they_are_dropped(cache: Path) -> None:
    folder = ensure_jars(RELEASE, cache=cache, fetch=Repository(RIGHT | {"broker-1-sources.jar": b"?"}))
    assert content(folder) == RIGHT


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"broker-1.jar": b"brokeR"}, id="other content"),
        pytest.param({"broker-1.jar": b""}, id="emptied"),
        pytest.param({"intruder.jar": b"!"}, id="one file more"),
    ],
)
def test_given_damaged_cache_then_it_is_fetched_anew(cache: Path, damage: dict[str, bytes]) -> None:
    repository = Repository(RIGHT)
    folder = ensure_jars(RELEASE, cache=cache, fetch=repository)
    for name, data in damage.items():
        (folder / name).write_bytes(data)
    assert content(ensure_jars(RELEASE, cache=cache, fetch=repository)) == RIGHT
    assert repository.fetches == 2


def test_given_first_download_is_broken_then_second_mends_it(cache: Path) -> None:
    assert content(ensure_jars(RELEASE, cache=cache, fetch=Repository(WRONG, RIGHT))) == RIGHT


def test_given_downloads_stay_wrong_then_error_names_the_file_and_cache_stays_empty(cache: Path) -> None:
    repository = Repository(WRONG)
    with pytest.raises(BrickUnavailable, match=r"client-1\.jar has other content"):
        ensure_jars(RELEASE, cache=cache, fetch=repository)
    assert repository.fetches == FETCHES_MAX
    assert {entry.name for entry in (cache / "bricks").iterdir()} == {"broker-1.lock"}


def test_given_folder_of_a_killed_download_then_it_is_cleared(cache: Path) -> None:
    abandoned = cache / "bricks" / ".broker-1-abc" / "files"
    abandoned.mkdir(parents=True)
    ensure_jars(RELEASE, cache=cache, fetch=Repository(RIGHT))
    assert not abandoned.parent.exists()


def test_given_two_at_once_then_one_fetches_and_both_get_the_files(cache: Path) -> None:
    other_waits = threading.Event()

    class Slow(Repository):
        def __call__(self, release: Release, workspace: Path, listener: ProgressListener) -> Path:
            assert other_waits.wait(timeout=30)
            return super().__call__(release, workspace, listener)

    def notice(progress: Progress) -> None:
        if progress.stage is Stage.WAITING:
            other_waits.set()

    repository = Slow(RIGHT)
    with ThreadPoolExecutor(max_workers=2) as pool:
        both = [pool.submit(ensure_jars, RELEASE, notice, cache=cache, fetch=repository) for _ in range(2)]
        folders = [each.result() for each in both]
    assert folders[0] == folders[1]
    assert content(folders[0]) == RIGHT
    assert repository.fetches == 1


def test_given_listener_raises_then_the_download_ends_without_leftovers(cache: Path) -> None:
    def impatient(progress: Progress) -> None:
        if progress.stage is Stage.DOWNLOADING:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_jars(RELEASE, impatient, cache=cache, fetch=Repository(RIGHT))
    assert content(ensure_jars(RELEASE, silent, cache=cache, fetch=Repository(RIGHT))) == RIGHT


def test_given_cache_folder_cannot_be_made_then_error_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BrickUnavailable, match="TIDEGATE_CACHE"):
        ensure_jars(RELEASE, cache=tmp_path / "file" / "cache", fetch=Repository(RIGHT))


@pytest.mark.parametrize(
    ("variables", "root"),
    [
        pytest.param({"TIDEGATE_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a"), id="our own variable first"),
        pytest.param({"XDG_CACHE_HOME": "/b"}, Path("/b/tidegate"), id="then the desktop's"),
        pytest.param({}, Path.home() / ".cache" / "tidegate", id="then the usual place"),
    ],
)
def test_given_variables_then_cache_lies_where_they_say(variables: dict[str, str], root: Path) -> None:
    assert cache_root(variables) == root

"""The bricks' jars in the user's cache: fetched once, checked at each use, never redistributed.

Two processes that need them at once fetch them once. DynamoDB Local has its own licence: the
user's machine downloads it, and tidegate's distribution never contains it.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tidegate_bricks.download_progress import Progress, ProgressListener, Stage, silent
from tidegate_bricks.errors import BrickUnavailable
from tidegate_bricks.file_lock import FileLock
from tidegate_bricks.ivy import FETCH_TIMEOUT_S, find_ivy, retrieve
from tidegate_bricks.jar_checksums import Manifest, summary
from tidegate_bricks.java_runtime import Java, find_java
from tidegate_bricks.releases import Release

#: Most fetches. A download that differs from the manifest is tried once more: that helps after a broken line, not after a changed file.
FETCHES_MAX = 2
#: Seconds. Longest time that another process needs to fetch the same files, before it gives up.
LOCK_TIMEOUT_S = FETCHES_MAX * FETCH_TIMEOUT_S + 30.0

#: Fetches a release into the empty workspace and returns the folder with its files.
Fetch = Callable[[Release, Path, ProgressListener], Path]


def cache_root(environment: Mapping[str, str] | None = None) -> Path:
    """Returns the user's cache folder for tidegate: TIDEGATE_CACHE, else below XDG_CACHE_HOME, else below `~/.cache`."""
    return cache_root_and_variable(os.environ if environment is None else environment)[0]


def cache_root_and_variable(environment: Mapping[str, str]) -> tuple[Path, str | None]:
    """Returns the cache folder and the variable that named it; None for the default."""
    if own := environment.get("TIDEGATE_CACHE"):
        return Path(own).expanduser(), "TIDEGATE_CACHE"
    if shared := environment.get("XDG_CACHE_HOME"):
        return Path(shared) / "tidegate", "XDG_CACHE_HOME"
    return Path("~/.cache/tidegate").expanduser(), None


def ensure_jars(
    release: Release,
    listener: ProgressListener = silent,
    *,
    java: Java | None = None,
    cache: Path | None = None,
    fetch: Fetch | None = None,
) -> Path:
    """Returns the folder that holds exactly the files of `release`; fetches them if necessary.

    Args:
        release: Release of the brick.
        listener: Receives each step; an exception of it ends the download.
        java: Java that runs the download; by default the machine's own.
        cache: Cache folder, by default `cache_root()`.
        fetch: Replacement of the download, for tests.

    Raises:
        BrickUnavailable: Java, PySpark or the network is missing, or the files differ from the manifest even after
            another fetch.
    """
    bricks = (cache or cache_root()) / "bricks"
    folder = bricks / release.name
    manifest = release.manifest()
    listener(Progress(release.name, Stage.VERIFYING))
    if not manifest.problems(folder):
        return folder
    _make_writable(bricks)
    with FileLock(bricks / f"{release.name}.lock") as lock:
        if not lock.acquire(LOCK_TIMEOUT_S, on_wait=lambda: listener(Progress(release.name, Stage.WAITING))):
            raise BrickUnavailable(
                f"another process has been fetching {release.title} for {LOCK_TIMEOUT_S:.0f} s",
                f"end the process that holds {lock.path}",
            )
        # The process that held the lock before may have fetched them already.
        if manifest.problems(folder):
            _fetch_into(folder, release, manifest, fetch or _download_with(java), listener)
    return folder


def _make_writable(bricks: Path) -> None:
    try:
        bricks.mkdir(parents=True, exist_ok=True)
    except OSError as refusal:
        raise BrickUnavailable(
            f"the cache folder {bricks} cannot be made ({refusal.strerror})",
            "name a writable folder in TIDEGATE_CACHE",
        ) from refusal


def _download_with(java: Java | None) -> Fetch:
    def download(release: Release, workspace: Path, listener: ProgressListener) -> Path:
        return retrieve(release, java or find_java(), find_ivy(), workspace, listener)

    return download


def _fetch_into(folder: Path, release: Release, manifest: Manifest, fetch: Fetch, listener: ProgressListener) -> None:
    problems: list[str] = []
    for _ in range(FETCHES_MAX):
        problems = _fetch_once(folder, release, manifest, fetch, listener)
        if not problems:
            return
    raise BrickUnavailable(
        f"{release.title} was downloaded {FETCHES_MAX} times and differs from its checksums: {summary(problems)}",
        "something between here and the package repository changes files; try another network, or report it",
    )


def _fetch_once(
    folder: Path, release: Release, manifest: Manifest, fetch: Fetch, listener: ProgressListener
) -> list[str]:
    """Fetches next to `folder` and moves the files there if they are right; returns the problems otherwise."""
    prefix = f".{release.name}-"
    # This process holds the lock, so folders with this prefix were left by a killed process.
    for abandoned in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    workspace = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        files = fetch(release, workspace, listener)
        _drop_strangers(files, manifest)
        listener(Progress(release.name, Stage.VERIFYING))
        problems = manifest.problems(files)
        if not problems:
            if folder.exists():
                folder.rename(workspace / "replaced")
            files.rename(folder)
        return problems
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def _drop_strangers(files: Path, manifest: Manifest) -> None:
    """Deletes files that the manifest lacks: Ivy also fetches sources and documentation of some modules."""
    for file in files.iterdir():
        if file.name not in manifest.digests:
            file.unlink()

"""SHA-256 checksums of a brick's files: committed with the package, checked at each use.

It has the format of `sha256sum`, so `sha256sum *` in the folder of a new release writes its manifest. Checking all
95 MB of both bricks takes 0.07 s (measured), less than a JVM needs to start; so there is no cheaper, weaker check.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("manifests")
#: Most problems that an error message lists.
PROBLEMS_SHOWN_MAX = 3


@dataclass(frozen=True, slots=True)
class Manifest:
    """File names of a brick and the SHA-256 of each, in hex."""

    digests: Mapping[str, str]

    def problems(self, folder: Path) -> list[str]:
        """Returns the problems with the files in `folder`; empty if they are exactly those of the manifest."""
        if not folder.is_dir():
            return [f"{folder} is missing"]
        present = {entry.name for entry in folder.iterdir()}
        missing = [f"{name} is missing" for name in sorted(self.digests.keys() - present)]
        # Java loads all files in the folder, so an extra file is as wrong as a missing one.
        surplus = [f"{name} does not belong there" for name in sorted(present - self.digests.keys())]
        different = [
            f"{name} has other content than the manifest says"
            for name, digest in self.digests.items()
            if name in present and sha256(folder / name) != digest
        ]
        return missing + surplus + different


def load(name: str, folder: Path = FOLDER) -> Manifest:
    """Returns the manifest of the brick `name`, for instance `kafka-4.1.1`."""
    return parse((folder / f"{name}.sha256").read_text(encoding="utf-8"))


def parse(text: str) -> Manifest:
    """Reads lines of `sha256sum`.

    Raises:
        ValueError: A line is not a digest, two spaces and a plain file name.
    """
    digests: dict[str, str] = {}
    for line in text.splitlines():
        digest, separator, name = line.partition("  ")
        if len(digest) != 64 or not separator or not name or "/" in name:
            raise ValueError(f"{line!r} is no line of a SHA-256 manifest")
        digests[name] = digest
    return Manifest(digests)


def sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def summary(problems: list[str]) -> str:
    shown = ", ".join(problems[:PROBLEMS_SHOWN_MAX])
    further = len(problems) - PROBLEMS_SHOWN_MAX
    return f"{shown} and {further} more" if further > 0 else shown

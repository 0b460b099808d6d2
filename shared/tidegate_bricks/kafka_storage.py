"""Formats the folder of a broker's data, as Kafka's storage tool does, and reads its identity. `kafka_broker.py` calls
it before a start.

The tool is a Java program and takes a third of the CPU of the broker's start, for two small files. So this module
writes them:

- `bootstrap.checkpoint` has the levels of the release's features, and is a copy of the file that the tool of this
  release wrote.
- `meta.properties` has the ids of the cluster and of the folder, which are random for each folder.

A new release of Kafka needs a new copy. `tests/integration/bricks/test_kafka_brick.py` compares the copy with the
tool's file.
"""

import base64
import os
import re
import shutil
import uuid
from pathlib import Path

from tidegate_bricks.broker_config import NODE_ID
from tidegate_bricks.jar_checksums import FOLDER
from tidegate_bricks.releases import KAFKA

CHECKPOINT = FOLDER / f"{KAFKA.name}.checkpoint"
CHECKPOINT_NAME = "bootstrap.checkpoint"
IDENTITY_NAME = "meta.properties"


def format_storage(folder: Path) -> None:
    """Makes `folder` a broker's data folder; does nothing if it is one already.

    Raises:
        OSError: The folder cannot be written.
    """
    identity = folder / IDENTITY_NAME
    if identity.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CHECKPOINT, folder / CHECKPOINT_NAME)
    # If the process dies before the rename, the folder is formatted again. So the identity is written last and as a
    # whole.
    written = folder / f"{IDENTITY_NAME}.new"
    written.write_text(
        f"version=1\ncluster.id={new_id()}\nnode.id={NODE_ID}\ndirectory.id={new_id()}\n", encoding="ascii"
    )
    with written.open("rb") as file:
        os.fsync(file.fileno())  # Otherwise a power loss could leave an empty identity file under its final name.
    written.replace(identity)


def cluster_id_of(folder: Path) -> str | None:
    """Returns the cluster id in a formatted folder; None if its file lacks one."""
    text = (folder / IDENTITY_NAME).read_text(encoding="utf-8")
    line = re.search(r"^cluster\.id=(.*)$", text, re.MULTILINE)
    # The file is in properties format, which escapes some characters; none of them occurs in an id.
    return line.group(1).strip() if line else None


def new_id() -> str:
    """Returns an id in Kafka's form: 128 random bits in 22 letters, without a leading dash."""
    letters = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # Kafka's tools take a leading dash for an option.
    return f"k{letters[1:]}" if letters.startswith("-") else letters

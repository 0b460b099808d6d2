"""Names and ids that users choose, with the characters that they may have (SEMANTICS 18).

None of them contains `/` or `#` except the free texts at the end, so names can be joined by those without ambiguity.


What a record may not ask for, however well it is written: to speak for a namespace that is not its topic's, and to have
tidegate itself write into tidegate's own topics.

Who may write into a topic is the brokers' word (ACLs); which namespaces a topic is for is the nodes' (`namespaces` of the
settings). A source's topic needs no rule: its records cannot name a namespace, the source does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, StringConstraints

from tidegate_core.language.values.problems import refused

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,127}$"
QUALIFIED_PATTERN = r"^(?:[a-z0-9][a-z0-9._-]{0,127}/)?[a-z0-9][a-z0-9._-]{0,127}$"
TOPIC_PATTERN = r"^[a-zA-Z0-9._-]{1,249}$"
FREE_TEXT_PATTERN = r"^[^\x00-\x1f\x7f]{1,128}$"
LONG_TEXT_PATTERN = r"^[^\x00-\x1f\x7f]{1,256}$"
VISIBLE_PATTERN = r"^[^\x00-\x1f\x7f]+$"
RUN_ID_PATTERN = r"^[0-9]{4}-[a-z2-7]{26}$"
CUSTOM_EVENT_PATTERN = r"^custom\.[a-z0-9][a-z0-9._-]{0,127}$"

WORDING = {
    NAME_PATTERN: "is not a name: 1 to 128 of a-z 0-9 - _ . that begin with a letter or digit",
    QUALIFIED_PATTERN: "is neither a name nor namespace/name (each 1 to 128 of a-z 0-9 - _ .)",
    TOPIC_PATTERN: "is not a topic: 1 to 249 of a-z A-Z 0-9 . _ -",
    FREE_TEXT_PATTERN: "is not 1 to 128 characters without control characters",
    LONG_TEXT_PATTERN: "is not 1 to 256 characters without control characters",
    VISIBLE_PATTERN: "is empty or contains control characters",
    RUN_ID_PATTERN: "is not a run id such as 0042-mfrggzdfmztwq2lkn5wg63tqoe",
    CUSTOM_EVENT_PATTERN: "is not custom.<name>, with a name of 1 to 128 of a-z 0-9 - _ .",
}
"""What to tell somebody whose text does not fit a pattern."""


def _not_a_dot(topic: str) -> str:
    if topic in {".", ".."}:
        raise refused("is not a topic: Kafka reserves . and ..")
    return topic


Namespace = Annotated[str, StringConstraints(strict=True, pattern=NAME_PATTERN)]
Name = Annotated[str, StringConstraints(strict=True, pattern=NAME_PATTERN)]
DatasetId = Annotated[str, StringConstraints(strict=True, pattern=NAME_PATTERN)]
QualifiedName = Annotated[str, StringConstraints(strict=True, pattern=QUALIFIED_PATTERN)]
"""`name` in the namespace at hand, or `namespace/name`."""
Topic = Annotated[str, StringConstraints(strict=True, pattern=TOPIC_PATTERN), AfterValidator(_not_a_dot)]
RunId = Annotated[str, StringConstraints(strict=True, pattern=RUN_ID_PATTERN)]
CustomEventType = Annotated[str, StringConstraints(strict=True, pattern=CUSTOM_EVENT_PATTERN)]

RequestId = Annotated[str, StringConstraints(strict=True, pattern=FREE_TEXT_PATTERN)]
"""Any client's id. 128 characters are at most 512 bytes: with a prefix and a version well inside of a 1 KiB sort key."""
MessageKey = Annotated[str, StringConstraints(strict=True, pattern=FREE_TEXT_PATTERN)]
EventId = Annotated[str, StringConstraints(strict=True, max_length=1024, pattern=VISIBLE_PATTERN)]
"""Longer than a request's: `<run id>/<dataset>/<data partition>/<version>` has to fit. Stored as a hash only."""
DataPartitionName = Annotated[str, StringConstraints(strict=True, pattern=LONG_TEXT_PATTERN)]
ShortText = Annotated[str, StringConstraints(strict=True, max_length=1024)]
"""A sentence by a person: a reason, an actor's name."""


EVERY: Final = ("*",)


@dataclass(frozen=True, slots=True)
class TopicNamespaces:
    """Which namespaces the records of the two shared topics may name: names, or beginnings that end with `*`."""

    requests: tuple[str, ...] = EVERY
    events: tuple[str, ...] = EVERY


EVERYBODY: Final = TopicNamespaces()
"""Both topics are for every namespace."""

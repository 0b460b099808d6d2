"""Names and ids that users choose, with their allowed characters, and the namespaces that a shared topic accepts.

Names contain neither `/` nor `#`, so these characters can join names without ambiguity. The free texts at the end may
contain them.

The brokers' ACLs decide who may write into a topic; the nodes' setting `namespaces` decides for which namespaces a topic is
(`TopicNamespaces`). A source's topic needs no such rule: the source names the namespace, its records cannot.
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
"""Problem of a text that does not match a pattern, by pattern."""


def _not_a_dot(topic: str) -> str:
    if topic in {".", ".."}:
        raise refused("is not a topic: Kafka reserves . and ..")
    return topic


Namespace = Annotated[str, StringConstraints(strict=True, pattern=NAME_PATTERN)]
Name = Annotated[str, StringConstraints(strict=True, pattern=NAME_PATTERN)]
DatasetId = Annotated[str, StringConstraints(strict=True, pattern=NAME_PATTERN)]
QualifiedName = Annotated[str, StringConstraints(strict=True, pattern=QUALIFIED_PATTERN)]
"""`name` in the document's own namespace, or `namespace/name`."""
Topic = Annotated[str, StringConstraints(strict=True, pattern=TOPIC_PATTERN), AfterValidator(_not_a_dot)]
RunId = Annotated[str, StringConstraints(strict=True, pattern=RUN_ID_PATTERN)]
CustomEventType = Annotated[str, StringConstraints(strict=True, pattern=CUSTOM_EVENT_PATTERN)]

RequestId = Annotated[str, StringConstraints(strict=True, pattern=FREE_TEXT_PATTERN)]
"""Id that a client chooses. 128 characters are at most 512 bytes, so that id, prefix and version fit a sort key of 1 KiB."""
MessageKey = Annotated[str, StringConstraints(strict=True, pattern=FREE_TEXT_PATTERN)]
EventId = Annotated[str, StringConstraints(strict=True, max_length=1024, pattern=VISIBLE_PATTERN)]
"""Id of an event. It is longer than a request's, because `<run id>/<dataset>/<data partition>/<version>` must fit; only its hash is stored."""
DataPartitionName = Annotated[str, StringConstraints(strict=True, pattern=LONG_TEXT_PATTERN)]
ShortText = Annotated[str, StringConstraints(strict=True, max_length=1024)]
"""A short text by a person, such as a reason or an actor's name."""


EVERY: Final = ("*",)


@dataclass(frozen=True, slots=True)
class TopicNamespaces:
    """Namespaces that the records of the two shared topics may name: names, or prefixes that end with `*`.

    Attributes:
        requests: Namespaces for the requests topic.
        events: Namespaces for the events topic.
    """

    requests: tuple[str, ...] = EVERY
    events: tuple[str, ...] = EVERY


EVERYBODY: Final = TopicNamespaces()
"""Both topics accept every namespace."""

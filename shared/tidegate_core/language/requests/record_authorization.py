"""Refuses records that name a namespace for which their topic is not, and requests that deliver into tidegate's own topics.

The brokers' ACLs decide who may write into a topic; the nodes' setting `namespaces` decides which namespaces its records may
name. A source's topic needs no such rule: the source names the namespace, its records cannot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidegate_core.language.events.event_source import OWN_NAMESPACE
from tidegate_core.language.events.events import Event
from tidegate_core.language.requests.requests import MessageSend, Request, ScheduleApply
from tidegate_core.language.values.problems import Problem, RefusedRecord, shortened

OWN_TOPICS: Final = frozenset(
    {"requests", "events", "pokes", "receipts", "runs", "requests.dlq", "events.dlq", "runs.dlq"}
)
"""Names of tidegate's topics, without their prefix. A message to one of these topics would look like a record by tidegate itself."""
NAMESPACE_HINT: Final = "write it into that namespace's topic, or change the nodes' setting namespaces"


def authorize_request(request: Request, allowed: tuple[str, ...], requests_topic: str) -> None:
    """Refuses a request for a namespace or a topic that its record may not name.

    Args:
        request: Parsed request.
        allowed: Namespaces that the requests topic accepts.
        requests_topic: Full name of the requests topic, which contains the prefix of tidegate's topics.

    Raises:
        RefusedRecord: The request is forbidden.
    """
    problems = [*_of_namespace(request.namespace, allowed, requests_topic), *_of_target(request, requests_topic)]
    if problems:
        raise RefusedRecord(
            problems,
            "forbidden",
            request_id=request.id,
            type=request.type,
            namespace=request.namespace,
            name=getattr(request, "name", None),
            key=getattr(request, "key", None),
        )


def authorize_events(events: Iterable[Event], allowed: tuple[str, ...], events_topic: str) -> None:
    """Refuses events of a namespace that the events topic does not accept. Raises RefusedRecord."""
    namespaces = dict.fromkeys([event.namespace for event in events])
    if "*" in allowed and OWN_NAMESPACE not in namespaces:
        return
    problems: list[Problem] = []
    for namespace in namespaces:
        if namespace == OWN_NAMESPACE:
            problems.append(
                Problem("namespace", "is tidegate's own", "take the namespace of the schedules that wait for it")
            )
        else:
            problems += _of_namespace(namespace, allowed, events_topic)
    if problems:
        raise RefusedRecord(problems, "forbidden")


def is_for(namespace: str | None, allowed: tuple[str, ...]) -> bool:
    """Whether a topic accepts a namespace. None stands for a record without a namespace; only `*` accepts it."""
    if "*" in allowed:
        return True
    return namespace is not None and any(
        namespace.startswith(each[:-1]) if each.endswith("*") else namespace == each for each in allowed
    )


def _of_namespace(namespace: str | None, allowed: tuple[str, ...], topic: str) -> list[Problem]:
    if is_for(namespace, allowed):
        return []
    if namespace is None:
        return [Problem("namespace", f"is missing, and {topic} accepts some namespaces only", NAMESPACE_HINT)]
    return [Problem("namespace", f'"{shortened(namespace)}" is not accepted on {topic}', NAMESPACE_HINT)]


def _of_target(request: Request, requests_topic: str) -> list[Problem]:
    match request:
        case MessageSend(topic=topic):
            field = "topic"
        case ScheduleApply(spec=spec) if (of_target := spec.target_rules.topic) is not None:
            topic, field = of_target, "spec.target.topic"
        case _:
            return []
    prefix = requests_topic.removesuffix("requests")
    if not topic.startswith(prefix) or topic.removeprefix(prefix) not in OWN_TOPICS:
        return []
    return [Problem(field, f'"{topic}" is one of tidegate\'s own topics', "send to a topic of yours")]

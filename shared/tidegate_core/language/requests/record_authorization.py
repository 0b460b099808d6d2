"""What a record may not ask for, however well it is written: to speak for a namespace that is not its topic's, and to have
tidegate itself write into tidegate's own topics.

Who may write into a topic is the brokers' word (ACLs); which namespaces a topic is for is the nodes' (`namespaces` of the
settings). A source's topic needs no rule: its records cannot name a namespace, the source does.
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
"""Behind the prefix. A message into one of them would be a request, a receipt or an end of a run that tidegate vouches for."""
NAMESPACE_HINT: Final = "write it into that namespace's topic, or change the nodes' setting namespaces"


def authorize_request(request: Request, allowed: tuple[str, ...], requests_topic: str) -> None:
    """Passes what a request may ask for.

    Args:
        request: As it was parsed.
        allowed: Of the requests topic.
        requests_topic: Its full name, which tells the prefix of all own topics.

    Raises:
        RefusedRecord: It is forbidden.
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
    """Passes events of namespaces that the topic is for. Raises RefusedRecord."""
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
    """Whether a topic is for a namespace; None stands for something that is not of one, or does not say of which."""
    if "*" in allowed:
        return True
    return namespace is not None and any(
        namespace.startswith(each[:-1]) if each.endswith("*") else namespace == each for each in allowed
    )


def _of_namespace(namespace: str | None, allowed: tuple[str, ...], topic: str) -> list[Problem]:
    if is_for(namespace, allowed):
        return []
    if namespace is None:
        return [Problem("namespace", f"is not said, and {topic} is for some namespaces only", NAMESPACE_HINT)]
    return [Problem("namespace", f'"{shortened(namespace)}" is none of those that {topic} is for', NAMESPACE_HINT)]


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

"""Orders definitions for an apply, so that each comes after the definitions that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate_cli.yaml_documents import ScheduleDocument
from tidegate_core.language.definitions.dependency_cycles import upstreams_of
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.problems import InvalidInput


def in_order_of_dependence(documents: Sequence[ScheduleDocument]) -> list[ScheduleDocument]:
    """Returns event sources first, then each schedule after its upstream schedules. Otherwise the order of the files is kept.

    A source comes first because it reads only records that arrive after it was created; schedules then miss none of them.
    Schedules that depend on each other in a circle have no such order; the first one in the files stays first.
    """
    sources = [document for document in documents if document.kind == "source"]
    schedules = {document.title: document for document in documents if document.kind == "schedule"}
    needed = {title: _upstreams(document) for title, document in schedules.items()}
    ordered: dict[str, ScheduleDocument] = {}
    entered: set[str] = set()
    # Depth first, with an explicit stack: a chain of thousands of schedules exceeds Python's recursion limit.
    for title in schedules:
        stack: list[tuple[str, Iterable[str]]] = [(title, iter(needed[title]))] if title not in entered else []
        entered.add(title)
        while stack:
            waiting, upstreams = stack[-1]
            following = next((each for each in upstreams if each in schedules and each not in entered), None)
            if following is None:
                stack.pop()
                ordered[waiting] = schedules[waiting]
            else:
                entered.add(following)
                stack.append((following, iter(needed[following])))
    return [*sources, *ordered.values()]


def _upstreams(document: ScheduleDocument) -> list[str]:
    try:
        return upstreams_of(parse_schedule(document.spec))
    except (InvalidInput, ValueError, TypeError, RecursionError):
        return []  # The API reports the problems of this definition.

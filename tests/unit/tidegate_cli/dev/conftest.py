"""What the tests of `tidegate dev` share: a console that keeps what it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tidegate_cli.dev.stack_events import Notice, StackEvent


@dataclass
class RecordingConsole:
    events: list[StackEvent] = field(default_factory=list)

    def show(self, event: StackEvent) -> None:
        self.events.append(event)

    def close(self) -> None:
        """Nothing is drawn."""

    @property
    def notices(self) -> list[str]:
        return [f"{event.component} {event.text}" for event in self.events if isinstance(event, Notice)]


@pytest.fixture
def console() -> RecordingConsole:
    return RecordingConsole()

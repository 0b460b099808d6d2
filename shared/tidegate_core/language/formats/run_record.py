"""Records on the topic `tidegate.runs`: states of runs, for other programs. tidegate itself never reads them.

Each record is delivered at least once and has a stable id.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, computed_field

from tidegate_core.language.values.document import Document, Whole
from tidegate_core.language.values.instants import InstantField
from tidegate_core.language.values.names import Name, Namespace, RunId
from tidegate_core.language.values.states import RunState


class RunRecord(Document):
    """A new state of a run.

    Attributes:
        nominal: Nominal time of the run's job.
        job: Id of the run's job.
        reason: Reason of an end that is no success.
        outputs: Outputs that the program reported.
        at: Instant at which the run reached the state.
    """

    EXAMPLE: ClassVar = {
        "run_id": "0042-mfrggzdfmztwq2lkn5wg63tqoe",
        "attempt": 1,
        "state": "succeeded",
        "namespace": "flights",
        "schedule": "join-day",
        "nominal": "2026-11-20T22:00:00Z",
        "job": "0042-mfrggzdfmztwq2lkn5wg63tqoe",
        "reason": None,
        "outputs": {"rows": 842},
        "at": "2026-11-20T22:01:10Z",
    }

    run_id: RunId
    attempt: Whole = Field(ge=1)
    state: RunState
    namespace: Namespace
    schedule: Name
    nominal: InstantField | None = None
    job: RunId | None = None
    reason: str | None = None
    outputs: dict[str, Any] = Field(default_factory=dict)
    at: InstantField

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def id(self) -> str:
        """Id that is the same for repeats of the record."""
        return f"{self.run_id}/{self.attempt}/{self.state}"

    def to_json(self) -> bytes:
        return self.model_dump_json().encode()

"""Documents that the API answers and the client returns, defined once for both sides.

Readers ignore fields that they do not know, so that an older client works with a newer API.
"""

from __future__ import annotations

from tidegate_client.views.dead_letters import (
    DeadLetterAnswer,
    DeadLetterDetail,
    DeadLetterView,
    HeaderView,
    MarkView,
    Raw,
)
from tidegate_client.views.jobs import EvidenceView, JobView
from tidegate_client.views.limits import HolderView, LimitDetail, LimitSummary, WaiterView
from tidegate_client.views.messages import EventView, MessageView
from tidegate_client.views.nodes import Broken, LimitView, NodeView, ShardDetail, ShardView
from tidegate_client.views.request_results import Discarded, FieldProblem, ProblemView, ReceiptView
from tidegate_client.views.runs import LogView, OccurrenceView, RunView
from tidegate_client.views.schedules import DryRun, ScheduleView, SourceView, Suspension
from tidegate_client.views.view import Moment, Page, View
from tidegate_client.views.why import Unmet, Verdict, WhyReason, WhyView

__all__ = [
    "Broken",
    "DeadLetterAnswer",
    "DeadLetterDetail",
    "DeadLetterView",
    "Discarded",
    "DryRun",
    "EventView",
    "EvidenceView",
    "FieldProblem",
    "HeaderView",
    "HolderView",
    "JobView",
    "LimitDetail",
    "LimitSummary",
    "LimitView",
    "LogView",
    "MarkView",
    "MessageView",
    "Moment",
    "NodeView",
    "OccurrenceView",
    "Page",
    "ProblemView",
    "Raw",
    "ReceiptView",
    "RunView",
    "ScheduleView",
    "ShardDetail",
    "ShardView",
    "SourceView",
    "Suspension",
    "Unmet",
    "Verdict",
    "View",
    "WaiterView",
    "WhyReason",
    "WhyView",
]

"""Settings of logs, the same for each process: `TIDEGATE_LOG__LEVEL` and `TIDEGATE_LOG__FORMAT`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class LogSection(BaseModel):
    """Level and format of logs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="`debug` adds each decision that was repeated; `warning` leaves out the API's line for each request.",
    )
    format: Literal["auto", "json", "console"] = Field(
        default="auto", description="`auto`: text on a terminal, JSON lines elsewhere."
    )

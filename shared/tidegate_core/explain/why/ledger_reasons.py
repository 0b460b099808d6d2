"""What an entry of the ledger says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from tidegate_core.explain.why.codes import CODES
from tidegate_core.explain.why.reason import Reason
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.states import Disposition, disposition_text
from tidegate_core.rows.ledger import LedgerRow


def ignored_constraints(reason: Reason, forced: str | None) -> Reason:
    """Returns the reason with what was ignored; `forced` as of `Run` and `LedgerRow`."""
    if forced is None:
        return reason
    told = json.loads(forced)
    text = f"{reason.text}; pending_timeout_action: force had it go although {told['reason']}"
    return replace(reason, text=text, values={**reason.values, "forced": ",".join(told["codes"])})


FOR_WANT_OF: Final = frozenset({"expired/trigger_timeout", "expired/evidence_expired", "skipped/nothing_new"})
"""Codes whose detail is what had not come."""


def of_ledger(row: LedgerRow) -> Reason:
    """Returns what became of the occurrence. Why its run ended as it did is a detail of `launched`."""
    code = disposition_text(Disposition(row.disposition), row.reason)
    detail = row.detail
    values: dict[str, Compared] = {"nominal": format_instant(row.nominal), "at": format_instant(row.at)}
    if row.disposition == Disposition.LAUNCHED:
        values["run"] = row.job_id
        values["state"] = row.state or ""
        when = "" if row.ended_at is None else f" at {format_instant(row.ended_at)}"
        text = f"launched as run {row.job_id}, which ended as {row.state}{when}"
        return ignored_constraints(Reason(code, f"{text}: {detail}" if detail else text, None, values), row.forced)
    values["job"] = row.job_id
    if row.covered is not None and row.covered_from is not None:
        values["covered"] = row.covered
        values["covered_from"] = format_instant(row.covered_from)
    text = f"{CODES.get(code, code)}; decided at {format_instant(row.at)}"
    return Reason(code, f"{text}: {in_words(code, detail)}" if detail else text, None, values)


def in_words(code: str, detail: str) -> str:
    """Returns the detail of an entry for people: what was unmet is kept as a document, for programs."""
    if detail.startswith("{"):
        return str(json.loads(detail)["reason"])
    return f"missing: {detail}" if code in FOR_WANT_OF else detail

"""What a run goes in spite of, where `pending_timeout_action: force` let it go."""

from __future__ import annotations

import json
from dataclasses import replace

from tidegate_core.why.reason import Reason


def in_spite(reason: Reason, forced: str | None) -> Reason:
    """Returns the reason with what was ignored; `forced` as of `Run` and `LedgerRow`."""
    if forced is None:
        return reason
    told = json.loads(forced)
    text = f"{reason.text}; pending_timeout_action: force had it go although {told['reason']}"
    return replace(reason, text=text, values={**reason.values, "forced": ",".join(told["codes"])})

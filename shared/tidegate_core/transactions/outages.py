"""The fact of an outage, written by an owner that was there all along; who takes over writes it with the acquire (`ownership`)."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_core.records.outages import ATTRIBUTE, GAPS, Outage, outages_value
from tidegate_core.store import keys
from tidegate_core.store.values import Item, Transaction, Update
from tidegate_core.transactions import conditions


def record_outages(
    shard: int,
    epoch: int,
    before: Sequence[Outage],
    outages: Sequence[Outage],
    token: str,
    *,
    gaps: Sequence[Outage] = (),
) -> Transaction:
    """Replaces the facts of a shard, and with them what recurring messages take for missed (`with_gap`); its position and tally stay as they are, a checkpoint meanwhile takes nothing away.

    One that arrives late or twice is refused: it consumes the facts from which it was made. It leaves `w` alone, the witness of
    the checkpoint that may be under way beside it: an owner whose own checkpoint got no answer would take itself for fenced.
    Whoever gets no answer to this one looks at the facts.
    """
    names = {"#outages": ATTRIBUTE, "#gaps": GAPS}
    values: Item = {":gaps": outages_value(gaps)}
    expression = "SET #gaps = :gaps"
    if outages:
        values[":outages"] = outages_value(outages)
        expression += ", #outages = :outages"
    else:
        expression += " REMOVE #outages"
    condition = conditions.outages_recordable(epoch, outages_value(before))
    update = Update(keys.progress(shard), expression, names, values, condition)
    return Transaction("outage", (update,), token, None)

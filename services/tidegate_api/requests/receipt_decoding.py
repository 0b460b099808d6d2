"""Decodes receipts of nodes, also of other releases: unknown fields are ignored, as clients ignore them."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from tidegate_core.language.requests.receipts import Discarded, Receipt
from tidegate_core.language.values.problems import Problem, shortened


class ReceiptNotUnderstood(Exception):
    """A receipt exists, but this release cannot read it: the request was decided, and the decision is unknown here.

    Attributes:
        shard: Shard of the stored receipt; without meaning for a receipt from the topic.
    """

    def __init__(self, why: str, shard: int = 0) -> None:
        super().__init__(why)
        self.shard = shard

    @property
    def problem(self) -> Problem:
        """The problem for the client."""
        hint = "do not repeat it with another id; use an API process of the nodes' release, or update this one"
        return Problem("", f"the request was decided, but this release cannot read its receipt ({self})", hint)


def receipt_of(body: str | bytes, shard: int = 0) -> Receipt:
    """Returns the receipt of its JSON. Raises ReceiptNotUnderstood."""
    try:
        return Receipt.model_validate_json(body)
    except ValidationError as refusal:
        # The usual reason is a field that this release does not have.
        known = _known(body)
        if known is None:
            raise _not_understood(refusal, shard) from refusal
    try:
        return Receipt.model_validate_json(json.dumps(known))
    except ValidationError as refusal:
        raise _not_understood(refusal, shard) from refusal


def _known(body: str | bytes) -> dict[str, Any] | None:
    """Returns the fields of a receipt that this release has; None if the body is no JSON object."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    known = {name: value for name, value in said.items() if name in Receipt.model_fields}
    if isinstance(discarded := known.get("discarded"), dict):
        known["discarded"] = {name: value for name, value in discarded.items() if name in Discarded.model_fields}
    return known


def _not_understood(refusal: ValidationError, shard: int) -> ReceiptNotUnderstood:
    first = refusal.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    said = f" is {shortened(repr(first['input']))}" if where else ""
    return ReceiptNotUnderstood(f"{where}{said}: {first['msg']}" if where else first["msg"], shard)

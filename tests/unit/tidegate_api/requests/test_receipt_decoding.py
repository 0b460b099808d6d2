"""Receipts that cannot be read are said to be so, whatever stands in their place."""

from __future__ import annotations

import pytest

from tidegate_api.requests.receipt_decoding import ReceiptNotUnderstood, receipt_of


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b"", b'{"at": 1e400}'])
def test_given_a_stranger_s_record_then_it_is_not_understood(body: bytes) -> None:
    """A deep one on the receipts' topic ended the client that reads it, again and again for as long as its id was waited for."""
    with pytest.raises(ReceiptNotUnderstood):
        receipt_of(body)
